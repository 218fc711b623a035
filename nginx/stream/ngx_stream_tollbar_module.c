/* tollbar_zone, tollbar and their directives, for stream. */

#include "ngx_stream_tollbar.h"

typedef ngx_stream_tollbar_zone_t zone_t;
typedef ngx_stream_tollbar_limit_t limit_t;
typedef ngx_stream_tollbar_conf_t conf_t;

/* Every limit and zone of the configuration, from all levels. */
typedef struct {
    ngx_array_t limits; /* of limit_t * */
    ngx_array_t zones;  /* of ngx_shm_zone_t * */
    ngx_array_t confs;  /* of conf_t *, of levels with limits */
} main_conf_t;

static ngx_int_t complete(ngx_conf_t *cf);
static void complete_limit(limit_t *limit);
static uint64_t refill_of(const void *limit);
static ngx_int_t start(ngx_cycle_t *cycle);
static void *create_main_conf(ngx_conf_t *cf);
static void *create_conf(ngx_conf_t *cf);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name, size_t *size);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit);
static char *add_limit(ngx_conf_t *cf, ngx_array_t *limits, limit_t *limit);

#define ANYWHERE (NGX_STREAM_MAIN_CONF|NGX_STREAM_SRV_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_zone"), NGX_STREAM_MAIN_CONF|NGX_CONF_TAKE3|NGX_CONF_TAKE4, read_zone, NGX_STREAM_MAIN_CONF_OFFSET,
      0, NULL },
    { ngx_string("tollbar"), ANYWHERE|NGX_CONF_TAKE123, read_limit, NGX_STREAM_SRV_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, limit_log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("tollbar_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_stream_module_t context = { ngx_stream_tollbar_add_variable, complete, create_main_conf, NULL, create_conf, merge_conf };

ngx_module_t ngx_stream_tollbar_module = {
    NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE, NULL, start, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};

/* Called after all directives have been read, so each zone's largest burst is known. */
static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);
    ngx_stream_core_main_conf_t *core = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_core_module);
    limit_t **limits = conf->limits.elts;
    ngx_shm_zone_t **zones = conf->zones.elts;
    conf_t **confs = conf->confs.elts;
    ngx_stream_handler_pt *place;
    zone_t *zone;
    ngx_uint_t n;

    for (n = 0; n < conf->limits.nelts; n++) {
        zone = limits[n]->shm_zone->data;
        if (zone == NULL) {
            ngx_tollbar_conf_late(cf, &limits[n]->where, "unknown zone \"%V\" in \"tollbar\" directive, a \"tollbar_zone\" must declare it",
                                  &limits[n]->shm_zone->shm.name);
            return NGX_ERROR;
        }
        if (ngx_tollbar_conf_check_burst(cf, &limits[n]->where, "tollbar", &zone->policy, (uint64_t) limits[n]->burst,
                                         &limits[n]->shm_zone->shm.name) != NGX_OK)
        {
            return NGX_ERROR;
        }
        limits[n]->zone = zone;
        zone->policy.burst = ngx_max(zone->policy.burst, (uint64_t) limits[n]->burst + 1);
    }
    for (n = 0; n < conf->limits.nelts; n++) {
        complete_limit(limits[n]);
    }
    for (n = 0; n < conf->confs.nelts; n++) {
        confs[n]->order = ngx_tollbar_order(cf->pool, &confs[n]->limits, confs[n]->limits.nelts, refill_of);
        if (confs[n]->order == NULL) {
            return NGX_ERROR;
        }
    }
    for (n = 0; n < conf->zones.nelts; n++) {
        ngx_tollbar_zone_settle(zones[n]);
    }

    /* A configuration without limits gets no handler, so its connections cost nothing more. */
    if (conf->limits.nelts == 0) {
        return NGX_OK;
    }
    place = ngx_array_push(&core->phases[NGX_STREAM_PREACCESS_PHASE].handlers);
    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = ngx_stream_tollbar_handler;
    return NGX_OK;
}

