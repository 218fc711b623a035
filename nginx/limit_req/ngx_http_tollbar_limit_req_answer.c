/* Applies the decision on a request: lets the request pass, delays it, or answers it with an error, and writes a line to the error log.
 * Also defines the variable $limit_req_status in versions of nginx that lack it. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_conf_t conf_t;
typedef ngx_http_tollbar_limit_req_outcome_t outcome_t;

/* The library needs a 64-bit processor, for which compilers have this type. */
__extension__ typedef unsigned __int128 wide_t;

static ngx_uint_t owed(const outcome_t *outcome);
static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);

ngx_int_t ngx_http_tollbar_limit_req_answer(ngx_http_request_t *r, ngx_int_t rc, const outcome_t *outcome)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_limit_req_module);
    const char *dry_run = conf->dry_run ? ", dry run" : "";
    ngx_msec_t wait;
    ngx_uint_t excess;

    if (rc == NGX_ABORT) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (rc == NGX_OK) {
        wait = ngx_http_tollbar_limit_req_wait(outcome);
        if (wait == 0) {
            r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_PASSED;
            return NGX_DECLINED;
        }
        /* The debt includes this request. nginx's `excess` does not, so one permit is subtracted. */
        excess = owed(outcome);
        excess = excess > 1000 ? excess - 1000 : 0;
        ngx_log_error(conf->delay_log_level, r->connection->log, 0, "delaying request%s, excess: %ui.%03ui, by zone \"%V\"",
                      dry_run, excess / 1000, excess % 1000, &outcome->limit->shm_zone->shm.name);
        if (conf->dry_run) {
            r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_DELAYED_DRY_RUN;
            return NGX_DECLINED;
        }
        r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_DELAYED;
        return ngx_http_tollbar_delay(r, wait);
    }
    if (rc == NGX_BUSY) {
        /* The debt of a refused request does not include it, so it equals nginx's `excess`. */
        excess = owed(outcome);
        ngx_log_error(conf->limit_log_level, r->connection->log, 0, "limiting requests%s, excess: %ui.%03ui by zone \"%V\"",
                      dry_run, excess / 1000, excess % 1000, &outcome->limit->shm_zone->shm.name);
    }
    if (conf->dry_run) {
        r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_REJECTED_DRY_RUN;
        return NGX_DECLINED;
    }
    r->main->limit_req_status = NGX_HTTP_TOLLBAR_LIMIT_REQ_REJECTED;
    return (ngx_int_t) conf->status_code;
}

ngx_msec_t ngx_http_tollbar_limit_req_wait(const outcome_t *outcome)
{
    uint64_t undelayed = outcome->limit->debt_undelayed;

    /* nginx's timers count milliseconds, so the delay is rounded to the nearest one. */
    return outcome->debt > undelayed ? (ngx_msec_t) ((outcome->debt - undelayed + 500000) / 1000000) : 0;
}

/* nginx's own module has the variable, which reads the field that this module sets. This function adds the variable only if nginx was built
 * without that module, because nginx refuses two variables of one name. */
ngx_int_t ngx_http_tollbar_limit_req_add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("limit_req_status");
    ngx_http_variable_t *variable;
    ngx_uint_t n;

    if (ngx_http_tollbar_add_client(cf) != NGX_OK) {
        return NGX_ERROR;
    }
    for (n = 0; cf->cycle->modules[n] != NULL; n++) {
        if (ngx_strcmp(cf->cycle->modules[n]->name, "ngx_http_limit_req_module") == 0) {
            return NGX_OK;
        }
    }
    variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);
    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = status_variable;
    return NGX_OK;
}

/* The key's debt in thousandths of a request. */
static ngx_uint_t owed(const outcome_t *outcome)
{
    const tollbar_policy_spec *policy = &outcome->limit->zone->policy;
    wide_t thousandths = ((wide_t) outcome->debt * policy->limit * 1000 + policy->period_ns / 2) / policy->period_ns;

    return thousandths > NGX_MAX_INT_T_VALUE ? NGX_MAX_INT_T_VALUE : (ngx_uint_t) thousandths;
}

static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    static ngx_str_t names[] = {
        ngx_string("PASSED"), ngx_string("DELAYED"), ngx_string("REJECTED"), ngx_string("DELAYED_DRY_RUN"),
        ngx_string("REJECTED_DRY_RUN")
    };
    ngx_uint_t status = r->main->limit_req_status;

    if (status == 0) {
        v->not_found = 1;
        return NGX_OK;
    }
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = names[status - 1].len;
    v->data = names[status - 1].data;
    return NGX_OK;
}
