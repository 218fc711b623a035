/* tollbar for http: what the directives say, and what is asked of the tables.
 *
 * A zone has its limit by `rate` or by `policy`. A rate is a policy, too: gcra with the largest burst that any limit has for
 * the zone, and one more permit, since a burst of N is N requests beyond the one that is always allowed. Limits with a smaller
 * burst share the keys' states. They keep a part of the table's permits back (`spare`).
 *
 * Where the rate holds variables, its policy is added to the table when a request comes with it, and a key has a state of its
 * own under each rate.
 *
 * Where many machines share the limit, the zone has a node and no table (ngx_http_tollbar_sync.h), and nobody is delayed.
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
    /* NGX_CONF_UNSET: it is not said, or made of variables. */
    ngx_int_t number;
    ngx_http_complex_value_t *text;
    /* That a request's value of `text` is no number. */
    ngx_tollbar_seldom_t wrong;
} ngx_http_tollbar_amount_t;

/* The rates that this process has seen in a zone whose rate holds variables. */
typedef struct ngx_http_tollbar_rates_s ngx_http_tollbar_rates_t;

struct ngx_http_tollbar_zone_s {
    ngx_tollbar_zone_t zone;
    tollbar_policy_spec policy;
    ngx_http_tollbar_key_t key;
    /* NULL: `policy` is what holds. */
    ngx_http_complex_value_t *rate;
    ngx_http_tollbar_rates_t *rates;
    /* For limits that do not say theirs. */
    ngx_http_tollbar_amount_t burst;
    /* What `ban` and `after` say; `policy` has it, too. */
    uint64_t ban_ns;
    uint32_t ban_after;
    /* That a request's value of `rate` is no rate; that the table has no policy for one that is. Clients can often choose the value, so
     * one kind must not keep the other out of the log. */
    ngx_tollbar_seldom_t wrong_rate;
    ngx_tollbar_seldom_t no_policy;
    /* The zone's name in quotes, as headers have it. */
    ngx_str_t quoted;
    /* NULL: the zone has a table. */
    ngx_http_tollbar_sync_t *sync;
    /* By `rate`, without `sync`: limits have bursts and can delay. */
    unsigned paced:1;
    /* By `rate` and a burst, with `sync`: limits would delay if they could. */
    unsigned never_delays:1;
};

/* What a limit comes to for a request. */
typedef struct {
    const tollbar_policy_spec *policy;
    uint64_t cost;
    /* Permits that a fresh key has by this limit, and what the table would let it have beyond. */
    uint64_t capacity;
    uint64_t spare;
    /* What a key may owe, with the request, and not be delayed: nanoseconds. */
    uint64_t undelayed;
    uint32_t number;
    /* A request can be let through and delayed. */
    unsigned delays:1;
    /* It is a node that is asked. */
    unsigned leased:1;
    /* The table alone decides, before the answer: no delay, no node, no ban, and the burst is the zone's. */
    unsigned plain:1;
} ngx_http_tollbar_terms_t;

/* Statuses below this can be counted. */
#define NGX_HTTP_TOLLBAR_STATUSES 608

typedef struct {
    ngx_shm_zone_t *shm_zone;
    ngx_http_tollbar_zone_t *zone;
    ngx_http_tollbar_amount_t burst;
    ngx_http_tollbar_amount_t cost;
    /* Requests; with `nodelay` NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;
    ngx_uint_t status;
    /* With `afterwards`: the statuses that are charged, one bit each, or NULL for all of them; and what must be neither empty nor 0,
     * or NULL. */
    uint32_t *counted;
    ngx_http_complex_value_t *when;
    /* The directive. */
    ngx_tollbar_where_t where;
    unsigned dry_run:1;
    /* A request is looked at before its answer, and charged after it. */
    unsigned afterwards:1;
    /* `terms` depends on the request. */
    unsigned varies:1;
    ngx_http_tollbar_terms_t terms;
} ngx_http_tollbar_limit_t;

