/* Applies the decision on a request: lets the request pass, delays it, or answers it with an error,
 * and writes a line to the error log. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_outcome_t outcome_t;

static ngx_int_t let_pass(ngx_http_request_t *r, conf_t *conf, const outcome_t *outcome);
static ngx_int_t refuse(ngx_http_request_t *r, conf_t *conf, ngx_int_t rc, const outcome_t *outcome);
static void note(ngx_http_request_t *r, ngx_uint_t status, const charge_t *charge);
static void log_refusal(ngx_http_request_t *r, conf_t *conf, const charge_t *charge, const char *dry_run);
static void log_delay(ngx_http_request_t *r, conf_t *conf, const charge_t *charge, const char *dry_run);

ngx_int_t ngx_http_tollbar_answer(ngx_http_request_t *r, ngx_int_t rc, const outcome_t *outcome)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);

    if (rc == NGX_ABORT) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (rc == NGX_OK) {
        return let_pass(r, conf, outcome);
    }
    return refuse(r, conf, rc, outcome);
}

static ngx_int_t let_pass(ngx_http_request_t *r, conf_t *conf, const outcome_t *outcome)
{
    const charge_t *binding = outcome->binding != NULL ? outcome->binding : outcome->dry;
    ngx_msec_t wait = outcome->binding != NULL ? binding->wait : 0;
    ngx_uint_t status = NGX_TOLLBAR_PASSED;

    if (outcome->dry != NULL) {
        if (outcome->dry_rc != NGX_OK) {
            status = NGX_TOLLBAR_REJECTED_DRY_RUN;
            if (outcome->dry_rc == NGX_BUSY) {
                log_refusal(r, conf, outcome->dry, ", dry run");
            }
        } else if (outcome->dry->wait != 0) {
            status = NGX_TOLLBAR_DELAYED_DRY_RUN;
            log_delay(r, conf, outcome->dry, ", dry run");
        }
        if (status != NGX_TOLLBAR_PASSED) {
            binding = outcome->dry;
        }
    }
    if (wait != 0) {
        binding = outcome->binding;
        log_delay(r, conf, binding, conf->dry_run ? ", dry run" : "");
        status = conf->dry_run ? NGX_TOLLBAR_DELAYED_DRY_RUN : NGX_TOLLBAR_DELAYED;
    }
    note(r, status, binding);
    if (conf->dry_run) {
        return NGX_DECLINED;
    }
    if (ngx_http_tollbar_add_headers(r, NGX_OK, outcome) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return wait != 0 ? ngx_http_tollbar_delay(r, wait) : NGX_DECLINED;
}

static ngx_int_t refuse(ngx_http_request_t *r, conf_t *conf, ngx_int_t rc, const outcome_t *outcome)
{
    const charge_t *binding = outcome->binding;

    if (rc == NGX_BUSY) {
        log_refusal(r, conf, binding, conf->dry_run ? ", dry run" : "");
    }
    note(r, conf->dry_run ? NGX_TOLLBAR_REJECTED_DRY_RUN : NGX_TOLLBAR_REJECTED, binding);
    if (conf->dry_run) {
        return NGX_DECLINED;
    }
    if (ngx_http_tollbar_add_headers(r, rc, outcome) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return (ngx_int_t) (binding->limit->status != NGX_CONF_UNSET_UINT ? binding->limit->status : conf->status_code);
}

/* Marks the request as counted, and sets the variables. */
static void note(ngx_http_request_t *r, ngx_uint_t status, const charge_t *charge)
{
    ngx_http_tollbar_main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);

    ngx_tollbar_set_status(ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_STATUS),
                           status);
    if (main->variables_used) {
        ngx_http_tollbar_set_variables(
            r, charge, status == NGX_TOLLBAR_REJECTED || status == NGX_TOLLBAR_REJECTED_DRY_RUN);
    }
}

/* If a request is over a rate, the line is that of limit_req, because tools search logs for it.
 * Other lines name the reason. */
static void log_refusal(ngx_http_request_t *r, conf_t *conf, const charge_t *charge, const char *dry_run)
{
    const ngx_http_tollbar_resolved_t *resolved = charge->resolved;
    ngx_uint_t excess;

    if (charge->reason == TOLLBAR_REASON_BURST) {
        ngx_log_error(conf->limit_log_level, r->connection->log, 0,
                      "limiting requests%s, cost %uL is more than the burst ever allows, by zone \"%V\"", dry_run,
                      resolved->cost, &charge->limit->base.shm_zone->shm.name);
    } else if (charge->reason == TOLLBAR_REASON_RATE && charge->limit->zone->paced) {
        excess = ngx_tollbar_excess(resolved->policy, charge->reset_ns, 0);
        ngx_log_error(conf->limit_log_level, r->connection->log, 0,
                      "limiting requests%s, excess: %ui.%03ui by zone \"%V\"", dry_run,
                      excess / 1000, excess % 1000, &charge->limit->base.shm_zone->shm.name);
    } else {
        ngx_log_error(conf->limit_log_level, r->connection->log, 0, "limiting requests%s, %s, by zone \"%V\"", dry_run,
                      tollbar_strreason(charge->reason), &charge->limit->base.shm_zone->shm.name);
    }
}

static void log_delay(ngx_http_request_t *r, conf_t *conf, const charge_t *charge, const char *dry_run)
{
    ngx_uint_t excess = ngx_tollbar_excess(charge->resolved->policy, charge->reset_ns,
                                           charge->resolved->cost);

    ngx_log_error(conf->delay_log_level, r->connection->log, 0, "delaying request%s, excess: %ui.%03ui, by zone \"%V\"", dry_run,
                  excess / 1000, excess % 1000, &charge->limit->base.shm_zone->shm.name);
}
