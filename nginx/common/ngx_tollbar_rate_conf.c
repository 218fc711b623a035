/* The directives of limits on a rate. */

#include "ngx_tollbar_rate_limit.h"

typedef ngx_tollbar_rate_zone_t zone_t;
typedef ngx_tollbar_rate_limit_t limit_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_main_conf_t main_conf_t;

static char *read_parameter(ngx_conf_t *cf, ngx_str_t *argument, void *tag, limit_t *limit);
static void complete_limit(limit_t *limit);
static uint64_t refill_of(const ngx_tollbar_limit_t *limit);

void *ngx_tollbar_rate_create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(main_conf_t));
}

void *ngx_tollbar_rate_create_conf(ngx_conf_t *cf)
{
    conf_t *conf = ngx_pcalloc(cf->pool, sizeof(conf_t));

    if (conf != NULL) {
        conf->limit_log_level = NGX_CONF_UNSET_UINT;
        conf->status_code = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
    }
    return conf;
}

char *ngx_tollbar_rate_merge_conf(ngx_conf_t *cf, main_conf_t *main, conf_t *from, conf_t *conf,
                                  ngx_uint_t status)
{
    /* A level without limits inherits those of the outer level. */
    if (conf->limits.elts == NULL) {
        conf->limits = from->limits;
    }
    ngx_conf_merge_uint_value(conf->limit_log_level, from->limit_log_level, NGX_LOG_ERR);
    ngx_conf_merge_uint_value(conf->status_code, from->status_code, status);
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    conf->delay_log_level = conf->limit_log_level == NGX_LOG_INFO ? NGX_LOG_INFO
                                                                  : conf->limit_log_level + 1;
    return conf->limits.nelts != 0 ? ngx_tollbar_conf_push(cf, &main->confs, conf) : NGX_CONF_OK;
}

char *ngx_tollbar_rate_add_zone(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag,
                                zone_t *zone, main_conf_t *main)
{
    ngx_shm_zone_t *shm_zone;

    zone->zone.policies = &zone->policy;
    zone->zone.policies_n = 1;
    if (zone->zone.file.path.len == 0) {
        size = ngx_max(size, ngx_tollbar_zone_least(&zone->zone));
    }
    shm_zone = ngx_tollbar_zone_add(cf, name, size, tag, &zone->zone, &main->zones);
    if (shm_zone == NULL || ngx_tollbar_zone_bind(cf, shm_zone, &zone->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

char *ngx_tollbar_rate_read_limit(ngx_conf_t *cf, void *tag, conf_t *conf, main_conf_t *main)
{
    ngx_str_t *value = cf->args->elts;
    limit_t *limit = ngx_pcalloc(cf->pool, sizeof(limit_t));
    ngx_uint_t n;
    char *error;

    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }
    for (n = 1; n < cf->args->nelts; n++) {
        error = read_parameter(cf, &value[n], tag, limit);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    return ngx_tollbar_conf_add_limit(cf, &limit->base, &conf->limits, &main->limits);
}

static char *read_parameter(ngx_conf_t *cf, ngx_str_t *argument, void *tag, limit_t *limit)
{
    if (ngx_strncmp(argument->data, "zone=", 5) == 0) {
        return ngx_tollbar_conf_find_zone(cf, argument, 5, tag, &limit->base);
    }
    if (ngx_strncmp(argument->data, "burst=", 6) == 0) {
        return ngx_tollbar_conf_count(cf, argument, "burst", &limit->burst);
    }
    if (ngx_strncmp(argument->data, "delay=", 6) == 0) {
        return ngx_tollbar_conf_count(cf, argument, "delay", &limit->delay);
    }
    if (ngx_strcmp(argument->data, "nodelay") == 0) {
        limit->delay = NGX_MAX_INT_T_VALUE;
        return NGX_CONF_OK;
    }
    return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME, "
                                   "burst=NUMBER, delay=NUMBER or nodelay", argument);
}

ngx_int_t ngx_tollbar_rate_complete(ngx_conf_t *cf, main_conf_t *main, const char *directive)
{
    limit_t **limits = main->limits.elts;
    conf_t **confs = main->confs.elts;
    ngx_uint_t n;

    for (n = 0; n < main->limits.nelts; n++) {
        if (ngx_tollbar_conf_declared(cf, &limits[n]->base, directive) != NGX_OK) {
            return NGX_ERROR;
        }
        limits[n]->zone = limits[n]->base.shm_zone->data;
        if (ngx_tollbar_conf_raise_burst(cf, &limits[n]->base, directive, &limits[n]->zone->policy,
                                         (uint64_t) limits[n]->burst) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
    for (n = 0; n < main->limits.nelts; n++) {
        complete_limit(limits[n]);
    }
    for (n = 0; n < main->confs.nelts; n++) {
        confs[n]->order = ngx_tollbar_order(cf->pool, &confs[n]->limits, confs[n]->limits.nelts,
                                            refill_of);
        if (confs[n]->order == NULL) {
            return NGX_ERROR;
        }
    }
    for (n = 0; n < main->zones.nelts; n++) {
        ngx_tollbar_zone_settle(((ngx_shm_zone_t **) main->zones.elts)[n]);
    }
    return NGX_OK;
}

static void complete_limit(limit_t *limit)
{
    const tollbar_policy_spec *policy = &limit->zone->policy;

    limit->narrow = (uint64_t) limit->burst + 1 < policy->burst;
    limit->delays = limit->delay < limit->burst;
    limit->debt_most = ngx_tollbar_time_of(policy, (uint64_t) limit->burst);
    /* The microsecond allows for the rounding of times. Up to 1,000,000r/s a permit takes at least
     * as long, so it hides no other charge. */
    limit->debt_after = ngx_tollbar_time_of(policy, (uint64_t) limit->burst + 1) + 1000;
    limit->debt_undelayed = ngx_tollbar_time_of(policy, (uint64_t) limit->delay + 1);
}

/* The sort key of limits that are charged together. */
static uint64_t refill_of(const ngx_tollbar_limit_t *limit)
{
    const zone_t *zone = ((const limit_t *) limit)->zone;

    return ngx_tollbar_refill(&zone->zone, &zone->policy);
}