typedef struct {
    /* Of ngx_http_tollbar_limit_t *; those with a node behind those with a table, and those in a dry run behind the others, whose
     * number is `enforced`. */
    ngx_array_t limits;
    ngx_uint_t enforced;
    /* The indices of those in force in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t status_code;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_uint_t headers;
    ngx_flag_t dry_run;
} ngx_http_tollbar_conf_t;

/* $tollbar_status is the first. */
#define NGX_HTTP_TOLLBAR_VARIABLE_STATUS 0
#define NGX_HTTP_TOLLBAR_VARIABLES 5

/* Every limit and zone of the configuration, wherever it is written. */
typedef struct {
    ngx_array_t limits; /* of ngx_http_tollbar_limit_t * */
    ngx_array_t zones;  /* of ngx_shm_zone_t * */
    ngx_array_t confs;  /* of ngx_http_tollbar_conf_t *, those with limits */
    /* The indices of the variables. */
    ngx_uint_t variables[NGX_HTTP_TOLLBAR_VARIABLES];
    /* Whether any limit is charged afterwards. */
    ngx_flag_t afterwards;
    /* Whether the configuration names any but $tollbar_status. */
    ngx_flag_t variables_used;
} ngx_http_tollbar_main_conf_t;

#define NGX_HTTP_TOLLBAR_HEADERS_OFF 0
#define NGX_HTTP_TOLLBAR_HEADERS_LEGACY 1
#define NGX_HTTP_TOLLBAR_HEADERS_DRAFT 2

/* A limit and a request. */
typedef struct {
    ngx_http_tollbar_limit_t *limit;
    const ngx_http_tollbar_terms_t *terms;
    ngx_http_tollbar_terms_t own;
    ngx_str_t key;
    /* The time by the table's clock at which it is looked at and charged. */
    uint64_t now;
    /* What the limit has answered, where `known`. */
    uint64_t remaining;
    uint64_t reset_ns;
    uint64_t retry_ns;
    ngx_msec_t wait;
    unsigned known:1;
    /* It has been charged while it was looked at. */
    unsigned charged:1;
    /* The limit has banned the key. */
    unsigned banned:1;
} ngx_http_tollbar_charge_t;

/* What has come of all of a request's limits. */
typedef struct {
    ngx_http_tollbar_charge_t *charges;
    /* Those that apply; the first `enforced` are in force, the others in a dry run. */
    ngx_uint_t charges_n;
    ngx_uint_t enforced;
    /* The one that refuses, or delays most, or has the fewest permits left. */
    ngx_http_tollbar_charge_t *binding;
    /* In the dry run: NGX_OK or NGX_BUSY, and the one that would refuse, or delay. */
    ngx_http_tollbar_charge_t *dry;
    ngx_int_t dry_rc;
} ngx_http_tollbar_asked_t;

#define NGX_HTTP_TOLLBAR_PASSED 0
#define NGX_HTTP_TOLLBAR_DELAYED 1
#define NGX_HTTP_TOLLBAR_REJECTED 2
#define NGX_HTTP_TOLLBAR_DELAYED_DRY_RUN 3
#define NGX_HTTP_TOLLBAR_REJECTED_DRY_RUN 4

extern ngx_module_t ngx_http_tollbar_module;

/* Directives. */
char *ngx_http_tollbar_read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_status_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Whether `return`, on the level of `cf`, always answers before limits are asked. 0 where that is not known. */
ngx_flag_t ngx_http_tollbar_returns(ngx_conf_t *cf);

/* A burst that is more than any limit will have, and does not make the state's grid any coarser to speak of. */
void ngx_http_tollbar_rate_widen(tollbar_policy_spec *policy);

ngx_http_tollbar_rates_t *ngx_http_tollbar_rates_create(ngx_pool_t *pool);

/* The policy of a rate, and its number in the zone's table. NULL, with a line in the log, if there can be none. */
const tollbar_policy_spec *ngx_http_tollbar_rate_find(ngx_shm_zone_t *shm_zone, ngx_str_t *text, uint32_t *number,
                                                      ngx_log_t *log);

/* Works out what a limit comes to. */
void ngx_http_tollbar_terms(ngx_http_tollbar_terms_t *terms, const ngx_http_tollbar_limit_t *limit,
                            const tollbar_policy_spec *policy, uint32_t number, uint64_t burst, uint64_t cost);

/* Works out what a limit that varies comes to for this request. A request whose rate is empty is not limited, as one whose key is: NGX_DECLINED.
 * Where a rate or a number is none, nobody knows what was meant, and the request is refused: NGX_ERROR. NGX_ABORT as below. */
ngx_int_t ngx_http_tollbar_vary(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_charge_t *charge);

/* Charges a limit that has a node. */
ngx_int_t ngx_http_tollbar_take_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t wanted);

