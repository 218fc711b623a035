/* tollbar_conn_zone, tollbar_conn and their directives, for stream: how many connections a key may have at one time. */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_conn_limit.h"

typedef struct {
    ngx_tollbar_conn_zone_t zone;
    ngx_stream_complex_value_t key;
} zone_t;

typedef ngx_tollbar_conn_limit_t limit_t;
typedef ngx_tollbar_conn_record_t record_t;

typedef struct {
    ngx_array_t limits; /* of limit_t */
    ngx_uint_t log_level;
    ngx_flag_t dry_run;
} conf_t;

typedef struct {
    ngx_array_t zones;  /* of zone_t * */
    ngx_array_t limits; /* of limit_t, from all levels */
} main_conf_t;

static ngx_int_t handler(ngx_stream_session_t *s);
static record_t *add_record(ngx_stream_session_t *s, ngx_uint_t limits);
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

#define ANYWHERE (NGX_STREAM_MAIN_CONF|NGX_STREAM_SRV_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_conn_zone"), NGX_STREAM_MAIN_CONF|NGX_CONF_TAKE23, read_zone, NGX_STREAM_MAIN_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_conn"), ANYWHERE|NGX_CONF_TAKE2, read_limit, NGX_STREAM_SRV_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_conn_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("tollbar_conn_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_stream_module_t context = { add_variable, add_handler, create_main_conf, NULL, create_conf, merge_conf };

ngx_module_t ngx_stream_tollbar_conn_module = {
    NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE, NULL, NULL, join, NULL, NULL, part, NULL, NGX_MODULE_V1_PADDING
};

/* The handler of the preaccess phase. */
static ngx_int_t handler(ngx_stream_session_t *s)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_conn_module);
    limit_t *limits = conf->limits.elts;
    record_t *record = NULL;
    zone_t *zone;
    ngx_str_t key;
    ngx_uint_t n;

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
        if (ngx_tollbar_conn_record_enter(record, &limits[n], &key, conf->dry_run, conf->log_level, s->connection->log) != NGX_OK) {
            return conf->dry_run ? NGX_DECLINED : NGX_STREAM_SERVICE_UNAVAILABLE;
        }
    }
    return NGX_DECLINED;
}

static record_t *add_record(ngx_stream_session_t *s, ngx_uint_t limits)
{
    record_t *record = ngx_tollbar_conn_record_add(s->connection->pool, limits);

    if (record != NULL) {
        ngx_stream_set_ctx(s, record, ngx_stream_tollbar_conn_module);
    }
    return record;
}

static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    record_t *record = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_conn_module);

    if (record == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = ngx_tollbar_conn_statuses[record->status].len;
    v->data = ngx_tollbar_conn_statuses[record->status].data;
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
    main_conf_t *conf = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_conn_module);
    ngx_stream_handler_pt *place;

    if (ngx_tollbar_conn_limits_check(cf, &conf->limits) != NGX_OK) {
        return NGX_ERROR;
    }
    /* A configuration without zones gets no handler, so its connections cost nothing more. */
    if (conf->zones.nelts == 0) {
        return NGX_OK;
    }
    place = ngx_array_push(&core->phases[NGX_STREAM_PREACCESS_PHASE].handlers);
    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = handler;
    return NGX_OK;
}

static ngx_int_t join(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_conn_module);

    if (conf != NULL) {
        ngx_tollbar_conn_zones_join(&conf->zones, cycle->log);
    }
    return NGX_OK;
}

static void part(ngx_cycle_t *cycle)
{
    main_conf_t *conf = ngx_stream_cycle_get_module_main_conf(cycle, ngx_stream_tollbar_conn_module);

    if (conf != NULL) {
        ngx_tollbar_conn_zones_part(&conf->zones);
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

    /* A server without limits inherits those of the outer level. */
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
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_conn_module);
    conf_t *here = conf;

    return ngx_tollbar_conn_limits_read(cf, &ngx_stream_tollbar_conn_module, &here->limits, &main->limits);
}
