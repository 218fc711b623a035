/* Decides a new connection by all limits of its server, and prints $tollbar_status. */

#include "ngx_stream_tollbar.h"

typedef ngx_stream_tollbar_zone_t zone_t;
typedef ngx_stream_tollbar_limit_t limit_t;
typedef ngx_stream_tollbar_conf_t conf_t;

/* The library needs a 64-bit processor, for which compilers have this type. */
__extension__ typedef unsigned __int128 wide_t;

/* A connection's outcome, and the timer of its delay. */
typedef struct {
    ngx_uint_t status;
    ngx_event_t timer;
} session_t;

/* A limit to charge, and the connection's key. */
typedef struct {
    limit_t *limit;
    ngx_str_t key;
    /* The time of the peek and of the charge, by the table's clock. */
    uint64_t now;
    /* The key's debt in nanoseconds. It includes this connection if the limit admits it. */
    uint64_t debt;
} charge_t;

#define PASSED 1
#define DELAYED 2
#define REJECTED 3
#define DELAYED_DRY_RUN 4
#define REJECTED_DRY_RUN 5

/* check, take_all, key_of, peek, take and failed return a result of ngx_tollbar_several.h. */
static ngx_int_t check(ngx_stream_session_t *s, conf_t *conf, charge_t *outcome);
static ngx_int_t take_all(ngx_stream_session_t *s, const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, charge_t *outcome);
static charge_t *charge_of(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n);
static ngx_int_t key_of(ngx_stream_session_t *s, zone_t *zone, ngx_str_t *key);
static ngx_int_t peek(ngx_stream_session_t *s, charge_t *charge);
static ngx_int_t take(ngx_stream_session_t *s, charge_t *charge);
static ngx_int_t failed(ngx_stream_session_t *s, charge_t *charge, int32_t error);
static ngx_msec_t wait_of(const charge_t *charge);
static ngx_int_t refuse(ngx_stream_session_t *s, session_t *session, ngx_int_t rc, const charge_t *charge);
static ngx_int_t delay(ngx_stream_session_t *s, session_t *session, const charge_t *charge);
static void after_delay(ngx_event_t *timer);
static void read_in_delay(ngx_event_t *read);
static void end_delay(void *data);
static ngx_uint_t owed(const charge_t *charge);
static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data);
static ngx_int_t client_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data);

ngx_int_t ngx_stream_tollbar_handler(ngx_stream_session_t *s)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_module);
    session_t *session = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_module);
    ngx_connection_t *c = s->connection;
    charge_t outcome;
    ngx_int_t rc;

    /* A connection with a session has been delayed and goes on now. */
    if (conf->limits.nelts == 0 || session != NULL) {
        return NGX_DECLINED;
    }
    rc = check(s, conf, &outcome);
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    if (rc == NGX_ABORT) {
        return NGX_ERROR;
    }
    session = ngx_pcalloc(c->pool, sizeof(session_t));
    if (session == NULL) {
        return NGX_ERROR;
    }
    ngx_stream_set_ctx(s, session, ngx_stream_tollbar_module);
    if (rc != NGX_OK) {
        return refuse(s, session, rc, &outcome);
    }
    if (wait_of(&outcome) != 0) {
        return delay(s, session, &outcome);
    }
    session->status = PASSED;
    return NGX_DECLINED;
}

/* Charges all limits or none, as ngx_tollbar_several.h explains. */
static ngx_int_t check(ngx_stream_session_t *s, conf_t *conf, charge_t *outcome)
{
    limit_t **limits = conf->limits.elts;
    charge_t *charges = ngx_palloc(s->connection->pool, conf->limits.nelts * sizeof(charge_t));
    ngx_uint_t n, charges_n = 0;
    ngx_int_t rc;

    if (charges == NULL) {
        return NGX_ABORT;
    }
    for (n = 0; n < conf->limits.nelts; n++) {
        charges[charges_n].limit = limits[n];
        rc = key_of(s, limits[n]->zone, &charges[charges_n].key);
        if (rc == NGX_DECLINED) {
            continue;
        }
        if (rc == NGX_OK) {
            rc = peek(s, &charges[charges_n]);
        }
        if (rc != NGX_OK) {
            *outcome = charges[charges_n];
            return rc;
        }
        charges_n++;
    }
    return charges_n == 0 ? NGX_DECLINED : take_all(s, conf, charges, charges_n, outcome);
}

