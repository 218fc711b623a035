/* What a limit with a node says to a request. It is answered from what this machine has; the store is never waited for. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;

static ngx_int_t know(charge_t *charge, int32_t verdict, const tollbar_decision *decision);

ngx_int_t ngx_http_tollbar_take_leased(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict;

    if (charge->charged) {
        return NGX_OK;
    }
    verdict = tollbar_lease_check(charge->limit->zone->sync->lease, charge->key.data, charge->key.len, charge->terms->cost,
                                  &decision);
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    return verdict == TOLLBAR_ALLOWED && !wanted ? NGX_OK : know(charge, verdict, &decision);
}

ngx_int_t ngx_http_tollbar_look_leased(ngx_http_request_t *r, charge_t *charge, ngx_flag_t ask)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    int32_t verdict = tollbar_lease_peek(charge->limit->zone->sync->lease, charge->key.data, charge->key.len,
                                         charge->terms->cost, &decision);
    ngx_int_t rc;

    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    if (verdict == TOLLBAR_DENIED && ask && charge->terms->cost != 0) {
        rc = ngx_http_tollbar_take_leased(r, charge, 1);
        charge->charged = rc == NGX_OK;
        return rc;
    }
    return know(charge, verdict, &decision);
}

/* What is left is this machine's, when to come again an estimate, and when all of it is there again only the store knows. */
static ngx_int_t know(charge_t *charge, int32_t verdict, const tollbar_decision *decision)
{
    charge->known = 1;
    charge->remaining = decision->remaining;
    charge->reset_ns = TOLLBAR_NO_TIME;
    charge->retry_ns = decision->retry_after_ns;
    return verdict == TOLLBAR_ALLOWED || charge->terms->cost == 0 ? NGX_OK : NGX_BUSY;
}
