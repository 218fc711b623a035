/* Decides a request by limits on a rate. */

#include "ngx_tollbar_rate_limit.h"

typedef ngx_tollbar_rate_limit_t limit_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_charge_t charge_t;

static ngx_inline ngx_int_t take(charge_t *charge, ngx_log_t *log);
static ngx_flag_t has_changed(const limit_t *limit);
static void give_back(const charge_t *charge);

ngx_int_t ngx_tollbar_rate_take_all(const conf_t *conf, charge_t *charges, ngx_log_t *log,
                                    charge_t **refused)
{
    charge_t *charge;
    ngx_uint_t n;
    ngx_int_t rc;

    for (n = 0; n < conf->limits.nelts; n++) {
        charge = &charges[conf->order[n]];
        rc = charge->key.len != 0 ? take(charge, log) : NGX_OK;
        if (rc != NGX_OK) {
            *refused = charge;
            while (n-- > 0) {
                give_back(&charges[conf->order[n]]);
            }
            return rc;
        }
    }
    return NGX_OK;
}

static ngx_inline ngx_int_t take(charge_t *charge, ngx_log_t *log)
{
    limit_t *limit = charge->limit;
    int32_t verdict;

    if (limit->narrow || limit->delays) {
        return ngx_tollbar_rate_take_in_full(charge, log);
    }
    charge->debt = 0;
    verdict = tollbar_table_check_at(limit->zone->zone.table, limit->zone->zone.number,
                                     charge->key.data, charge->key.len, 1, charge->now, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : ngx_tollbar_rate_refused(charge, verdict, log);
}

ngx_int_t ngx_tollbar_rate_take_in_full(charge_t *charge, ngx_log_t *log)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    limit_t *limit = charge->limit;
    int32_t verdict = tollbar_table_check_at(limit->zone->zone.table, limit->zone->zone.number,
                                             charge->key.data, charge->key.len, 1, charge->now,
                                             &decision);

    if (verdict < 0) {
        return ngx_tollbar_rate_failed(charge, verdict, log);
    }
    charge->debt = decision.reset_after_ns;
    if (verdict != TOLLBAR_ALLOWED) {
        return NGX_BUSY;
    }
    if ((ngx_tollbar_rate_wait(charge) != 0 || charge->debt > limit->debt_after) && has_changed(limit)) {
        charge->debt = 0;
    }
    /* Another request was charged between the peek and the charge, so this request has exceeded the
     * limit's own burst. */
    if (limit->narrow && charge->debt > limit->debt_after) {
        give_back(charge);
        charge->debt = limit->debt_most;
        return NGX_BUSY;
    }
    return NGX_OK;
}

static ngx_flag_t has_changed(const limit_t *limit)
{
    return ngx_tollbar_zone_has_changed(&limit->zone->zone, limit->zone->zone.number, &limit->zone->policy);
}

static void give_back(const charge_t *charge)
{
    if (charge->key.len != 0) {
        ngx_tollbar_give_back(charge->limit->zone->zone.table, charge->limit->zone->zone.number,
                              &charge->key, 1, charge->now);
    }
}

ngx_int_t ngx_tollbar_rate_refused(charge_t *charge, int32_t verdict, ngx_log_t *log)
{
    if (verdict < 0) {
        return ngx_tollbar_rate_failed(charge, verdict, log);
    }
    /* The debt may have fallen since the refusal, so it is raised to the smallest one that causes a
     * refusal. */
    if (ngx_tollbar_rate_read_clock(charge, log) == NGX_OK) {
        (void) ngx_tollbar_rate_peek(charge, log);
    }
    charge->debt = ngx_max(charge->debt, charge->limit->debt_most);
    return NGX_BUSY;
}

ngx_int_t ngx_tollbar_rate_peek(charge_t *charge, ngx_log_t *log)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    limit_t *limit = charge->limit;
    int32_t verdict = tollbar_table_peek_at(limit->zone->zone.table, limit->zone->zone.number,
                                            charge->key.data, charge->key.len, 1, charge->now,
                                            &decision);

    if (verdict < 0) {
        return ngx_tollbar_rate_failed(charge, verdict, log);
    }
    charge->debt = decision.reset_after_ns;
    if (verdict == TOLLBAR_ALLOWED && charge->debt > limit->debt_most) {
        return has_changed(limit) ? NGX_OK : NGX_BUSY;
    }
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : NGX_BUSY;
}

ngx_int_t ngx_tollbar_rate_failed(const charge_t *charge, int32_t error, ngx_log_t *log)
{
    ngx_tollbar_zone_failed(charge->limit->base.shm_zone, log, error);
    return NGX_ERROR;
}

ngx_uint_t ngx_tollbar_rate_status(const conf_t *conf, ngx_int_t rc, const charge_t *charge,
                                   const char *one, const char *many, ngx_log_t *log)
{
    const char *dry_run = conf->dry_run ? ", dry run" : "";
    ngx_str_t *zone = &charge->limit->base.shm_zone->shm.name;
    ngx_uint_t excess;

    if (rc == NGX_OK && ngx_tollbar_rate_wait(charge) == 0) {
        return NGX_TOLLBAR_PASSED;
    }
    /* The debt includes this request if the limit admits it. nginx's `excess` does not. */
    excess = ngx_tollbar_excess(&charge->limit->zone->policy, charge->debt, rc == NGX_OK);
    if (rc == NGX_OK) {
        ngx_log_error(conf->delay_log_level, log, 0,
                      "delaying %s%s, excess: %ui.%03ui, by zone \"%V\"", one, dry_run,
                      excess / 1000, excess % 1000, zone);
        return conf->dry_run ? NGX_TOLLBAR_DELAYED_DRY_RUN : NGX_TOLLBAR_DELAYED;
    }
    if (rc == NGX_BUSY) {
        ngx_log_error(conf->limit_log_level, log, 0,
                      "limiting %s%s, excess: %ui.%03ui by zone \"%V\"", many, dry_run,
                      excess / 1000, excess % 1000, zone);
    }
    return conf->dry_run ? NGX_TOLLBAR_REJECTED_DRY_RUN : NGX_TOLLBAR_REJECTED;
}
