#include "ngx_tollbar_conn_zone.h"

typedef ngx_tollbar_conn_zone_t zone_t;

static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t make(ngx_shm_zone_t *shm_zone);
static size_t processes(const zone_t *zone);

char *ngx_tollbar_conn_zone_read(ngx_conf_t *cf, void *tag, zone_t *zone)
{
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    ngx_shm_zone_t *shm_zone;
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    for (n = 2; n < cf->args->nelts; n++) {
        if (ngx_strncmp(value[n].data, "zone=", 5) == 0) {
            error = ngx_tollbar_conf_zone(cf, &value[n], &name, &size);
            if (error != NGX_CONF_OK) {
                return error;
            }
        } else if (ngx_strcmp(value[n].data, "on_full=deny") == 0) {
            zone->allow_when_full = 0;
        } else if (ngx_strcmp(value[n].data, "on_full=allow") == 0) {
            zone->allow_when_full = 1;
        } else {
            return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME:SIZE, on_full=deny or on_full=allow",
                                           &value[n]);
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:1m", &value[0]);
    }
    shm_zone = ngx_shared_memory_add(cf, &name, size, tag);
    if (shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (shm_zone->data != NULL) {
        zone = shm_zone->data;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V \"%V\" is already bound to key \"%V\" in %V:%ui, and again", &value[0], &name,
                           &zone->keys, &zone->where.file, zone->where.line);
        return NGX_CONF_ERROR;
    }
    zone->shm_zone = shm_zone;
    zone->where = ngx_tollbar_conf_here(cf);
    zone->cycle = cf->cycle;
    zone->keys = value[1];
    shm_zone->data = zone;
    shm_zone->init = init;
    return NGX_CONF_OK;
}

char *ngx_tollbar_conn_limit_read(ngx_conf_t *cf, void *tag, ngx_shm_zone_t **shm_zone, ngx_uint_t *limit)
{
    ngx_str_t *value = cf->args->elts;
    ngx_int_t number = ngx_atoi(value[2].data, value[2].len);

    if (number <= 0 || number > NGX_TOLLBAR_CONN_MOST) {
        return ngx_tollbar_conf_refuse(cf, "invalid number of connections \"%V\", it must be a whole number from 1 to 65535", &value[2]);
    }
    *limit = (ngx_uint_t) number;
    *shm_zone = ngx_tollbar_conf_find_zone(cf, &value[1], 0, tag);
    return *shm_zone != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}

void ngx_tollbar_conn_zone_join(zone_t *zone, ngx_log_t *log)
{
    if (ngx_tollbar_conn_join(&zone->view, ngx_tollbar_conn_self()) != 0) {
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\" is used by %d processes, which are the most that can",
                      &zone->shm_zone->shm.name, NGX_TOLLBAR_CONN_OWNERS);
    }
}

void ngx_tollbar_conn_zone_part(zone_t *zone)
{
    ngx_tollbar_conn_part(&zone->view);
}

ngx_int_t ngx_tollbar_conn_zone_enter(zone_t *zone, ngx_str_t *key, ngx_uint_t limit, ngx_log_t *log,
                                      ngx_tollbar_conn_held_t *held)
{
    ngx_tollbar_conn_t *view = &zone->view;
    uint64_t hash;
    ngx_flag_t first;
    int rc = NGX_TOLLBAR_CONN_FULL;

    /* nginx does not call init_process after a reload of a single process without a master, so the process joins here. */
    first = zone->full.second != ngx_time();
    if (view->record == 0 && first) {
        ngx_tollbar_conn_zone_join(zone, log);
    }
    if (view->record != 0) {
        hash = zone->keys_hash ^ ngx_tollbar_conn_hash(view, key->data, key->len);
        rc = ngx_tollbar_conn_enter(view, hash, (uint32_t) limit, ngx_current_msec, &held->slot);
        if (rc == NGX_TOLLBAR_CONN_FULL && first) {
            /* Frees the slots of killed workers that no new worker has cleaned up yet. */
            ngx_tollbar_conn_clean(view, ngx_tollbar_conn_self());
            rc = ngx_tollbar_conn_enter(view, hash, (uint32_t) limit, ngx_current_msec, &held->slot);
        }
    }
    if (rc == NGX_TOLLBAR_CONN_IN) {
        held->zone = zone;
        return NGX_OK;
    }
    if (rc == NGX_TOLLBAR_CONN_BUSY) {
        return NGX_BUSY;
    }
    if (ngx_tollbar_seldom(&zone->full)) {
        ngx_log_error(NGX_LOG_ERR, log, 0, "zone \"%V\" is full: %s%s", &zone->shm_zone->shm.name,
                      zone->allow_when_full ? "a key without a slot is not counted" : "a key without a slot is refused",
                      zone->full.text);
    }
    return zone->allow_when_full ? NGX_DECLINED : NGX_ERROR;
}

