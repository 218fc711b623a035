#include "ngx_tollbar_conn_zone.h"
#include "ngx_tollbar_zone.h"

typedef ngx_tollbar_conn_zone_t zone_t;

static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t make(ngx_shm_zone_t *shm_zone);
static tollbar_in_flight_options options_of(const zone_t *zone, uint64_t capacity);
static size_t least(const zone_t *zone);
static ngx_tollbar_learned_t *learned_in(const zone_t *zone, ngx_slab_pool_t *pool);
static ngx_tollbar_counted_t counted_by(const zone_t *zone);
static int32_t acquire(zone_t *zone, ngx_str_t *key, ngx_uint_t limit, tollbar_ticket *ticket);
static void close_table(void *data);

/* `acquire` builds a key of the table on the stack if it has at most this many bytes. */
#define USUAL_KEY 512

char *ngx_tollbar_conn_zone_read(ngx_conf_t *cf, void *tag, void *key, ngx_array_t *zones, ngx_flag_t learns)
{
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    ngx_shm_zone_t *shm_zone;
    size_t size = 0;
    ngx_pool_cleanup_t *cleanup;
    ngx_uint_t n;
    ngx_int_t rc;
    char *error;

    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }
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
            rc = learns ? ngx_tollbar_adaptive_read(cf, &value[n], &zone->adaptive) : NGX_DECLINED;
            if (rc == NGX_DECLINED) {
                return ngx_tollbar_conf_refuse(
                    cf, learns ? "invalid parameter \"%V\", it must be zone=NAME:SIZE, on_full=deny or on_full=allow, "
                                 "or adaptive, initial=, least=, most=, timeout="
                               : "invalid parameter \"%V\", it must be zone=NAME:SIZE, on_full=deny or on_full=allow",
                    &value[n]);
            }
            if (rc != NGX_OK) {
                return NGX_CONF_ERROR;
            }
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:1m", &value[0]);
    }
    if (ngx_tollbar_adaptive_check(cf, &name, &zone->adaptive) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    shm_zone = ngx_shared_memory_add(cf, &name, size, tag);
    if (shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (shm_zone->data != NULL) {
        zone = shm_zone->data;
        return ngx_tollbar_conf_bound(cf, &name, &zone->keys, &zone->where);
    }
    cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (cleanup == NULL) {
        return NGX_CONF_ERROR;
    }
    cleanup->handler = close_table;
    cleanup->data = zone;
    zone->shm_zone = shm_zone;
    zone->key = key;
    zone->where = ngx_tollbar_conf_here(cf);
    zone->cycle = cf->cycle;
    zone->keys = value[1];
    shm_zone->data = zone;
    shm_zone->init = init;
    return ngx_tollbar_conf_push(cf, zones, zone);
}

void ngx_tollbar_conn_zone_settle(zone_t *zone)
{
    ngx_shm_zone_t *former = ngx_tollbar_zone_former(zone->shm_zone);
    const zone_t *old = former != NULL ? former->data : NULL;

    /* Old workers still learn in the old memory, so other parameters need new memory. */
    if (old != NULL && ngx_memcmp(&old->adaptive, &zone->adaptive, sizeof(zone->adaptive)) != 0) {
        ngx_tollbar_zone_renew(zone->shm_zone);
    } else {
        ngx_tollbar_zone_keep(zone->shm_zone);
    }
}

void ngx_tollbar_conn_zone_join(zone_t *zone, ngx_log_t *log)
{
    int32_t rc = tollbar_in_flight_join(zone->table);

    zone->joined = rc == 0;
    if (rc == TOLLBAR_E_OWNERS_FULL) {
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\" is used by %d processes, which are the most that can",
                      &zone->shm_zone->shm.name, NGX_TOLLBAR_CONN_OWNERS);
    } else if (rc != 0) {
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\": %s", &zone->shm_zone->shm.name, tollbar_strerror(rc));
    }
}