static ngx_int_t take_all(ngx_stream_session_t *s, const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, charge_t *outcome)
{
    charge_t *charge;
    ngx_uint_t n;
    ngx_int_t rc;

    for (n = 0; n < conf->limits.nelts; n++) {
        charge = charge_of(conf, charges, charges_n, n);
        rc = charge != NULL ? take(s, charge) : NGX_OK;
        if (rc != NGX_OK) {
            *outcome = *charge;
            while (n-- > 0) {
                charge = charge_of(conf, charges, charges_n, n);
                if (charge != NULL) {
                    ngx_tollbar_give_back(charge->limit->zone->zone.table, 0, &charge->key, 1, charge->now);
                }
            }
            return rc;
        }
    }
    /* The connection waits for the longest delay. */
    *outcome = charges[0];
    for (n = 1; n < charges_n; n++) {
        if (wait_of(&charges[n]) > wait_of(outcome)) {
            *outcome = charges[n];
        }
    }
    return NGX_OK;
}

/* The charge of the limit at place `n` of the charging order. NULL if the connection has no key for that limit. */
static charge_t *charge_of(const conf_t *conf, charge_t *charges, ngx_uint_t charges_n, ngx_uint_t n)
{
    limit_t *limit = ((limit_t **) conf->limits.elts)[conf->order[n]];

    while (charges_n-- > 0) {
        if (charges[charges_n].limit == limit) {
            return &charges[charges_n];
        }
    }
    return NULL;
}

static ngx_int_t key_of(ngx_stream_session_t *s, zone_t *zone, ngx_str_t *key)
{
    if (ngx_stream_complex_value(s, &zone->key, key) != NGX_OK) {
        return NGX_ABORT;
    }
    if (key->len > 65535) {
        ngx_log_error(NGX_LOG_ERR, s->connection->log, 0, "the value of the \"%V\" key is more than 65535 bytes: \"%V\"",
                      &zone->key.value, key);
        return NGX_DECLINED;
    }
    return key->len == 0 ? NGX_DECLINED : NGX_OK;
}

/* Peeks whether the limit would admit the connection, and charges nothing. */
static ngx_int_t peek(ngx_stream_session_t *s, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = charge->limit->zone->zone.table;
    ngx_str_t *key = &charge->key;
    int32_t verdict = tollbar_table_now(table, &charge->now);

    if (verdict == 0) {
        verdict = tollbar_table_peek_at(table, 0, key->data, key->len, 1, charge->now, &decision);
    }
    if (verdict < 0) {
        return failed(s, charge, verdict);
    }
    charge->debt = decision.reset_after_ns;
    return verdict == TOLLBAR_ALLOWED && charge->debt <= charge->limit->debt_most ? NGX_OK : NGX_BUSY;
}

static ngx_int_t take(ngx_stream_session_t *s, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    limit_t *limit = charge->limit;
    tollbar_table *table = limit->zone->zone.table;
    ngx_str_t *key = &charge->key;
    int32_t verdict = tollbar_table_check_at(table, 0, key->data, key->len, 1, charge->now, &decision);

    if (verdict < 0) {
        return failed(s, charge, verdict);
    }
    charge->debt = decision.reset_after_ns;
    if (verdict != TOLLBAR_ALLOWED) {
        return NGX_BUSY;
    }
    /* Another connection was charged between the peek and the charge, so this connection has exceeded the limit's own burst. */
    if (charge->debt > limit->debt_after) {
        ngx_tollbar_give_back(table, 0, key, 1, charge->now);
        charge->debt = limit->debt_most;
        return NGX_BUSY;
    }
    return NGX_OK;
}

static ngx_int_t failed(ngx_stream_session_t *s, charge_t *charge, int32_t error)
{
    ngx_tollbar_zone_failed(charge->limit->shm_zone, s->connection->log, error);
    return NGX_ERROR;
}

/* The delay, rounded to the nearest millisecond. */
static ngx_msec_t wait_of(const charge_t *charge)
{
    uint64_t undelayed = charge->limit->debt_undelayed;

    return charge->debt > undelayed ? (ngx_msec_t) ((charge->debt - undelayed + 500000) / 1000000) : 0;
}

static ngx_int_t refuse(ngx_stream_session_t *s, session_t *session, ngx_int_t rc, const charge_t *charge)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_module);
    ngx_uint_t excess = owed(charge);

    if (rc == NGX_BUSY) {
        ngx_log_error(conf->limit_log_level, s->connection->log, 0,
                      "limiting new connections%s, excess: %ui.%03ui by zone \"%V\"", conf->dry_run ? ", dry run" : "",
                      excess / 1000, excess % 1000, &charge->limit->shm_zone->shm.name);
    }
    if (conf->dry_run) {
        session->status = REJECTED_DRY_RUN;
        return NGX_DECLINED;
    }
    session->status = REJECTED;
    return NGX_STREAM_SERVICE_UNAVAILABLE;
}