static void complete_limit(limit_t *limit)
{
    const tollbar_policy_spec *policy = &limit->zone->policy;

    limit->debt_most = ngx_tollbar_time_of(policy, (uint64_t) limit->burst);
    /* The microsecond allows for the rounding of times. Up to 1,000,000r/s a permit takes at least as long, so it hides no other charge. */
    limit->debt_after = ngx_tollbar_time_of(policy, (uint64_t) limit->burst + 1) + 1000;
    limit->debt_undelayed = ngx_tollbar_time_of(policy, (uint64_t) limit->delay + 1);
}

/* The sort key of limits that are charged together. */
static uint64_t refill_of(const void *limit)
{
    const zone_t *zone = ((const limit_t *) limit)->zone;

    return ngx_tollbar_refill(&zone->zone, &zone->policy);
}

/* Called when nginx begins to use the configuration. */
static ngx_int_t start(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_module);

    if (conf != NULL) {
        ngx_tollbar_zones_start(&conf->zones, cycle->log);
    }
    return NGX_OK;
}

static void *create_main_conf(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(main_conf_t));

    if (conf == NULL || ngx_array_init(&conf->limits, cf->pool, 4, sizeof(limit_t *)) != NGX_OK
        || ngx_array_init(&conf->zones, cf->pool, 4, sizeof(ngx_shm_zone_t *)) != NGX_OK
        || ngx_array_init(&conf->confs, cf->pool, 4, sizeof(conf_t *)) != NGX_OK)
    {
        return NULL;
    }
    return conf;
}

static void *create_conf(ngx_conf_t *cf)
{
    conf_t *conf = ngx_pcalloc(cf->pool, sizeof(conf_t));

    if (conf != NULL) {
        conf->limit_log_level = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
    }
    return conf;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    conf_t *from = parent;
    conf_t *conf = child;
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);
    conf_t **place;

    /* A server without limits inherits those of the outer level. */
    if (conf->limits.elts == NULL) {
        conf->limits = from->limits;
    }
    if (conf->limits.nelts != 0) {
        place = ngx_array_push(&main->confs);
        if (place == NULL) {
            return NGX_CONF_ERROR;
        }
        *place = conf;
    }
    ngx_conf_merge_uint_value(conf->limit_log_level, from->limit_log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    conf->delay_log_level = conf->limit_log_level == NGX_LOG_INFO ? NGX_LOG_INFO : conf->limit_log_level + 1;
    return NGX_CONF_OK;
}

/* tollbar_zone KEY zone=NAME:SIZE rate=RATE [on_full=WORD] [hot_keys=N] */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const tollbar_policy_spec none = TOLLBAR_POLICY_SPEC_INIT;
    main_conf_t *main = conf;
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    ngx_stream_compile_complex_value_t compile;
    ngx_shm_zone_t *shm_zone, **place;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }
    ngx_memzero(&compile, sizeof(compile));
    compile.cf = cf;
    compile.value = &value[1];
    compile.complex_value = &zone->key;
    if (ngx_stream_compile_complex_value(&compile) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    zone->policy = none;
    zone->zone.on_full = TOLLBAR_ON_FULL_EVICT_NEAREST;
    for (n = 2; n < cf->args->nelts; n++) {
        error = read_zone_parameter(cf, &value[n], zone, &name, &size);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:10m", &cmd->name);
    }
    if (zone->policy.limit == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"rate\" parameter, such as rate=10r/s", &cmd->name);
    }

    zone->zone.where = ngx_tollbar_conf_here(cf);
    zone->zone.keys = value[1];
    zone->zone.policies = &zone->policy;
    zone->zone.policies_n = 1;
    shm_zone = ngx_tollbar_zone_add(cf, &name, size, &ngx_stream_tollbar_module, &zone->zone);
    if (shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (shm_zone->data != NULL) {
        zone = shm_zone->data;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V \"%V\" is already bound to key \"%V\" in %V:%ui, and again", &cmd->name, &name,
                           &zone->key.value, &zone->zone.where.file, zone->zone.where.line);
        return NGX_CONF_ERROR;
    }
    place = ngx_array_push(&main->zones);
    if (place == NULL || ngx_tollbar_zone_bind(cf, shm_zone, &zone->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    *place = shm_zone;
    return NGX_CONF_OK;
}

static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name, size_t *size)
{
    const char *expected;
    ngx_int_t number;
    ngx_str_t text;

    if (ngx_strncmp(argument->data, "zone=", 5) == 0) {
        return ngx_tollbar_conf_zone(cf, argument, name, size);
    }
    if (ngx_strncmp(argument->data, "rate=", 5) == 0) {
        text.data = argument->data + 5;
        text.len = argument->len - 5;
        expected = ngx_tollbar_rate_parse(&text, &zone->policy);
        if (expected != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%V\", %s", argument, expected);
            return NGX_CONF_ERROR;
        }
        return NGX_CONF_OK;
    }
    if (ngx_strncmp(argument->data, "hot_keys=", 9) == 0) {
        return ngx_tollbar_conf_hot_keys(cf, argument, &zone->zone.hot_keys);
    }
    if (ngx_strncmp(argument->data, "on_full=", 8) == 0) {
        number = ngx_tollbar_conf_on_full(argument->data + 8);
        if (number == NGX_ERROR) {
            return ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", " NGX_TOLLBAR_CONF_ON_FULL, argument);
        }
        zone->zone.on_full = (ngx_uint_t) number;
        return NGX_CONF_OK;
    }
    return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME:SIZE, rate=RATE, on_full=WORD or hot_keys=NUMBER", argument);
}

