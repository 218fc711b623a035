/* tollbar_conn_zone, tollbar_conn and their directives, for stream: how many connections a key may
 * have at one time. */

#include "ngx_stream_tollbar.h"
#include "ngx_tollbar_conn_limit.h"

typedef ngx_tollbar_conn_conf_t conf_t;
typedef ngx_tollbar_conn_main_conf_t main_conf_t;
typedef ngx_tollbar_conn_record_t record_t;

static ngx_int_t handler(ngx_stream_session_t *s);
static ngx_int_t add_variable(ngx_conf_t *cf);
static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v,
                                 uintptr_t data);
static ngx_int_t complete(ngx_conf_t *cf);
static ngx_int_t join(ngx_cycle_t *cycle);
static void part(ngx_cycle_t *cycle);
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

static ngx_stream_module_t context = {
    add_variable, complete, ngx_tollbar_conn_create_main_conf, NULL, ngx_tollbar_conn_create_conf,
    merge_conf
};

ngx_module_t ngx_stream_tollbar_conn_module = {
    NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE, NULL, NULL, join, NULL, NULL, part, NULL, NGX_MODULE_V1_PADDING
};

/* The handler of the preaccess phase. */
static ngx_int_t handler(ngx_stream_session_t *s)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_conn_module);
    ngx_tollbar_conn_limit_t **limits = conf->limits.elts;
    ngx_connection_t *c = s->connection;
    record_t *record = NULL;
    ngx_str_t key;
    ngx_uint_t n;
    ngx_int_t rc;

    for (n = 0; n < conf->limits.nelts; n++) {
        if (ngx_stream_complex_value(s, limits[n]->zone->key, &key) != NGX_OK) {
            return NGX_ERROR;
        }
        rc = ngx_tollbar_conn_count(conf, limits[n], &key, c->pool, c->log, &record);
        ngx_stream_set_ctx(s, record, ngx_stream_tollbar_conn_module);
        if (rc != NGX_OK) {
            return rc;
        }
    }
    return NGX_DECLINED;
}

static ngx_int_t add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_conn_status");

    return ngx_stream_tollbar_add_variable(cf, &name, NGX_STREAM_VAR_NOCACHEABLE, status_variable);
}

static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    record_t *record = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_conn_module);

    return ngx_tollbar_set_status(v, record != NULL ? record->status : 0);
}

static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_conn_module);

    if (ngx_tollbar_conn_complete(cf, main) != NGX_OK) {
        return NGX_ERROR;
    }
    /* A configuration without zones gets no handler, so its connections cost nothing more. */
    if (main->zones.nelts == 0) {
        return NGX_OK;
    }
    return ngx_stream_tollbar_add_handler(cf, handler);
}

static ngx_int_t join(ngx_cycle_t *cycle)
{
    main_conf_t *main = ngx_stream_cycle_get_module_main_conf(cycle,
                                                              ngx_stream_tollbar_conn_module);

    ngx_tollbar_conn_join(main, cycle->log);
    return NGX_OK;
}

static void part(ngx_cycle_t *cycle)
{
    main_conf_t *main = ngx_stream_cycle_get_module_main_conf(cycle,
                                                              ngx_stream_tollbar_conn_module);

    ngx_tollbar_conn_part(main);
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    return ngx_tollbar_conn_merge_conf(parent, child, NGX_STREAM_SERVICE_UNAVAILABLE);
}

/* tollbar_conn_zone KEY zone=NAME:SIZE [on_full=deny|allow] */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = conf;
    ngx_stream_complex_value_t *key = NULL;
    char *error = ngx_stream_set_complex_value_slot(cf, cmd, &key);

    if (error != NGX_CONF_OK) {
        return error;
    }
    return ngx_tollbar_conn_zone_read(cf, &ngx_stream_tollbar_conn_module, key, &main->zones, 0);
}

/* tollbar_conn NAME NUMBER */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = ngx_stream_conf_get_module_main_conf(cf, ngx_stream_tollbar_conn_module);

    return ngx_tollbar_conn_read_limit(cf, &ngx_stream_tollbar_conn_module, conf, main);
}