void ngx_tollbar_conn_zone_part(zone_t *zone)
{
    tollbar_in_flight_close(zone->table);
    zone->table = NULL;
    zone->joined = 0;
}

ngx_int_t ngx_tollbar_conn_zone_enter(zone_t *zone, ngx_str_t *key, ngx_uint_t limit, ngx_log_t *log,
                                      ngx_tollbar_conn_held_t *held)
{
    int32_t rc = TOLLBAR_E_OWNERS_FULL;

    /* Without a master, nginx does not call init_process after a reload. A failed join is tried
     * again once a second. */
    if (!zone->joined && zone->table != NULL && zone->full.second != ngx_time()) {
        ngx_tollbar_conn_zone_join(zone, log);
    }
    if (zone->joined) {
        rc = acquire(zone, key, limit, &held->ticket);
    }
    if (rc == TOLLBAR_ALLOWED) {
        held->zone = zone;
        return NGX_OK;
    }
    if (rc == TOLLBAR_DENIED) {
        return NGX_BUSY;
    }
    if (ngx_tollbar_seldom(&zone->full)) {
        ngx_log_error(NGX_LOG_ERR, log, 0, "zone \"%V\" is full: %s%s", &zone->shm_zone->shm.name,
                      zone->allow_when_full ? "a key without a slot is not counted" : "a key without a slot is refused",
                      zone->full.text);
    }
    return zone->allow_when_full ? NGX_DECLINED : NGX_ERROR;
}

void ngx_tollbar_conn_zone_leave(ngx_tollbar_conn_held_t *held, const ngx_tollbar_sample_t *sample)
{
    ngx_tollbar_counted_t counted;

    /* After exit_process there is no table, and the process's requests no longer count. */
    if (held->zone->table == NULL) {
        return;
    }
    if (held->zone->learned != NULL) {
        counted = counted_by(held->zone);
        ngx_tollbar_adaptive_release(held->zone->learned, &counted, held->ticket, sample);
    } else {
        (void) tollbar_in_flight_release(held->zone->table, held->ticket);
    }
}

void ngx_tollbar_conn_zone_state(const zone_t *zone, ngx_tollbar_learned_state_t *state)
{
    ngx_tollbar_counted_t counted = counted_by(zone);

    ngx_tollbar_adaptive_state(zone->learned, &counted, state);
}

/* All requests of a zone with `adaptive` have one key, the text of the zone's KEY. */
static ngx_tollbar_counted_t counted_by(const zone_t *zone)
{
    return (ngx_tollbar_counted_t) { zone->table, zone->keys.data, zone->keys.len };
}

/* Acquires a permit of the table's key: the text of the zone's key, a NUL, and the request's
 * key. */
static int32_t acquire(zone_t *zone, ngx_str_t *key, ngx_uint_t limit, tollbar_ticket *ticket)
{
    u_char usual[USUAL_KEY], *joined = usual, *p;
    size_t length = zone->keys.len + 1 + key->len;
    ngx_tollbar_counted_t counted;
    int32_t rc;

    if (zone->learned != NULL) {
        counted = counted_by(zone);
        return ngx_tollbar_adaptive_acquire(zone->learned, &counted, ticket);
    }
    if (length > sizeof(usual)) {
        joined = ngx_alloc(length, ngx_cycle->log);
        if (joined == NULL) {
            return TOLLBAR_E_NO_MEMORY;
        }
    }
    p = ngx_cpymem(joined, zone->keys.data, zone->keys.len);
    *p++ = '\0';
    ngx_memcpy(p, key->data, key->len);
    rc = tollbar_in_flight_acquire(zone->table, joined, length, (uint32_t) limit, ticket);
    if (joined != usual) {
        ngx_free(joined);
    }
    return rc;
}

