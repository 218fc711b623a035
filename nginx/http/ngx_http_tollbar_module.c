/* The module's directives, and the steps after nginx has read all of them. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;

static ngx_int_t complete(ngx_conf_t *cf);
static ngx_int_t complete_zone(ngx_conf_t *cf, limit_t *limit);
static ngx_int_t complete_limit(ngx_conf_t *cf, limit_t *limit);
static ngx_int_t wrong(ngx_conf_t *cf, limit_t *limit, const char *message);
static ngx_int_t start(ngx_cycle_t *cycle);
static ngx_int_t start_process(ngx_cycle_t *cycle);
static void end_process(ngx_cycle_t *cycle);
static void *create_main_conf(ngx_conf_t *cf);
static void *create_conf(ngx_conf_t *cf);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static ngx_uint_t sort(ngx_array_t *array);
static ngx_uint_t place_of(const limit_t *limit);
static uint64_t refill_of(const ngx_tollbar_limit_t *base);

static ngx_conf_enum_t header_kinds[] = {
    { ngx_string("off"), NGX_HTTP_TOLLBAR_HEADERS_OFF },
    { ngx_string("legacy"), TOLLBAR_HTTP_LEGACY },
    { ngx_string("legacy-epoch"), TOLLBAR_HTTP_LEGACY_EPOCH },
    { ngx_string("draft"), TOLLBAR_HTTP_DRAFT_11 },
    { ngx_string("draft-07"), TOLLBAR_HTTP_DRAFT_07 },
    { ngx_string("draft-06"), TOLLBAR_HTTP_DRAFT_06 },
    { ngx_string("both"), TOLLBAR_HTTP_LEGACY|TOLLBAR_HTTP_DRAFT_11 },
    { ngx_null_string, 0 }
};

#define ANYWHERE (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_zone"), NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE, ngx_http_tollbar_read_zone, NGX_HTTP_MAIN_CONF_OFFSET, 0,
      NULL },
    { ngx_string("tollbar_tree"), NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE, ngx_http_tollbar_read_tree, NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_tree_class"), NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE, ngx_http_tollbar_read_tree_class, NGX_HTTP_MAIN_CONF_OFFSET, 0,
      NULL },
    { ngx_string("tollbar"), ANYWHERE|NGX_CONF_1MORE, ngx_http_tollbar_read_limit, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_status"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_status, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, status_code), NULL },
    { ngx_string("tollbar_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, limit_log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("tollbar_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    { ngx_string("tollbar_headers"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, headers), &header_kinds },
    { ngx_string("tollbar_status_page"), NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1, ngx_http_tollbar_read_status_page, 0, 0, NULL },
    { ngx_string("tollbar_rules"), ANYWHERE|NGX_CONF_TAKE123, ngx_http_tollbar_read_rules, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_rules_field"), ANYWHERE|NGX_CONF_TAKE2, ngx_http_tollbar_read_rules_field, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_rules_answer"), ANYWHERE|NGX_CONF_TAKE2, ngx_http_tollbar_read_rules_field, NGX_HTTP_LOC_CONF_OFFSET, 1, NULL },
    ngx_null_command
};

static ngx_http_module_t context = {
    ngx_http_tollbar_add_variables, complete, create_main_conf, NULL, NULL, NULL, create_conf, merge_conf
};

ngx_module_t ngx_http_tollbar_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, start, start_process, NULL, NULL, end_process, NULL,
    NGX_MODULE_V1_PADDING
};

/* Called after all directives have been read, so each zone's largest burst is known. */
static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    limit_t **limits = conf->limits.elts;
    ngx_shm_zone_t **zones = conf->zones.elts;
    conf_t **confs = conf->confs.elts;
    zone_t *zone;
    ngx_uint_t n;
    ngx_int_t rc = NGX_OK;

    for (n = 0; n < conf->limits.nelts; n++) {
        if (complete_zone(cf, limits[n]) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    for (n = 0; n < conf->limits.nelts; n++) {
        if (complete_limit(cf, limits[n]) != NGX_OK) {
            return NGX_ERROR;
        }
        conf->afterwards |= limits[n]->afterwards;
    }
    for (n = 0; n < conf->confs.nelts; n++) {
        if (ngx_http_tollbar_tree_check_level(cf, confs[n]) != NGX_OK) {
            return NGX_ERROR;
        }
        confs[n]->order = ngx_tollbar_order(cf->pool, &confs[n]->limits, confs[n]->enforced, refill_of);
        if (confs[n]->order == NULL) {
            return NGX_ERROR;
        }
    }
    for (n = 0; n < conf->zones.nelts; n++) {
        zone = zones[n]->data;
        ngx_http_tollbar_find_worst_case(cf, zones[n]);
        if (zone->sync != NULL) {
            ngx_http_tollbar_node_settle(zones[n]);
        } else {
            ngx_tollbar_zone_settle(zones[n]);
        }
    }
    if (ngx_http_tollbar_find_variables(cf) != NGX_OK || ngx_http_tollbar_check_prometheus(cf, conf) != NGX_OK
        || ngx_http_tollbar_times_add(cf, conf) != NGX_OK)
    {
        return NGX_ERROR;
    }
    /* A configuration without limits gets no handler, so its requests cost nothing more. */
    if (conf->limits.nelts != 0) {
        rc = ngx_http_tollbar_add_handler(cf, NGX_HTTP_PREACCESS_PHASE, ngx_http_tollbar_handler);
    }
    if (rc == NGX_OK && conf->afterwards) {
        rc = ngx_http_tollbar_add_handler(cf, NGX_HTTP_LOG_PHASE, ngx_http_tollbar_log_handler);
    }
    /* nginx calls the handler that is added last first. The rules come before the zones, because a
     * delay by a zone is only for requests that pass. */
    if (rc == NGX_OK && conf->rules.nelts != 0) {
        rc = ngx_http_tollbar_add_handler(cf, NGX_HTTP_PREACCESS_PHASE,
                                          ngx_http_tollbar_rules_handler);
        if (rc == NGX_OK) {
            rc = ngx_http_tollbar_add_handler(cf, NGX_HTTP_LOG_PHASE, ngx_http_tollbar_rules_log_handler);
        }
    }
    return rc;
}

/* Checks a limit against its zone, and raises the zone's burst to the limit's. */
static ngx_int_t complete_zone(ngx_conf_t *cf, limit_t *limit)
{
    zone_t *zone = limit->base.shm_zone->data;

    if (ngx_tollbar_conf_declared(cf, &limit->base, "tollbar") != NGX_OK) {
        return NGX_ERROR;
    }
    limit->zone = zone;
    if (zone->tree != NULL) {
        return ngx_http_tollbar_tree_check(cf, limit);
    }
    if (limit->class_name != NULL && ngx_http_tollbar_class_check(cf, limit) != NGX_OK) {
        return NGX_ERROR;
    }
    if (limit->afterwards && zone->sync != NULL) {
        return wrong(cf, limit, "\"count\" and \"when\" must be for a zone without \"sync\", not for zone");
    }
    if (limit->afterwards && limit->delay != 0 && limit->delay != NGX_MAX_INT_T_VALUE) {
        return wrong(cf, limit, "a limit with \"count\" or \"when\" delays no request, so it must have no \"delay\", unlike the limit of zone");
    }
    if (zone->ban_ns != 0 && (limit->burst.number != NGX_CONF_UNSET || limit->burst.text != NULL)) {
        return wrong(cf, limit, "with \"ban\", \"burst\" must be in the \"tollbar_zone\" of zone");
    }
    if (!zone->paced) {
        if (limit->burst.number != NGX_CONF_UNSET || limit->burst.text != NULL) {
            return wrong(cf, limit, zone->sync != NULL ? "with \"sync\", \"burst\" must be in the \"tollbar_zone\" of zone"
                                                       : "\"burst\" must be in the policy of zone");
        }
        if (limit->delay != 0 && limit->delay != NGX_MAX_INT_T_VALUE) {
            return wrong(cf, limit, zone->sync != NULL ? "with \"sync\" no request is delayed, so \"nodelay\" must replace \"delay\" in a limit of zone"
                                                       : "\"delay\" must be for a \"rate\", not for the \"policy\" of zone");
        }
        if (zone->never_delays && limit->delay == 0) {
            return wrong(cf, limit, "with \"sync\" no request is delayed, so \"nodelay\" must be in a limit of zone");
        }
        return NGX_OK;
    }
    if (limit->burst.number == NGX_CONF_UNSET && limit->burst.text == NULL) {
        limit->burst = zone->burst;
    }
    if (limit->burst.text != NULL && zone->zone.file.path.len != 0) {
        return wrong(cf, limit, "\"burst\" must hold no variables in a limit of a zone with \"file\", such as zone");
    }
    if (limit->burst.text != NULL) {
        ngx_http_tollbar_rate_widen(&zone->policy);
    } else if (zone->rate != NULL) {
        /* The rate depends on the request. When a request has given it, ngx_http_tollbar_resolve
         * lowers the burst to the largest that the rate allows. */
        zone->policy.burst = ngx_max(zone->policy.burst, 1);
    } else {
        return ngx_tollbar_conf_raise_burst(cf, &limit->base, "tollbar", &zone->policy,
                                            (uint64_t) limit->burst.number);
    }
    return NGX_OK;
}

static ngx_int_t complete_limit(ngx_conf_t *cf, limit_t *limit)
{
    zone_t *zone = limit->zone;
    uint64_t most;

    limit->varies = zone->rate != NULL || limit->burst.text != NULL || (limit->cost.text != NULL && !limit->afterwards)
                    || limit->class_varies;
    if (!limit->varies) {
        ngx_http_tollbar_resolve(&limit->resolved, limit, &zone->policy, 0, (uint64_t) limit->burst.number,
                               limit->afterwards ? 1 : (uint64_t) limit->cost.number);
        if (zone->tree != NULL) {
            ngx_http_tollbar_tree_resolve(&limit->resolved, ngx_http_tollbar_find_class(zone->tree, &limit->class_name->value));
        }
        most = ngx_http_tollbar_sync_most(zone, limit->resolved.capacity);
        /* A capacity of 0 is a policy that refuses every request on purpose. */
        if (ngx_http_tollbar_needed(&limit->resolved) > most && limit->resolved.capacity != 0) {
            ngx_tollbar_conf_late(cf, &limit->base.where,
                                  "invalid cost %uL in \"tollbar\" directive, it must be at most "
                                  "%uL, which is all that zone \"%V\" allows at once",
                                  limit->resolved.cost, most, &limit->base.shm_zone->shm.name);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

/* Logs `message`, which ends with the zone's name, for the limit's directive. */
static ngx_int_t wrong(ngx_conf_t *cf, limit_t *limit, const char *message)
{
    ngx_tollbar_conf_late(cf, &limit->base.where, "%s \"%V\"", message,
                          &limit->base.shm_zone->shm.name);
    return NGX_ERROR;
}

/* Called when nginx begins to use the configuration. */
static ngx_int_t start(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tollbar_module);
    limit_t **limits;
    ngx_uint_t n;

    /* Only a process without a master has clients here. A reload frees its old zones, and nginx
     * does not call init_process again. */
    ngx_http_tollbar_clients_end();
    if (conf != NULL) {
        ngx_tollbar_zones_start(&conf->zones, cycle->log);
        /* A zone with `file` knows its policy's number since the master has opened the file. */
        limits = conf->limits.elts;
        for (n = 0; n < conf->limits.nelts; n++) {
            limits[n]->resolved.number = limits[n]->zone->zone.number;
        }
        ngx_http_tollbar_rules_start(&conf->rules, cycle->log);
    }
    return NGX_OK;
}

/* Starts a worker's clients. Cache managers and loaders serve no requests, so they have none. */
static ngx_int_t start_process(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tollbar_module);

    if (conf == NULL || (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)) {
        return NGX_OK;
    }
    return ngx_http_tollbar_clients_start(cycle, &conf->zones);
}

static void end_process(ngx_cycle_t *cycle)
{
    ngx_http_tollbar_clients_end();
}

static void *create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(main_conf_t));
}

