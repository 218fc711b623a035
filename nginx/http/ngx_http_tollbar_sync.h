/* Zones with `sync`: a limit that many machines share, through a store (Redis, Valkey).
 *
 * Such a zone holds no table but a node, this nginx's part of the limit: permits that the store has granted for a short while. The
 * master makes the node before it forks, as it does with tables, and requests are answered from it alone. Every worker has a client
 * on its event loop; the library elects the one that asks the store, and another if that one ends. So `nodes` counts nginxes, not
 * workers.
 *
 * On a reload a node is kept if it is the same in all that the store and the other machines see: limit, key, name, store, nodes,
 * overdraft, life of a lease, fallback. Otherwise a new one begins; what the old one was granted has been charged.
 */

#ifndef NGX_HTTP_TOLLBAR_SYNC_H
#define NGX_HTTP_TOLLBAR_SYNC_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar_redis.h>

/* Stands before the node in the zone's memory. */
typedef struct {
    uint64_t bytes;
    uint64_t capacity;
    /* The last TOLLBAR_CIRCUIT_ that has been logged: the workers log a change once. */
    ngx_atomic_t circuit;
} ngx_http_tollbar_node_t;

/* Who asks the store, in a worker. */
typedef struct ngx_http_tollbar_client_s ngx_http_tollbar_client_t;

typedef struct {
    /* The first of the parameters below that was written. */
    ngx_str_t first;
    /* An address stands where a host's name was written. */
    ngx_str_t url;
    /* The limit's name in the store. */
    ngx_str_t name;
    /* `capacity` follows from the size. */
    tollbar_lease_options options;

    /* This process's view; NULL until the master has made or found the node. */
    tollbar_lease *lease;
    ngx_http_tollbar_node_t *node;
    ngx_http_tollbar_client_t *client;
} ngx_http_tollbar_sync_t;

typedef struct ngx_http_tollbar_zone_s ngx_http_tollbar_zone_t;

/* The words of `fallback`, in the order of their numbers. */
extern const char *ngx_http_tollbar_fallbacks[3];

/* Reads a parameter of tollbar_zone. NGX_DECLINED: it is none of these. */
ngx_int_t ngx_http_tollbar_sync_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_http_tollbar_sync_t **sync);

/* All parameters of the zone have been read: looks whether they go together, and finds the store's address. */
char *ngx_http_tollbar_sync_check(ngx_conf_t *cf, ngx_str_t *name, size_t size, ngx_http_tollbar_zone_t *zone);

/* Whether the store already has this limit under another zone. */
ngx_flag_t ngx_http_tollbar_sync_same(const ngx_http_tollbar_sync_t *a, const ngx_http_tollbar_sync_t *b);

/* The highest cost, up to `capacity`, that a request can ever be let through with: with `sync`, what a lease can be of at most. */
uint64_t ngx_http_tollbar_sync_most(const ngx_http_tollbar_zone_t *zone, uint64_t capacity);

/* As of a zone with a table: ngx_tollbar_zone.h. */
size_t ngx_http_tollbar_node_least(const ngx_http_tollbar_zone_t *zone);
ngx_int_t ngx_http_tollbar_node_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_http_tollbar_zone_t *zone);
void ngx_http_tollbar_node_settle(ngx_shm_zone_t *shm_zone);

/* Begins and ends this process's clients for the zones that have a node; `zones` are of ngx_shm_zone_t *. */
ngx_int_t ngx_http_tollbar_clients_start(ngx_cycle_t *cycle, ngx_array_t *zones);
void ngx_http_tollbar_clients_end(void);

#endif
