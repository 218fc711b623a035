/* tollbar_zone, tollbar and their directives, for stream. */

#include "ngx_stream_tollbar.h"
#include "ngx_tollbar_file.h"

typedef ngx_stream_tollbar_zone_t zone_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_main_conf_t main_conf_t;

static ngx_int_t complete(ngx_conf_t *cf);
static ngx_int_t start(ngx_cycle_t *cycle);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_rate_zone_t *zone,
                                 ngx_str_t *name, size_t *size);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#define ANYWHERE (NGX_STREAM_MAIN_CONF|NGX_STREAM_SRV_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_zone"), NGX_STREAM_MAIN_CONF|NGX_CONF_2MORE, read_zone, NGX_STREAM_MAIN_CONF_OFFSET,
      0, NULL },
    { ngx_string("tollbar"), ANYWHERE|NGX_CONF_TAKE123, read_limit, NGX_STREAM_SRV_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, limit_log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("tollbar_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_stream_module_t context = {
    ngx_stream_tollbar_add_variables, complete, ngx_tollbar_rate_create_main_conf, NULL,
    ngx_tollbar_rate_create_conf, merge_conf
};

ngx_module_t ngx_stream_tollbar_module = {
    NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE, NULL, start, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};

static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);

    if (ngx_tollbar_rate_complete(cf, main, "tollbar") != NGX_OK) {
        return NGX_ERROR;
    }
    /* A configuration without limits gets no handler, so its connections cost nothing more. */
    if (main->limits.nelts == 0) {
        return NGX_OK;
    }
    return ngx_stream_tollbar_add_handler(cf, ngx_stream_tollbar_handler);
}

ngx_int_t ngx_stream_tollbar_add_handler(ngx_conf_t *cf, ngx_stream_handler_pt handler)
{
    ngx_stream_core_main_conf_t *core;
    ngx_stream_handler_pt *place;

    core = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_core_module);
    place = ngx_array_push(&core->phases[NGX_STREAM_PREACCESS_PHASE].handlers);
    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = handler;
    return NGX_OK;
}

/* Called when nginx begins to use the configuration. */
static ngx_int_t start(ngx_cycle_t *cycle)
{
    main_conf_t *main = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_module);

    if (main != NULL) {
        ngx_tollbar_zones_start(&main->zones, cycle->log);
    }
    return NGX_OK;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);

    return ngx_tollbar_rate_merge_conf(cf, main, parent, child, NGX_STREAM_SERVICE_UNAVAILABLE);
}

/* tollbar_zone KEY zone=NAME:SIZE rate=RATE [on_full=WORD] [hot_keys=N]
 *              [room=N] [file=PATH [capacity=N] [mode=OCTAL] [trust_anyone]]  (then zone=NAME) */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL || ngx_stream_set_complex_value_slot(cf, cmd, &zone->key) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    zone->base.policy = (tollbar_policy_spec) TOLLBAR_POLICY_SPEC_INIT;
    zone->base.zone.on_full = NGX_CONF_UNSET_UINT;
    for (n = 2; n < cf->args->nelts; n++) {
        error = read_zone_parameter(cf, &value[n], &zone->base, &name, &size);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:10m", &cmd->name);
    }
    if (zone->base.policy.limit == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"rate\" parameter, such as rate=10r/s", &cmd->name);
    }
    zone->base.zone.policies = &zone->base.policy;
    error = ngx_tollbar_file_check(cf, &name, &zone->base.zone);
    if (error != NGX_CONF_OK) {
        return error;
    }
    return ngx_tollbar_rate_add_zone(cf, &name, size, &ngx_stream_tollbar_module, &zone->base,
                                     conf);
}

static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_rate_zone_t *zone,
                                 ngx_str_t *name, size_t *size)
{
    ngx_int_t rc;

    if (ngx_strncmp(argument->data, "zone=", 5) == 0) {
        return ngx_tollbar_file_given(cf) ? ngx_tollbar_file_name(cf, argument, name, size)
                                          : ngx_tollbar_conf_zone(cf, argument, name, size);
    }
    if (ngx_strncmp(argument->data, "rate=", 5) == 0) {
        return ngx_tollbar_conf_rate(cf, argument, &zone->policy);
    }
    if (ngx_strncmp(argument->data, "hot_keys=", 9) == 0) {
        return ngx_tollbar_conf_hot_keys(cf, argument, &zone->zone.hot_keys);
    }
    if (ngx_strncmp(argument->data, "room=", 5) == 0) {
        return ngx_tollbar_conf_room(cf, argument, &zone->zone.room);
    }
    if (ngx_strncmp(argument->data, "on_full=", 8) == 0) {
        return ngx_tollbar_conf_on_full(cf, argument, &zone->zone.on_full);
    }
    rc = ngx_tollbar_file_read(cf, argument, &zone->zone);
    if (rc == NGX_DECLINED) {
        return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME:SIZE, "
                                       "rate=RATE, on_full=WORD, hot_keys=NUMBER, room=NUMBER, or file=, "
                                       "capacity=, mode=, trust_anyone", argument);
    }
    return rc == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

/* tollbar zone=NAME [burst=N] [nodelay|delay=N] */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);

    return ngx_tollbar_rate_read_limit(cf, &ngx_stream_tollbar_module, conf, main);
}