static void *create_conf(ngx_conf_t *cf)
{
    conf_t *conf = ngx_pcalloc(cf->pool, sizeof(conf_t));

    if (conf != NULL) {
        conf->status_code = NGX_CONF_UNSET_UINT;
        conf->limit_log_level = NGX_CONF_UNSET_UINT;
        conf->headers = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
        conf->rules = NGX_CONF_UNSET_PTR;
        conf->rules_fields = NGX_CONF_UNSET_PTR;
        conf->rules_answers = NGX_CONF_UNSET_PTR;
    }
    return conf;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    conf_t *from = parent;
    conf_t *conf = child;
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    limit_t *first;

    /* A level without limits inherits those of the outer level. */
    if (conf->limits.elts == NULL) {
        conf->limits = from->limits;
    } else if (ngx_http_tollbar_returns(cf)) {
        first = ((limit_t **) conf->limits.elts)[0];
        ngx_log_error(NGX_LOG_WARN, cf->log, 0, "\"tollbar\" has no effect beside \"return\", which comes first, in %V:%ui",
                      &first->base.where.file, first->base.where.line);
    }
    conf->enforced = sort(&conf->limits);
    ngx_conf_merge_uint_value(conf->status_code, from->status_code, NGX_HTTP_TOO_MANY_REQUESTS);
    ngx_conf_merge_uint_value(conf->limit_log_level, from->limit_log_level, NGX_LOG_ERR);
    ngx_conf_merge_uint_value(conf->headers, from->headers, NGX_HTTP_TOLLBAR_HEADERS_OFF);
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    ngx_conf_merge_ptr_value(conf->rules, from->rules, NULL);
    ngx_conf_merge_ptr_value(conf->rules_fields, from->rules_fields, NULL);
    ngx_conf_merge_ptr_value(conf->rules_answers, from->rules_answers, NULL);
    if (ngx_http_tollbar_rules_answers_check(cf, conf->rules, conf->rules_answers) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    conf->delay_log_level = conf->limit_log_level == NGX_LOG_INFO ? NGX_LOG_INFO : conf->limit_log_level + 1;
    return conf->limits.nelts != 0 ? ngx_tollbar_conf_push(cf, &main->confs, conf) : NGX_CONF_OK;
}

/* Sorts limits: first those with a table, then those with a node, then those in a dry run. The
 * order within each group stays. Returns the number of limits that are not in a dry run. */
static ngx_uint_t sort(ngx_array_t *array)
{
    limit_t **limits = array->elts;
    limit_t *limit;
    ngx_uint_t n, to, enforced = 0;

    for (n = 0; n < array->nelts; n++) {
        limit = limits[n];
        enforced += !limit->dry_run;
        for (to = n; to > 0 && place_of(limits[to - 1]) > place_of(limit); to--) {
            limits[to] = limits[to - 1];
        }
        limits[to] = limit;
    }
    return enforced;
}

static ngx_uint_t place_of(const limit_t *limit)
{
    const zone_t *zone = limit->base.shm_zone->data;

    /* A NULL zone is undeclared. complete_zone refuses it later. */
    return limit->dry_run ? 2 : zone != NULL && zone->sync != NULL;
}

/* The sort key of nodes begins here. */
#define NODES ((uint64_t) 1 << 62)

/* The sort key of the charging order. These limits come first to last:
 *
 *     a tree                          which takes no permits back, and which the module cannot peek at
 *     tables that take permits back   by the time after which they have refilled a permit
 *     rates with variables            together, because each request may have another rate
 *     nodes                           which take no permits back, by the time after which a permit refills
 *     other tables                    which take no permits back, and lifetime quotas, which refill none
 *     `count` and `when`              which charge only after the answer */
static uint64_t refill_of(const ngx_tollbar_limit_t *base)
{
    const limit_t *limit = (const limit_t *) base;
    const zone_t *zone = limit->zone;
    uint64_t refill;

    if (zone->tree != NULL) {
        return 0;
    }
    if (limit->afterwards) {
        return UINT64_MAX;
    }
    if (zone->sync != NULL) {
        return NODES + zone->policy.period_ns / ngx_max(zone->policy.limit, 1);
    }
    refill = ngx_tollbar_refill(&zone->zone, &zone->policy);
    if (refill == TOLLBAR_NO_TIME) {
        return UINT64_MAX - 1;
    }
    return zone->rate != NULL ? NODES - 1 : ngx_min(refill, NODES - 2);
}
