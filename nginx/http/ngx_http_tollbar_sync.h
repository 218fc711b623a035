/* Zones with `sync`: a limit that machines share through a store (Redis, Valkey).
 *
 * Such a zone holds a node in place of a table. The node has this nginx's part of the limit:
 * permits that the store granted for a short time. The master makes the node before it forks, as it
 * makes tables. The node decides requests alone. With `sync_wait` a request that it cannot decide
 * waits for the store's answer (ngx_http_tollbar_wait.c). Every worker has a client on its event
 * loop. The library elects the one client that asks the store, and another one if that worker ends.
 * So `nodes` counts nginx servers, not workers.
 *
 * A reload keeps a node if limit, key, name, store, nodes, overdraft, life of a lease and fallback
 * stay the same. Otherwise the master makes a new node. The store has already charged the permits
 * of the old one.
 */

#ifndef NGX_HTTP_TOLLBAR_SYNC_H
#define NGX_HTTP_TOLLBAR_SYNC_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar_redis.h>

/* The header in front of the node in the zone's memory. */
typedef struct {
    uint64_t bytes;
    uint64_t capacity;
    /* The TOLLBAR_CIRCUIT_ number that was logged last, so that only one worker logs a change. */
    ngx_atomic_t circuit;
    /* Requests that have waited for the store, and requests that were refused because as many as may
     * wait waited already. */
    ngx_atomic_t waited;
    ngx_atomic_t wait_full;
    /* The requests that wait now, by the number that the master gives each process. */
    uint16_t waiting[NGX_MAX_PROCESSES];
} ngx_http_tollbar_node_t;

/* TLS to a store. */
typedef struct ngx_http_tollbar_secure_s ngx_http_tollbar_secure_t;

/* A worker's client of one store. */
typedef struct ngx_http_tollbar_client_s ngx_http_tollbar_client_t;

typedef struct {
    /* The first parameter of this struct that the directive has, for messages. */
    ngx_str_t first;
    /* The URL, with the host's address in place of its name. */
    ngx_str_t url;
    /* The limit's name in the store. */
    ngx_str_t name;
    /* `capacity` is computed from the zone's size. */
    tollbar_lease_options options;
    /* Nanoseconds that a request waits for the store at most. 0: no request waits. */
    uint64_t wait_ns;
    /* The files of TLS: the authorities, the certificate that nginx shows, and its key. */
    ngx_str_t files[3];
    /* NULL without TLS. */
    ngx_http_tollbar_secure_t *secure;

    /* This process's view. NULL until the master has made or found the node. */
    tollbar_lease *lease;
    ngx_http_tollbar_node_t *node;
    ngx_http_tollbar_client_t *client;
    /* This process's requests that wait for the store. */
    ngx_queue_t waiting;
} ngx_http_tollbar_sync_t;

typedef struct ngx_http_tollbar_zone_s ngx_http_tollbar_zone_t;

/* The words of `fallback`; a word's index is its TOLLBAR_FALLBACK_ number. */
extern const char *ngx_http_tollbar_fallbacks[3];

/* Reads a parameter of tollbar_zone. NGX_DECLINED: it does not belong to `sync`. */
ngx_int_t ngx_http_tollbar_sync_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_sync_t **sync);

/* Called after all parameters of the zone have been read. Checks that they fit together, and
 * resolves the store's address. */
char *ngx_http_tollbar_sync_check(ngx_conf_t *cf, ngx_str_t *name, size_t size, ngx_http_tollbar_zone_t *zone);

/* Whether both have the same limit of the same store. */
ngx_flag_t ngx_http_tollbar_sync_same(const ngx_http_tollbar_sync_t *a, const ngx_http_tollbar_sync_t *b);

/* Whether one client reaches both: the same store by the same TLS. */
ngx_flag_t ngx_http_tollbar_sync_same_store(const ngx_http_tollbar_sync_t *a, const ngx_http_tollbar_sync_t *b);

/* The highest cost, up to `capacity`, that a request can ever be admitted with. With `sync` that is
 * the largest lease. */
uint64_t ngx_http_tollbar_sync_most(const ngx_http_tollbar_zone_t *zone, uint64_t capacity);

/* The same functions for a zone with a table are in ngx_tollbar_zone.h. */
size_t ngx_http_tollbar_node_least(const ngx_http_tollbar_zone_t *zone);
ngx_int_t ngx_http_tollbar_node_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_http_tollbar_zone_t *zone);
void ngx_http_tollbar_node_settle(ngx_shm_zone_t *shm_zone);

/* Reads one of the parameters that name the files of TLS. NGX_DECLINED: it is none of them. */
ngx_int_t ngx_http_tollbar_secure_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_sync_t *sync);

/* Makes what TLS needs if the URL has it, and refuses its files if not. */
char *ngx_http_tollbar_secure_check(ngx_conf_t *cf, ngx_str_t *name, ngx_http_tollbar_sync_t *sync);

/* Whether both have the same TLS to their store, or none. */
ngx_flag_t ngx_http_tollbar_secure_same(const ngx_http_tollbar_sync_t *a, const ngx_http_tollbar_sync_t *b);

/* The server's certificate must be for `host`, though the URL has the address. */
void ngx_http_tollbar_secure_name(ngx_http_tollbar_sync_t *sync, const char *host);

/* tollbar_lease_client_new, with or without TLS. */
int32_t ngx_http_tollbar_secure_client(const ngx_http_tollbar_sync_t *sync, const tollbar_lease *lease, size_t *column,
                                       tollbar_lease_client **client);

/* Start and end this process's clients of the zones that have a node. `zones` has elements
 * ngx_shm_zone_t *. */
ngx_int_t ngx_http_tollbar_clients_start(ngx_cycle_t *cycle, ngx_array_t *zones);
void ngx_http_tollbar_clients_end(void);

/* Whether no client of the node has reached the store yet, or failed to. */
ngx_flag_t ngx_http_tollbar_client_is_new(const ngx_http_tollbar_sync_t *sync);

/* Makes the client tick after the current events: a request waits for it. */
void ngx_http_tollbar_client_hurry(ngx_http_tollbar_sync_t *sync);

/* Lets the waiting requests go on that the node can decide now. */
void ngx_http_tollbar_wait_look(ngx_http_tollbar_sync_t *sync);

/* Decides all waiting requests, because the client ends. */
void ngx_http_tollbar_wait_end(ngx_http_tollbar_sync_t *sync);

/* The requests that wait in all processes. */
uint64_t ngx_http_tollbar_wait_count(const ngx_http_tollbar_sync_t *sync);

#endif
