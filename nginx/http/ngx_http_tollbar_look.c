/* Questions to a table that charge nothing, and what its answers mean to a limit. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_terms_t terms_t;

ngx_int_t ngx_http_tollbar_look(ngx_http_request_t *r, charge_t *charge, int32_t *verdict)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const terms_t *terms = charge->terms;

    *verdict = tollbar_table_peek(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                  terms->cost, &decision);
    if (*verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, *verdict);
    }
    ngx_http_tollbar_know(charge, &decision);
    if (*verdict == TOLLBAR_ALLOWED
        && (terms->cost == 0 || (terms->cost <= terms->capacity && charge->remaining >= terms->cost)))
    {
        return NGX_OK;
    }
    ngx_http_tollbar_know_refusal(charge, *verdict);
    return NGX_BUSY;
}

/* Both questions of a zone with `ban` are of one instant, so that the second one
 * charges nothing: it is refused as the first one was. A zone with `ban` has one burst, so the table makes all of its refusals. */
ngx_int_t ngx_http_tollbar_look_and_count(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = charge->limit->zone->zone.table;
    const terms_t *terms = charge->terms;
    uint64_t now = 0;
    int32_t verdict;
    ngx_int_t rc;

    if (charge->limit->zone->policy.ban_ns == 0) {
        rc = ngx_http_tollbar_look(r, charge, &verdict);
        if (rc == NGX_BUSY) {
            ngx_http_tollbar_count_refusal(r, charge);
        }
        return rc;
    }
    verdict = tollbar_table_now(table, &now);
    if (verdict == 0) {
        verdict = tollbar_table_peek_at(table, terms->number, charge->key.data, charge->key.len, terms->cost, now, &decision);
    }
    if (verdict > 0) {
        verdict = tollbar_table_check_at(table, terms->number, charge->key.data, charge->key.len, terms->cost, now, &decision);
    }
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    ngx_http_tollbar_know(charge, &decision);
    if (verdict == TOLLBAR_ALLOWED) {
        return NGX_OK;
    }
    ngx_http_tollbar_know_refusal(charge, verdict);
    return NGX_BUSY;
}

ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const charge_t *charge, int32_t error)
{
    ngx_tollbar_zone_failed(charge->limit->shm_zone, r->connection->log, error);
    return NGX_ERROR;
}

void ngx_http_tollbar_know(charge_t *charge, const tollbar_decision *decision)
{
    uint64_t spare = charge->terms->spare;

    charge->known = 1;
    charge->remaining = decision->remaining > spare ? decision->remaining - spare : 0;
    charge->reset_ns = decision->reset_after_ns;
    charge->retry_ns = decision->retry_after_ns;
    charge->banned = decision->reason == TOLLBAR_REASON_BANNED;
}

/* The table counts what it refuses itself. Here a look, or the limit's own burst, has refused the request. */
void ngx_http_tollbar_count_refusal(ngx_http_request_t *r, const charge_t *charge)
{
    ngx_http_tollbar_count(r, charge, charge->terms->cost > charge->terms->capacity ? TOLLBAR_NEVER : TOLLBAR_DENIED);
}

void ngx_http_tollbar_count(ngx_http_request_t *r, const charge_t *charge, int32_t verdict)
{
    int32_t error = tollbar_table_count_verdict(charge->limit->zone->zone.table, charge->terms->number, verdict);

    if (error != 0) {
        ngx_http_tollbar_failed(r, charge, error);
    }
}

/* A limit with a smaller burst than the table's lets a key in again later than the table would: when what it owes has come down
 * to what this limit allows. */
void ngx_http_tollbar_know_refusal(charge_t *charge, int32_t verdict)
{
    const terms_t *terms = charge->terms;
    uint64_t allowed, retry;

    if (terms->cost > terms->capacity) {
        charge->retry_ns = TOLLBAR_NO_TIME;
    } else if (terms->spare != 0) {
        allowed = ngx_tollbar_time_of(terms->policy, terms->capacity - terms->cost);
        retry = charge->reset_ns > allowed ? charge->reset_ns - allowed : 1;
        charge->retry_ns = ngx_max(charge->retry_ns, retry);
    } else if (verdict == TOLLBAR_ALLOWED) {
        charge->retry_ns = 1;
    }
}