void ngx_tollbar_conn_zone_leave(ngx_tollbar_conn_held_t *held)
{
    ngx_tollbar_conn_leave(&held->zone->view, held->slot);
}

/* nginx calls this with the zone mapped. Its memory is new, or still in use by the running configuration. */
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data)
{
    zone_t *zone = shm_zone->data;
    zone_t *old = data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    zone->view.gone = ngx_tollbar_conn_gone;
    if (pool->data == NULL) {
        if (make(shm_zone) != NGX_OK) {
            return NGX_ERROR;
        }
    } else {
        zone->view.memory = ngx_tollbar_conn_find(pool->data, (size_t) (pool->end - (u_char *) pool->data));
        if (zone->view.memory == NULL) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" cannot be used again, in %V:%ui", &shm_zone->shm.name,
                          &zone->where.file, zone->where.line);
            return NGX_ERROR;
        }
        /* A master is no owner. A single process without a master is one, and keeps its record. */
        if (old != NULL) {
            zone->view = old->view;
        }
    }
    /* The hash of KEY's text separates the counts of two configurations whose KEYs have equal values. */
    zone->keys_hash = ngx_tollbar_conn_hash(&zone->view, zone->keys.data, zone->keys.len);
    return NGX_OK;
}

/* Makes the table in all memory that the slab allocator can give. The slab's header stays at the start of the zone, because nginx checks its
 * mutex whenever a worker dies. */
static ngx_int_t make(ngx_shm_zone_t *shm_zone)
{
    zone_t *zone = shm_zone->data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    size_t room = pool->pfree * ngx_pagesize;
    ngx_fd_t fd = ngx_open_file("/dev/urandom", NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    ssize_t n = -1;
    uint64_t seed[2];

    /* Not ngx_random: a client that guesses the seed can choose keys that fill a window. */
    if (fd != NGX_INVALID_FILE) {
        n = ngx_read_fd(fd, seed, sizeof(seed));
        ngx_close_file(fd);
    }
    if (n != sizeof(seed)) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, ngx_errno, "/dev/urandom cannot be read");
        return NGX_ERROR;
    }
    /* The allocator gives more than a page as whole pages, which are aligned to cache lines. */
    pool->data = ngx_slab_alloc_locked(pool, room);
    if (pool->data != NULL) {
        zone->view.memory = ngx_tollbar_conn_make(pool->data, room, processes(zone), seed);
    }
    if (zone->view.memory == NULL) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" of %uz bytes is too small, for %uz workers it must have at least %uzk in %V:%ui",
                      &shm_zone->shm.name, shm_zone->shm.size, processes(zone),
                      (ngx_align(ngx_tollbar_conn_least(processes(zone)), ngx_pagesize) + 4 * ngx_pagesize) / 1024,
                      &zone->where.file, zone->where.line);
        return NGX_ERROR;
    }
    return NGX_OK;
}

/* The number of workers for which windows have room. More workers are counted, too. */
static size_t processes(const zone_t *zone)
{
    ngx_core_conf_t *core = (ngx_core_conf_t *) ngx_get_conf(zone->cycle->conf_ctx, ngx_core_module);

    return (size_t) ngx_max(core->worker_processes, ngx_ncpu);
}
