/* A worker's lease clients on nginx's event loop: each has a timer, and the descriptor of its connection
 * while there is one. The zones of one store have one client. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_sync_t sync_t;
typedef ngx_http_tollbar_client_t client_t;

/* Milliseconds that an ending worker waits for the store at most. It serves no requests any
 * more. */
#define FLUSH 10

/* A new worker ticks every EAGER milliseconds for EAGER_FOR milliseconds. After a reload the old
 * workers end one after the other, and with them the client that asks the store. Another client
 * ticks only every 100 ms, so leases would run out before it takes over. */
#define EAGER 10
#define EAGER_FOR 3000

struct ngx_http_tollbar_client_s {
    ngx_event_t timer;
    /* nginx's connection for the library's descriptor. NULL if the client has no descriptor. */
    ngx_connection_t *connection;
    /* The descriptor at the last tick. */
    ngx_socket_t fd;
    tollbar_lease_client *lease_client;
    /* Elements ngx_shm_zone_t *, at least one. */
    ngx_array_t zones;
    ngx_msec_t eager_until;
    ngx_log_t *log;
};

static ngx_int_t start(ngx_cycle_t *cycle, ngx_array_t *zones, ngx_uint_t number);
static ngx_int_t enter(client_t *client, ngx_shm_zone_t *shm_zone);
static ngx_inline sync_t *sync_of(const client_t *client, ngx_uint_t n);
static uint32_t circuit_of(const sync_t *sync);
static void end(client_t *client);
static void on_timer(ngx_event_t *timer);
static void on_ready(ngx_event_t *event);
static void tick(client_t *client);
static void resign(client_t *client);
static void watch(client_t *client);
static void forget(client_t *client);
static void on_change(void *data, uint32_t circuit);
static void note(client_t *client, ngx_shm_zone_t *shm_zone);

/* The zones whose clients this process runs. */
static ngx_array_t *running;

