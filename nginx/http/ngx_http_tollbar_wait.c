/* `sync_wait`: requests that wait for the store's answer without blocking their worker.
 *
 * The module keeps a waiting request in a queue of its zone, and each tick of the worker's client
 * (ngx_http_tollbar_client.c) polls the queue. When the node has decided, the request runs its
 * phases again from the module's handler, which finds the decision in the request's context. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_outcome_t outcome_t;
typedef ngx_http_tollbar_sync_t sync_t;

/* The most requests that wait in one worker at one time. Every tick polls all of them. */
#define WAITING_MOST 1024

/* A node's decision on this request. */
typedef struct {
    const limit_t *limit;
    int32_t verdict;
    tollbar_decision decision;
} decided_t;

/* A request that waits, or has waited: the context of the main request. */
typedef struct {
    ngx_queue_t link;
    ngx_http_request_t *r;
    /* The zone in whose queue the request is. NULL: none. */
    sync_t *sync;
    const limit_t *limit;
    ngx_str_t key;
    tollbar_lease_request asked;
    /* The decisions so far: a request may wait for several limits, one after the other. */
    decided_t *decided;
    ngx_uint_t decided_n;
} waiting_t;

static ngx_int_t suspend(ngx_http_request_t *r, const charge_t *charge, const tollbar_lease_request *asked);
static waiting_t *create(ngx_http_request_t *r);
static void on_end(void *data);
static void leave(waiting_t *waiting);
static void count(sync_t *sync, ngx_int_t more);
static void on_write(ngx_http_request_t *r);
static ngx_flag_t is_decided(waiting_t *waiting);
static void resume(waiting_t *waiting);

/* The requests that wait in this process, in all zones. */
static ngx_uint_t waiting_n;

ngx_flag_t ngx_http_tollbar_is_counted(ngx_http_request_t *r)
{
    const waiting_t *waiting = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_module);

    return waiting != NULL && waiting->r != r;
}

ngx_flag_t ngx_http_tollbar_waits(ngx_http_request_t *r, const charge_t *charge)
{
    const ngx_http_tollbar_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    const sync_t *sync = charge->limit->zone->sync;

    return sync != NULL && sync->wait_ns != 0 && sync->client != NULL && !charge->limit->dry_run && !conf->dry_run;
}

ngx_int_t ngx_http_tollbar_take_or_wait(ngx_http_request_t *r, charge_t *charge, int32_t *verdict, tollbar_decision *decision)
{
    sync_t *sync = charge->limit->zone->sync;
    waiting_t *waiting = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_module);
    ngx_flag_t is_new;
    ngx_uint_t n;

    for (n = 0; waiting != NULL && n < waiting->decided_n; n++) {
        if (waiting->decided[n].limit == charge->limit) {
            *verdict = waiting->decided[n].verdict;
            *decision = waiting->decided[n].decision;
            return NGX_OK;
        }
    }
    /* No client has reached the store yet, as after a start. The first answer is near. */
    is_new = ngx_http_tollbar_client_is_new(sync);
    if (waiting_n >= WAITING_MOST) {
        *verdict = tollbar_lease_peek(sync->lease, charge->key.data, charge->key.len, charge->resolved->cost, decision);
        if (*verdict == TOLLBAR_DENIED && (is_new || decision->reason == TOLLBAR_REASON_PENDING)) {
            decision->reason = TOLLBAR_REASON_QUEUE_FULL;
            (void) ngx_atomic_fetch_add(&sync->node->wait_full, 1);
        } else {
            *verdict = tollbar_lease_check(sync->lease, charge->key.data, charge->key.len, charge->resolved->cost, decision);
        }
        return NGX_OK;
    }
    tollbar_lease_request asked = TOLLBAR_LEASE_REQUEST_INIT(charge->resolved->cost, tollbar_lease_now(sync->lease) + sync->wait_ns);
    if (!is_new) {
        *verdict = tollbar_lease_poll(sync->lease, charge->key.data, charge->key.len, &asked, decision);
        if (*verdict != (int32_t) TOLLBAR_LEASE_WAITS) {
            return NGX_OK;
        }
    }
    return suspend(r, charge, &asked);
}

/* Puts the request into its zone's queue. Returns NGX_AGAIN, or NGX_ABORT: no memory. */
static ngx_int_t suspend(ngx_http_request_t *r, const charge_t *charge, const tollbar_lease_request *asked)
{
    sync_t *sync = charge->limit->zone->sync;
    ngx_event_t *read = r->connection->read;
    waiting_t *waiting = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_module);

    if (waiting == NULL) {
        waiting = create(r);
        if (waiting == NULL) {
            return NGX_ABORT;
        }
    }
    /* nginx reads no body meanwhile, and only tests whether the client has closed the
     * connection. */
    if (read->ready) {
        ngx_post_event(read, &ngx_posted_events);
    } else if (ngx_handle_read_event(read, 0) != NGX_OK) {
        return NGX_ABORT;
    }
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = on_write;
    waiting->sync = sync;
    waiting->limit = charge->limit;
    waiting->key = charge->key;
    waiting->asked = *asked;
    ngx_queue_insert_tail(&sync->waiting, &waiting->link);
    count(sync, 1);
    (void) ngx_atomic_fetch_add(&sync->node->waited, 1);
    ngx_http_tollbar_client_hurry(sync);
    return NGX_AGAIN;
}

