/* Decides a new connection by all limits of its server, and applies the decision. Defines the
 * variables. */

#include "ngx_stream_tollbar.h"

typedef ngx_stream_tollbar_zone_t zone_t;
typedef ngx_tollbar_rate_limit_t limit_t;
typedef ngx_tollbar_rate_conf_t conf_t;
typedef ngx_tollbar_rate_charge_t charge_t;

/* A connection's outcome, and the timer of its delay. */
typedef struct {
    ngx_uint_t status;
    ngx_event_t timer;
} session_t;

/* check and key_of return a result of ngx_tollbar_several.h, answer and delay the phase handler's
 * value. */
static ngx_int_t check(ngx_stream_session_t *s, const conf_t *conf, charge_t **binding);
static ngx_int_t key_of(ngx_stream_session_t *s, zone_t *zone, ngx_str_t *key);
static ngx_int_t answer(ngx_stream_session_t *s, const conf_t *conf, ngx_int_t rc,
                        const charge_t *binding);
static ngx_int_t delay(ngx_connection_t *c, session_t *session, ngx_msec_t wait);
static void after_delay(ngx_event_t *timer);
static void read_in_delay(ngx_event_t *read);
static void end_delay(void *data);
static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data);
static ngx_int_t client_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data);

ngx_int_t ngx_stream_tollbar_handler(ngx_stream_session_t *s)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_module);
    charge_t *binding = NULL;
    ngx_int_t rc;

    /* A connection with a session has been delayed and goes on now. */
    if (conf->limits.nelts == 0 || ngx_stream_get_module_ctx(s, ngx_stream_tollbar_module) != NULL)
    {
        return NGX_DECLINED;
    }
    rc = check(s, conf, &binding);
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    return rc == NGX_ABORT ? NGX_ERROR : answer(s, conf, rc, binding);
}

/* Charges all limits or none, as ngx_tollbar_several.h explains. */
static ngx_int_t check(ngx_stream_session_t *s, const conf_t *conf, charge_t **binding)
{
    ngx_log_t *log = s->connection->log;
    limit_t **limits = conf->limits.elts;
    ngx_uint_t n, count = conf->limits.nelts;
    charge_t *charges = ngx_palloc(s->connection->pool, count * sizeof(charge_t)), *charge;
    ngx_int_t rc;

    if (charges == NULL) {
        return NGX_ABORT;
    }
    for (n = 0; n < count; n++) {
        charge = &charges[n];
        charge->limit = limits[n];
        rc = key_of(s, (zone_t *) limits[n]->zone, &charge->key);
        if (rc == NGX_DECLINED) {
            charge->key.len = 0;
            continue;
        }
        *binding = charge;
        if (rc == NGX_OK) {
            rc = ngx_tollbar_rate_read_clock(charge, log);
        }
        if (rc == NGX_OK) {
            rc = ngx_tollbar_rate_peek(charge, log);
        }
        if (rc != NGX_OK) {
            return rc;
        }
    }
    if (*binding == NULL) {
        return NGX_DECLINED;
    }
    rc = ngx_tollbar_rate_take_all(conf, charges, log, binding);
    /* The connection waits for the longest delay. Of two limits with equal delays the log names the
     * first. */
    for (n = count; rc == NGX_OK && n-- > 0; ) {
        if (charges[n].key.len != 0
            && ngx_tollbar_rate_wait(&charges[n]) >= ngx_tollbar_rate_wait(*binding))
        {
            *binding = &charges[n];
        }
    }
    return rc;
}

static ngx_int_t key_of(ngx_stream_session_t *s, zone_t *zone, ngx_str_t *key)
{
    if (ngx_stream_complex_value(s, zone->key, key) != NGX_OK) {
        return NGX_ABORT;
    }
    if (key->len > 65535) {
        ngx_log_error(NGX_LOG_ERR, s->connection->log, 0, "the value of the \"%V\" key is more than 65535 bytes: \"%V\"",
                      &zone->key->value, key);
        return NGX_DECLINED;
    }
    return key->len == 0 ? NGX_DECLINED : NGX_OK;
}

static ngx_int_t answer(ngx_stream_session_t *s, const conf_t *conf, ngx_int_t rc,
                        const charge_t *binding)
{
    ngx_connection_t *c = s->connection;
    session_t *session = ngx_pcalloc(c->pool, sizeof(session_t));

    if (session == NULL) {
        return NGX_ERROR;
    }
    ngx_stream_set_ctx(s, session, ngx_stream_tollbar_module);
    session->status = ngx_tollbar_rate_status(conf, rc, binding, "connection", "new connections",
                                              c->log);
    switch (session->status) {
    case NGX_TOLLBAR_DELAYED:
        return delay(c, session, ngx_tollbar_rate_wait(binding));
    case NGX_TOLLBAR_REJECTED:
        return (ngx_int_t) conf->status_code;
    default:
        return NGX_DECLINED;
    }
}

/* Delays the connection by a timer of its own. During the delay nginx reads nothing from the
 * connection, so it does not notice if the client closes it. */
static ngx_int_t delay(ngx_connection_t *c, session_t *session, ngx_msec_t wait)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(c->pool, 0);

    if (cleanup == NULL) {
        return NGX_ERROR;
    }
    cleanup->handler = end_delay;
    cleanup->data = session;
    session->timer.handler = after_delay;
    session->timer.data = c;
    session->timer.log = c->log;
    /* nginx's handler for PROXY headers is still set. It would parse the bytes after the header as
     * a second header. */
    c->read->handler = read_in_delay;
    ngx_add_timer(&session->timer, wait);
    return NGX_AGAIN;
}

static void after_delay(ngx_event_t *timer)
{
    ngx_connection_t *c = timer->data;

    /* nginx runs the phases again, beginning with this module's handler. */
    c->read->handler = ngx_stream_session_handler;
    ngx_stream_core_run_phases(c->data);
}

/* nginx calls this when data arrives, or when the worker shuts down. The data stays in the socket
 * for a later reader. */
static void read_in_delay(ngx_event_t *read)
{
    ngx_connection_t *c = read->data;

    if (c->close) {
        ngx_stream_finalize_session(c->data, NGX_STREAM_OK);
    } else if (read->active && ngx_handle_read_event(read, 0) != NGX_OK) {
        ngx_stream_finalize_session(c->data, NGX_STREAM_INTERNAL_SERVER_ERROR);
    }
}

/* A cleanup of the connection's pool. If the connection ends during its delay, its timer must not
 * fire, because the timer is in that pool. */
static void end_delay(void *data)
{
    session_t *session = data;

    if (session->timer.timer_set) {
        ngx_del_timer(&session->timer);
    }
}

ngx_int_t ngx_stream_tollbar_add_variables(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_status");
    static ngx_str_t client_name = ngx_string("tollbar_client");

    if (ngx_stream_tollbar_add_variable(cf, &name, NGX_STREAM_VAR_NOCACHEABLE, status_variable)
        != NGX_OK)
    {
        return NGX_ERROR;
    }
    return ngx_stream_tollbar_add_variable(cf, &client_name, 0, client_variable);
}

ngx_int_t ngx_stream_tollbar_add_variable(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t flags,
                                          ngx_stream_get_variable_pt get)
{
    ngx_stream_variable_t *variable = ngx_stream_add_variable(cf, name, flags);

    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = get;
    return NGX_OK;
}

static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    session_t *session = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_module);

    return ngx_tollbar_set_status(v, session != NULL ? session->status : 0);
}

static ngx_int_t client_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v,
                                 uintptr_t data)
{
    return ngx_tollbar_client(s->connection, s->connection->pool, v);
}
