/* What a request or a connection comes to at its limits: what the modules for http and for stream have in common above
 * ngx_tollbar_conn_zone.h, with nothing of either. */

#ifndef NGX_TOLLBAR_CONN_LIMIT_H
#define NGX_TOLLBAR_CONN_LIMIT_H

#include "ngx_tollbar_conn_zone.h"

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* The directive. */
    ngx_tollbar_where_t where;
    ngx_uint_t most;
} ngx_tollbar_conn_limit_t;

/* What has become of it. It is in a cleanup of its pool, with ngx_tollbar_conn_record_leave. */
typedef struct {
    ngx_uint_t status;
    ngx_uint_t held_n;
    ngx_tollbar_conn_held_t *held;
} ngx_tollbar_conn_record_t;

#define NGX_TOLLBAR_CONN_PASSED 0
#define NGX_TOLLBAR_CONN_REJECTED 1
#define NGX_TOLLBAR_CONN_REJECTED_DRY_RUN 2

/* The values of $tollbar_conn_status, by that number. */
extern ngx_str_t ngx_tollbar_conn_statuses[];

/* Reads `NAME NUMBER` to the ends of `limits`, those of a level, and `all`, those of the configuration. Both are of
 * ngx_tollbar_conn_limit_t; they need not be initialised yet. */
char *ngx_tollbar_conn_limits_read(ngx_conf_t *cf, void *tag, ngx_array_t *limits, ngx_array_t *all);

/* All directives have been read: looks whether the zones of all limits are declared. */
ngx_int_t ngx_tollbar_conn_limits_check(ngx_conf_t *cf, ngx_array_t *all);

/* The zones of a configuration are an array of pointers to what begins with an ngx_tollbar_conn_zone_t. */
void ngx_tollbar_conn_zones_join(ngx_array_t *zones, ngx_log_t *log);
void ngx_tollbar_conn_zones_part(ngx_array_t *zones);

/* A record with room for so many limits, which is left when the pool is destroyed. */
ngx_tollbar_conn_record_t *ngx_tollbar_conn_record_add(ngx_pool_t *pool, ngx_uint_t limits);

/* It comes to a limit. NGX_OK: it is counted there, or need not be. NGX_DECLINED: it is refused; it does not count by
 * the limits before this one, either, and the log has been told, at `level`. */
ngx_int_t ngx_tollbar_conn_record_enter(ngx_tollbar_conn_record_t *record, ngx_tollbar_conn_limit_t *limit, ngx_str_t *key,
                                        ngx_flag_t dry_run, ngx_uint_t level, ngx_log_t *log);

/* Takes a record out of everything it is counted in. */
void ngx_tollbar_conn_record_leave(void *record);

#endif
