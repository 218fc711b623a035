/* Limits on open requests or connections, for the modules of http and stream. It uses ngx_tollbar_conn_zone.h, and neither http nor
 * stream. */

#ifndef NGX_TOLLBAR_CONN_LIMIT_H
#define NGX_TOLLBAR_CONN_LIMIT_H

#include "ngx_tollbar_conn_zone.h"

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* Where the directive stands. */
    ngx_tollbar_where_t where;
    ngx_uint_t most;
} ngx_tollbar_conn_limit_t;

/* A request's or connection's record. It is in a cleanup of its pool, whose handler is ngx_tollbar_conn_record_leave. */
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

/* Reads `NAME NUMBER` and appends the limit to `limits`, those of the level, and to `all`, those of the configuration. Both have elements
 * ngx_tollbar_conn_limit_t and may be zeroed. */
char *ngx_tollbar_conn_limits_read(ngx_conf_t *cf, void *tag, ngx_array_t *limits, ngx_array_t *all);

/* Called after all directives have been read. Checks that the zones of all limits are declared. */
ngx_int_t ngx_tollbar_conn_limits_check(ngx_conf_t *cf, ngx_array_t *all);

/* `zones` holds pointers to structs that begin with an ngx_tollbar_conn_zone_t. */
void ngx_tollbar_conn_zones_join(ngx_array_t *zones, ngx_log_t *log);
void ngx_tollbar_conn_zones_part(ngx_array_t *zones);

/* Makes a record with room for so many limits. It leaves all of them when nginx destroys the pool. */
ngx_tollbar_conn_record_t *ngx_tollbar_conn_record_add(ngx_pool_t *pool, ngx_uint_t limits);

/* Enters a limit. NGX_OK: it is counted, or admitted without a count. NGX_DECLINED: it is refused, has left the limits before this
 * one, and has been logged at `level`. */
ngx_int_t ngx_tollbar_conn_record_enter(ngx_tollbar_conn_record_t *record, ngx_tollbar_conn_limit_t *limit, ngx_str_t *key,
                                        ngx_flag_t dry_run, ngx_uint_t level, ngx_log_t *log);

/* Leaves all limits that count the record. */
void ngx_tollbar_conn_record_leave(void *record);

#endif
