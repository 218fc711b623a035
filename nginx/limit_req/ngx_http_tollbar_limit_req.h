/* The drop-in for limit_req: the data of its directives, and the functions between its files.
 *
 * A zone's table has one policy: gcra with the zone's rate and with the largest burst that any limit_req has for the
 * zone, plus one permit, because a burst of N is N requests beyond the one that the rate always allows. A key's state
 * is the time at which its debt ends, and does not depend on the burst. So limits with a smaller burst use the same
 * state: they compare the debt with their own burst before they charge.
 *
 * nginx's documentation calls the requests above the rate `excess`. A key whose debt ends in `d` nanoseconds, this
 * request included, has an excess of d * rate - 1.
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
    /* Where the directive stands. */
    ngx_tollbar_where_t where;
    /* The number of requests above the rate that are admitted. */
    ngx_int_t burst;
    /* The number of requests above the rate that are not delayed. With `nodelay` NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;

    /* The module computes the following fields after all directives have been read. */
    ngx_http_tollbar_limit_req_zone_t *zone;
    /* Nanoseconds: the largest debt that a key may have before the charge, if the limit admits the request. */
    uint64_t debt_most;
    /* Nanoseconds: the largest debt that a key may have after the limit has admitted and charged a request. */
    uint64_t debt_after;
    /* Nanoseconds: the largest debt that a key may have after the charge, if the module does not delay the request. */
    uint64_t debt_undelayed;
    /* Another limit of the zone has a larger burst, so the table admits more than this limit does. */
    unsigned narrow:1;
    /* The limit may admit a request and delay it. */
    unsigned delays:1;
} ngx_http_tollbar_limit_req_limit_t;

typedef struct {
    /* Of ngx_http_tollbar_limit_req_limit_t *. */
    ngx_array_t limits;
    /* The limits' indices in the order in which they are charged. */
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

/* The outcome of one limit, or of all limits of a request: the limit that refuses or delays it. */
typedef struct {
    ngx_http_tollbar_limit_req_limit_t *limit;
    /* Nanoseconds: the key's debt. It includes the request if the limit admits it. 0: the limit does not delay requests. */
    uint64_t debt;
} ngx_http_tollbar_limit_req_outcome_t;

extern ngx_module_t ngx_http_tollbar_limit_req_module;

/* The handler of the preaccess phase. */
ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r);

/* Carries out a result, as listed in ngx_tollbar_several.h: admits, delays or refuses the request, or answers with status 500. Returns the phase
 * handler's return value. */
ngx_int_t ngx_http_tollbar_limit_req_answer(ngx_http_request_t *r, ngx_int_t rc,
                                            const ngx_http_tollbar_limit_req_outcome_t *outcome);

/* The delay in milliseconds. */
ngx_msec_t ngx_http_tollbar_limit_req_wait(const ngx_http_tollbar_limit_req_outcome_t *outcome);

/* Adds $limit_req_status if nginx was built without it. */
ngx_int_t ngx_http_tollbar_limit_req_add_variable(ngx_conf_t *cf);

#endif
