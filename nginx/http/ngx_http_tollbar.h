/* tollbar for http: the data of its directives and of a request, and the functions between its files.
 *
 * A zone has a `rate` or a `policy`. The module turns a rate into a policy: gcra with the largest burst that any limit has for
 * the zone, plus one permit, because a burst of N is N requests beyond the one that the rate always allows. Limits with a smaller
 * burst use the same states, and leave the difference of the bursts untouched (`spare`).
 *
 * If the rate holds variables, the module adds its policy to the table with the first request that has this rate. A key has a separate
 * state under each rate.
 *
 * If machines share the limit, the zone has a node instead of a table (ngx_http_tollbar_sync.h), and no request is delayed.
 */

#ifndef NGX_HTTP_TOLLBAR_H
#define NGX_HTTP_TOLLBAR_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_tollbar_request.h"
#include "ngx_http_tollbar_sync.h"
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_several.h"
#include "ngx_tollbar_zone.h"

/* A number of permits. */
typedef struct {
    /* NGX_CONF_UNSET: the directive does not give it, or gives it with variables. */
    ngx_int_t number;
    ngx_http_complex_value_t *text;
    /* Limits the log lines about values of `text` that are no numbers. */
    ngx_tollbar_seldom_t wrong;
} ngx_http_tollbar_amount_t;

/* The rates that this process has parsed for a zone whose rate holds variables. */
typedef struct ngx_http_tollbar_rates_s ngx_http_tollbar_rates_t;

struct ngx_http_tollbar_zone_s {
    ngx_tollbar_zone_t zone;
    tollbar_policy_spec policy;
    ngx_http_tollbar_key_t key;
    /* The rate with variables. NULL: all requests are under `policy`. */
    ngx_http_complex_value_t *rate;
    ngx_http_tollbar_rates_t *rates;
    /* The burst of limits without one of their own. */
    ngx_http_tollbar_amount_t burst;
    /* The parameters `ban` and `after`, which `policy` repeats. */
    uint64_t ban_ns;
    uint32_t ban_after;
    /* Limit the log lines about values of `rate` that are no rates, and about rates for which the table has no room. Clients can often
     * choose the value, so one kind must not keep the other out of the log. */
    ngx_tollbar_seldom_t wrong_rate;
    ngx_tollbar_seldom_t no_policy;
    /* NULL: the zone has a table. */
    ngx_http_tollbar_sync_t *sync;
    /* The zone has `rate` and no `sync`: its limits have bursts and may delay. */
    unsigned paced:1;
    /* The zone has `rate`, a burst and `sync`: its limits must say `nodelay`. */
    unsigned never_delays:1;
};

/* A limit's numbers for one request, or for all requests if no variable changes them. */
typedef struct {
    const tollbar_policy_spec *policy;
    uint64_t cost;
    /* Permits that this limit gives a fresh key, and permits beyond these that the table's policy would give. */
    uint64_t capacity;
    uint64_t spare;
    /* Nanoseconds: the debt up to which a request is not delayed, its own cost included. */
    uint64_t undelayed;
    /* The policy's index in the table. */
    uint32_t number;
    /* The limit may admit a request and delay it. */
    unsigned delays:1;
    /* The zone has a node. */
    unsigned leased:1;
    /* One call to the table decides: no delay, no node, no ban, no charge after the answer, and the zone's own burst. */
    unsigned plain:1;
} ngx_http_tollbar_resolved_t;

/* `count` can name statuses below this. */
#define NGX_HTTP_TOLLBAR_STATUSES 608

typedef struct {
    ngx_shm_zone_t *shm_zone;
    ngx_http_tollbar_zone_t *zone;
    ngx_http_tollbar_amount_t burst;
    ngx_http_tollbar_amount_t cost;
    /* Requests; with `nodelay` NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;
    ngx_uint_t status;
    /* With `afterwards`: the statuses that are charged, one bit each. NULL: all. */
    uint32_t *counted;
    /* With `afterwards`: a text that must be neither empty nor "0" for the request to be charged. NULL: no condition. */
    ngx_http_complex_value_t *when;
    /* Where the directive stands. */
    ngx_tollbar_where_t where;
    unsigned dry_run:1;
    /* The module peeks before the answer, and charges after it. */
    unsigned afterwards:1;
    /* `resolved` depends on the request, so each request computes its own. */
    unsigned varies:1;
    ngx_http_tollbar_resolved_t resolved;
} ngx_http_tollbar_limit_t;

