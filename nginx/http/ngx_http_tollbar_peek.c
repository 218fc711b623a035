/* Peeks at a table, and turns the table's decision into a limit's decision. A peek charges
 * nothing. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_resolved_t resolved_t;

ngx_int_t ngx_http_tollbar_peek(ngx_http_request_t *r, charge_t *charge, int32_t *verdict)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const resolved_t *resolved = charge->resolved;

    *verdict = tollbar_table_peek(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                                  ngx_http_tollbar_needed(resolved), &decision);
    if (*verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, *verdict);
    }
    ngx_http_tollbar_set_decision(charge, &decision);
    if (*verdict == TOLLBAR_ALLOWED
        && (resolved->cost == 0 || (resolved->cost <= resolved->capacity && charge->remaining >= resolved->cost)))
    {
        return NGX_OK;
    }
    if (*verdict == TOLLBAR_ALLOWED && ngx_http_tollbar_has_changed(charge)) {
        return NGX_OK;
    }
    ngx_http_tollbar_set_refusal(charge, *verdict);
    return NGX_BUSY;
}

ngx_flag_t ngx_http_tollbar_has_changed(const charge_t *charge)
{
    return ngx_tollbar_zone_has_changed(&charge->limit->zone->zone, charge->resolved->number, charge->resolved->policy);
}

/* In a zone with `ban`, a check follows a refused peek, at the same time. The table refuses the
 * check, too: it charges nothing and counts toward the ban. All limits of such a zone have the
 * zone's burst, so every refusal is the table's own. */
ngx_int_t ngx_http_tollbar_peek_and_count(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = charge->limit->zone->zone.table;
    const resolved_t *resolved = charge->resolved;
    uint64_t now = 0;
    int32_t verdict;
    ngx_int_t rc;

    if (charge->limit->zone->policy.ban_ns == 0) {
        rc = ngx_http_tollbar_peek(r, charge, &verdict);
        if (rc == NGX_BUSY) {
            ngx_http_tollbar_count_refusal(r, charge);
        }
        return rc;
    }
    verdict = tollbar_table_now(table, &now);
    if (verdict == 0) {
        verdict = tollbar_table_peek_at(table, resolved->number, charge->key.data, charge->key.len, ngx_http_tollbar_needed(resolved), now,
                                        &decision);
    }
    if (verdict > 0) {
        verdict = ngx_http_tollbar_charge_at(charge, now, &decision);
    }
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    ngx_http_tollbar_set_decision(charge, &decision);
    if (verdict == TOLLBAR_ALLOWED) {
        return NGX_OK;
    }
    ngx_http_tollbar_set_refusal(charge, verdict);
    return NGX_BUSY;
}

ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const charge_t *charge, int32_t error)
{
    ngx_tollbar_zone_failed(charge->limit->base.shm_zone, r->connection->log, error);
    return NGX_ERROR;
}

void ngx_http_tollbar_set_decision(charge_t *charge, const tollbar_decision *decision)
{
    uint64_t spare = charge->resolved->spare;

    charge->decided = 1;
    charge->bound = decision->bound;
    charge->remaining = decision->remaining > spare ? decision->remaining - spare : 0;
    charge->reset_ns = decision->reset_after_ns;
    charge->retry_ns = decision->retry_after_ns;
    charge->reason = decision->reason;
}

void ngx_http_tollbar_count_refusal(ngx_http_request_t *r, const charge_t *charge)
{
    const resolved_t *resolved = charge->resolved;
    int32_t verdict = ngx_http_tollbar_needed(resolved) > resolved->capacity ? TOLLBAR_NEVER : TOLLBAR_DENIED;
    int32_t error = tollbar_table_count_refusal(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                                                verdict, charge->reason);

    if (error != 0) {
        ngx_http_tollbar_failed(r, charge, error);
    }
}

void ngx_http_tollbar_count(ngx_http_request_t *r, const charge_t *charge, int32_t verdict)
{
    uint32_t reason = verdict == TOLLBAR_ALLOWED ? TOLLBAR_REASON_ADMITTED : charge->reason;
    tollbar_table *table = charge->limit->zone->zone.table;
    int32_t error = tollbar_table_count_verdict(table, charge->resolved->number, verdict, reason);

    if (error != 0) {
        ngx_http_tollbar_failed(r, charge, error);
    }
}

/* A limit with a smaller burst than the table's admits the request later than the table would: when
 * the key's debt is small enough for this limit's own burst. */
void ngx_http_tollbar_set_refusal(charge_t *charge, int32_t verdict)
{
    const resolved_t *resolved = charge->resolved;
    uint64_t allowed, retry;

    /* A peek looks for the cost and the class's reserve in one number, and a table's burst may be
     * above that of the limit. */
    if (resolved->cost > resolved->capacity && resolved->capacity != 0) {
        charge->reason = TOLLBAR_REASON_BURST;
    } else if (resolved->reserve != 0 && charge->remaining >= resolved->cost
               && (charge->reason == TOLLBAR_REASON_RATE || charge->reason == TOLLBAR_REASON_BURST))
    {
        charge->reason = TOLLBAR_REASON_RESERVE;
    } else if (verdict == TOLLBAR_ALLOWED) {
        charge->reason = TOLLBAR_REASON_RATE;
    }
    if (ngx_http_tollbar_needed(resolved) > resolved->capacity) {
        charge->retry_ns = TOLLBAR_NO_TIME;
    } else if (resolved->spare != 0) {
        allowed = ngx_tollbar_time_of(resolved->policy, resolved->capacity - resolved->cost);
        retry = charge->reset_ns > allowed ? charge->reset_ns - allowed : 1;
        charge->retry_ns = ngx_max(charge->retry_ns, retry);
    } else if (verdict == TOLLBAR_ALLOWED) {
        charge->retry_ns = 1;
    }
}
