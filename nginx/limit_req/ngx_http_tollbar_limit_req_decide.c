#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_zone_t zone_t;
typedef ngx_http_tollbar_limit_req_limit_t limit_t;
typedef ngx_http_tollbar_limit_req_outcome_t outcome_t;

/* The library is for 64-bit processors, where compilers have this. */
__extension__ typedef unsigned __int128 wide_t;

/* A limit that is to be charged for a request, and the key. */
typedef struct {
    limit_t *limit;
    ngx_str_t key;
} charge_t;

/* So many limits need no memory of their own for a request. */
#define USUAL_LIMITS 4

static ngx_int_t ask_several(ngx_http_request_t *r, ngx_array_t *limits, outcome_t *out);
static ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t look(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt);
static ngx_int_t failed(limit_t *limit, ngx_log_t *log, int32_t error);
static ngx_int_t key_of(ngx_http_request_t *r, zone_t *zone, ngx_str_t *key);
static uint64_t time_of(const zone_t *zone, uint64_t requests);

void ngx_http_tollbar_limit_req_complete(limit_t *limit)
{
    zone_t *zone = limit->shm_zone->data;

    limit->zone = zone;
    limit->narrow = (uint64_t) limit->burst + 1 < zone->policy.burst;
    limit->delays = limit->delay < limit->burst;
    limit->debt_most = time_of(zone, (uint64_t) limit->burst);
    limit->debt_undelayed = time_of(zone, (uint64_t) limit->delay + 1);
}

ngx_int_t ngx_http_tollbar_limit_req_ask(ngx_http_request_t *r, ngx_array_t *limits, outcome_t *out)
{
    limit_t **all = limits->elts;
    ngx_str_t key;
    ngx_int_t rc;

    out->debt = 0;
    if (limits->nelts != 1) {
        return ask_several(r, limits, out);
    }
    out->limit = all[0];
    rc = key_of(r, all[0]->zone, &key);
    return rc == NGX_OK ? take(all[0], &key, r->connection->log, &out->debt) : rc;
}

ngx_msec_t ngx_http_tollbar_limit_req_wait(const outcome_t *out)
{
    uint64_t undelayed = out->limit->debt_undelayed;

    /* To the nearest millisecond, which is what a timer can do. */
    return out->debt > undelayed ? (ngx_msec_t) ((out->debt - undelayed + 500000) / 1000000) : 0;
}

ngx_uint_t ngx_http_tollbar_limit_req_excess(const outcome_t *out, ngx_flag_t before)
{
    const tollbar_policy_spec *policy = &out->limit->zone->policy;
    wide_t thousandths = ((wide_t) out->debt * policy->limit * 1000 + policy->period_ns / 2) / policy->period_ns;

    if (!before) {
        thousandths = thousandths > 1000 ? thousandths - 1000 : 0;
    }
    return thousandths > NGX_MAX_INT_T_VALUE ? NGX_MAX_INT_T_VALUE : (ngx_uint_t) thousandths;
}

/* All limits are looked at before any is charged. The last one need not be: for it, looking and charging are one. Between the
 * look at another and its charge somebody else may have taken its permit; then the request is refused, and what has
 * been charged to the others stays so. That can cost a key a permit; it never lets a request through that any limit
 * refuses. */
