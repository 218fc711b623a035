/* tollbar for http: the data of its directives and of a request, and the functions between its
 * files. * A zone has a `rate` or a `policy`. The module turns a rate into a policy: gcra with the
 * largest burst that any limit has for the zone, plus one permit, because a burst of N is N
 * requests beyond the one that the rate always allows. Limits with a smaller burst use the same
 * states, and leave the difference of the bursts untouched (`spare`). * If the rate holds
 * variables, the module adds its policy to the table with the first request that has this rate. A
 * key has a separate state under each rate. * If machines share the limit, the zone has a node
 * instead of a table (ngx_http_tollbar_sync.h), and no request is delayed.
 */

#ifndef NGX_HTTP_TOLLBAR_H
#define NGX_HTTP_TOLLBAR_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_tollbar_request.h"
#include "ngx_http_tollbar_rules.h"
#include "ngx_http_tollbar_sync.h"
#include "ngx_http_tollbar_tree.h"
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_file.h"
#include "ngx_tollbar_several.h"
#include "ngx_tollbar_variables.h"
#include "ngx_tollbar_zone.h"

/* A number of permits. */
typedef struct {
    /* NGX_CONF_UNSET: the directive does not give a number, or gives one with variables
     * (`text`). */
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
    /* Limit the log lines about values of `rate` that are no rates, and about rates for which the
     * table has no room. Clients can often choose the value, so one kind must not keep the other
     * out of the log. */
    ngx_tollbar_seldom_t wrong_rate;
    ngx_tollbar_seldom_t no_policy;
    /* The most permits of a key in some window of one period of `policy`. 0: there is no such number. */
    uint64_t worst_case;
    /* NULL: the zone has a table. */
    ngx_http_tollbar_sync_t *sync;
    /* NULL: the zone is of `tollbar_zone`. The table has the nodes of the tree. */
    ngx_http_tollbar_tree_t *tree;
    /* The zone has `rate` and no `sync`: its limits have bursts and may delay. */
    unsigned paced:1;
    /* The zone has `rate`, a burst and `sync`: its limits must say `nodelay`. */
    unsigned never_delays:1;
};

/* A limit's numbers for one request, or for all requests if no variable changes them. */
typedef struct {
    const tollbar_policy_spec *policy;
    uint64_t cost;
    /* The permits that the request's class leaves to other classes. */
    uint64_t reserve;
    /* The permits that this limit lets a fresh key take. */
    uint64_t capacity;
    /* The permits that the table's policy would let a fresh key take beyond `capacity`. */
    uint64_t spare;
    /* Nanoseconds. The module delays a request if the key's debt, with the request's cost, is above
     * this. */
    uint64_t undelayed;
    /* The policy's index in the table. */
    uint32_t number;
    /* The class of a limit with a tree. */
    const ngx_http_tollbar_class_t *class;
    /* The limit may admit a request and delay it. */
    unsigned delays:1;
    /* The zone has a node. */
    unsigned leased:1;
    /* One call to the table decides each request: the limit has the zone's own burst, does not
     * delay, and has no node, no ban, no class and no charge after the answer. */
    unsigned plain:1;
} ngx_http_tollbar_resolved_t;

/* `count` can name statuses below this. */
#define NGX_HTTP_TOLLBAR_STATUSES 608

typedef struct {
    ngx_tollbar_limit_t base;
    ngx_http_tollbar_zone_t *zone;
    ngx_http_tollbar_amount_t burst;
    ngx_http_tollbar_amount_t cost;
    /* The number of requests above the rate that are not delayed. With `nodelay`
     * NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;
    ngx_uint_t status;
    /* With `afterwards`: the module charges a request if its answer has one of these statuses, one
     * bit each. NULL: all. */
    uint32_t *counted;
    /* With `afterwards`: a text that must be neither empty nor "0" for the request to be charged.
     * NULL: no condition. */
    ngx_http_complex_value_t *when;
    /* The class, which may hold variables. NULL: none. Without variables `reserve` has its
     * permits. */
    ngx_http_complex_value_t *class_name;
    uint64_t reserve;
    /* Limits the log lines about values of `class_name` that are no classes. */
    ngx_tollbar_seldom_t wrong_class;
    unsigned dry_run:1;
    /* The module peeks before the answer, and charges after it. */
    unsigned afterwards:1;
    /* `class_name` holds variables. */
    unsigned class_varies:1;
    /* `resolved` depends on the request, so each request computes its own. */
    unsigned varies:1;
    ngx_http_tollbar_resolved_t resolved;
} ngx_http_tollbar_limit_t;

