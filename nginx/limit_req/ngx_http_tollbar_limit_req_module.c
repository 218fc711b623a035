/* limit_req_zone, limit_req and their directives, with the names and the meaning that they have in nginx's own module. */

#include "ngx_http_tollbar_limit_req.h"

typedef ngx_http_tollbar_limit_req_zone_t zone_t;
typedef ngx_http_tollbar_limit_req_limit_t limit_t;
typedef ngx_http_tollbar_limit_req_conf_t conf_t;

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
static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit);

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

static ngx_http_module_t context = { ngx_http_tollbar_limit_req_add_variable, complete, create_main_conf, NULL, NULL, NULL, create_conf, merge_conf };

ngx_module_t ngx_http_tollbar_limit_req_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, start, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};

/* Called after all directives have been read, so each zone's largest burst is known. */
static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    limit_t **limits = conf->limits.elts;
    ngx_shm_zone_t **zones = conf->zones.elts;
    conf_t **confs = conf->confs.elts;
    ngx_http_handler_pt *place;
    zone_t *zone;
    ngx_uint_t n;

    for (n = 0; n < conf->limits.nelts; n++) {
        zone = limits[n]->shm_zone->data;
        if (zone == NULL) {
            ngx_tollbar_conf_late(cf, &limits[n]->where, "unknown zone \"%V\" in \"limit_req\" directive, a \"limit_req_zone\" must "
                                  "declare it", &limits[n]->shm_zone->shm.name);
            return NGX_ERROR;
        }
        if (ngx_tollbar_conf_check_burst(cf, &limits[n]->where, "limit_req", &zone->policy, (uint64_t) limits[n]->burst,
                                         &limits[n]->shm_zone->shm.name) != NGX_OK)
        {
            return NGX_ERROR;
        }
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

    /* A configuration without limits gets no handler, so its requests cost nothing more. */
    if (conf->limits.nelts == 0) {
        return NGX_OK;
    }
    place = ngx_array_push(&core->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = ngx_http_tollbar_limit_req_handler;
    return NGX_OK;
}

static void complete_limit(limit_t *limit)
{
    zone_t *zone = limit->shm_zone->data;

    limit->zone = zone;
    limit->narrow = (uint64_t) limit->burst + 1 < zone->policy.burst;
    limit->delays = limit->delay < limit->burst;
    limit->debt_most = ngx_tollbar_time_of(&zone->policy, (uint64_t) limit->burst);
    /* The microsecond allows for the rounding of times. Up to 1,000,000r/s a permit takes at least as long, so it hides no other charge. */
    limit->debt_after = ngx_tollbar_time_of(&zone->policy, (uint64_t) limit->burst + 1) + 1000;
    limit->debt_undelayed = ngx_tollbar_time_of(&zone->policy, (uint64_t) limit->delay + 1);
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
    main_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tollbar_limit_req_module);

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
        conf->status_code = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
    }
    return conf;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    conf_t *from = parent;
    conf_t *conf = child;
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);
    conf_t **place;

    /* A level without limits inherits those of the outer level. */
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
    ngx_conf_merge_uint_value(conf->status_code, from->status_code, NGX_HTTP_SERVICE_UNAVAILABLE);
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    conf->delay_log_level = conf->limit_log_level == NGX_LOG_INFO ? NGX_LOG_INFO : conf->limit_log_level + 1;
    return NGX_CONF_OK;
}

/* limit_req_zone KEY zone=NAME:SIZE rate=N(r/s|r/m) */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const tollbar_policy_spec once_a_second = TOLLBAR_POLICY_SPEC_INIT;
    main_conf_t *main = conf;
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    ngx_shm_zone_t *shm_zone, **place;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (ngx_http_tollbar_key_compile(cf, &value[1], &zone->key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    zone->policy = once_a_second;
    zone->policy.limit = 1;
    zone->policy.period_ns = 1000000000;
    zone->policy.burst = 1;
    for (n = 2; n < cf->args->nelts; n++) {
        if (ngx_strncmp(value[n].data, "zone=", 5) == 0) {
            error = ngx_tollbar_conf_zone(cf, &value[n], &name, &size);
        } else if (ngx_strncmp(value[n].data, "rate=", 5) == 0) {
            error = read_rate(cf, &value[n], &zone->policy);
        } else {
            error = ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME:SIZE or rate=RATE", &value[n]);
        }
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:10m", &cmd->name);
    }

    zone->zone.where = ngx_tollbar_conf_here(cf);
    zone->zone.keys = value[1];
    zone->zone.policies = &zone->policy;
    zone->zone.policies_n = 1;
    /* nginx's own module evicts the key that has been idle longest. The table has no list of keys by age. It evicts the key whose debt ends first,
     * which is the most similar rule that it has. */
    zone->zone.on_full = TOLLBAR_ON_FULL_EVICT_NEAREST;
    shm_zone = ngx_tollbar_zone_add(cf, &name, size, &ngx_http_tollbar_limit_req_module, &zone->zone);
    if (shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (shm_zone->data != NULL) {
        zone = shm_zone->data;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V \"%V\" is already bound to key \"%V\" in %V:%ui, and again", &cmd->name, &name,
                           &zone->key.value.value, &zone->zone.where.file, zone->zone.where.line);
        return NGX_CONF_ERROR;
    }
    place = ngx_array_push(&main->zones);
    if (place == NULL || ngx_tollbar_zone_bind(cf, shm_zone, &zone->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    *place = shm_zone;
    return NGX_CONF_OK;
}

static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy)
{
    size_t length = argument->len;
    u_char *unit = argument->data + length - 3;
    ngx_str_t number;
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
        return ngx_tollbar_conf_refuse(cf, "invalid rate \"%V\", it must be a whole number from 1 on, a second or a minute, such as "
                                       "rate=10r/s or rate=30r/m", argument);
    }
    /* If the rate is too high, the module parses the number alone, so that the message is the one that other rates get. */
    policy->limit = (uint64_t) rate;
    if (tollbar_policy_spec_validate(policy) != 0) {
        number.data = argument->data + 5;
        number.len = argument->len - 5;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%V\", %s", argument, ngx_tollbar_rate_parse(&number, policy));
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

/* limit_req zone=NAME [burst=N] [nodelay|delay=N] */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    conf_t *here = conf;
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_limit_req_module);
    ngx_str_t *value = cf->args->elts;
    limit_t *limit = ngx_pcalloc(cf->pool, sizeof(limit_t));
    limit_t **limits, **place;
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

    if (here->limits.elts == NULL && ngx_array_init(&here->limits, cf->pool, 1, sizeof(limit_t *)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    limits = here->limits.elts;
    for (n = 0; n < here->limits.nelts; n++) {
        if (limits[n]->shm_zone == limit->shm_zone) {
            return ngx_tollbar_conf_duplicate(cf, &limits[n]->where, &limit->shm_zone->shm.name);
        }
    }
    place = ngx_array_push(&here->limits);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = limit;
    place = ngx_array_push(&main->limits);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = limit;
    return NGX_CONF_OK;
}

static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit)
{
    if (ngx_strncmp(argument->data, "zone=", 5) == 0) {
        limit->shm_zone = ngx_tollbar_conf_find_zone(cf, argument, 5, &ngx_http_tollbar_limit_req_module);
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