typedef struct {
    /* Of ngx_http_tollbar_limit_t *: limits with a table, then limits with a node, then limits in a dry run. */
    ngx_array_t limits;
    /* The number of limits that are not in a dry run. */
    ngx_uint_t enforced;
    /* The indices of the enforced limits, in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t status_code;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_uint_t headers;
    ngx_flag_t dry_run;
} ngx_http_tollbar_conf_t;

/* The index of $tollbar_status among the module's variables. */
#define NGX_HTTP_TOLLBAR_VARIABLE_STATUS 0
#define NGX_HTTP_TOLLBAR_VARIABLES 5

/* Every limit and zone of the configuration, from all levels. */
typedef struct {
    ngx_array_t limits; /* of ngx_http_tollbar_limit_t * */
    ngx_array_t zones;  /* of ngx_shm_zone_t * */
    ngx_array_t confs;  /* of ngx_http_tollbar_conf_t *, of levels with limits */
    /* The indices of the variables. */
    ngx_uint_t variables[NGX_HTTP_TOLLBAR_VARIABLES];
    /* Whether any limit is charged after the answer. */
    ngx_flag_t afterwards;
    /* Whether the configuration names a variable other than $tollbar_status. */
    ngx_flag_t variables_used;
} ngx_http_tollbar_main_conf_t;

/* Other values of tollbar_headers are TOLLBAR_HTTP_ numbers. */
#define NGX_HTTP_TOLLBAR_HEADERS_OFF 0

/* One limit's part in one request. */
typedef struct {
    ngx_http_tollbar_limit_t *limit;
    const ngx_http_tollbar_resolved_t *resolved;
    ngx_http_tollbar_resolved_t own;
    ngx_str_t key;
    /* The time by the table's clock of the peek and of the charge. */
    uint64_t now;
    /* The limit's decision, if `decided` is set. */
    uint64_t remaining;
    uint64_t reset_ns;
    uint64_t retry_ns;
    ngx_msec_t wait;
    /* The policy of a list that bound. */
    uint32_t bound;
    unsigned decided:1;
    /* The peek has charged the request already. */
    unsigned charged:1;
    /* The limit has banned the key. */
    unsigned banned:1;
} ngx_http_tollbar_charge_t;

/* The outcome of all limits of a request. */
typedef struct {
    ngx_http_tollbar_charge_t *charges;
    /* The limits for which the request has a key. The first `enforced` are enforced, the others are in a dry run. */
    ngx_uint_t charges_n;
    ngx_uint_t enforced;
    /* The limit that refuses, or else delays longest, or else has the fewest permits left. */
    ngx_http_tollbar_charge_t *binding;
    /* The limit in a dry run that would refuse, or else delay longest. */
    ngx_http_tollbar_charge_t *dry;
    /* Its result: NGX_OK, NGX_BUSY or NGX_ERROR. */
    ngx_int_t dry_rc;
} ngx_http_tollbar_outcome_t;

#define NGX_HTTP_TOLLBAR_PASSED 0
#define NGX_HTTP_TOLLBAR_DELAYED 1
#define NGX_HTTP_TOLLBAR_REJECTED 2
#define NGX_HTTP_TOLLBAR_DELAYED_DRY_RUN 3
#define NGX_HTTP_TOLLBAR_REJECTED_DRY_RUN 4

extern ngx_module_t ngx_http_tollbar_module;

/* Read directives. */
char *ngx_http_tollbar_read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_status_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Whether a `return` on the level of `cf` always answers before limits are checked. 0 if that is unknown. */
ngx_flag_t ngx_http_tollbar_returns(ngx_conf_t *cf);

/* Raises the policy's burst above that of any limit. The burst is small enough that the state word still counts fine steps. */
void ngx_http_tollbar_rate_widen(tollbar_policy_spec *policy);

ngx_http_tollbar_rates_t *ngx_http_tollbar_rates_create(ngx_pool_t *pool);

/* Finds or adds the policy of a rate, and its index in the zone's table. NULL, with a line in the log, if the text is no rate or the table
 * has no room. */
const tollbar_policy_spec *ngx_http_tollbar_rate_find(ngx_shm_zone_t *shm_zone, ngx_str_t *text, uint32_t *number,
                                                      ngx_log_t *log);

/* Fills in a limit's numbers. */
void ngx_http_tollbar_resolve(ngx_http_tollbar_resolved_t *resolved, const ngx_http_tollbar_limit_t *limit,
                            const tollbar_policy_spec *policy, uint32_t number, uint64_t burst, uint64_t cost);

/* Fills in the numbers of a limit with variables for this request. NGX_DECLINED: the rate is empty, so the request is not limited. NGX_ERROR: a value
 * is no rate or no number, so the request is refused. NGX_ABORT: a value cannot be evaluated. */
ngx_int_t ngx_http_tollbar_resolve_for(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_charge_t *charge);

/* Charges a limit that has a node. `full`: the caller needs the full decision. */
ngx_int_t ngx_http_tollbar_take_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t full);