typedef struct {
    /* Of ngx_http_tollbar_limit_t *: limits with a table, then limits with a node, then limits in a
     * dry run. */
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
    /* NULL: none. */
    ngx_http_tollbar_rules_t *rules;
    ngx_array_t *rules_fields; /* of ngx_http_tollbar_rules_field_t */
    ngx_array_t *rules_answers; /* of ngx_http_tollbar_rules_field_t */
} ngx_http_tollbar_conf_t;

/* The indices of variables among the module's variables. */
#define NGX_HTTP_TOLLBAR_VARIABLE_STATUS 0
#define NGX_HTTP_TOLLBAR_VARIABLE_RULES_STATUS 6
#define NGX_HTTP_TOLLBAR_VARIABLE_RULE 7
#define NGX_HTTP_TOLLBAR_VARIABLE_RULES_REASON 8
#define NGX_HTTP_TOLLBAR_VARIABLES 9

/* A histogram of how long decisions take, in shared memory. */
typedef struct ngx_http_tollbar_times_s ngx_http_tollbar_times_t;

/* Every limit and zone of the configuration, from all levels. */
typedef struct {
    ngx_array_t limits; /* of ngx_http_tollbar_limit_t * */
    ngx_array_t zones;  /* of ngx_shm_zone_t * */
    ngx_array_t confs;  /* of ngx_http_tollbar_conf_t *, of levels with limits */
    ngx_array_t rules;  /* of ngx_http_tollbar_rules_t * */
    /* Where a `tollbar_status_page prometheus` stands. Its line is 0 if there is none. */
    ngx_tollbar_where_t prometheus;
    /* NULL: no page shows the times of decisions. */
    ngx_http_tollbar_times_t *times;
    /* The number of requests until this process measures one. */
    ngx_uint_t until_timed;
    /* The indices of the variables. */
    ngx_uint_t variables[NGX_HTTP_TOLLBAR_VARIABLES];
    /* Whether any limit is charged after the answer. */
    ngx_flag_t afterwards;
    /* Whether the configuration names a variable about the limit of a zone, other than
     * $tollbar_status. */
    ngx_flag_t variables_used;
    /* Whether the configuration names $tollbar_rule. */
    ngx_flag_t rule_used;
} ngx_http_tollbar_main_conf_t;

/* Other values of tollbar_headers are TOLLBAR_HTTP_ numbers. */
#define NGX_HTTP_TOLLBAR_HEADERS_OFF 0

/* One limit's part in one request. */
typedef struct {
    ngx_http_tollbar_limit_t *limit;
    const ngx_http_tollbar_resolved_t *resolved;
    ngx_http_tollbar_resolved_t own;
    ngx_str_t key;
    /* The time of the peek and of the charge, by the table's clock. */
    uint64_t now;
    /* The limit's decision, if `decided` is set. */
    uint64_t remaining;
    uint64_t reset_ns;
    uint64_t retry_ns;
    ngx_msec_t wait;
    /* Which rate of a list of two bound the decision. */
    uint32_t bound;
    /* Why the limit decides so: one of TOLLBAR_REASON_*. */
    uint32_t reason;
    unsigned decided:1;
    /* The node has charged the request. */
    unsigned charged:1;
    /* Only the store can tell whether the limit, which has `sync_wait`, admits the request. */
    unsigned open:1;
    /* The request has a key for the limit, and a rate if the rate holds variables. */
    unsigned applies:1;
} ngx_http_tollbar_charge_t;

/* The outcome of all limits of a request. */
typedef struct {
    ngx_http_tollbar_charge_t *charges;
    /* The first `enforced` are those of the enforced limits, in the order of the level's limits.
     * The others are those of limits in a dry run that apply to the request. */
    ngx_uint_t charges_n;
    ngx_uint_t enforced;
    /* How many charges are `open`. */
    ngx_uint_t open_n;
    /* The limit that refuses, or else delays longest, or else has the fewest permits left. */
    ngx_http_tollbar_charge_t *binding;
    /* Of the limits in a dry run: the one that would refuse, or else delay longest. NULL: none. */
    ngx_http_tollbar_charge_t *dry;
    /* The result of `dry`: NGX_OK, NGX_BUSY or NGX_ERROR. */
    ngx_int_t dry_rc;
} ngx_http_tollbar_outcome_t;

