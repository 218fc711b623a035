/* tollbar_conn_zone, tollbar_conn and their directives: how many requests a key may have at one
 * time. */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_tollbar_conn.h"
#include "ngx_http_tollbar_request.h"
#include "ngx_tollbar_conn_limit.h"
#include "ngx_tollbar_variables.h"

typedef ngx_tollbar_conn_conf_t conf_t;
typedef ngx_tollbar_conn_main_conf_t main_conf_t;
typedef ngx_tollbar_conn_record_t record_t;

static ngx_int_t log_handler(ngx_http_request_t *r);
static void judge(const ngx_http_request_t *r, record_t *record);
static ngx_flag_t has_refused(ngx_uint_t status);
static record_t *record_of(ngx_http_request_t *r);
static ngx_int_t add_variable(ngx_conf_t *cf);
static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                 uintptr_t data);
static ngx_int_t complete(ngx_conf_t *cf);
static ngx_int_t join(ngx_cycle_t *cycle);
static void part(ngx_cycle_t *cycle);
static char *merge_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#define ANYWHERE (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)

static ngx_command_t commands[] = {
    { ngx_string("tollbar_conn_zone"), NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE, read_zone, NGX_HTTP_MAIN_CONF_OFFSET, 0,
        NULL },
    { ngx_string("tollbar_conn"), ANYWHERE|NGX_CONF_TAKE12, read_limit, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("tollbar_conn_log_level"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_word, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, log_level), &ngx_tollbar_conf_log_levels },
    { ngx_string("tollbar_conn_status"), ANYWHERE|NGX_CONF_TAKE1, ngx_tollbar_conf_set_status, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, status_code), NULL },
    { ngx_string("tollbar_conn_dry_run"), ANYWHERE|NGX_CONF_FLAG, ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(conf_t, dry_run), NULL },
    ngx_null_command
};

static ngx_http_module_t context = {
    add_variable, complete, ngx_tollbar_conn_create_main_conf, NULL, NULL, NULL,
    ngx_tollbar_conn_create_conf, merge_conf
};

ngx_module_t ngx_http_tollbar_conn_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, NULL, join, NULL, NULL, part, NULL, NGX_MODULE_V1_PADDING
};

ngx_flag_t ngx_http_tollbar_conn_counts(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_conn_module);

    return conf->limits.nelts != 0 && record_of(r) == NULL;
}

/* Also the handler of the preaccess phase: for a location without rates, and for a request after its
 * delay. The first location with limits that the request, a redirect or a subrequest reaches counts
 * the request once, until the main request ends. */
ngx_int_t ngx_http_tollbar_conn_enter(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_conn_module);
    ngx_tollbar_conn_limit_t **limits = conf->limits.elts;
    record_t *record = NULL;
    ngx_str_t key;
    ngx_uint_t n;
    ngx_int_t rc;

    if (!ngx_http_tollbar_conn_counts(r)) {
        return NGX_DECLINED;
    }
    for (n = 0; n < conf->limits.nelts; n++) {
        if (ngx_http_complex_value(r, limits[n]->zone->key, &key) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
        rc = ngx_tollbar_conn_count(conf, limits[n], &key, r->main->pool, r->connection->log,
                                    &record);
        ngx_http_set_ctx(r->main, record, ngx_http_tollbar_conn_module);
        if (rc != NGX_OK) {
            return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
        }
    }
    return NGX_DECLINED;
}

void ngx_http_tollbar_conn_leave(ngx_http_request_t *r)
{
    record_t *record = record_of(r);
    ngx_pool_cleanup_t *cleanup;

    if (record == NULL) {
        return;
    }
    ngx_tollbar_conn_record_leave(record);
    for (cleanup = r->main->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
        if (cleanup->data == record) {
            cleanup->handler = NULL;
        }
    }
    ngx_http_set_ctx(r->main, NULL, ngx_http_tollbar_conn_module);
}

/* The handler of the log phase, in a configuration that learns. The request's memory is freed after
 * it, and then the limits stop counting the request. */
static ngx_int_t log_handler(ngx_http_request_t *r)
{
    record_t *record = record_of(r);

    if (record != NULL) {
        judge(r, record);
    }
    return NGX_OK;
}

/* Finds what the request says about the server. Its latency is the time of the upstream, and for an
 * answer of nginx's own the time since the first limit has counted the request. */
