/* Limits on open requests or connections: the directives of the modules for http and for stream,
 * and the counting. This code uses neither http nor stream. */

#ifndef NGX_TOLLBAR_CONN_LIMIT_H
#define NGX_TOLLBAR_CONN_LIMIT_H

#include "ngx_tollbar_conn_zone.h"

typedef struct {
    ngx_tollbar_limit_t base;
    /* 0: none is given, because the zone has `adaptive`. */
    ngx_uint_t most;
    /* The module sets it after all directives have been read. */
    ngx_tollbar_conn_zone_t *zone;
} ngx_tollbar_conn_limit_t;

/* A level of the configuration. */
typedef struct {
    ngx_array_t limits; /* of ngx_tollbar_conn_limit_t * */
    /* NGX_CONF_UNSET_UINT: that of `usual_status`, or 503 by a zone with `adaptive`. */
    ngx_uint_t status_code;
    ngx_uint_t usual_status;
    ngx_uint_t log_level;
    ngx_flag_t dry_run;
} ngx_tollbar_conn_conf_t;

typedef struct {
    ngx_array_t zones;  /* of ngx_tollbar_conn_zone_t * */
    ngx_array_t limits; /* of ngx_tollbar_conn_limit_t *, from all levels */
} ngx_tollbar_conn_main_conf_t;

/* The limits that count a request or connection. The record is the data of a cleanup of the
 * request's pool, whose handler is ngx_tollbar_conn_record_leave. */
typedef struct {
    /* One of the numbers of ngx_tollbar_variables.h. */
    ngx_uint_t status;
    ngx_uint_t held_n;
    ngx_tollbar_conn_held_t *held;
    /* When the first zone counted the request, by ngx_tollbar_now_ns. */
    uint64_t begin_ns;
    /* What zones with `adaptive` learn from the request: nothing, until the module sets it. */
    ngx_tollbar_sample_t sample;
} ngx_tollbar_conn_record_t;

/* Create and merge configurations. `status` is the status of a refusal that no directive sets. */
void *ngx_tollbar_conn_create_main_conf(ngx_conf_t *cf);
void *ngx_tollbar_conn_create_conf(ngx_conf_t *cf);
char *ngx_tollbar_conn_merge_conf(ngx_tollbar_conn_conf_t *from, ngx_tollbar_conn_conf_t *conf,
                                  ngx_uint_t status);

/* Reads `NAME NUMBER`, or `NAME` for a zone with `adaptive`. */
char *ngx_tollbar_conn_read_limit(ngx_conf_t *cf, void *tag, ngx_tollbar_conn_conf_t *conf,
                                  ngx_tollbar_conn_main_conf_t *main);

/* Called after all directives have been read. Checks that the zones of all limits are declared, and
 * that those without `adaptive` have a number. */
ngx_int_t ngx_tollbar_conn_complete(ngx_conf_t *cf, ngx_tollbar_conn_main_conf_t *main);

/* Call ngx_tollbar_conn_zone_join and ngx_tollbar_conn_zone_part for each zone. `main` is NULL in a
 * configuration without the module's block. */
void ngx_tollbar_conn_join(ngx_tollbar_conn_main_conf_t *main, ngx_log_t *log);
void ngx_tollbar_conn_part(ngx_tollbar_conn_main_conf_t *main);

/* Counts a request by one of the limits of its level. The first limit for which the request has a
 * key makes `*record`. When nginx destroys the pool, no limit counts the record any more. Returns
 *
 *     NGX_OK        if the limit counts the request, the request has no key, or the limit's zone is
 *                   full and admits the request uncounted: the next limit follows
 *     a status      if the limit refuses the request. Then the limits before this one no longer
 *                   count it, and the refusal has been logged
 *     NGX_DECLINED  likewise, in a dry run
 *     NGX_ERROR     if there is no memory */
ngx_int_t ngx_tollbar_conn_count(const ngx_tollbar_conn_conf_t *conf,
                                 const ngx_tollbar_conn_limit_t *limit, ngx_str_t *key,
                                 ngx_pool_t *pool, ngx_log_t *log,
                                 ngx_tollbar_conn_record_t **record);

/* Nanoseconds of a clock that no one sets. */
uint64_t ngx_tollbar_now_ns(void);

/* Ends the counting of the record by all limits. */
void ngx_tollbar_conn_record_leave(void *record);

#endif
