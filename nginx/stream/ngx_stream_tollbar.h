/* tollbar for stream: limits the rate of new connections.
 *
 * A zone's table has one policy: gcra with the zone's rate and with the largest burst that any limit has for the
 * zone, plus one permit, because a burst of N is N connections beyond the one that the rate always allows. Limits
 * with a smaller burst use the same states, and compare the key's debt with their own burst.
 */

#ifndef NGX_STREAM_TOLLBAR_H
#define NGX_STREAM_TOLLBAR_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>
#include "ngx_tollbar_client.h"
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
    /* Where the directive stands. */
    ngx_tollbar_where_t where;
    /* The number of connections above the rate that are admitted. */
    ngx_int_t burst;
    /* The number of connections above the rate that are not delayed. With `nodelay` NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;

    /* The module computes the following fields after all directives have been read. */
    ngx_stream_tollbar_zone_t *zone;
    /* Nanoseconds: the largest debt that a key may have before the charge, if the limit admits the connection. */
    uint64_t debt_most;
    /* Nanoseconds: the largest debt that a key may have after the limit has admitted and charged a connection. */
    uint64_t debt_after;
    /* Nanoseconds: the largest debt that a key may have after the charge, if the module does not delay the connection. */
    uint64_t debt_undelayed;
} ngx_stream_tollbar_limit_t;

typedef struct {
    ngx_array_t limits; /* of ngx_stream_tollbar_limit_t * */
    /* The limits' indices in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_flag_t dry_run;
} ngx_stream_tollbar_conf_t;

extern ngx_module_t ngx_stream_tollbar_module;

/* The handler of the preaccess phase. */
ngx_int_t ngx_stream_tollbar_handler(ngx_stream_session_t *s);

/* Adds $tollbar_status. */
ngx_int_t ngx_stream_tollbar_add_variable(ngx_conf_t *cf);

#endif