extern ngx_module_t ngx_http_tollbar_module;
extern ngx_module_t ngx_http_tollbar_conn_module;

/* Read directives. */
char *ngx_http_tollbar_read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_status_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* A status page: refuses other methods than GET and HEAD; sends the page's text, which has at least
 * one buffer. */
ngx_int_t ngx_http_tollbar_begin_page(ngx_http_request_t *r);
ngx_int_t ngx_http_tollbar_send_page(ngx_http_request_t *r, ngx_chain_t *page, const char *type);

/* Makes the text UTF-8 without control characters. With `escapes` quotes, backslashes and newlines
 * are escaped. Without, they stay. */
ngx_int_t ngx_http_tollbar_page_text(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped, ngx_flag_t escapes);

/* Read the directives of trees. */
char *ngx_http_tollbar_read_tree(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_tree_class(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Check a limit with a tree, and that a level has at most one. */
ngx_int_t ngx_http_tollbar_tree_check(ngx_conf_t *cf, ngx_http_tollbar_limit_t *limit);
ngx_int_t ngx_http_tollbar_tree_check_level(ngx_conf_t *cf, const ngx_http_tollbar_conf_t *conf);

/* NULL: the tree has no class of that name. */
ngx_http_tollbar_class_t *ngx_http_tollbar_find_class(const ngx_http_tollbar_tree_t *tree, const ngx_str_t *name);

/* Puts a class into the numbers of a limit. */
void ngx_http_tollbar_tree_resolve(ngx_http_tollbar_resolved_t *resolved, const ngx_http_tollbar_class_t *class);

/* Puts the request's class into its numbers. NGX_DECLINED: the class is empty, so the request is not
 * limited. NGX_ERROR, with a line in the log: there is no such class. NGX_ABORT: the value cannot be
 * evaluated. */
ngx_int_t ngx_http_tollbar_tree_class_of(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_resolved_t *resolved);

/* Prepares a request without a key. NGX_DECLINED: its class has a node for each key, so the request
 * is not limited. Other classes need no key. */
ngx_int_t ngx_http_tollbar_tree_without_key(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_charge_t *charge);

/* Charges the request's class and all classes above it, or none, at `charge->now`. */
ngx_int_t ngx_http_tollbar_take_tree(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge);

/* Called after all directives have been read. Finds `worst_case` of a zone, and logs a warning if the
 * text of the zone's policy does not tell how much that is. */
void ngx_http_tollbar_find_worst_case(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone);

/* Refuses a zone that is too small for its policy. */
char *ngx_http_tollbar_check_size(ngx_conf_t *cf, ngx_str_t *name, size_t size, ngx_http_tollbar_zone_t *zone);

/* Reads `top_refused` of a zone, and checks whether the zone may have it. */
char *ngx_http_tollbar_read_top_refused(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_zone_t *zone);
char *ngx_http_tollbar_check_top_refused(ngx_conf_t *cf, ngx_str_t *name, ngx_http_tollbar_zone_t *zone);

/* Reads the keys that the zone's table has refused most, as many as `top_refused` says. Returns 0 or
 * an error of the library. */
int32_t ngx_http_tollbar_read_refused(ngx_pool_t *pool, const ngx_http_tollbar_zone_t *zone, tollbar_table_refused **refused,
                                      size_t *count);

/* The most bytes of a printed key. */
#define NGX_HTTP_TOLLBAR_KEY_MOST (6 * TOLLBAR_REFUSED_KEY)

/* Prints a key between the quotes of a JSON text: the address of a zone whose KEY is
 * $tollbar_client or $binary_remote_addr, otherwise printable ASCII with \xNN for other bytes. */
u_char *ngx_http_tollbar_print_key(u_char *to, const ngx_http_tollbar_zone_t *zone, const tollbar_table_refused *refused);

/* Print what zones with `adaptive` have learned. The metrics have no buffer if there is no such
 * zone. The text for JSON is the end of the page. */
ngx_int_t ngx_http_tollbar_learned_metrics(ngx_http_request_t *r, ngx_buf_t **buffer);
ngx_int_t ngx_http_tollbar_learned_json(ngx_http_request_t *r, ngx_buf_t **buffer);

/* Called after all directives have been read. Adds the memory of the times, if a page shows them. */
ngx_int_t ngx_http_tollbar_times_add(ngx_conf_t *cf, ngx_http_tollbar_main_conf_t *main);

/* The time, in nanoseconds, at which a measured decision begins, and the end of the decision. */
uint64_t ngx_http_tollbar_times_begin(void);
void ngx_http_tollbar_times_end(ngx_http_tollbar_times_t *times, uint64_t begin_ns);

/* Prints the histogram for Prometheus. NULL: there is no memory. */
ngx_buf_t *ngx_http_tollbar_times_metrics(ngx_http_request_t *r, const ngx_http_tollbar_times_t *times);

/* The handler of `tollbar_status_page prometheus`. */
ngx_int_t ngx_http_tollbar_answer_prometheus(ngx_http_request_t *r);

/* Refuses a configuration with such a page and with more zones than the page has room for. */
ngx_int_t ngx_http_tollbar_check_prometheus(ngx_conf_t *cf, ngx_http_tollbar_main_conf_t *main);

/* Whether a `return` on the level of `cf` always answers before nginx checks limits. 0 if the
 * module cannot know. */
ngx_flag_t ngx_http_tollbar_returns(ngx_conf_t *cf);

/* Raises the policy's burst above that of any limit. The burst stays small enough that the state
 * word has room for fine steps of time. */
void ngx_http_tollbar_rate_widen(tollbar_policy_spec *policy);

ngx_http_tollbar_rates_t *ngx_http_tollbar_rates_create(ngx_pool_t *pool);

/* Finds or adds the policy of a rate, and its index in the zone's table. NULL, with a line in the
 * log, if the text is no rate or the table has no room. */
const tollbar_policy_spec *ngx_http_tollbar_rate_find(ngx_shm_zone_t *shm_zone, ngx_str_t *text, uint32_t *number,
                                                      ngx_log_t *log);

/* Fills in a limit's numbers. */
void ngx_http_tollbar_resolve(ngx_http_tollbar_resolved_t *resolved, const ngx_http_tollbar_limit_t *limit,
                            const tollbar_policy_spec *policy, uint32_t number, uint64_t burst, uint64_t cost);

/* Fills in the numbers of a limit with variables for this request. NGX_DECLINED: the rate is empty,
 * so the request is not limited. NGX_ERROR: a value is no rate or no number, so the request is
 * refused. NGX_ABORT: a value cannot be evaluated. */
ngx_int_t ngx_http_tollbar_resolve_for(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_charge_t *charge);

/* Charges a limit that has a node. `full`: the caller needs the full decision. */
ngx_int_t ngx_http_tollbar_take_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t full);

/* Peeks whether the node would admit the request. With `charge_refusal` a refused peek is followed
 * by a charge, because only a refused charge makes the node ask the store for a lease. With
 * `sync_wait` a refused peek returns NGX_OK and sets `charge->open`. */
ngx_int_t ngx_http_tollbar_peek_leased(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, ngx_flag_t charge_refusal);

/* Whether another part of this request, a subrequest, waits or has waited for the store. Then that
 * part counts the request. */
ngx_flag_t ngx_http_tollbar_is_counted(ngx_http_request_t *r);

/* Whether this request waits for the store if the node cannot decide. */
ngx_flag_t ngx_http_tollbar_waits(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge);

/* Charges a limit with `sync_wait`. NGX_OK: the node has decided, as `*verdict` and `*decision`
 * say. NGX_AGAIN: the request waits, and nginx then calls the handler of the preaccess phase again.
 * NGX_ABORT: no memory. */
ngx_int_t ngx_http_tollbar_take_or_wait(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, int32_t *verdict,
                                        tollbar_decision *decision);

/* Keeps the charges of nodes for a request that waits, so that it is charged once. */
void ngx_http_tollbar_wait_keep(ngx_http_request_t *r, const ngx_http_tollbar_outcome_t *outcome);

/* Checks the limit's `class` against the policy of its zone. */
ngx_int_t ngx_http_tollbar_class_check(ngx_conf_t *cf, ngx_http_tollbar_limit_t *limit);

/* Finds the reserve of the request's class. NGX_ERROR, with a line in the log: there is no such
 * class. NGX_ABORT: the value cannot be evaluated. */
ngx_int_t ngx_http_tollbar_class_of(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, uint64_t *reserve);

/* The permits that a request must find: its cost and its class's reserve. */
uint64_t ngx_http_tollbar_needed(const ngx_http_tollbar_resolved_t *resolved);

/* Charges the request at `now`. A request of a class must leave its reserve. */
int32_t ngx_http_tollbar_charge_at(const ngx_http_tollbar_charge_t *charge, uint64_t now, tollbar_decision *decision);

/* Reads `count` of a limit. */
char *ngx_http_tollbar_read_count(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_limit_t *limit);

/* Stores the limits that the log phase will charge. */
ngx_int_t ngx_http_tollbar_keep(ngx_http_request_t *r, const ngx_http_tollbar_outcome_t *outcome);

/* The handler of the log phase. */
ngx_int_t ngx_http_tollbar_log_handler(ngx_http_request_t *r);

/* Evaluates a number of permits for this request. NGX_ERROR, with a line in the log: the value is
 * no number. NGX_ABORT: it cannot be evaluated. */
ngx_int_t ngx_http_tollbar_amount_of(ngx_http_request_t *r, ngx_http_tollbar_limit_t *limit, ngx_http_tollbar_amount_t *amount,
                                     const char *name, ngx_int_t otherwise, uint64_t *number);

/* Peeks whether the limit would admit the request, and charges nothing. `*verdict` is the verdict
 * of the table, whose burst may be larger. */
ngx_int_t ngx_http_tollbar_peek(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge, int32_t *verdict);

/* ngx_tollbar_zone_has_changed of the charge's policy. */
ngx_flag_t ngx_http_tollbar_has_changed(const ngx_http_tollbar_charge_t *charge);

/* ngx_http_tollbar_peek, but a refusal counts in the zone's statistics and toward a ban. */
ngx_int_t ngx_http_tollbar_peek_and_count(ngx_http_request_t *r, ngx_http_tollbar_charge_t *charge);

/* Stores the table's decision in `charge`, with `spare` permits fewer left. */
void ngx_http_tollbar_set_decision(ngx_http_tollbar_charge_t *charge, const tollbar_decision *decision);

/* For a refused request: stores in `charge` the time after which it would pass, and the reason if
 * the table itself would admit it. `verdict` is the table's verdict. */
void ngx_http_tollbar_set_refusal(ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Counts in the zone's statistics a verdict that the table has not counted. */
void ngx_http_tollbar_count(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t verdict);

/* Counts a refusal by a peek or by the limit's own burst, which the table has not counted. A zone
 * with `top_refused` records the key. */
void ngx_http_tollbar_count_refusal(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge);

/* Logs that the charge's zone returned an error. Returns NGX_ERROR. */
ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, int32_t error);

/* The handler of the preaccess phase. */
ngx_int_t ngx_http_tollbar_handler(ngx_http_request_t *r);

/* Carries out a result, as listed in ngx_tollbar_several.h: admits, delays or refuses the request,
 * or answers with status 500. Returns the phase handler's return value. */
ngx_int_t ngx_http_tollbar_answer(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_outcome_t *outcome);

/* Adds the configured headers, and Retry-After to a refusal. */
ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const ngx_http_tollbar_outcome_t *outcome);

