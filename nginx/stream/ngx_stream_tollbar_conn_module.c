/* tollbar_conn_zone, tollbar_conn and what belongs to them, for stream: how many connections a key may have at one time. */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>
#include "ngx_tollbar_conn_zone.h"

typedef struct {
    ngx_tollbar_conn_zone_t zone;
    ngx_stream_complex_value_t key;
} zone_t;

typedef struct {
    ngx_shm_zone_t *shm_zone;
    ngx_uint_t most;
} limit_t;

typedef struct {
    ngx_array_t limits; /* of limit_t */
    ngx_uint_t log_level;
    ngx_flag_t dry_run;
} conf_t;

typedef struct {
    ngx_array_t zones; /* of zone_t * */
} main_conf_t;

/* What has become of a connection. */
typedef struct {
    ngx_uint_t status;
    ngx_uint_t held_n;
    ngx_tollbar_conn_held_t *held;
} record_t;

#define PASSED 1
#define REJECTED 2
#define REJECTED_DRY_RUN 3

static ngx_int_t handler(ngx_stream_session_t *s);
static ngx_int_t refused(ngx_stream_session_t *s, record_t *record, ngx_int_t rc, limit_t *limit);
static record_t *add_record(ngx_stream_session_t *s, ngx_uint_t limits);
static void leave(void *data);
static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data);
static ngx_int_t add_variable(ngx_conf_t *cf);
static ngx_int_t add_handler(ngx_conf_t *cf);
static ngx_int_t join(ngx_cycle_t *cycle);
static void part(ngx_cycle_t *cycle);
static void *create_main_conf(ngx_conf_t *cf);
static void *create_conf(ngx_conf_t *cf);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

static ngx_conf_enum_t log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};

#define ANYWHERE (NGX_STREAM_MAIN_CONF|NGX_STREAM_SRV_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_conn_zone"), NGX_STREAM_MAIN_CONF|NGX_CONF_TAKE23, read_zone, NGX_STREAM_MAIN_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_conn"), ANYWHERE|NGX_CONF_TAKE2, read_limit, NGX_STREAM_SRV_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_conn_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_conf_set_enum_slot, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, log_level), &log_levels },
    { ngx_string("tollbar_conn_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_stream_module_t context = { add_variable, add_handler, create_main_conf, NULL, create_conf, merge_conf };

ngx_module_t ngx_stream_tollbar_conn_module = {
    NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE, NULL, NULL, join, NULL, NULL, part, NULL, NGX_MODULE_V1_PADDING
};

/* Of the preaccess phase. */
static ngx_int_t handler(ngx_stream_session_t *s)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_conn_module);
    limit_t *limits = conf->limits.elts;
    record_t *record = NULL;
    zone_t *zone;
    ngx_str_t key;
    ngx_uint_t n;
    ngx_int_t rc;

    if (conf->limits.nelts == 0) {
        return NGX_DECLINED;
    }
    for (n = 0; n < conf->limits.nelts; n++) {
        zone = limits[n].shm_zone->data;
        if (ngx_stream_complex_value(s, &zone->key, &key) != NGX_OK) {
            return NGX_ERROR;
        }
        if (key.len == 0) {
            continue;
        }
        if (record == NULL) {
            record = add_record(s, conf->limits.nelts);
            if (record == NULL) {
                return NGX_ERROR;
            }
        }
        rc = ngx_tollbar_conn_zone_enter(&zone->zone, &key, limits[n].most, s->connection->log, &record->held[record->held_n]);
        if (rc == NGX_OK) {
            record->held_n++;
        } else if (rc != NGX_DECLINED) {
            return refused(s, record, rc, &limits[n]);
        }
    }
    return NGX_DECLINED;
}

/* It does not count by the limits before this one, either. */
static ngx_int_t refused(ngx_stream_session_t *s, record_t *record, ngx_int_t rc, limit_t *limit)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_conn_module);

    leave(record);
    if (rc == NGX_BUSY) {
        ngx_log_error(conf->log_level, s->connection->log, 0, "limiting connections%s by zone \"%V\"",
                      conf->dry_run ? ", dry run," : "", &limit->shm_zone->shm.name);
    }
    if (conf->dry_run) {
        record->status = REJECTED_DRY_RUN;
        return NGX_DECLINED;
    }
    record->status = REJECTED;
    return NGX_STREAM_SERVICE_UNAVAILABLE;
}