ngx_int_t ngx_http_tollbar_clients_start(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_shm_zone_t **zone = zones->elts;
    ngx_uint_t n;

    running = zones;
    for (n = 0; n < zones->nelts; n++) {
        if (((zone_t *) zone[n]->data)->sync != NULL && start(cycle, zones, n) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

void ngx_http_tollbar_clients_end(void)
{
    ngx_shm_zone_t **zone;
    client_t *client;
    sync_t *sync;
    ngx_uint_t n, each;

    for (n = 0; running != NULL && n < running->nelts; n++) {
        zone = running->elts;
        sync = ((zone_t *) zone[n]->data)->sync;
        client = sync != NULL ? sync->client : NULL;
        if (client == NULL) {
            continue;
        }
        for (each = 0; each < client->zones.nelts; each++) {
            ngx_http_tollbar_wait_end(sync_of(client, each));
        }
        end(client);
        for (each = 0; each < client->zones.nelts; each++) {
            sync_of(client, each)->client = NULL;
        }
    }
    running = NULL;
}

/* Gives the zone to the client of an earlier zone of its store, or else to a new client. */
static ngx_int_t start(ngx_cycle_t *cycle, ngx_array_t *zones, ngx_uint_t number)
{
    /* nginx's debug log reads a connection's descriptor from an event's data. */
    static ngx_connection_t no_connection = { .fd = (ngx_socket_t) -1 };
    ngx_shm_zone_t **zone = zones->elts, *shm_zone = zone[number];
    sync_t *other, *sync = ((zone_t *) shm_zone->data)->sync;
    client_t *client;
    ngx_uint_t n;
    int32_t error;

    for (n = 0; n < number; n++) {
        other = ((zone_t *) zone[n]->data)->sync;
        if (other != NULL && other->client != NULL && ngx_http_tollbar_sync_same_store(other, sync)
            && tollbar_lease_client_add(other->client->lease_client, sync->lease) == 0)
        {
            return enter(other->client, shm_zone);
        }
    }
    client = ngx_pcalloc(cycle->pool, sizeof(client_t));
    if (client == NULL || ngx_array_init(&client->zones, cycle->pool, 1, sizeof(ngx_shm_zone_t *)) != NGX_OK) {
        return NGX_ERROR;
    }
    error = ngx_http_tollbar_secure_client(sync, sync->lease, NULL, &client->lease_client);
    if (error != 0) {
        /* The worker starts without a client. The client of another worker may ask the store, and
         * without any client the node uses `fallback`. */
        ngx_tollbar_zone_failed(shm_zone, cycle->log, error);
        return NGX_OK;
    }
    client->fd = (ngx_socket_t) -1;
    client->log = cycle->log;
    client->eager_until = ngx_current_msec + EAGER_FOR;
    client->timer.handler = on_timer;
    client->timer.data = &no_connection;
    client->timer.log = cycle->log;
    client->timer.cancelable = 1;
    (void) tollbar_lease_client_on_change(client->lease_client, on_change, client);
    ngx_add_timer(&client->timer, 0);
    return enter(client, shm_zone);
}

static ngx_int_t enter(client_t *client, ngx_shm_zone_t *shm_zone)
{
    sync_t *sync = ((zone_t *) shm_zone->data)->sync;
    ngx_shm_zone_t **place = ngx_array_push(&client->zones);

    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = shm_zone;
    sync->client = client;
    ngx_queue_init(&sync->waiting);
    sync->node->waiting[ngx_process_slot] = 0;
    return NGX_OK;
}

static ngx_inline sync_t *sync_of(const client_t *client, ngx_uint_t n)
{
    ngx_shm_zone_t **zone = client->zones.elts;

    return ((zone_t *) zone[n]->data)->sync;
}

static uint32_t circuit_of(const sync_t *sync)
{
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;

    return tollbar_lease_get_stats(sync->lease, &stats) == 0 ? stats.circuit : TOLLBAR_CIRCUIT_UNKNOWN;
}

ngx_flag_t ngx_http_tollbar_client_is_new(const sync_t *sync)
{
    return circuit_of(sync) == TOLLBAR_CIRCUIT_UNKNOWN;
}

void ngx_http_tollbar_client_hurry(sync_t *sync)
{
    ngx_post_event(&sync->client->timer, &ngx_posted_events);
}

/* Ends a client. Another worker's client takes over. */
static void end(client_t *client)
{
    if (client->timer.timer_set) {
        ngx_del_timer(&client->timer);
    }
    if (client->timer.posted) {
        ngx_delete_posted_event(&client->timer);
    }
    forget(client);
    (void) tollbar_lease_client_on_change(client->lease_client, NULL, NULL);
    (void) tollbar_lease_client_close(client->lease_client, FLUSH);
}

static void on_timer(ngx_event_t *timer)
{
    tick((client_t *) ((u_char *) timer - offsetof(client_t, timer)));
}

static void on_ready(ngx_event_t *event)
{
    ngx_connection_t *connection = event->data;

    tick(connection->data);
}

static void tick(client_t *client)
{
    ngx_shm_zone_t **zone = client->zones.elts;
    ngx_flag_t waits = 0;
    uint32_t wait = 1;
    ngx_uint_t n;
    int32_t error;

    if (ngx_exiting) {
        resign(client);
    }
    error = tollbar_lease_client_tick(client->lease_client, &wait);
    watch(client);
    if (error != 0) {
        ngx_tollbar_zone_failed(zone[0], client->log, error);
        wait = 1000;
    }
    for (n = 0; n < client->zones.nelts; n++) {
        ngx_http_tollbar_wait_look(sync_of(client, n));
        waits |= !ngx_queue_empty(&sync_of(client, n)->waiting);
    }
    /* The answer to another worker's client only shows in the node's memory. */
    if (waits && error == 0) {
        wait = 1;
    }
    /* A worker that shuts down waits for this timer only while a request waits for it. */
    client->timer.cancelable = !waits;
    if (wait > EAGER && (ngx_msec_int_t) (client->eager_until - ngx_current_msec) > 0) {
        wait = EAGER;
    }
    /* ngx_add_timer would keep the old time if the new one is near it. */
    if (client->timer.timer_set) {
        ngx_del_timer(&client->timer);
    }
    ngx_add_timer(&client->timer, wait);
}

/* A worker that ends has the configuration of before the reload, and may end much later, for example
 * after a download. If the store does not answer it about a zone, a worker of the new configuration must
 * ask, which may have the right certificate or password. */
static void resign(client_t *client)
{
    ngx_uint_t n;

    for (n = 0; n < client->zones.nelts; n++) {
        if (circuit_of(sync_of(client, n)) == TOLLBAR_CIRCUIT_OPEN) {
            (void) tollbar_lease_client_remove(client->lease_client, sync_of(client, n)->lease, 0);
        }
    }
}

/* Watches the library's descriptor. The library closes a descriptor in one tick and opens the next
 * one in a later tick. So if the number is the same in two ticks, it is the same descriptor. If
 * nginx has no free connection for it, the client has only its timer, and reacts a little later. */
static void watch(client_t *client)
{
    uint32_t events = 0;
    ngx_socket_t fd = tollbar_lease_client_fd(client->lease_client, &events);
    ngx_connection_t *c;

    if (fd != client->fd) {
        forget(client);
        client->fd = fd;
        if (fd != (ngx_socket_t) -1) {
            client->connection = ngx_get_connection(fd, client->log);
            c = client->connection;
            if (c != NULL) {
                c->data = client;
                c->log = c->read->log = c->write->log = client->log;
                c->read->handler = c->write->handler = on_ready;
            }
        }
    }
    c = client->connection;
    if (c != NULL) {
        /* nginx watches an event only if `ready` is 0. The tick before this has read and written as
         * much as the socket allowed. */
        c->read->ready = !(events & TOLLBAR_EVENT_READ);
        c->write->ready = !(events & TOLLBAR_EVENT_WRITE);
        (void) ngx_handle_read_event(c->read, 0);
        (void) ngx_handle_write_event(c->write, 0);
    }
}

/* Does what ngx_close_connection does, but leaves the descriptor open, because the library closes
 * it. */
static void forget(client_t *client)
{
    ngx_connection_t *c = client->connection;

    if (c == NULL) {
        return;
    }
    if (ngx_del_conn) {
        ngx_del_conn(c, NGX_CLOSE_EVENT);
    } else {
        if (c->read->active || c->read->disabled) {
            ngx_del_event(c->read, NGX_READ_EVENT, NGX_CLOSE_EVENT);
        }
        if (c->write->active || c->write->disabled) {
            ngx_del_event(c->write, NGX_WRITE_EVENT, NGX_CLOSE_EVENT);
        }
    }
    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }
    if (c->write->posted) {
        ngx_delete_posted_event(c->write);
    }
    c->read->closed = c->write->closed = 1;
    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;
    client->connection = NULL;
}

/* A zone's circuit has changed. */
static void on_change(void *data, uint32_t circuit)
{
    client_t *client = data;
    ngx_shm_zone_t **zone = client->zones.elts;
    ngx_uint_t n;

    (void) circuit;
    for (n = 0; n < client->zones.nelts; n++) {
        note(client, zone[n]);
    }
}

/* Logs a change of the zone's circuit. Every worker sees the change, and the first one logs it. */
static void note(client_t *client, ngx_shm_zone_t *shm_zone)
{
    static const char *meanwhile[] = {
        "each machine admits its share of the rate", "requests that no lease covers are refused", "requests that no lease covers pass uncounted"
    };
    sync_t *sync = ((zone_t *) shm_zone->data)->sync;
    uint32_t circuit = circuit_of(sync);
    ngx_atomic_t *logged = &sync->node->circuit;
    ngx_atomic_uint_t before = *logged;
    const char *why = tollbar_lease_client_lease_error(client->lease_client, sync->lease);

    /* The circuit is unknown while one client takes over from another. */
    if (circuit == TOLLBAR_CIRCUIT_UNKNOWN || before == circuit || !ngx_atomic_cmp_set(logged, before, circuit)) {
        return;
    }
    if (circuit == TOLLBAR_CIRCUIT_OPEN) {
        ngx_log_error(NGX_LOG_ERR, client->log, 0, "zone \"%V\": the store does not answer%s%s, %s",
                      &shm_zone->shm.name, *why != '\0' ? ": " : "", why, meanwhile[sync->options.fallback]);
    } else {
        ngx_log_error(NGX_LOG_NOTICE, client->log, 0, "zone \"%V\": the store answers%s", &shm_zone->shm.name,
                      before == TOLLBAR_CIRCUIT_OPEN ? " again" : "");
    }
}