/* Adds the fields of `count` limits, from 1 on: TOLLBAR_HTTP_ numbers in `fields`. */
ngx_int_t ngx_http_tollbar_add_fields(ngx_http_request_t *r, const tollbar_http_limit *limits, size_t count, uint32_t fields);

/* Nanoseconds as whole seconds, rounded up. */
uint64_t ngx_http_tollbar_seconds(uint64_t ns);

/* Adds the module's variables, before nginx reads the configuration. */
ngx_int_t ngx_http_tollbar_add_variables(ngx_conf_t *cf);

/* Finds out which of the variables the configuration uses, after nginx has read it. */
ngx_int_t ngx_http_tollbar_find_variables(ngx_conf_t *cf);

/* The value of a variable of the module. A request whose $tollbar_status is set has been decided,
 * and likewise one whose $tollbar_rules_status is set. Subrequests and redirects keep the
 * values. */
static ngx_inline ngx_http_variable_value_t *
ngx_http_tollbar_value(ngx_http_request_t *r, const ngx_http_tollbar_main_conf_t *main,
                       ngx_uint_t variable)
{
    return &r->main->variables[main->variables[variable]];
}

/* Sets the value to the words of a TOLLBAR_REASON_* number. */
void ngx_http_tollbar_set_reason(ngx_http_variable_value_t *v, uint32_t reason);

/* Sets the other variables about the limit of a zone. */
void ngx_http_tollbar_set_variables(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, ngx_flag_t refused);

#endif