static record_t *add_record(ngx_stream_session_t *s, ngx_uint_t limits)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(s->connection->pool, sizeof(record_t));
    record_t *record;

    if (cleanup == NULL) {
        return NULL;
    }
    record = cleanup->data;
    record->status = PASSED;
    record->held_n = 0;
    record->held = ngx_palloc(s->connection->pool, limits * sizeof(ngx_tollbar_conn_held_t));
    if (record->held == NULL) {
        return NULL;
    }
    cleanup->handler = leave;
    ngx_stream_set_ctx(s, record, ngx_stream_tollbar_conn_module);
    return record;
}

static void leave(void *data)
{
    record_t *record = data;

    while (record->held_n > 0) {
        ngx_tollbar_conn_zone_leave(&record->held[--record->held_n]);
    }
}

static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    static ngx_str_t names[] = { ngx_string("PASSED"), ngx_string("REJECTED"), ngx_string("REJECTED_DRY_RUN") };
    record_t *record = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_conn_module);

    if (record == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = names[record->status - 1].len;
    v->data = names[record->status - 1].data;
    return NGX_OK;
}

static ngx_int_t add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_conn_status");
    ngx_stream_variable_t *variable = ngx_stream_add_variable(cf, &name, NGX_STREAM_VAR_NOCACHEABLE);

    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = status_variable;
    return NGX_OK;
}

static ngx_int_t add_handler(ngx_conf_t *cf)
{
    ngx_stream_core_main_conf_t *core = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_core_module);
    ngx_stream_handler_pt *place = ngx_array_push(&core->phases[NGX_STREAM_PREACCESS_PHASE].handlers);

    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = handler;
    return NGX_OK;
}

static ngx_int_t join(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_conn_module);
    zone_t **zones;
    ngx_uint_t n;

    /* The processes that look after caches have no connections. */
    if (conf != NULL && ngx_process != NGX_PROCESS_HELPER) {
        zones = conf->zones.elts;
        for (n = 0; n < conf->zones.nelts; n++) {
            ngx_tollbar_conn_zone_join(&zones[n]->zone, cycle->log);
        }
    }
    return NGX_OK;
}

static void part(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_conn_module);
    zone_t **zones;
    ngx_uint_t n;

    if (conf != NULL) {
        zones = conf->zones.elts;
        for (n = 0; n < conf->zones.nelts; n++) {
            ngx_tollbar_conn_zone_part(&zones[n]->zone);
        }
    }
}

static void *create_main_conf(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(main_conf_t));

    if (conf == NULL || ngx_array_init(&conf->zones, cf->pool, 4, sizeof(zone_t *)) != NGX_OK) {
        return NULL;
    }
    return conf;
}

static void *create_conf(ngx_conf_t *cf)
{
    conf_t *conf = ngx_pcalloc(cf->pool, sizeof(conf_t));

    if (conf != NULL) {
        conf->log_level = NGX_CONF_UNSET_UINT;
        conf->dry_run = NGX_CONF_UNSET;
    }
    return conf;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    conf_t *from = parent;
    conf_t *conf = child;

    /* Limits of the outer level hold where a server has none of its own. */
    if (conf->limits.elts == NULL) {
        conf->limits = from->limits;
    }
    ngx_conf_merge_uint_value(conf->log_level, from->log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(conf->dry_run, from->dry_run, 0);
    return NGX_CONF_OK;
}

/* tollbar_conn_zone KEY zone=NAME:SIZE [on_full=deny|allow] */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = conf;
    ngx_str_t *value = cf->args->elts;
    ngx_stream_compile_complex_value_t compile;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    zone_t **place;
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
    error = ngx_tollbar_conn_zone_read(cf, &ngx_stream_tollbar_conn_module, &zone->zone);
    if (error != NGX_CONF_OK) {
        return error;
    }
    place = ngx_array_push(&main->zones);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = zone;
    return NGX_CONF_OK;
}

/* tollbar_conn NAME NUMBER */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    conf_t *here = conf;
    limit_t *limits, *place;
    limit_t limit;
    ngx_uint_t n;
    char *error = ngx_tollbar_conn_limit_read(cf, &ngx_stream_tollbar_conn_module, &limit.shm_zone, &limit.most);

    if (error != NGX_CONF_OK) {
        return error;
    }
    if (here->limits.elts == NULL && ngx_array_init(&here->limits, cf->pool, 1, sizeof(limit_t)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    limits = here->limits.elts;
    for (n = 0; n < here->limits.nelts; n++) {
        if (limits[n].shm_zone == limit.shm_zone) {
            return "is duplicate";
        }
    }
    place = ngx_array_push(&here->limits);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = limit;
    return NGX_CONF_OK;
}
