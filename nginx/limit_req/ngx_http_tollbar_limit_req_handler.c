/* Decides a request by all limits of its location. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_limit_t limit_t;
typedef ngx_http_tollbar_limit_req_conf_t conf_t;
typedef ngx_http_tollbar_limit_req_outcome_t outcome_t;

/* A limit to charge, the request's key, and the time of the peek and of the charge by the table's clock. */
typedef struct {
    limit_t *limit;
    ngx_str_t key;
    uint64_t now;
} charge_t;

/* Up to so many limits need no memory from the request's pool. */
#define USUAL_LIMITS 4

/* The functions here that return ngx_int_t return a result of ngx_tollbar_several.h. With several limits, an unreadable clock is NGX_ABORT. */
static ngx_inline ngx_int_t check_one(ngx_http_request_t *r, limit_t *limit, outcome_t *out);
static ngx_int_t check_several(ngx_http_request_t *r, const conf_t *conf, outcome_t *out);
static ngx_int_t take_all(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_log_t *log, outcome_t *out);
static void give_back(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n);
static ngx_inline charge_t *charge_of(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n);
static charge_t *find_charge(charge_t *charges, ngx_uint_t charges_n, const limit_t *limit);
static ngx_inline ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_inline ngx_int_t take_at(charge_t *charge, ngx_log_t *log, uint64_t *debt);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);
static ngx_int_t refused(limit_t *limit, ngx_str_t *key, ngx_log_t *log, int32_t verdict, uint64_t *debt);
static ngx_int_t take_in_full(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t take_in_full_at(limit_t *limit, ngx_str_t *key, uint64_t now, ngx_log_t *log, uint64_t *debt);
static ngx_int_t peek(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t failed(limit_t *limit, ngx_log_t *log, int32_t error);

ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_limit_req_module);
    outcome_t outcome;
    ngx_int_t rc;

    /* Subrequests and redirects of a counted request are not counted again. */
    if (conf->limits.nelts == 0 || r->main->limit_req_status != 0) {
        return NGX_DECLINED;
    }
    outcome.debt = 0;
    rc = conf->limits.nelts == 1 ? check_one(r, ((limit_t **) conf->limits.elts)[0], &outcome)
                                 : check_several(r, conf, &outcome);
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    /* The usual case: the limit does not delay. */
    if (rc == NGX_OK && outcome.debt == 0) {
        r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_PASSED;
        return NGX_DECLINED;
    }
    return ngx_http_tollbar_limit_req_answer(r, rc, &outcome);
}

static ngx_inline ngx_int_t check_one(ngx_http_request_t *r, limit_t *limit, outcome_t *out)
{
    ngx_str_t key;
    ngx_int_t rc = ngx_http_tollbar_key_of(r, &limit->zone->key, &key);

    out->limit = limit;
    return rc == NGX_OK ? take(limit, &key, r->connection->log, &out->debt) : rc;
}

/* Charges all limits or none, as ngx_tollbar_several.h explains. The last limit needs no peek if it is charged first, because a refused charge takes
 * nothing, as a peek does. That holds only if no other limit of its zone has a larger burst. Every earlier limit
 * needs its peek, because nginx logs the first limit that refuses. */
static ngx_int_t check_several(ngx_http_request_t *r, const conf_t *conf, outcome_t *out)
{
    ngx_log_t *log = r->connection->log;
    limit_t **all = conf->limits.elts;
    charge_t usual[USUAL_LIMITS], *charges = usual;
    ngx_uint_t n, charges_n = 0;
    ngx_int_t rc;

    if (conf->limits.nelts > USUAL_LIMITS) {
        charges = ngx_palloc(r->pool, conf->limits.nelts * sizeof(charge_t));
        if (charges == NULL) {
            return NGX_ABORT;
        }
    }
    /* A refusal ends the loop before nginx evaluates the keys of later limits, because evaluating a variable may have side effects. */
    for (n = 0; n < conf->limits.nelts; n++) {
        charges[charges_n].limit = all[n];
        rc = ngx_http_tollbar_key_of(r, &all[n]->zone->key, &charges[charges_n].key);
        if (rc == NGX_DECLINED) {
            continue;
        }
        if (rc == NGX_OK) {
            rc = tollbar_table_now(all[n]->zone->zone.table, &charges[charges_n].now) == 0 ? NGX_OK : NGX_ABORT;
        }
        if (rc == NGX_OK && (n + 1 < conf->limits.nelts || n != conf->order[0] || all[n]->narrow) && !would_pass(&charges[charges_n])) {
            out->limit = all[n];
            rc = peek(all[n], &charges[charges_n].key, log, &out->debt);
        }
        if (rc != NGX_OK) {
            return rc;
        }
        charges_n++;
    }
    if (charges_n == 0) {
        return NGX_DECLINED;
    }
    return take_all(conf, charges, charges_n, log, out);
}

static ngx_int_t take_all(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_log_t *log, outcome_t *out)
{
    charge_t *charge, *binding = NULL;
    ngx_msec_t longest = 0, wait;
    outcome_t one;
    ngx_uint_t n;
    ngx_int_t rc;

    out->limit = charges[charges_n - 1].limit;
    out->debt = 0;
    for (n = 0; n < conf->limits.nelts; n++) {
        charge = charge_of(conf, charges, charges_n, n);
        if (charge == NULL) {
            continue;
        }
        one.limit = charge->limit;
        one.debt = 0;
        rc = take_at(charge, log, &one.debt);
        if (rc != NGX_OK) {
            *out = one;
            give_back(conf, charges, charges_n, n);
            return rc;
        }
        wait = one.debt != 0 ? ngx_http_tollbar_limit_req_wait(&one) : 0;
        /* Of two limits with equal delays nginx logs the later one. */
        if (wait > longest || (wait == longest && wait != 0 && charge > binding)) {
            longest = wait;
            binding = charge;
            *out = one;
        }
    }
    return NGX_OK;
}