static ngx_int_t ask_several(ngx_http_request_t *r, ngx_array_t *limits, outcome_t *out)
{
    ngx_log_t *log = r->connection->log;
    limit_t **all = limits->elts;
    charge_t usual[USUAL_LIMITS], *charges = usual;
    ngx_uint_t n, charges_n = 0;
    ngx_msec_t longest = 0, wait;
    outcome_t one;
    ngx_int_t rc;

    if (limits->nelts > USUAL_LIMITS) {
        charges = ngx_palloc(r->pool, limits->nelts * sizeof(charge_t));
        if (charges == NULL) {
            return NGX_ABORT;
        }
    }
    /* A key is seen before those of later limits are evaluated, which may have effects of their own: a refusal by an
     * earlier limit ends it there. */
    for (n = 0; n < limits->nelts; n++) {
        charges[charges_n].limit = all[n];
        rc = key_of(r, all[n]->zone, &charges[charges_n].key);
        if (rc == NGX_DECLINED) {
            continue;
        }
        if (rc == NGX_OK && n + 1 < limits->nelts) {
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
    out->limit = charges[charges_n - 1].limit;
    out->debt = 0;
    /* From the last to the first: of equal delays that of the later limit is named, as nginx does. */
    while (charges_n-- > 0) {
        one.limit = charges[charges_n].limit;
        one.debt = 0;
        rc = take(one.limit, &charges[charges_n].key, log, &one.debt);
        if (rc != NGX_OK) {
            *out = one;
            return rc;
        }
        wait = ngx_http_tollbar_limit_req_wait(&one);
        if (wait > longest) {
            longest = wait;
            *out = one;
        }
    }
    return NGX_OK;
}

/* Charges one request. `*debt`, of a request that is let through, is set where the limit can delay. */
static ngx_int_t take(limit_t *limit, ngx_str_t *key, ngx_log_t *log, uint64_t *debt)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = limit->zone->zone.table;
    ngx_int_t rc;
    int32_t verdict;

    if (limit->narrow) {
        rc = look(limit, key, log, debt);
        if (rc != NGX_OK) {
            return rc;
        }
    } else if (!limit->delays) {
        verdict = tollbar_table_check(table, 0, key->data, key->len, 1, NULL);
        if (verdict == TOLLBAR_ALLOWED) {
            return NGX_OK;
        }
        if (verdict < 0) {
            return failed(limit, log, verdict);
        }
        /* What it owes is for the log alone. A moment has passed, but not so long that it could have been let through. */
        (void) look(limit, key, log, debt);
        *debt = ngx_max(*debt, limit->debt_most);
        return NGX_BUSY;
    }
    verdict = tollbar_table_check(table, 0, key->data, key->len, 1, &decision);
    if (verdict < 0) {
        return failed(limit, log, verdict);
    }
    *debt = decision.reset_after_ns;
    if (verdict != TOLLBAR_ALLOWED) {
        return NGX_BUSY;
    }
    /* Somebody was faster than this request's second step: what it has been charged is lost. */
    if (limit->narrow && decision.reset_after_ns > time_of(limit->zone, (uint64_t) limit->burst + 1)) {
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
    ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\": %s", &limit->shm_zone->shm.name, tollbar_strerror(error));
    return NGX_ERROR;
}

/* NGX_DECLINED: there is no key, or none that is limited. NGX_ABORT: it cannot be evaluated. */
static ngx_int_t key_of(ngx_http_request_t *r, zone_t *zone, ngx_str_t *key)
{
    ngx_http_variable_value_t *value;

    if (zone->variable != NGX_ERROR) {
        value = ngx_http_get_flushed_variable(r, (ngx_uint_t) zone->variable);
        if (value == NULL || value->not_found) {
            return NGX_DECLINED;
        }
        key->data = value->data;
        key->len = value->len;
    } else if (ngx_http_complex_value(r, &zone->key, key) != NGX_OK) {
        return NGX_ABORT;
    }
    if (key->len == 0) {
        return NGX_DECLINED;
    }
    if (key->len > 65535) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "the value of the \"%V\" key is more than 65535 bytes: \"%V\"",
                      &zone->key.value, key);
        return NGX_DECLINED;
    }
    return NGX_OK;
}

/* Nanoseconds in which so many requests are paid for. */
static uint64_t time_of(const zone_t *zone, uint64_t requests)
{
    wide_t time = (wide_t) requests * zone->policy.period_ns / zone->policy.limit;

    return time > UINT64_MAX ? UINT64_MAX : (uint64_t) time;
}