/* Looks whether it would let the request pass. With `ask`, one that would not is charged nevertheless, if it then does: only who
 * is refused is asked for at the store. */
ngx_int_t ngx_http_tollbar_look_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t ask);

/* Reads `count` of a limit. */
char *ngx_http_tollbar_read_count(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_limit_t *limit);

/* Keeps, until the log phase, the limits that are to be charged then. */
ngx_int_t ngx_http_tollbar_keep(ngx_http_request_t *r, const ngx_http_tollbar_asked_t *asked);

/* Of the log phase. */
ngx_int_t ngx_http_tollbar_log_handler(ngx_http_request_t *r);

/* A number of permits for this request. NGX_ERROR, with a line in the log, for a value that is no number; NGX_ABORT for one that cannot be
 * evaluated. */
ngx_int_t ngx_http_tollbar_amount_of(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_amount_t *amount,
                                     const char *name, ngx_int_t otherwise, uint64_t *number);

/* Whether the request would be let through; nothing is charged. `*verdict` is what the table alone says. */
ngx_int_t ngx_http_tollbar_look(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, int32_t *verdict);

/* ngx_http_tollbar_look, and a refusal counts: in the zone's numbers, and for a ban. */
ngx_int_t ngx_http_tollbar_look_and_count(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge);

/* Keep what the table has answered, less what is not this limit's; and when a refused request may come again. */
void ngx_http_tollbar_know(ngx_http_tollbar_charge_t *charge, const tollbar_decision *decision);
void ngx_http_tollbar_know_refusal(ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Count what the table has not counted: a refusal by a look or by the limit's own burst, and any verdict. */
void ngx_http_tollbar_count_refusal(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge);
void ngx_http_tollbar_count(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Logs that a limit cannot be asked. Returns NGX_ERROR. */
ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t error);

/* Of the preaccess phase. */
ngx_int_t ngx_http_tollbar_handler(ngx_http_request_t *r);

/* Lets the request pass, delays it or refuses it: NGX_OK, NGX_BUSY for a refusal, NGX_ERROR for one because it cannot be told,
 * NGX_ABORT if a value cannot be evaluated. Returns what the handler is to return. */
ngx_int_t ngx_http_tollbar_answer(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_asked_t *asked);

/* Adds the headers that are configured, and Retry-After to a refusal. */
ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_asked_t *asked);

/* Nanoseconds as whole seconds, rounded up. */
uint64_t ngx_http_tollbar_seconds(uint64_t ns);

/* The variables: added before the configuration is read, looked for in it afterwards, and set for a request. $tollbar_status
 * is also the mark that the request has been counted; it stays through subrequests and redirects. */
ngx_int_t ngx_http_tollbar_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_tollbar_find_variables(ngx_conf_t *cf);
void ngx_http_tollbar_set_status(ngx_http_request_t *r, ngx_http_variable_value_t *v, ngx_uint_t status);
void ngx_http_tollbar_set_variables(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, ngx_flag_t refused);

#endif
