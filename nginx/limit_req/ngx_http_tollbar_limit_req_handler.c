/* Decides a request by all limits of its location, and applies the decision: lets the request pass,
 * delays it, or answers it with an error.
 *
 * r->limit_req_status has the outcome. nginx's own $limit_req_status reads it, and defines its
 * numbers. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_zone_t zone_t;
typedef ngx_tollbar_rate_limit_t limit_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_charge_t charge_t;

/* Up to so many limits need no memory from the request's pool. */
#define USUAL_LIMITS 4

/* The functions here that return ngx_int_t return a result of ngx_tollbar_several.h, except answer,
 * which returns the phase handler's value. */
static ngx_inline ngx_int_t check_one(ngx_http_request_t *r, limit_t *limit, charge_t *charge);
static ngx_int_t take_in_full(charge_t *charge, ngx_log_t *log);
static ngx_int_t check_several(ngx_http_request_t *r, const conf_t *conf, charge_t *usual,
                               charge_t **binding);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);
static ngx_int_t answer(ngx_http_request_t *r, const conf_t *conf, ngx_int_t rc,
                        const charge_t *binding);

ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_limit_req_module);
    charge_t usual[USUAL_LIMITS], *binding = usual;
    ngx_int_t rc;

    /* Subrequests and redirects of a counted request are not counted again. */
    if (conf->limits.nelts == 0 || r->main->limit_req_status != 0) {
        return NGX_DECLINED;
    }
    rc = conf->limits.nelts == 1 ? check_one(r, ((limit_t **) conf->limits.elts)[0], usual)
                                 : check_several(r, conf, usual, &binding);
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    /* The usual case: the limit does not delay. */
    if (rc == NGX_OK && binding->debt == 0) {
        r->main->limit_req_status = NGX_TOLLBAR_PASSED;
        return NGX_DECLINED;
    }
    return answer(r, conf, rc, binding);
}

/* Charges a request that has one limit. In most configurations this is one call to the table. */
static ngx_inline ngx_int_t check_one(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_int_t rc = ngx_http_tollbar_key_of(r, &((zone_t *) limit->zone)->key, &charge->key);
    int32_t verdict;

    if (rc != NGX_OK) {
        return rc;
    }
    charge->limit = limit;
    charge->debt = 0;
    if (limit->narrow || limit->delays) {
        return take_in_full(charge, r->connection->log);
    }
    verdict = tollbar_table_check(limit->zone->zone.table, 0, charge->key.data, charge->key.len, 1,
                                  NULL);
    return verdict == TOLLBAR_ALLOWED
               ? NGX_OK
               : ngx_tollbar_rate_refused(charge, verdict, r->connection->log);
}

static ngx_int_t take_in_full(charge_t *charge, ngx_log_t *log)
{
    ngx_int_t rc = ngx_tollbar_rate_read_clock(charge, log);

    if (rc == NGX_OK && charge->limit->narrow) {
        rc = ngx_tollbar_rate_peek(charge, log);
    }
    return rc == NGX_OK ? ngx_tollbar_rate_take_in_full(charge, log) : rc;
}

/* Charges all limits or none, as ngx_tollbar_several.h explains. The last limit needs no peek if it
 * is charged first, because a refused charge takes nothing, as a peek does. That holds only if no
 * other limit of its zone has a larger burst. Every earlier limit needs its peek, because nginx
 * logs the first limit that refuses. */
static ngx_int_t check_several(ngx_http_request_t *r, const conf_t *conf, charge_t *usual,
                               charge_t **binding)
{
    ngx_log_t *log = r->connection->log;
    limit_t **limits = conf->limits.elts;
    charge_t *charges = usual, *charge;
    ngx_uint_t n, count = conf->limits.nelts;
    ngx_int_t rc;

    *binding = NULL;
    if (count > USUAL_LIMITS) {
        charges = ngx_palloc(r->pool, count * sizeof(charge_t));
        if (charges == NULL) {
            return NGX_ABORT;
        }
    }
    /* A refusal ends the loop before nginx evaluates the keys of later limits, because evaluating a
     * variable may have side effects. */
    for (n = 0; n < count; n++) {
        charge = &charges[n];
        charge->limit = limits[n];
        rc = ngx_http_tollbar_key_of(r, &((zone_t *) limits[n]->zone)->key, &charge->key);
        if (rc == NGX_DECLINED) {
            charge->key.len = 0;
            continue;
        }
        *binding = charge;
        if (rc == NGX_OK) {
            rc = ngx_tollbar_rate_read_clock(charge, log);
        }
        if (rc == NGX_OK && (n + 1 < count || n != conf->order[0] || limits[n]->narrow)
            && !would_pass(charge))
        {
            rc = ngx_tollbar_rate_peek(charge, log);
        }
        if (rc != NGX_OK) {
            return rc;
        }
    }
    if (*binding == NULL) {
        return NGX_DECLINED;
    }
    rc = ngx_tollbar_rate_take_all(conf, charges, log, binding);
    /* The request waits for the longest delay. Of two limits with equal delays nginx logs the later
     * one. */
    for (n = 0; rc == NGX_OK && n < count; n++) {
        if (charges[n].key.len != 0
            && ngx_tollbar_rate_wait(&charges[n]) >= ngx_tollbar_rate_wait(*binding))
        {
            *binding = &charges[n];
        }
    }
    return rc;
}

/* Whether the table would admit the request. If the limit has the zone's own burst, this call
 * without a decision replaces a full peek. */
static ngx_inline ngx_flag_t would_pass(const charge_t *charge)
{
    limit_t *limit = charge->limit;

    return !limit->narrow
           && tollbar_table_peek_at(limit->zone->zone.table, 0, charge->key.data, charge->key.len, 1, charge->now, NULL)
              == TOLLBAR_ALLOWED;
}

static ngx_int_t answer(ngx_http_request_t *r, const conf_t *conf, ngx_int_t rc,
                        const charge_t *binding)
{
    if (rc == NGX_ABORT) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->main->limit_req_status = ngx_tollbar_rate_status(conf, rc, binding, "request", "requests",
                                                        r->connection->log);
    switch (r->main->limit_req_status) {
    case NGX_TOLLBAR_DELAYED:
        return ngx_http_tollbar_delay(r, ngx_tollbar_rate_wait(binding));
    case NGX_TOLLBAR_REJECTED:
        return (ngx_int_t) conf->status_code;
    default:
        return NGX_DECLINED;
    }
}
