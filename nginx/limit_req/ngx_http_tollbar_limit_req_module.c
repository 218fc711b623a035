/* limit_req_zone, limit_req and their directives, with the names and the meaning that they have in
 * nginx's own module. Also defines the variable $limit_req_status in versions of nginx that lack
 * it. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_zone_t zone_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_main_conf_t main_conf_t;

static ngx_int_t add_variables(ngx_conf_t *cf);
static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                 uintptr_t data);
static ngx_int_t complete(ngx_conf_t *cf);
static ngx_int_t start(ngx_cycle_t *cycle);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#define ANYWHERE (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)

static ngx_command_t commands[] = {
    { ngx_string("limit_req_zone"), NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE3, read_zone, NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL },
    { ngx_string("limit_req"), ANYWHERE|NGX_CONF_TAKE123, read_limit, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("limit_req_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, limit_log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("limit_req_status"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_status, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, status_code), NULL },
    { ngx_string("limit_req_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_http_module_t context = {
    add_variables, complete, ngx_tollbar_rate_create_main_conf, NULL, NULL, NULL,
    ngx_tollbar_rate_create_conf, merge_conf
};

ngx_module_t ngx_http_tollbar_limit_req_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, start, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};

/* nginx's own module has $limit_req_status, which reads the field that this module sets. This
 * function adds the variable only if nginx was built without that module, because nginx refuses two
 * variables of one name. */
static ngx_int_t add_variables(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("limit_req_status");
    ngx_uint_t n;

    if (ngx_http_tollbar_add_client(cf) != NGX_OK) {
        return NGX_ERROR;
    }
    for (n = 0; cf->cycle->modules[n] != NULL; n++) {
        if (ngx_strcmp(cf->cycle->modules[n]->name, "ngx_http_limit_req_module") == 0) {
            return NGX_OK;
        }
    }
    return ngx_http_tollbar_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE, status_variable);
}

static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                 uintptr_t data)
{
    return ngx_tollbar_set_status(v, r->main->limit_req_status);
}

static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);

    if (ngx_tollbar_rate_complete(cf, main, "limit_req") != NGX_OK) {
        return NGX_ERROR;
    }
    /* A configuration without limits gets no handler, so its requests cost nothing more. */
    if (main->limits.nelts == 0) {
        return NGX_OK;
    }
    return ngx_http_tollbar_add_handler(cf, NGX_HTTP_PREACCESS_PHASE,
                                        ngx_http_tollbar_limit_req_handler);
}

/* Called when nginx begins to use the configuration. */
static ngx_int_t start(ngx_cycle_t *cycle)
{
    main_conf_t *main = ngx_http_cycle_get_module_main_conf(cycle,
                                                            ngx_http_tollbar_limit_req_module);

    if (main != NULL) {
        ngx_tollbar_zones_start(&main->zones, cycle->log);
    }
    return NGX_OK;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);

    return ngx_tollbar_rate_merge_conf(cf, main, parent, child, NGX_HTTP_SERVICE_UNAVAILABLE);
}

/* limit_req_zone KEY zone=NAME:SIZE rate=N(r/s|r/m) */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL || ngx_http_tollbar_key_compile(cf, &value[1], &zone->key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    /* Without `rate` it is a request a second. */
    zone->base.policy = (tollbar_policy_spec) TOLLBAR_POLICY_SPEC_INIT;
    zone->base.policy.limit = 1;
    zone->base.policy.period_ns = 1000000000;
    zone->base.policy.burst = 1;
    for (n = 2; n < cf->args->nelts; n++) {
        if (ngx_strncmp(value[n].data, "zone=", 5) == 0) {
            error = ngx_tollbar_conf_zone(cf, &value[n], &name, &size);
        } else if (ngx_strncmp(value[n].data, "rate=", 5) == 0) {
            error = read_rate(cf, &value[n], &zone->base.policy);
        } else {
            error = ngx_tollbar_conf_refuse(cf,
                                            "invalid parameter \"%V\", it must be zone=NAME:SIZE "
                                            "or rate=RATE",
                                            &value[n]);
        }
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:10m", &cmd->name);
    }
    /* nginx's own module evicts the key that has been idle longest. The table has no list of keys
     * by age. It evicts the key whose debt ends first, which is the most similar rule that it
     * has. */
    zone->base.zone.on_full = TOLLBAR_ON_FULL_EVICT_NEAREST;
    return ngx_tollbar_rate_add_zone(cf, &name, size, &ngx_http_tollbar_limit_req_module,
                                     &zone->base, conf);
}

static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy)
{
    size_t length = argument->len;
    u_char *unit = argument->data + length - 3;
    ngx_int_t rate;

    policy->period_ns = 1000000000;
    if (ngx_strncmp(unit, "r/s", 3) == 0) {
        length -= 3;
    } else if (ngx_strncmp(unit, "r/m", 3) == 0) {
        length -= 3;
        policy->period_ns *= 60;
    }
    rate = ngx_atoi(argument->data + 5, length - 5);
    if (rate <= 0) {
        return ngx_tollbar_conf_refuse(cf,
                                       "invalid rate \"%V\", it must be a whole number from 1 on, "
                                       "a second or a minute, such as rate=10r/s or rate=30r/m",
                                       argument);
    }
    /* If the rate is too high, the message is the one that the rates of the other modules get. */
    policy->limit = (uint64_t) rate;
    return tollbar_policy_spec_validate(policy) == 0 ? NGX_CONF_OK
                                                     : ngx_tollbar_conf_rate(cf, argument, policy);
}

/* limit_req zone=NAME [burst=N] [nodelay|delay=N] */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);

    return ngx_tollbar_rate_read_limit(cf, &ngx_http_tollbar_limit_req_module, conf, main);
}
