/* Zones with `sync`: a limit that machines share through a store (Redis, Valkey).
 *
 * Such a zone holds a node in place of a table. The node has this nginx's part of the limit:
 * permits that the store granted for a short time. The master makes the node before it forks, as it
 * makes tables. Requests are decided by the node alone. Every worker has a client on its event
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
} ngx_http_tollbar_node_t;

/* A worker's client. */
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

    /* This process's view. NULL until the master has made or found the node. */
    tollbar_lease *lease;
    ngx_http_tollbar_node_t *node;
    ngx_http_tollbar_client_t *client;
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

/* The highest cost, up to `capacity`, that a request can ever be admitted with. With `sync` that is
 * the largest lease. */
uint64_t ngx_http_tollbar_sync_most(const ngx_http_tollbar_zone_t *zone, uint64_t capacity);

/* The same functions for a zone with a table are in ngx_tollbar_zone.h. */
size_t ngx_http_tollbar_node_least(const ngx_http_tollbar_zone_t *zone);
ngx_int_t ngx_http_tollbar_node_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_http_tollbar_zone_t *zone);
void ngx_http_tollbar_node_settle(ngx_shm_zone_t *shm_zone);

/* Start and end this process's clients of the zones that have a node. `zones` has elements
 * ngx_shm_zone_t *. */
ngx_int_t ngx_http_tollbar_clients_start(ngx_cycle_t *cycle, ngx_array_t *zones);
void ngx_http_tollbar_clients_end(void);

#endif