/* Delays the connection by a timer of its own. During the delay nginx reads nothing from the connection, so it does not notice if the client closes
 * it. */
static ngx_int_t delay(ngx_stream_session_t *s, session_t *session, const charge_t *charge)
{
    conf_t *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_tollbar_module);
    ngx_connection_t *c = s->connection;
    ngx_pool_cleanup_t *cleanup;
    ngx_uint_t excess = owed(charge);

    /* The debt includes this connection. nginx's `excess` does not, so one permit is subtracted. */
    excess = excess > 1000 ? excess - 1000 : 0;
    ngx_log_error(conf->delay_log_level, c->log, 0, "delaying connection%s, excess: %ui.%03ui, by zone \"%V\"",
                  conf->dry_run ? ", dry run" : "", excess / 1000, excess % 1000, &charge->limit->shm_zone->shm.name);
    if (conf->dry_run) {
        session->status = DELAYED_DRY_RUN;
        return NGX_DECLINED;
    }
    session->status = DELAYED;
    cleanup = ngx_pool_cleanup_add(c->pool, 0);
    if (cleanup == NULL) {
        return NGX_ERROR;
    }
    cleanup->handler = end_delay;
    cleanup->data = session;
    session->timer.handler = after_delay;
    session->timer.data = c;
    session->timer.log = c->log;
    /* nginx's handler for PROXY headers is still set. It would parse the bytes after the header as a second header. */
    c->read->handler = read_in_delay;
    ngx_add_timer(&session->timer, wait_of(charge));
    return NGX_AGAIN;
}

static void after_delay(ngx_event_t *timer)
{
    ngx_connection_t *c = timer->data;

    /* nginx runs the phases again, beginning with this module's handler. */
    c->read->handler = ngx_stream_session_handler;
    ngx_stream_core_run_phases(c->data);
}

/* nginx calls this when data arrives, or when the worker shuts down. The data stays in the socket for a later reader. */
static void read_in_delay(ngx_event_t *read)
{
    ngx_connection_t *c = read->data;

    if (c->close) {
        ngx_stream_finalize_session(c->data, NGX_STREAM_OK);
    } else if (read->active && ngx_handle_read_event(read, 0) != NGX_OK) {
        ngx_stream_finalize_session(c->data, NGX_STREAM_INTERNAL_SERVER_ERROR);
    }
}

/* A cleanup of the connection's pool. If the connection ends during its delay, its timer must not fire, because the timer is in that pool. */
static void end_delay(void *data)
{
    session_t *session = data;

    if (session->timer.timer_set) {
        ngx_del_timer(&session->timer);
    }
}

/* The key's debt in thousandths of a connection. */
static ngx_uint_t owed(const charge_t *charge)
{
    const tollbar_policy_spec *policy = &charge->limit->zone->policy;
    wide_t thousandths = ((wide_t) charge->debt * policy->limit * 1000 + policy->period_ns / 2) / policy->period_ns;

    return thousandths > NGX_MAX_INT_T_VALUE ? NGX_MAX_INT_T_VALUE : (ngx_uint_t) thousandths;
}

ngx_int_t ngx_stream_tollbar_add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_status");
    static ngx_str_t client_name = ngx_string("tollbar_client");
    ngx_stream_variable_t *variable = ngx_stream_add_variable(cf, &name, NGX_STREAM_VAR_NOCACHEABLE);

    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = status_variable;
    variable = ngx_stream_add_variable(cf, &client_name, 0);
    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = client_variable;
    return NGX_OK;
}

static ngx_int_t client_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    return ngx_tollbar_client(s->connection, s->connection->pool, v);
}

static ngx_int_t status_variable(ngx_stream_session_t *s, ngx_stream_variable_value_t *v, uintptr_t data)
{
    static ngx_str_t names[] = {
        ngx_string("PASSED"), ngx_string("DELAYED"), ngx_string("REJECTED"), ngx_string("DELAYED_DRY_RUN"),
        ngx_string("REJECTED_DRY_RUN")
    };
    session_t *session = ngx_stream_get_module_ctx(s, ngx_stream_tollbar_module);

    if (session == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = names[session->status - 1].len;
    v->data = names[session->status - 1].data;
    return NGX_OK;
}
