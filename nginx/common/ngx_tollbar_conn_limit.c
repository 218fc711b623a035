#include "ngx_tollbar_conn_limit.h"

ngx_str_t ngx_tollbar_conn_statuses[] = { ngx_string("PASSED"), ngx_string("REJECTED"), ngx_string("REJECTED_DRY_RUN") };

static ngx_int_t add(ngx_conf_t *cf, ngx_array_t *limits, const ngx_tollbar_conn_limit_t *limit);

char *ngx_tollbar_conn_limits_read(ngx_conf_t *cf, void *tag, ngx_array_t *limits, ngx_array_t *all)
{
    ngx_tollbar_conn_limit_t *limit = limits->elts;
    ngx_tollbar_conn_limit_t new;
    ngx_uint_t n;
    char *error = ngx_tollbar_conn_limit_read(cf, tag, &new.shm_zone, &new.most);

    if (error != NGX_CONF_OK) {
        return error;
    }
    new.where = ngx_tollbar_conf_here(cf);
    for (n = 0; n < limits->nelts; n++) {
        if (limit[n].shm_zone == new.shm_zone) {
            return ngx_tollbar_conf_duplicate(cf, &limit[n].where, &new.shm_zone->shm.name);
        }
    }
    return add(cf, limits, &new) == NGX_OK && add(cf, all, &new) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static ngx_int_t add(ngx_conf_t *cf, ngx_array_t *limits, const ngx_tollbar_conn_limit_t *limit)
{
    ngx_tollbar_conn_limit_t *place;

    if (limits->elts == NULL && ngx_array_init(limits, cf->pool, 1, sizeof(ngx_tollbar_conn_limit_t)) != NGX_OK) {
        return NGX_ERROR;
    }
    place = ngx_array_push(limits);
    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = *limit;
    return NGX_OK;
}

ngx_int_t ngx_tollbar_conn_limits_check(ngx_conf_t *cf, ngx_array_t *all)
{
    ngx_tollbar_conn_limit_t *limit = all->elts;
    ngx_uint_t n;

    for (n = 0; n < all->nelts; n++) {
        if (limit[n].shm_zone->data == NULL) {
            ngx_tollbar_conf_late(cf, &limit[n].where, "unknown zone \"%V\" in \"tollbar_conn\" directive, a \"tollbar_conn_zone\" must "
                                  "declare it", &limit[n].shm_zone->shm.name);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

void ngx_tollbar_conn_zones_join(ngx_array_t *zones, ngx_log_t *log)
{
    ngx_tollbar_conn_zone_t **zone = zones->elts;
    ngx_uint_t n;

    /* Cache managers and loaders have no requests to count. */
    for (n = 0; n < zones->nelts && ngx_process != NGX_PROCESS_HELPER; n++) {
        ngx_tollbar_conn_zone_join(zone[n], log);
    }
}

void ngx_tollbar_conn_zones_part(ngx_array_t *zones)
{
    ngx_tollbar_conn_zone_t **zone = zones->elts;
    ngx_uint_t n;

    for (n = 0; n < zones->nelts; n++) {
        ngx_tollbar_conn_zone_part(zone[n]);
    }
}

ngx_tollbar_conn_record_t *ngx_tollbar_conn_record_add(ngx_pool_t *pool, ngx_uint_t limits)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(pool, sizeof(ngx_tollbar_conn_record_t));
    ngx_tollbar_conn_record_t *record;

    if (cleanup == NULL) {
        return NULL;
    }
    record = cleanup->data;
    record->status = NGX_TOLLBAR_CONN_PASSED;
    record->held_n = 0;
    record->held = ngx_palloc(pool, limits * sizeof(ngx_tollbar_conn_held_t));
    if (record->held == NULL) {
        return NULL;
    }
    cleanup->handler = ngx_tollbar_conn_record_leave;
    return record;
}

ngx_int_t ngx_tollbar_conn_record_enter(ngx_tollbar_conn_record_t *record, ngx_tollbar_conn_limit_t *limit, ngx_str_t *key,
                                        ngx_flag_t dry_run, ngx_uint_t level, ngx_log_t *log)
{
    ngx_tollbar_conn_zone_t *zone = limit->shm_zone->data;
    ngx_int_t rc = ngx_tollbar_conn_zone_enter(zone, key, limit->most, log, &record->held[record->held_n]);

    if (rc == NGX_OK) {
        record->held_n++;
        return NGX_OK;
    }
    if (rc == NGX_DECLINED) {
        return NGX_OK;
    }
    ngx_tollbar_conn_record_leave(record);
    if (rc == NGX_BUSY) {
        ngx_log_error(level, log, 0, "limiting connections%s by zone \"%V\"", dry_run ? ", dry run," : "",
                      &limit->shm_zone->shm.name);
    }
    record->status = dry_run ? NGX_TOLLBAR_CONN_REJECTED_DRY_RUN : NGX_TOLLBAR_CONN_REJECTED;
    return NGX_DECLINED;
}

void ngx_tollbar_conn_record_leave(void *data)
{
    ngx_tollbar_conn_record_t *record = data;

    while (record->held_n > 0) {
        ngx_tollbar_conn_zone_leave(&record->held[--record->held_n]);
    }
}
