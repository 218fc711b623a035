/* Decides a request by all limits of its location. */

#include "ngx_http_tollbar.h"
#include "ngx_http_tollbar_conn.h"

typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_resolved_t resolved_t;
typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_outcome_t outcome_t;

/* Up to so many limits need no memory from the request's pool. */
#define USUAL_LIMITS 4

/* A process measures one decision in so many. */
#define TIMED_ONE_IN 1024

/* The functions here that return ngx_int_t return a result of ngx_tollbar_several.h, except check,
 * which returns the phase handler's value. */
static ngx_inline ngx_http_variable_value_t *status_of(ngx_http_request_t *r, main_conf_t *main);
static ngx_int_t check(ngx_http_request_t *r, conf_t *conf, main_conf_t *main);
static ngx_inline ngx_flag_t is_timed(main_conf_t *main);
static ngx_int_t check_several(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full, ngx_int_t *busy);
static ngx_int_t peek_at_all(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full, ngx_flag_t each);
static ngx_int_t take_open(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full);
static ngx_int_t take_all(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full);
static void give_back(const charge_t *charge);
static ngx_int_t check_dry(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome);
static ngx_inline ngx_int_t prepare(ngx_http_request_t *r, limit_t *limit, charge_t *charge);
static void choose_binding(outcome_t *outcome, charge_t *charge, ngx_flag_t first);
static ngx_inline ngx_int_t read_clock(ngx_http_request_t *r, charge_t *charge);
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full);
static ngx_inline ngx_int_t take_at(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full);
static ngx_int_t take_other(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full);
static ngx_int_t take_afterwards(ngx_http_request_t *r, charge_t *charge);
static ngx_int_t take_in_full(ngx_http_request_t *r, charge_t *charge);
static ngx_int_t refused(ngx_http_request_t *r, charge_t *charge, int32_t verdict);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);

ngx_int_t ngx_http_tollbar_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    main_conf_t *main;

    if (conf->limits.nelts == 0) {
        return NGX_DECLINED;
    }
    /* Subrequests and redirects of a counted request are not counted again. */
    main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    return status_of(r, main)->valid || ngx_http_tollbar_is_counted(r) ? NGX_DECLINED : check(r, conf, main);
}

static ngx_inline ngx_http_variable_value_t *status_of(ngx_http_request_t *r, main_conf_t *main)
{
    return ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_STATUS);
}

