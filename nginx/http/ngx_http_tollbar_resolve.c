/* A limit's numbers, for all requests or for one. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_resolved_t resolved_t;

ngx_int_t ngx_http_tollbar_resolve_for(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_http_tollbar_zone_t *zone = limit->zone;
    const tollbar_policy_spec *policy = &zone->policy;
    uint64_t burst = 0, cost = 0;
    uint32_t number = zone->zone.number;
    ngx_str_t text;
    ngx_int_t rc;

    if (zone->rate != NULL) {
        if (ngx_http_complex_value(r, zone->rate, &text) != NGX_OK) {
            return NGX_ABORT;
        }
        if (text.len == 0) {
            return NGX_DECLINED;
        }
        policy = ngx_http_tollbar_rate_find(limit->base.shm_zone, &text, &number,
                                            r->connection->log);
        if (policy == NULL) {
            return NGX_ERROR;
        }
    }
    rc = ngx_http_tollbar_amount_of(r, limit, &limit->burst, "burst", ngx_max(zone->burst.number, 0), &burst);
    if (rc == NGX_OK && limit->afterwards) {
        /* The module evaluates the cost after the answer. The peek before it asks for one
         * permit. */
        cost = 1;
    } else if (rc == NGX_OK) {
        rc = ngx_http_tollbar_amount_of(r, limit, &limit->cost, "cost", 1, &cost);
    }
    if (rc == NGX_OK) {
        ngx_http_tollbar_resolve(&charge->own, limit, policy, number, burst, cost);
        charge->resolved = &charge->own;
        rc = zone->tree != NULL ? ngx_http_tollbar_tree_class_of(r, limit, &charge->own)
                                : ngx_http_tollbar_class_of(r, limit, &charge->own.reserve);
    }
    return rc;
}

ngx_int_t ngx_http_tollbar_amount_of(ngx_http_request_t *r, limit_t *limit, ngx_http_tollbar_amount_t *amount,
                                     const char *name, ngx_int_t otherwise, uint64_t *number)
{
    ngx_str_t text;
    ngx_int_t value = amount->number != NGX_CONF_UNSET ? amount->number : otherwise;

    if (amount->text != NULL) {
        if (ngx_http_complex_value(r, amount->text, &text) != NGX_OK) {
            return NGX_ABORT;
        }
        value = text.len != 0 ? ngx_atoi(text.data, text.len) : otherwise;
        if (value < 0) {
            if (ngx_tollbar_seldom(&amount->wrong)) {
                ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                              "invalid %s \"%V\" for zone \"%V\", it must be a whole number, in "
                              "%V:%ui%s",
                              name, &text, &limit->base.shm_zone->shm.name, &limit->base.where.file,
                              limit->base.where.line, amount->wrong.text);
            }
            return NGX_ERROR;
        }
    }
    *number = (uint64_t) value;
    return NGX_OK;
}

void ngx_http_tollbar_resolve(resolved_t *resolved, const limit_t *limit, const tollbar_policy_spec *policy, uint32_t number,
                            uint64_t burst, uint64_t cost)
{
    resolved->policy = policy;
    resolved->number = number;
    resolved->cost = cost;
    resolved->reserve = limit->reserve;
    resolved->class = NULL;
    resolved->capacity = policy->burst;
    resolved->undelayed = 0;
    resolved->delays = 0;
    resolved->leased = limit->zone->sync != NULL;
    if (limit->zone->paced) {
        resolved->capacity = ngx_min(burst, policy->burst - 1) + 1;
        resolved->delays = (uint64_t) limit->delay < burst;
        /* The request's own cost causes no delay, so it is added to the debt that is not
         * delayed. */
        resolved->undelayed = ngx_tollbar_time_of(policy, (uint64_t) limit->delay + cost);
    }
    resolved->spare = policy->burst - resolved->capacity;
    resolved->plain = !resolved->delays && !resolved->leased && resolved->spare == 0 && !limit->afterwards && policy->ban_ns == 0
                      && limit->class_name == NULL;
}
