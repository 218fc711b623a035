/* Limits on open requests or connections. The modules for http and for stream share this code, which uses neither http nor stream. */

#ifndef NGX_TOLLBAR_CONN_LIMIT_H
#define NGX_TOLLBAR_CONN_LIMIT_H

#include "ngx_tollbar_conn_zone.h"

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* Where the directive stands. */
    ngx_tollbar_where_t where;
    ngx_uint_t most;
} ngx_tollbar_conn_limit_t;

/* The limits that count a request or connection. The record is the data of a cleanup of the request's pool, whose handler is
 * ngx_tollbar_conn_record_leave. */
typedef struct {
    ngx_uint_t status;
    ngx_uint_t held_n;
    ngx_tollbar_conn_held_t *held;
} ngx_tollbar_conn_record_t;

#define NGX_TOLLBAR_CONN_PASSED 0
#define NGX_TOLLBAR_CONN_REJECTED 1
#define NGX_TOLLBAR_CONN_REJECTED_DRY_RUN 2

/* The values of $tollbar_conn_status, by the number of the status. */
extern ngx_str_t ngx_tollbar_conn_statuses[];

/* Reads `NAME NUMBER` and appends the limit to `limits`, the limits of the level, and to `all`, the limits of the configuration. Both arrays have
 * elements ngx_tollbar_conn_limit_t. An array that is all zero bytes is initialised. */
char *ngx_tollbar_conn_limits_read(ngx_conf_t *cf, void *tag, ngx_array_t *limits, ngx_array_t *all);

/* Called after all directives have been read. Checks that the zones of all limits are declared. */
ngx_int_t ngx_tollbar_conn_limits_check(ngx_conf_t *cf, ngx_array_t *all);

/* Call ngx_tollbar_conn_zone_join and ngx_tollbar_conn_zone_part for each zone. `zones` holds pointers to structs that begin with an
 * ngx_tollbar_conn_zone_t. */
void ngx_tollbar_conn_zones_join(ngx_array_t *zones, ngx_log_t *log);
void ngx_tollbar_conn_zones_part(ngx_array_t *zones);

/* Makes a record with room for `limits` limits. When nginx destroys the pool, no limit counts the record any more. */
ngx_tollbar_conn_record_t *ngx_tollbar_conn_record_add(ngx_pool_t *pool, ngx_uint_t limits);

/* Counts the record by one more limit. NGX_OK: the limit counts it, or its zone is full and admits it uncounted. NGX_DECLINED: the limit refuses it.
 * Then the limits before this one no longer count it, and the refusal has been logged, at `level` if the limit was
 * reached. */
ngx_int_t ngx_tollbar_conn_record_enter(ngx_tollbar_conn_record_t *record, ngx_tollbar_conn_limit_t *limit, ngx_str_t *key,
                                        ngx_flag_t dry_run, ngx_uint_t level, ngx_log_t *log);

/* Ends the counting of the record by all limits. */
void ngx_tollbar_conn_record_leave(void *record);

#endif
