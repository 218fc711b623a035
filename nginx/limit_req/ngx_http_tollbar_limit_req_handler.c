/* What the limits say to a request. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_limit_t limit_t;
typedef ngx_http_tollbar_limit_req_conf_t conf_t;
typedef ngx_http_tollbar_limit_req_outcome_t outcome_t;

/* A limit that is to be charged for a request, the key, and the time by the table's clock at which it is looked at and charged. */
typedef struct {
    limit_t *limit;
    ngx_str_t key;
    uint64_t now;
} charge_t;

/* So many limits need no memory of their own for a request. */
#define USUAL_LIMITS 4

/* NGX_OK: the request may pass, after a delay if it owes too much; NGX_BUSY: refused; NGX_ERROR: refused because it cannot be
 * told; NGX_DECLINED: it has no key that is limited; NGX_ABORT: a key cannot be evaluated. */
static ngx_inline ngx_int_t ask_one(ngx_http_request_t *r, limit_t *limit, outcome_t *out);
static ngx_int_t ask_several(ngx_http_request_t *r, const conf_t *conf, outcome_t *out);
static ngx_int_t take_all(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_log_t *log, outcome_t *out);
static void give_back(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n);
static ngx_inline charge_t *charge_of(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n);
static charge_t *find_charge(charge_t *charges, ngx_uint_t charges_n, const limit_t *limit);
static ngx_inline ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_inline ngx_int_t take_at(charge_t *charge, ngx_log_t *log, uint64_t *debt);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);
static ngx_int_t refused(limit_t *limit, ngx_str_t *key, ngx_log_t *log, int32_t verdict, uint64_t *debt);
static ngx_int_t take_known(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t take_known_at(limit_t *limit, ngx_str_t *key, uint64_t now, ngx_log_t *log, uint64_t *debt);
static ngx_int_t look(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t failed(limit_t *limit, ngx_log_t *log, int32_t error);

ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_limit_req_module);
    outcome_t outcome;
    ngx_int_t rc;

    /* Once for a request, whatever subrequests and redirects become of it. */
    if (conf->limits.nelts == 0 || r->main->limit_req_status != 0) {
        return NGX_DECLINED;
    }
    outcome.debt = 0;
    rc = conf->limits.nelts == 1 ? ask_one(r, ((limit_t **) conf->limits.elts)[0], &outcome)
                                 : ask_several(r, conf, &outcome);
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    /* Of a limit that cannot delay there is no more to know. */
    if (rc == NGX_OK && outcome.debt == 0) {
        r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_PASSED;
        return NGX_DECLINED;
    }
    return ngx_http_tollbar_limit_req_answer(r, rc, &outcome);
}

static ngx_inline ngx_int_t ask_one(ngx_http_request_t *r, limit_t *limit, outcome_t *out)
{
    ngx_str_t key;
    ngx_int_t rc = ngx_http_tollbar_key_of(r, &limit->zone->key, &key);

    out->limit = limit;
    return rc == NGX_OK ? take(limit, &key, r->connection->log, &out->debt) : rc;
}

/* Charges all limits, or none: ngx_tollbar_several.h says how. The last limit need not be looked at if it is charged first: for it, looking and
 * charging are one, unless another limit of its zone has a larger burst. An earlier one is looked at in any case, because of two limits that
 * refuse nginx names the first. */
static ngx_int_t ask_several(ngx_http_request_t *r, const conf_t *conf, outcome_t *out)
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
    /* A key is seen before those of later limits are evaluated, which may have effects of their own: a refusal by an
     * earlier limit ends it there. */
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
            rc = look(all[n], &charges[charges_n].key, log, &out->debt);
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
        /* Of equal delays that of the later limit is named, as nginx does. */
        if (wait > longest || (wait == longest && wait != 0 && charge > binding)) {
            longest = wait;
            binding = charge;
            *out = one;
        }
    }
    return NGX_OK;
}

/* What was charged before the limit in that place. */
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

/* Of the limits in their order the one in that place. NULL if the request has no key for it. */
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

/* Charges one request, in most configurations with this one call. `*debt`, of a request that is let through, is set where the
 * limit can delay. */
static ngx_inline ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    int32_t verdict;

    if (limit->narrow || limit->delays) {
        return take_known(limit, key, log, debt);
    }
    verdict = tollbar_table_check(limit->zone->zone.table, 0, key->data, key->len, 1, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(limit, key, log, verdict, debt);
}

/* The same of a limit beside others, which has been looked at. */
static ngx_inline ngx_int_t take_at(charge_t *charge, ngx_log_t *log, uint64_t *debt)
{
    limit_t *limit = charge->limit;
    ngx_str_t *key = &charge->key;
    int32_t verdict;

    if (limit->narrow || limit->delays) {
        return take_known_at(limit, key, charge->now, log, debt);
    }
    verdict = tollbar_table_check_at(limit->zone->zone.table, 0, key->data, key->len, 1, charge->now, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(limit, key, log, verdict, debt);
}

/* The shorter question, of a limit as large as its zone's: whether the table would let the request through. */
static ngx_inline ngx_flag_t would_pass(const charge_t *charge)
{
    limit_t *limit = charge->limit;

    return !limit->narrow
           && tollbar_table_peek_at(limit->zone->zone.table, 0, charge->key.data, charge->key.len, 1, charge->now, NULL)
              == TOLLBAR_ALLOWED;
}

/* What the key owes is for the log alone, so it is asked for afterwards: a moment has passed, but the message is not to say that
 * the request could have been let through. */
static ngx_int_t refused(limit_t *limit, ngx_str_t *key, ngx_log_t *log, int32_t verdict, uint64_t *debt)
{
    if (verdict < 0) {
        return failed(limit, log, verdict);
    }
    (void) look(limit, key, log, debt);
    *debt = ngx_max(*debt, limit->debt_most);
    return NGX_BUSY;
}

/* Charges one request, where how much is owed then decides on more: on a delay, or a smaller burst than the table's. */
static ngx_int_t take_known(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    uint64_t now;
    ngx_int_t rc = limit->narrow ? look(limit, key, log, debt) : NGX_OK;
    int32_t error;

    if (rc != NGX_OK) {
        return rc;
    }
    error = tollbar_table_now(limit->zone->zone.table, &now);
    return error == 0 ? take_known_at(limit, key, now, log, debt) : failed(limit, log, error);
}

static ngx_int_t take_known_at(limit_t *limit, ngx_str_t *key, uint64_t now, ngx_log_t *log, uint64_t *debt)
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
    /* Another request was charged after the look, and this one has more than the limit's own burst. */
    if (limit->narrow && decision.reset_after_ns > limit->debt_after) {
        ngx_tollbar_give_back(limit->zone->zone.table, 0, key, 1, now);
        *debt = limit->debt_most;
        return NGX_BUSY;
    }
    return NGX_OK;
}

/* Whether one request would be let through; nothing is charged. */
static ngx_int_t look(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
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