/* tollbar zone=NAME [burst=N] [nodelay|delay=N] */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    conf_t *here = conf;
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_module);
    ngx_str_t *value = cf->args->elts;
    limit_t *limit = ngx_pcalloc(cf->pool, sizeof(limit_t));
    limit_t **limits;
    ngx_uint_t n;
    char *error;

    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }
    limit->where = ngx_tollbar_conf_here(cf);
    for (n = 1; n < cf->args->nelts; n++) {
        error = read_limit_parameter(cf, &value[n], limit);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (limit->shm_zone == NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one", &cmd->name);
    }
    limits = here->limits.elts;
    for (n = 0; n < here->limits.nelts; n++) {
        if (limits[n]->shm_zone == limit->shm_zone) {
            return ngx_tollbar_conf_duplicate(cf, &limits[n]->where, &limit->shm_zone->shm.name);
        }
    }
    error = add_limit(cf, &here->limits, limit);
    return error == NGX_CONF_OK ? add_limit(cf, &main->limits, limit) : error;
}

static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit)
{
    if (ngx_strncmp(argument->data, "zone=", 5) == 0) {
        limit->shm_zone = ngx_tollbar_conf_find_zone(cf, argument, 5, &ngx_stream_tollbar_module);
        return limit->shm_zone != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
    }
    if (ngx_strncmp(argument->data, "burst=", 6) == 0) {
        limit->burst = ngx_atoi(argument->data + 6, argument->len - 6);
        return limit->burst > 0 ? NGX_CONF_OK
                                : ngx_tollbar_conf_refuse(cf, "invalid burst value \"%V\", " NGX_TOLLBAR_CONF_COUNT, argument);
    }
    if (ngx_strncmp(argument->data, "delay=", 6) == 0) {
        limit->delay = ngx_atoi(argument->data + 6, argument->len - 6);
        return limit->delay > 0 ? NGX_CONF_OK
                                : ngx_tollbar_conf_refuse(cf, "invalid delay value \"%V\", " NGX_TOLLBAR_CONF_COUNT, argument);
    }
    if (ngx_strcmp(argument->data, "nodelay") == 0) {
        limit->delay = NGX_MAX_INT_T_VALUE;
        return NGX_CONF_OK;
    }
    return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME, burst=NUMBER, delay=NUMBER or nodelay",
                                   argument);
}

static char *add_limit(ngx_conf_t *cf, ngx_array_t *limits, limit_t *limit)
{
    limit_t **place;

    if (limits->elts == NULL && ngx_array_init(limits, cf->pool, 1, sizeof(limit_t *)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    place = ngx_array_push(limits);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = limit;
    return NGX_CONF_OK;
}
