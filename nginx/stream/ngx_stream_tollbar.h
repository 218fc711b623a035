/* tollbar for stream: how fast new connections may come.
 *
 * A zone's table has one policy: gcra with the zone's rate and with the largest burst that any limit has for the zone, and
 * one more permit, since a burst of N is N connections beyond the one that is always allowed. Limits with a smaller burst
 * share the keys' states. They look at how much is owed.
 */

#ifndef NGX_STREAM_TOLLBAR_H
#define NGX_STREAM_TOLLBAR_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_several.h"
#include "ngx_tollbar_zone.h"

typedef struct {
    ngx_tollbar_zone_t zone;
    tollbar_policy_spec policy;
    ngx_stream_complex_value_t key;
} ngx_stream_tollbar_zone_t;

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* The directive. */
    ngx_tollbar_where_t where;
    /* Connections. With `nodelay`, NGX_MAX_INT_T_VALUE of them are not delayed. */
    ngx_int_t burst;
    ngx_int_t delay;

    /* What follows is worked out when all of the configuration is known. */
    ngx_stream_tollbar_zone_t *zone;
    /* Nanoseconds that a key may owe before it is charged for this connection, after that, and without being delayed. */
    uint64_t debt_most;
    uint64_t debt_after;
    uint64_t debt_undelayed;
} ngx_stream_tollbar_limit_t;

typedef struct {
    ngx_array_t limits; /* of ngx_stream_tollbar_limit_t * */
    /* Their indices in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_flag_t dry_run;
} ngx_stream_tollbar_conf_t;

extern ngx_module_t ngx_stream_tollbar_module;

/* Of the preaccess phase. */
ngx_int_t ngx_stream_tollbar_handler(ngx_stream_session_t *s);

/* Adds $tollbar_status. */
ngx_int_t ngx_stream_tollbar_add_variable(ngx_conf_t *cf);

#endif