static ngx_int_t check(ngx_http_request_t *r, conf_t *conf, main_conf_t *main)
{
    ngx_flag_t full = conf->headers != NGX_HTTP_TOLLBAR_HEADERS_OFF || main->variables_used;
    uint64_t begin = is_timed(main) ? ngx_http_tollbar_times_begin() : 0;
    charge_t usual[USUAL_LIMITS];
    outcome_t outcome;
    /* The status with which tollbar_conn refuses the request. NGX_DECLINED: it does not. NGX_OK: it
     * has no limit here. */
    ngx_int_t busy = ngx_http_tollbar_conn_counts(r) ? NGX_DECLINED : NGX_OK;
    ngx_int_t rc;

    outcome.charges = outcome.binding = usual;
    outcome.charges_n = outcome.enforced = 1;
    outcome.dry = NULL;
    if (conf->limits.nelts == 1 && conf->enforced == 1 && busy == NGX_OK) {
        rc = prepare(r, ((limit_t **) conf->limits.elts)[0], usual);
        if (rc == NGX_OK) {
            rc = take(r, usual, full);
        }
    } else {
        if (conf->limits.nelts > USUAL_LIMITS) {
            outcome.charges = ngx_palloc(r->pool, conf->limits.nelts * sizeof(charge_t));
            if (outcome.charges == NULL) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }
        outcome.binding = NULL;
        rc = check_several(r, conf, &outcome, full, &busy);
    }
    if (begin != 0) {
        ngx_http_tollbar_times_end(main->times, begin);
    }
    if (busy > NGX_OK) {
        /* No rate is charged, by a redirect to a page for the error neither. */
        (void) ngx_tollbar_set_text(status_of(r, main), (u_char *) "", 0);
        return busy;
    }
    /* Most requests pass at once. If the configuration has no header fields, no variables and no charge
     * after the answer, the module only marks such a request as counted. */
    if (rc == NGX_OK && !full && !main->afterwards && outcome.dry == NULL && outcome.binding->wait == 0) {
        ngx_tollbar_set_status(status_of(r, main), NGX_TOLLBAR_PASSED);
        return NGX_DECLINED;
    }
    if (rc == NGX_DECLINED || rc == NGX_AGAIN) {
        return rc;
    }
    /* nginx did not try a refused request, so it has not failed. In a dry run nginx tries it. */
    if (main->afterwards && rc != NGX_ABORT && (rc == NGX_OK || conf->dry_run) && ngx_http_tollbar_keep(r, &outcome) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return ngx_http_tollbar_answer(r, rc, &outcome);
}

/* Whether this process measures how long the decision takes. */
static ngx_inline ngx_flag_t is_timed(main_conf_t *main)
{
    if (main->times == NULL || main->until_timed-- != 0) {
        return 0;
    }
    main->until_timed = TIMED_ONE_IN - 1;
    return 1;
}

/* Charges all enforced limits or none, as ngx_tollbar_several.h explains. The last limit needs no
 * peek if it is charged first, because a refused charge takes nothing, as a peek does. If the
 * enforced limits admit the request, the module then checks the limits in a dry run one by one.
 *
 * Beside limits of tollbar_conn it peeks at all, then counts the request there, and then charges, so
 * that a refusal of either kind takes nothing of the other. A request that is to be delayed, or that
 * waits for the store, is counted again when that ends. */
static ngx_int_t check_several(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full, ngx_int_t *busy)
{
    ngx_flag_t counts = *busy == NGX_DECLINED;
    ngx_int_t rc;

    outcome->charges_n = outcome->open_n = 0;
    rc = peek_at_all(r, conf, outcome, full, counts);
    outcome->enforced = outcome->charges_n;
    if (rc == NGX_OK && counts) {
        *busy = ngx_http_tollbar_conn_enter(r);
        if (*busy != NGX_DECLINED) {
            return NGX_DECLINED;
        }
    }
    if (rc == NGX_OK && outcome->open_n != 0) {
        rc = take_open(r, conf, outcome, full);
    }
    if (rc == NGX_OK) {
        rc = take_all(r, conf, outcome, full);
    }
    if (counts && (rc != NGX_OK || (outcome->binding != NULL && outcome->binding->wait != 0))) {
        ngx_http_tollbar_conn_leave(r);
    }
    if (rc == NGX_AGAIN) {
        ngx_http_tollbar_wait_keep(r, outcome);
    }
    if (rc == NGX_OK && conf->enforced < conf->limits.nelts) {
        rc = check_dry(r, conf, outcome);
    }
    return rc == NGX_OK && outcome->binding == NULL && outcome->dry == NULL ? NGX_DECLINED : rc;
}

/* Peeks at all enforced limits, at the last too with `each`. It goes on after a refusal, because the
 * longest wait of all refusals becomes Retry-After. */
static ngx_int_t peek_at_all(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full, ngx_flag_t each)
{
    limit_t **limits = conf->limits.elts;
    charge_t *charge;
    ngx_int_t rc, worst = NGX_OK;
    int32_t verdict;
    ngx_uint_t n;

    for (n = 0; n < conf->enforced; n++) {
        charge = &outcome->charges[outcome->charges_n++];
        rc = prepare(r, limits[n], charge);
        if (rc == NGX_DECLINED) {
            charge->applies = 0;
            continue;
        }
        if (rc == NGX_OK && !charge->resolved->leased) {
            rc = read_clock(r, charge);
        }
        /* A tree has no peek. It is charged first, so its refusal leaves the other limits alone. */
        if (rc == NGX_OK && charge->resolved->class != NULL) {
            continue;
        }
        if (rc == NGX_OK && n + 1 == conf->enforced && n == conf->order[0] && worst == NGX_OK && !each && !ngx_http_tollbar_waits(r, charge)) {
            continue;
        }
        if (rc == NGX_OK && !(charge->resolved->plain && !full && would_pass(charge))) {
            if (charge->resolved->leased) {
                rc = ngx_http_tollbar_peek_leased(r, charge, worst == NGX_OK);
                outcome->open_n += charge->open;
            } else if (worst == NGX_OK && (charge->limit->afterwards || charge->limit->zone->policy.ban_ns != 0)) {
                rc = ngx_http_tollbar_peek_and_count(r, charge);
            } else {
                rc = ngx_http_tollbar_peek(r, charge, &verdict);
            }
        }
        if (rc == NGX_BUSY) {
            /* A refused request counts once, at the first limit that refuses it. A node counts its
             * own refusals, and ngx_http_tollbar_peek_and_count has counted those of its limits. */
            if (worst == NGX_OK && !charge->resolved->leased && !charge->limit->afterwards
                && charge->limit->zone->policy.ban_ns == 0)
            {
                ngx_http_tollbar_count_refusal(r, charge);
            }
            choose_binding(outcome, charge, worst == NGX_OK);
            worst = NGX_BUSY;
        } else if (rc != NGX_OK) {
            outcome->binding = charge;
            return rc;
        }
    }
    return worst;
}

/* The refusing limit with the longest wait binds. Waits that differ by at most a millisecond count
 * as equal, because the module reads the limits' clocks one after the other. Of equal limits the
 * one that the configuration names first binds. */
static void choose_binding(outcome_t *outcome, charge_t *charge, ngx_flag_t first)
{
    const uint64_t alike_ns = 1000000;
    charge_t *before = outcome->binding;

    if (first || (charge->retry_ns > before->retry_ns && charge->retry_ns - before->retry_ns > alike_ns)) {
        outcome->binding = charge;
    } else if (charge->retry_ns > before->retry_ns) {
        before->retry_ns = charge->retry_ns;
    }
}

/* Asks the store about the limits that only it can decide, one after the other. Limits whose last
 * answer was a refusal come first, because a node that still knows the refusal repeats it without
 * the store, and then no other limit is charged. */
static ngx_int_t take_open(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full)
{
    charge_t *charge;
    ngx_uint_t n, pass;
    ngx_int_t rc;

    for (pass = 0; pass < 2; pass++) {
        for (n = 0; n < conf->enforced; n++) {
            charge = &outcome->charges[conf->order[n]];
            if (!charge->applies || !charge->open || charge->charged || (charge->reason == TOLLBAR_REASON_STORE_DENIED) != !pass) {
                continue;
            }
            rc = take_at(r, charge, full);
            if (rc != NGX_OK) {
                outcome->binding = charge;
                return rc;
            }
        }
    }
    return NGX_OK;
}

static ngx_int_t take_all(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome, ngx_flag_t full)
{
    charge_t *charge, *binding = NULL;
    ngx_uint_t n;
    ngx_int_t rc;

    for (n = 0; n < conf->enforced; n++) {
        charge = &outcome->charges[conf->order[n]];
        rc = charge->applies ? take_at(r, charge, full) : NGX_OK;
        if (rc != NGX_OK) {
            outcome->binding = charge;
            while (n-- > 0) {
                give_back(&outcome->charges[conf->order[n]]);
            }
            return rc;
        }
    }
    for (n = conf->enforced; n-- > 0; ) {
        charge = &outcome->charges[n];
        if (charge->applies
            && (binding == NULL || charge->wait > binding->wait
                || (full && charge->wait == binding->wait
                    && charge->remaining <= binding->remaining)))
        {
            binding = charge;
        }
    }
    outcome->binding = binding;
    return NGX_OK;
}

/* Gives back a charge of a table. A node and a tree take no permits back, and a limit with `count` or `when`
 * has charged nothing before the answer. */
static void give_back(const charge_t *charge)
{
    if (charge->applies && !charge->resolved->leased && charge->resolved->class == NULL && !charge->limit->afterwards) {
        ngx_tollbar_give_back(charge->limit->zone->zone.table, charge->resolved->number,
                              &charge->key, charge->resolved->cost, charge->now);
    }
}

static ngx_int_t check_dry(ngx_http_request_t *r, conf_t *conf, outcome_t *outcome)
{
    limit_t **limits = conf->limits.elts;
    charge_t *charge;
    ngx_uint_t n;
    ngx_int_t rc;

    outcome->dry_rc = NGX_OK;
    for (n = conf->enforced; n < conf->limits.nelts; n++) {
        charge = &outcome->charges[outcome->charges_n];
        rc = prepare(r, limits[n], charge);
        if (rc == NGX_DECLINED) {
            continue;
        }
        if (rc == NGX_OK) {
            rc = take(r, charge, 1);
        }
        if (rc == NGX_ABORT) {
            return NGX_ABORT;
        }
        outcome->charges_n++;
        if (outcome->dry == NULL || (rc != NGX_OK && outcome->dry_rc == NGX_OK)
            || (rc == NGX_OK && outcome->dry_rc == NGX_OK && charge->wait > outcome->dry->wait))
        {
            outcome->dry = charge;
            outcome->dry_rc = rc;
        }
    }
    return NGX_OK;
}

static ngx_inline ngx_int_t prepare(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_int_t rc = ngx_http_tollbar_key_of(r, &limit->zone->key, &charge->key);

    charge->limit = limit;
    charge->resolved = &limit->resolved;
    charge->retry_ns = 0;
    charge->wait = 0;
    charge->decided = 0;
    charge->charged = 0;
    charge->open = 0;
    charge->applies = 1;
    charge->reason = TOLLBAR_REASON_FAULT;
    if (rc == NGX_DECLINED && limit->zone->tree != NULL) {
        return ngx_http_tollbar_tree_without_key(r, limit, charge);
    }
    return rc == NGX_OK && limit->varies ? ngx_http_tollbar_resolve_for(r, limit, charge) : rc;
}

/* Reads the time of the peek and of the charge. */
static ngx_inline ngx_int_t read_clock(ngx_http_request_t *r, charge_t *charge)
{
    int32_t error = tollbar_table_now(charge->limit->zone->zone.table, &charge->now);

    return error == 0 ? NGX_OK : ngx_http_tollbar_failed(r, charge, error);
}

/* Charges a request that has one limit. In most configurations this is one call to the table. */
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full)
{
    const resolved_t *resolved = charge->resolved;
    int32_t verdict;

    if (!resolved->plain || full) {
        return resolved->leased || charge->limit->afterwards || read_clock(r, charge) == NGX_OK ? take_other(r, charge, full) : NGX_ERROR;
    }
    verdict = tollbar_table_check(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                                  resolved->cost, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(r, charge, verdict);
}

/* Charges one of several limits, at the time of its peek. */
static ngx_inline ngx_int_t take_at(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full)
{
    const resolved_t *resolved = charge->resolved;
    int32_t verdict;

    if (!resolved->plain || full) {
        return take_other(r, charge, full);
    }
    verdict = tollbar_table_check_at(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                                     resolved->cost, charge->now, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(r, charge, verdict);
}

static ngx_int_t take_other(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full)
{
    if (charge->limit->afterwards) {
        return take_afterwards(r, charge);
    }
    if (charge->resolved->class != NULL) {
        return ngx_http_tollbar_take_tree(r, charge);
    }
    return charge->resolved->leased ? ngx_http_tollbar_take_leased(r, charge, full) : take_in_full(r, charge);
}

/* Decides a limit that the module charges after the answer. It only peeks, and counts an admission
 * in the statistics. */
static ngx_int_t take_afterwards(ngx_http_request_t *r, charge_t *charge)
{
    ngx_int_t rc = charge->decided ? NGX_OK : ngx_http_tollbar_peek_and_count(r, charge);

    if (rc == NGX_OK) {
        ngx_http_tollbar_count(r, charge, TOLLBAR_ALLOWED);
    }
    return rc;
}

static ngx_int_t refused(ngx_http_request_t *r, charge_t *charge, int32_t verdict)
{
    ngx_int_t rc;

    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    /* This peek only finds the wait and the reason. Even if the limit would now admit the request,
     * the refusal stands. */
    rc = ngx_http_tollbar_peek(r, charge, &verdict);
    if (rc == NGX_OK) {
        charge->reason = TOLLBAR_REASON_RATE;
        rc = NGX_BUSY;
    }
    return rc;
}

/* Charges a table if the module needs the full decision: for header fields, a delay, a ban or a
 * burst of the limit's own. */
static ngx_int_t take_in_full(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const resolved_t *resolved = charge->resolved;
    int32_t verdict;
    ngx_int_t rc;

    if (resolved->spare != 0) {
        rc = ngx_http_tollbar_peek(r, charge, &verdict);
        /* If the table itself refuses, the charge below still follows, so that the table counts a
         * new key that finds no slot. */
        if (rc != NGX_OK && verdict != TOLLBAR_DENIED) {
            if (rc == NGX_BUSY) {
                ngx_http_tollbar_count_refusal(r, charge);
            }
            return rc;
        }
    }
    verdict = ngx_http_tollbar_charge_at(charge, charge->now, &decision);
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    ngx_http_tollbar_set_decision(charge, &decision);
    if (verdict != TOLLBAR_ALLOWED) {
        ngx_http_tollbar_set_refusal(charge, verdict);
        return NGX_BUSY;
    }
    /* Another request was charged between the peek and the charge, so this request has exceeded the
     * limit's own burst. */
    if (resolved->cost != 0 && decision.remaining < resolved->spare
        && !ngx_http_tollbar_has_changed(charge))
    {
        ngx_http_tollbar_set_refusal(charge, verdict);
        give_back(charge);
        return NGX_BUSY;
    }
    if (resolved->delays) {
        charge->wait = ngx_tollbar_wait(charge->reset_ns, resolved->undelayed);
        if (charge->wait != 0 && ngx_http_tollbar_has_changed(charge)) {
            charge->wait = 0;
        }
    }
    return NGX_OK;
}

/* Whether the table would admit the request. If the limit has the zone's own burst, this call
 * without a decision replaces a full peek. */
static ngx_inline ngx_flag_t would_pass(const charge_t *charge)
{
    return tollbar_table_peek_at(charge->limit->zone->zone.table, charge->resolved->number, charge->key.data, charge->key.len,
                                 charge->resolved->cost, charge->now, NULL)
           == TOLLBAR_ALLOWED;
}