/* Peeks whether the node would admit the request. With `charge_refusal` a refused peek is followed by a charge, because only a refused
 * charge makes the node ask the store for a lease. */
ngx_int_t ngx_http_tollbar_peek_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t charge_refusal);

/* Reads `count` of a limit. */
char *ngx_http_tollbar_read_count(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_limit_t *limit);

/* Stores the limits that the log phase will charge. */
ngx_int_t ngx_http_tollbar_keep(ngx_http_request_t *r, const ngx_http_tollbar_outcome_t *outcome);

/* The handler of the log phase. */
ngx_int_t ngx_http_tollbar_log_handler(ngx_http_request_t *r);

/* Evaluates a number of permits for this request. NGX_ERROR, with a line in the log: the value is no number. NGX_ABORT: it cannot be
 * evaluated. */
ngx_int_t ngx_http_tollbar_amount_of(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_amount_t *amount,
                                     const char *name, ngx_int_t otherwise, uint64_t *number);

/* Peeks whether the limit would admit the request, and charges nothing. `*verdict` is the verdict of the table, whose burst may be larger. */
ngx_int_t ngx_http_tollbar_peek(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, int32_t *verdict);

/* ngx_http_tollbar_peek, but a refusal counts in the zone's statistics and toward a ban. */
ngx_int_t ngx_http_tollbar_peek_and_count(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge);

/* Store the table's decision without `spare`, and the time after which a refused request would pass. */
void ngx_http_tollbar_set_decision(ngx_http_tollbar_charge_t *charge, const tollbar_decision *decision);
void ngx_http_tollbar_set_retry(ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Count a verdict that the table has not counted: a refusal by a peek or by the limit's own burst, and any verdict. */
void ngx_http_tollbar_count_refusal(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge);
void ngx_http_tollbar_count(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Logs that a zone gives no answer. Returns NGX_ERROR. */
ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t error);

/* The handler of the preaccess phase. */
ngx_int_t ngx_http_tollbar_handler(ngx_http_request_t *r);

/* Carries out a result: NGX_OK admits or delays the request, NGX_BUSY refuses it, NGX_ERROR refuses it because a zone gives no answer or a
 * value is invalid, and NGX_ABORT answers with status 500. Returns the phase handler's return value. */
ngx_int_t ngx_http_tollbar_answer(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_outcome_t *outcome);

/* Adds the configured headers, and Retry-After to a refusal. */
ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_outcome_t *outcome);

/* Nanoseconds as whole seconds, rounded up. */
uint64_t ngx_http_tollbar_seconds(uint64_t ns);

/* The variables: added before nginx reads the configuration, searched in it afterwards, and set for a request. $tollbar_status
 * also marks a request that has been counted, and keeps its value through subrequests and redirects. */
ngx_int_t ngx_http_tollbar_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_tollbar_find_variables(ngx_conf_t *cf);
void ngx_http_tollbar_set_status(ngx_http_request_t *r, ngx_http_variable_value_t *v, ngx_uint_t status);
void ngx_http_tollbar_set_variables(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, ngx_flag_t refused);

#endif