static waiting_t *create(ngx_http_request_t *r)
{
    const ngx_http_tollbar_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    ngx_http_cleanup_t *cleanup = ngx_http_cleanup_add(r, sizeof(waiting_t));
    waiting_t *waiting;

    if (cleanup == NULL) {
        return NULL;
    }
    waiting = cleanup->data;
    ngx_memzero(waiting, sizeof(waiting_t));
    waiting->r = r;
    waiting->decided = ngx_palloc(r->pool, conf->limits.nelts * sizeof(decided_t));
    if (waiting->decided == NULL) {
        return NULL;
    }
    cleanup->handler = on_end;
    ngx_http_set_ctx(r->main, waiting, ngx_http_tollbar_module);
    return waiting;
}

void ngx_http_tollbar_wait_keep(ngx_http_request_t *r, const outcome_t *outcome)
{
    waiting_t *waiting = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_module);
    const charge_t *charge;
    decided_t *decided;
    ngx_uint_t n, known;

    for (n = 0; n < outcome->charges_n; n++) {
        charge = &outcome->charges[n];
        for (known = 0; known < waiting->decided_n && waiting->decided[known].limit != charge->limit; known++) { /* void */ }
        if (charge->charged && known == waiting->decided_n) {
            decided = &waiting->decided[waiting->decided_n++];
            decided->limit = charge->limit;
            decided->verdict = TOLLBAR_ALLOWED;
            decided->decision = (tollbar_decision) TOLLBAR_DECISION_INIT;
            decided->decision.remaining = charge->decided ? charge->remaining : 0;
        }
    }
}

/* nginx calls this when it ends the request, also if the client has closed the connection. The
 * store may still charge a request that waits. */
static void on_end(void *data)
{
    leave(data);
}

static void leave(waiting_t *waiting)
{
    if (waiting->sync != NULL) {
        ngx_queue_remove(&waiting->link);
        count(waiting->sync, -1);
        waiting->sync = NULL;
    }
}

/* Counts waiting requests. Each process has a place of its own in the node's memory, so the count
 * survives a killed worker: the next process in its place begins at 0. */
static void count(sync_t *sync, ngx_int_t more)
{
    waiting_n += more;
    sync->node->waiting[ngx_process_slot] = (uint16_t) (sync->node->waiting[ngx_process_slot] + more);
}

/* The connection is writable, or the client of the request's zone has ended
 * (ngx_http_tollbar_wait_end). */
static void on_write(ngx_http_request_t *r)
{
    waiting_t *waiting = ngx_http_get_module_ctx(r->main, ngx_http_tollbar_module);

    if (waiting->sync == NULL) {
        resume(waiting);
    } else if (ngx_handle_write_event(r->connection->write, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}

void ngx_http_tollbar_wait_look(sync_t *sync)
{
    ngx_flag_t is_new = ngx_http_tollbar_client_is_new(sync);
    uint64_t now = tollbar_lease_now(sync->lease);
    ngx_queue_t ready, *link, *next;
    waiting_t *waiting;

    ngx_queue_init(&ready);
    for (link = ngx_queue_head(&sync->waiting); link != ngx_queue_sentinel(&sync->waiting); link = next) {
        next = ngx_queue_next(link);
        waiting = ngx_queue_data(link, waiting_t, link);
        if (!(is_new && now < waiting->asked.until_ns) && is_decided(waiting)) {
            ngx_queue_remove(link);
            ngx_queue_insert_tail(&ready, link);
        }
    }
    /* A request may end others of its connection, also ones of this list. */
    while (!ngx_queue_empty(&ready)) {
        waiting = ngx_queue_data(ngx_queue_head(&ready), waiting_t, link);
        leave(waiting);
        resume(waiting);
    }
}

void ngx_http_tollbar_wait_end(sync_t *sync)
{
    ngx_connection_t *c;
    waiting_t *waiting;

    while (!ngx_queue_empty(&sync->waiting)) {
        waiting = ngx_queue_data(ngx_queue_head(&sync->waiting), waiting_t, link);
        waiting->asked.until_ns = 0;
        (void) is_decided(waiting);
        leave(waiting);
        c = waiting->r->connection;
        ngx_post_event(c->write, &ngx_posted_events);
    }
}

static ngx_flag_t is_decided(waiting_t *waiting)
{
    decided_t *decided = &waiting->decided[waiting->decided_n];

    decided->limit = waiting->limit;
    decided->decision = (tollbar_decision) TOLLBAR_DECISION_INIT;
    decided->verdict = tollbar_lease_poll(waiting->sync->lease, waiting->key.data, waiting->key.len, &waiting->asked, &decided->decision);
    if (decided->verdict == (int32_t) TOLLBAR_LEASE_WAITS) {
        return 0;
    }
    waiting->decided_n++;
    return 1;
}

static void resume(waiting_t *waiting)
{
    ngx_http_request_t *r = waiting->r;
    ngx_connection_t *c = r->connection;

    ngx_http_set_log_request(c->log, r);
    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    } else {
        r->read_event_handler = ngx_http_block_reading;
        r->write_event_handler = ngx_http_core_run_phases;
        ngx_http_core_run_phases(r);
    }
    ngx_http_run_posted_requests(c);
}

uint64_t ngx_http_tollbar_wait_count(const sync_t *sync)
{
    uint64_t sum = 0;
    ngx_uint_t n;

    for (n = 0; n < NGX_MAX_PROCESSES; n++) {
        sum += sync->node->waiting[n];
    }
    return sum;
}
