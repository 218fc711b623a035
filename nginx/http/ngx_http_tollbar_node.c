/* A node in a zone's shared memory. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_sync_t sync_t;
typedef ngx_http_tollbar_node_t node_t;

/* Nodes are aligned to cache lines. */
#define NODE_AT ((sizeof(node_t) + 63) / 64 * 64)

/* The largest capacity that the library accepts. */
#define CAPACITY_MOST (1 << 24)

static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data);
static int32_t make(zone_t *zone, ngx_slab_pool_t *pool);
static uint64_t largest_capacity(const zone_t *zone, uint64_t room, uint64_t *bytes);
static ngx_flag_t same(const zone_t *a, const zone_t *b);
static ngx_flag_t same_text(const ngx_str_t *a, const ngx_str_t *b);
static void end_view(void *data);

size_t ngx_http_tollbar_node_least(const zone_t *zone)
{
    tollbar_lease_options options = zone->sync->options;
    uint64_t bytes = 0;

    options.capacity = 1;
    return tollbar_lease_bytes(&zone->policy, &options, &bytes) == 0 ? ngx_tollbar_zone_size_for(NODE_AT + bytes) : 0;
}

ngx_int_t ngx_http_tollbar_node_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, zone_t *zone)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);

    if (cleanup == NULL) {
        return NGX_ERROR;
    }
    cleanup->handler = end_view;
    cleanup->data = zone->sync;
    shm_zone->data = zone;
    shm_zone->init = init;
    return NGX_OK;
}

void ngx_http_tollbar_node_settle(ngx_shm_zone_t *shm_zone)
{
    ngx_shm_zone_t *old = ngx_tollbar_zone_former(shm_zone);

    if (old == NULL || old->init != shm_zone->init || !same(old->data, shm_zone->data)) {
        ngx_tollbar_zone_renew(shm_zone);
    } else {
        ngx_tollbar_zone_keep(shm_zone);
    }
}

/* nginx calls this after it has mapped the zone. The zone's memory is new, or, in a reload that
 * keeps the zone, still in use by the old workers. */
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data)
{
    zone_t *zone = shm_zone->data;
    sync_t *sync = zone->sync;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    int32_t error;

    if (pool->data == NULL) {
        error = make(zone, pool);
    } else {
        sync->node = pool->data;
        error = tollbar_lease_attach((u_char *) pool->data + NODE_AT, sync->node->bytes, &sync->lease);
    }
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" of %uz bytes cannot hold a node: %s, in %V:%ui", &shm_zone->shm.name,
                      shm_zone->shm.size, tollbar_strerror(error), &zone->zone.where.file, zone->zone.where.line);
        return NGX_ERROR;
    }
    return NGX_OK;
}

/* Makes the node of a new zone, as `make` in ngx_tollbar_zone.c makes a table. */
static int32_t make(zone_t *zone, ngx_slab_pool_t *pool)
{
    sync_t *sync = zone->sync;
    tollbar_lease_options options = sync->options;
    size_t room = pool->pfree * ngx_pagesize;
    node_t *node = ngx_slab_alloc_locked(pool, room);
    int32_t error;

    if (node == NULL) {
        return TOLLBAR_E_NO_MEMORY;
    }
    node->circuit = TOLLBAR_CIRCUIT_UNKNOWN;
    node->capacity = options.capacity = largest_capacity(zone, room - NODE_AT, &node->bytes);
    error = tollbar_lease_init_in((u_char *) node + NODE_AT, node->bytes, (const char *) sync->name.data, sync->name.len,
                                  &zone->policy, &options, &sync->lease);
    if (error == 0) {
        pool->data = sync->node = node;
    }
    return error;
}

/* The largest capacity of a node that fits into `room` bytes, and the node's size. 0 if no node
 * fits. */
static uint64_t largest_capacity(const zone_t *zone, uint64_t room, uint64_t *bytes)
{
    uint64_t fits = 0, too_many = CAPACITY_MOST + 1, takes;
    tollbar_lease_options tried = zone->sync->options;

    *bytes = 0;
    while (too_many - fits > 1) {
        tried.capacity = fits + (too_many - fits) / 2;
        if (tollbar_lease_bytes(&zone->policy, &tried, &takes) == 0 && takes <= room) {
            fits = tried.capacity;
            *bytes = takes;
        } else {
            too_many = tried.capacity;
        }
    }
    return fits;
}

static ngx_flag_t same(const zone_t *a, const zone_t *b)
{
    return ngx_memcmp(&a->policy, &b->policy, sizeof(a->policy)) == 0
           && ngx_memcmp(&a->sync->options, &b->sync->options, sizeof(a->sync->options)) == 0
           && same_text(&a->zone.keys, &b->zone.keys) && same_text(&a->sync->name, &b->sync->name)
           && same_text(&a->sync->url, &b->sync->url);
}

ngx_flag_t ngx_http_tollbar_sync_same(const sync_t *a, const sync_t *b)
{
    return same_text(&a->name, &b->name) && same_text(&a->url, &b->url);
}

ngx_flag_t ngx_http_tollbar_sync_same_store(const sync_t *a, const sync_t *b)
{
    return same_text(&a->url, &b->url) && ngx_http_tollbar_secure_same(a, b);
}

static ngx_flag_t same_text(const ngx_str_t *a, const ngx_str_t *b)
{
    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}

/* Closes this process's view, after its clients have ended. nginx calls this when it frees the
 * configuration, and may have unmapped the zone's memory before. Closing a node's view touches only
 * the process's own memory. */
static void end_view(void *data)
{
    sync_t *sync = data;

    tollbar_lease_close(sync->lease);
    sync->lease = NULL;
}