/* Gives back the charges before place `n` of the charging order. */
static void give_back(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n)
{
    charge_t *charge;

    while (n-- > 0) {
        charge = charge_of(conf, charges, charges_n, n);
        if (charge != NULL) {
            ngx_tollbar_give_back(charge->limit->zone->zone.table, 0, &charge->key, 1, charge->now);
        }
    }
}

/* The charge of the limit at place `n` of the charging order. NULL if the request has no key for that limit. */
static ngx_inline charge_t *charge_of(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n)
{
    ngx_uint_t index = conf->order[n];

    return charges_n == conf->limits.nelts ? &charges[index]
                                           : find_charge(charges, charges_n, ((limit_t **) conf->limits.elts)[index]);
}

static charge_t *find_charge(charge_t *charges, ngx_uint_t charges_n, const limit_t *limit)
{
    while (charges_n-- > 0) {
        if (charges[charges_n].limit == limit) {
            return &charges[charges_n];
        }
    }
    return NULL;
}

/* Charges a request that has one limit. In most configurations this is one call to the table. Sets `*debt` for an admitted request only if the
 * limit may delay. */
static ngx_inline ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    int32_t verdict;

    if (limit->narrow || limit->delays) {
        return take_in_full(limit, key, log, debt);
    }
    verdict = tollbar_table_check(limit->zone->zone.table, 0, key->data, key->len, 1, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(limit, key, log, verdict, debt);
}

/* Charges one of several limits, at the time of its peek. */
static ngx_inline ngx_int_t take_at(charge_t *charge, ngx_log_t *log, uint64_t *debt)
{
    limit_t *limit = charge->limit;
    ngx_str_t *key = &charge->key;
    int32_t verdict;

    if (limit->narrow || limit->delays) {
        return take_in_full_at(limit, key, charge->now, log, debt);
    }
    verdict = tollbar_table_check_at(limit->zone->zone.table, 0, key->data, key->len, 1, charge->now, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(limit, key, log, verdict, debt);
}

/* Whether the table would admit the request. If the limit has the zone's own burst, this call without a decision replaces a full peek. */
static ngx_inline ngx_flag_t would_pass(const charge_t *charge)
{
    limit_t *limit = charge->limit;

    return !limit->narrow
           && tollbar_table_peek_at(limit->zone->zone.table, 0, charge->key.data, charge->key.len, 1, charge->now, NULL)
              == TOLLBAR_ALLOWED;
}

/* Peeks at the debt of a refused request for the log line. The debt may have fallen since the refusal, so it is raised to the smallest one that
 * causes a refusal. */
static ngx_int_t refused(limit_t *limit, ngx_str_t *key, ngx_log_t *log, int32_t verdict, uint64_t *debt)
{
    if (verdict < 0) {
        return failed(limit, log, verdict);
    }
    (void) peek(limit, key, log, debt);
    *debt = ngx_max(*debt, limit->debt_most);
    return NGX_BUSY;
}

/* Charges a limit that needs the key's debt: one that may delay, or one with a smaller burst than the table's. */
static ngx_int_t take_in_full(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    uint64_t now;
    ngx_int_t rc = limit->narrow ? peek(limit, key, log, debt) : NGX_OK;
    int32_t error;

    if (rc != NGX_OK) {
        return rc;
    }
    error = tollbar_table_now(limit->zone->zone.table, &now);
    return error == 0 ? take_in_full_at(limit, key, now, log, debt) : failed(limit, log, error);
}

static ngx_int_t take_in_full_at(limit_t *limit, ngx_str_t *key, uint64_t now, ngx_log_t *log, uint64_t *debt)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict = tollbar_table_check_at(limit->zone->zone.table, 0, key->data, key->len, 1, now, &decision);

    if (verdict < 0) {
        return failed(limit, log, verdict);
    }
    *debt = decision.reset_after_ns;
    if (verdict != TOLLBAR_ALLOWED) {
        return NGX_BUSY;
    }
    /* Another request was charged between the peek and the charge, so this request has exceeded the limit's own burst. */
    if (limit->narrow && decision.reset_after_ns > limit->debt_after) {
        ngx_tollbar_give_back(limit->zone->zone.table, 0, key, 1, now);
        *debt = limit->debt_most;
        return NGX_BUSY;
    }
    return NGX_OK;
}

/* Peeks whether the limit would admit the request, and charges nothing. */
static ngx_int_t peek(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict = tollbar_table_peek(limit->zone->zone.table, 0, key->data, key->len, 1, &decision);

    if (verdict < 0) {
        return failed(limit, log, verdict);
    }
    *debt = decision.reset_after_ns;
    return verdict == TOLLBAR_ALLOWED && decision.reset_after_ns <= limit->debt_most ? NGX_OK : NGX_BUSY;
}

static ngx_int_t failed(limit_t *limit, ngx_log_t *log, int32_t error)
{
    ngx_tollbar_zone_failed(limit->shm_zone, log, error);
    return NGX_ERROR;
}
