/* The drop-in for limit_req: what the directives say, and what is asked of the tables.
 *
 * A zone's table has one policy: gcra with the zone's rate and with the largest burst that any limit_req has for the zone,
 * and one more permit, since a burst of N is N requests beyond the one that is always allowed. A key's state is
 * the time until which it owes, and does not depend on the burst. So limits with a smaller burst share it: they look at how
 * much is owed before they take anything.
 *
 * nginx's documentation calls `excess` the requests above the rate. A key that owes until `d` nanoseconds from now, with
 * the request counted in, has an excess of d * rate - 1.
 */

#ifndef NGX_HTTP_TOLLBAR_LIMIT_REQ_H
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_tollbar_request.h"
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_several.h"
#include "ngx_tollbar_zone.h"

typedef struct {
    ngx_tollbar_zone_t zone;
    tollbar_policy_spec policy;
    ngx_http_tollbar_key_t key;
} ngx_http_tollbar_limit_req_zone_t;

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* The directive. */
    ngx_tollbar_where_t where;
    /* Requests. With `nodelay`, NGX_MAX_INT_T_VALUE of them are not delayed. */
    ngx_int_t burst;
    ngx_int_t delay;

    /* What follows is worked out when all of the configuration is known. */
    ngx_http_tollbar_limit_req_zone_t *zone;
    /* What a key may owe, before it is charged for this request, to be let through. */
    uint64_t debt_most;
    /* What it then owes after that, at most, and what it may owe without being delayed. */
    uint64_t debt_after;
    uint64_t debt_undelayed;
    /* Another limit of the zone has a larger burst: the table allows more than this one does. */
    unsigned narrow:1;
    /* A request can be let through and delayed. */
    unsigned delays:1;
} ngx_http_tollbar_limit_req_limit_t;

typedef struct {
    /* Of ngx_http_tollbar_limit_req_limit_t *. */
    ngx_array_t limits;
    /* Their indices in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t status_code;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_flag_t dry_run;
} ngx_http_tollbar_limit_req_conf_t;

/* r->limit_req_status, which nginx's own $limit_req_status reads. */
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_PASSED 1
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_DELAYED 2
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_REJECTED 3
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_DELAYED_DRY_RUN 4
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_REJECTED_DRY_RUN 5

/* What came of asking one limit, or all of a request's: the one that refuses or delays it. */
typedef struct {
    ngx_http_tollbar_limit_req_limit_t *limit;
    /* What the key owes by that limit: refused, before the request; else after it, or 0 if that delays nobody. */
    uint64_t debt;
} ngx_http_tollbar_limit_req_outcome_t;

extern ngx_module_t ngx_http_tollbar_limit_req_module;

/* Of the preaccess phase. */
ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r);

/* Lets the request pass, delays it or refuses it: NGX_OK, NGX_BUSY for a refusal, NGX_ERROR for one because it cannot be told,
 * NGX_ABORT if a key cannot be evaluated. Returns what the handler is to return. */
ngx_int_t ngx_http_tollbar_limit_req_answer(ngx_http_request_t *r, ngx_int_t rc,
                                            const ngx_http_tollbar_limit_req_outcome_t *outcome);

/* Milliseconds by which the request is to be delayed. */
ngx_msec_t ngx_http_tollbar_limit_req_wait(const ngx_http_tollbar_limit_req_outcome_t *outcome);

/* Adds $limit_req_status where nginx does not have it. */
ngx_int_t ngx_http_tollbar_limit_req_add_variable(ngx_conf_t *cf);

#endif
