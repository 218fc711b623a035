/* Decides a request by a limit with a node. The node decides from this machine's permits. With
 * `sync_wait` a request waits for the store if these do not suffice (ngx_http_tollbar_wait.c). */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;

static ngx_int_t set_decision(charge_t *charge, int32_t verdict, const tollbar_decision *decision);

ngx_int_t ngx_http_tollbar_take_leased(ngx_http_request_t *r, charge_t *charge, ngx_flag_t full)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict;
    ngx_int_t rc;

    if (charge->charged) {
        return NGX_OK;
    }
    if (ngx_http_tollbar_waits(r, charge)) {
        rc = ngx_http_tollbar_take_or_wait(r, charge, &verdict, &decision);
        if (rc != NGX_OK) {
            return rc;
        }
        charge->charged = verdict == TOLLBAR_ALLOWED;
    } else {
        verdict = tollbar_lease_check(charge->limit->zone->sync->lease, charge->key.data, charge->key.len, charge->resolved->cost,
                                      &decision);
    }
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    return verdict == TOLLBAR_ALLOWED && !full ? NGX_OK : set_decision(charge, verdict, &decision);
}

ngx_int_t ngx_http_tollbar_peek_leased(ngx_http_request_t *r, charge_t *charge, ngx_flag_t charge_refusal)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict = tollbar_lease_peek(charge->limit->zone->sync->lease, charge->key.data, charge->key.len,
                                         charge->resolved->cost, &decision);
    ngx_int_t rc;

    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    if (verdict == TOLLBAR_DENIED && ngx_http_tollbar_waits(r, charge)) {
        (void) set_decision(charge, verdict, &decision);
        charge->open = 1;
        return NGX_OK;
    }
    if (verdict == TOLLBAR_DENIED && charge_refusal && charge->resolved->cost != 0) {
        rc = ngx_http_tollbar_take_leased(r, charge, 1);
        charge->charged = rc == NGX_OK;
        return rc;
    }
    return set_decision(charge, verdict, &decision);
}

/* Stores a node's decision. `remaining` counts this machine's permits only, and the wait is an
 * estimate. The time until all permits are back stays unknown, because only the store knows it. */
static ngx_int_t set_decision(charge_t *charge, int32_t verdict, const tollbar_decision *decision)
{
    charge->decided = 1;
    charge->bound = 0;
    charge->remaining = decision->remaining;
    charge->reset_ns = TOLLBAR_NO_TIME;
    charge->retry_ns = decision->retry_after_ns;
    charge->reason = decision->reason;
    return verdict == TOLLBAR_ALLOWED || charge->resolved->cost == 0 ? NGX_OK : NGX_BUSY;
}