/* nginx calls this after it has mapped the zone. The zone's memory is new, or, in a reload that
 * keeps the zone, still in use by the old workers. */
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data)
{
    zone_t *zone = shm_zone->data;
    zone_t *old = data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    int32_t error;

    if (pool->data == NULL) {
        return make(shm_zone);
    }
    error = tollbar_in_flight_attach(pool->data, (size_t) (pool->end - (u_char *) pool->data), &zone->table);
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" cannot be used again: %s, in %V:%ui", &shm_zone->shm.name,
                      tollbar_strerror(error), &zone->where.file, zone->where.line);
        return NGX_ERROR;
    }
    zone->learned = learned_in(zone, pool);
    if (old != NULL) {
        old->kept = 1;
    }
    return NGX_OK;
}

/* The last bytes of the zone's pages, if the zone learns. */
static ngx_tollbar_learned_t *learned_in(const zone_t *zone, ngx_slab_pool_t *pool)
{
    size_t bytes = ngx_tollbar_adaptive_bytes(&zone->adaptive);
    u_char *end = pool->start + (pool->last - pool->pages) * ngx_pagesize;

    return bytes != 0 ? (ngx_tollbar_learned_t *) (end - bytes) : NULL;
}

/* Makes the table of a new zone, as `make` in ngx_tollbar_zone.c does. */
static ngx_int_t make(ngx_shm_zone_t *shm_zone)
{
    zone_t *zone = shm_zone->data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    size_t pages = pool->pfree * ngx_pagesize, room = pages - ngx_tollbar_adaptive_bytes(&zone->adaptive);
    tollbar_in_flight_options options = options_of(zone, 0);
    int32_t error = TOLLBAR_E_NO_MEMORY;

    /* The allocator gives more than a page as whole pages, which are aligned enough for a table. */
    pool->data = ngx_slab_alloc_locked(pool, pages);
    if (pool->data != NULL) {
        error = tollbar_in_flight_init_in(pool->data, room, &options, &zone->table);
    }
    if (error != 0 && least(zone) > room) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" of %uz bytes is too small, for %uD workers it must have at least %uzk in %V:%ui",
                      &shm_zone->shm.name, shm_zone->shm.size, options.processes,
                      (ngx_align(least(zone), ngx_pagesize) + 4 * ngx_pagesize) / 1024, &zone->where.file, zone->where.line);
    } else if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" of %uz bytes cannot hold a table: %s, in %V:%ui",
                      &shm_zone->shm.name, shm_zone->shm.size, tollbar_strerror(error), &zone->where.file, zone->where.line);
    }
    if (error == 0 && zone->adaptive.on) {
        zone->learned = learned_in(zone, pool);
        ngx_tollbar_adaptive_make(zone->learned, &zone->adaptive);
    }
    return error == 0 ? NGX_OK : NGX_ERROR;
}

/* The options of a table. `processes` is the number of workers, or of processors if that is higher.
 * It only sets the room of each key: the table counts more processes, too. */
static tollbar_in_flight_options options_of(const zone_t *zone, uint64_t capacity)
{
    ngx_core_conf_t *core = (ngx_core_conf_t *) ngx_get_conf(zone->cycle->conf_ctx, ngx_core_module);
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;

    options.processes = (uint32_t) ngx_max(core->worker_processes, ngx_ncpu);
    options.capacity = capacity;
    return options;
}

/* The bytes of the smallest table. */
static size_t least(const zone_t *zone)
{
    tollbar_in_flight_options options = options_of(zone, 1);
    uint64_t bytes = 0;

    (void) tollbar_in_flight_bytes(&options, &bytes);
    return (size_t) bytes;
}

/* nginx calls this when it frees the configuration, and may have unmapped the zone's memory before.
 * Closing the view of an owner writes to that memory, and closing any other view does not. A master
 * is no owner, so its view is closed. A process without a master is an owner. Its view is closed
 * only if a later configuration still uses the memory (`kept`), and otherwise stays until the
 * process ends. */
static void close_table(void *data)
{
    zone_t *zone = data;

    if (!zone->joined || zone->kept) {
        tollbar_in_flight_close(zone->table);
        zone->table = NULL;
    }
}
