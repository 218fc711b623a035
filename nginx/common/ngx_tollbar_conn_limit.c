#include "ngx_tollbar_conn_limit.h"
#include "ngx_tollbar_variables.h"

typedef ngx_tollbar_conn_limit_t limit_t;
typedef ngx_tollbar_conn_conf_t conf_t;
typedef ngx_tollbar_conn_main_conf_t main_conf_t;
typedef ngx_tollbar_conn_record_t record_t;

static ngx_int_t status_of(const conf_t *conf, const limit_t *limit);
static record_t *add_record(ngx_pool_t *pool, ngx_uint_t limits);

/* The status of a refusal by a limit that is learned: the server has too many requests, and not the
 * client. */
#define LEARNED_STATUS 503

void *ngx_tollbar_conn_create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(main_conf_t));
}

void *ngx_tollbar_conn_create_conf(ngx_conf_t *cf)
{
    conf_t *conf = ngx_pcalloc(cf->pool, sizeof(conf_t));

    if (conf != NULL) {
        conf->log_level = NGX_CONF_UNSET_UINT;
        conf->status_code = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
    }
    return conf;
}

char *ngx_tollbar_conn_merge_conf(conf_t *from, conf_t *conf, ngx_uint_t status)
{
    /* A level without limits inherits those of the outer level. */
    if (conf->limits.elts == NULL) {
        conf->limits = from->limits;
    }
    ngx_conf_merge_uint_value(conf->log_level, from->log_level, NGX_LOG_ERR);
    ngx_conf_merge_uint_value(conf->status_code, from->status_code, NGX_CONF_UNSET_UINT);
    conf->usual_status = status;
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    return NGX_CONF_OK;
}

char *ngx_tollbar_conn_read_limit(ngx_conf_t *cf, void *tag, conf_t *conf, main_conf_t *main)
{
    ngx_str_t *value = cf->args->elts;
    ngx_int_t number = cf->args->nelts > 2 ? ngx_atoi(value[2].data, value[2].len) : 0;
    limit_t *limit = ngx_pcalloc(cf->pool, sizeof(limit_t));

    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }
    if (cf->args->nelts > 2 && (number <= 0 || number > NGX_TOLLBAR_CONN_MOST)) {
        return ngx_tollbar_conf_refuse(cf, "invalid number of connections \"%V\", it must be a "
                                       "whole number from 1 to 65535", &value[2]);
    }
    limit->most = (ngx_uint_t) number;
    if (ngx_tollbar_conf_find_zone(cf, &value[1], 0, tag, &limit->base) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    return ngx_tollbar_conf_add_limit(cf, &limit->base, &conf->limits, &main->limits);
}

ngx_int_t ngx_tollbar_conn_complete(ngx_conf_t *cf, main_conf_t *main)
{
    limit_t **limits = main->limits.elts;
    ngx_uint_t n;

    for (n = 0; n < main->limits.nelts; n++) {
        if (ngx_tollbar_conf_declared(cf, &limits[n]->base, "tollbar_conn") != NGX_OK) {
            return NGX_ERROR;
        }
        limits[n]->zone = limits[n]->base.shm_zone->data;
        if (limits[n]->zone->adaptive.on != (limits[n]->most == 0)) {
            ngx_tollbar_conf_late(cf, &limits[n]->base.where,
                                  limits[n]->most == 0
                                      ? "\"tollbar_conn\" must have a number, because zone \"%V\" has no \"adaptive\""
                                      : "\"tollbar_conn\" must have no number, because zone \"%V\" learns its limit",
                                  &limits[n]->base.shm_zone->shm.name);
            return NGX_ERROR;
        }
    }
    for (n = 0; n < main->zones.nelts; n++) {
        ngx_tollbar_conn_zone_settle(((ngx_tollbar_conn_zone_t **) main->zones.elts)[n]);
    }
    return NGX_OK;
}

void ngx_tollbar_conn_join(main_conf_t *main, ngx_log_t *log)
{
    ngx_uint_t n;

    /* Cache managers and loaders have no requests to count. */
    if (main == NULL || ngx_process == NGX_PROCESS_HELPER) {
        return;
    }
    for (n = 0; n < main->zones.nelts; n++) {
        ngx_tollbar_conn_zone_join(((ngx_tollbar_conn_zone_t **) main->zones.elts)[n], log);
    }
}

void ngx_tollbar_conn_part(main_conf_t *main)
{
    ngx_uint_t n;

    for (n = 0; main != NULL && n < main->zones.nelts; n++) {
        ngx_tollbar_conn_zone_part(((ngx_tollbar_conn_zone_t **) main->zones.elts)[n]);
    }
}

ngx_int_t ngx_tollbar_conn_count(const conf_t *conf, const limit_t *limit, ngx_str_t *key,
                                 ngx_pool_t *pool, ngx_log_t *log, record_t **record)
{
    ngx_int_t rc;

    if (key->len == 0) {
        return NGX_OK;
    }
    if (*record == NULL) {
        *record = add_record(pool, conf->limits.nelts);
        if (*record == NULL) {
            return NGX_ERROR;
        }
    }
    rc = ngx_tollbar_conn_zone_enter(limit->zone, key, limit->most, log,
                                     &(*record)->held[(*record)->held_n]);
    if (rc == NGX_OK) {
        (*record)->held_n++;
    }
    if (rc == NGX_OK || rc == NGX_DECLINED) {
        return NGX_OK;
    }
    ngx_tollbar_conn_record_leave(*record);
    if (rc == NGX_BUSY) {
        ngx_log_error(conf->log_level, log, 0, "limiting connections%s by zone \"%V\"",
                      conf->dry_run ? ", dry run," : "", &limit->base.shm_zone->shm.name);
    }
    (*record)->status = conf->dry_run ? NGX_TOLLBAR_REJECTED_DRY_RUN : NGX_TOLLBAR_REJECTED;
    return conf->dry_run ? NGX_DECLINED : status_of(conf, limit);
}

static ngx_int_t status_of(const conf_t *conf, const limit_t *limit)
{
    if (conf->status_code != NGX_CONF_UNSET_UINT) {
        return (ngx_int_t) conf->status_code;
    }
    return limit->zone->adaptive.on ? LEARNED_STATUS : (ngx_int_t) conf->usual_status;
}

static record_t *add_record(ngx_pool_t *pool, ngx_uint_t limits)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(pool, sizeof(record_t));
    record_t *record;

    if (cleanup == NULL) {
        return NULL;
    }
    record = cleanup->data;
    record->status = NGX_TOLLBAR_PASSED;
    record->held_n = 0;
    record->begin_ns = ngx_tollbar_now_ns();
    record->sample.outcome = NGX_TOLLBAR_IGNORED;
    record->sample.latency_ns = 0;
    record->held = ngx_palloc(pool, limits * sizeof(ngx_tollbar_conn_held_t));
    if (record->held == NULL) {
        return NULL;
    }
    cleanup->handler = ngx_tollbar_conn_record_leave;
    return record;
}

void ngx_tollbar_conn_record_leave(void *data)
{
    record_t *record = data;

    while (record->held_n > 0) {
        ngx_tollbar_conn_zone_leave(&record->held[--record->held_n], &record->sample);
    }
}

uint64_t ngx_tollbar_now_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}