static void judge(const ngx_http_request_t *r, record_t *record)
{
    const ngx_http_upstream_state_t *states = r->upstream_states != NULL ? r->upstream_states->elts : NULL;
    ngx_uint_t n, status = 0;
    ngx_msec_t took = 0;

    /* A client that has gone away has not waited for the server, and a connection that has become a
     * WebSocket ends when its client likes. */
    if (r->connection->error || r->headers_out.status == NGX_HTTP_CLIENT_CLOSED_REQUEST
        || r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS)
    {
        return;
    }
    if (states == NULL) {
        /* An answer of nginx's cache and an error of nginx's own say nothing about the server. */
        if (r->upstream == NULL && r->headers_out.status < NGX_HTTP_BAD_REQUEST) {
            record->sample.outcome = NGX_TOLLBAR_ANSWERED;
            record->sample.latency_ns = ngx_tollbar_now_ns() - record->begin_ns;
        }
        return;
    }
    for (n = 0; n < r->upstream_states->nelts; n++) {
        /* Between the upstreams of two locations nginx has an empty state. */
        if (states[n].peer == NULL || states[n].response_time == (ngx_msec_t) -1) {
            continue;
        }
        took += states[n].response_time;
        status = states[n].status;
    }
    if (status != 0) {
        record->sample.outcome = has_refused(status) ? NGX_TOLLBAR_DROPPED : NGX_TOLLBAR_ANSWERED;
        record->sample.latency_ns = (uint64_t) took * 1000000;
    }
}

/* Whether the server has refused the request or not answered in time. */
static ngx_flag_t has_refused(ngx_uint_t status)
{
    return status == NGX_HTTP_TOO_MANY_REQUESTS || status == NGX_HTTP_BAD_GATEWAY
           || status == NGX_HTTP_SERVICE_UNAVAILABLE || status == NGX_HTTP_GATEWAY_TIME_OUT;
}

static record_t *record_of(ngx_http_request_t *r)
{
    record_t *record = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_conn_module);
    ngx_pool_cleanup_t *cleanup;

    if (record != NULL || !(r->main->internal || r->main->filter_finalize)) {
        return record;
    }
    /* A redirect clears the module's context, so the record is searched among the pool's
     * cleanups. */
    for (cleanup = r->main->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
        if (cleanup->handler == ngx_tollbar_conn_record_leave) {
            ngx_http_set_ctx(r->main, cleanup->data, ngx_http_tollbar_conn_module);
            return cleanup->data;
        }
    }
    return NULL;
}

static ngx_int_t add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_conn_status");

    return ngx_http_tollbar_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE, status_variable);
}

static ngx_int_t status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    record_t *record = record_of(r);

    return ngx_tollbar_set_status(v, record != NULL ? record->status : 0);
}

static ngx_int_t complete(ngx_conf_t *cf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_conn_module);
    ngx_tollbar_conn_zone_t **zones = main->zones.elts;
    ngx_uint_t n;

    if (ngx_tollbar_conn_complete(cf, main) != NGX_OK) {
        return NGX_ERROR;
    }
    /* A configuration without zones gets no handler, so its requests cost nothing more. */
    if (main->zones.nelts == 0) {
        return NGX_OK;
    }
    for (n = 0; n < main->zones.nelts && !zones[n]->adaptive.on; n++) {
        /* void */
    }
    if (n < main->zones.nelts && ngx_http_tollbar_add_handler(cf, NGX_HTTP_LOG_PHASE, log_handler) != NGX_OK) {
        return NGX_ERROR;
    }
    return ngx_http_tollbar_add_handler(cf, NGX_HTTP_PREACCESS_PHASE, ngx_http_tollbar_conn_enter);
}

static ngx_int_t join(ngx_cycle_t *cycle)
{
    main_conf_t *main = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tollbar_conn_module);

    ngx_tollbar_conn_join(main, cycle->log);
    return NGX_OK;
}

static void part(ngx_cycle_t *cycle)
{
    ngx_tollbar_conn_part(ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tollbar_conn_module));
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    return ngx_tollbar_conn_merge_conf(parent, child, NGX_HTTP_TOO_MANY_REQUESTS);
}

/* tollbar_conn_zone KEY zone=NAME:SIZE [on_full=deny|allow]
 *                   [adaptive[=gradient2|aimd] [initial=N] [least=N] [most=N] [timeout=TIME]] */
static char *read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = conf;
    ngx_http_complex_value_t *key = NULL;
    char *error = ngx_http_set_complex_value_slot(cf, cmd, &key);

    if (error != NGX_CONF_OK) {
        return error;
    }
    return ngx_tollbar_conn_zone_read(cf, &ngx_http_tollbar_conn_module, key, &main->zones, 1);
}

/* tollbar_conn NAME [NUMBER] */
static char *read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_conn_module);

    return ngx_tollbar_conn_read_limit(cf, &ngx_http_tollbar_conn_module, conf, main);
}
