#include "ngx_tollbar_several.h"

typedef ngx_tollbar_limit_t limit_t;

static ngx_flag_t is_before(const limit_t *one, const limit_t *other,
                            uint64_t (*refill)(const limit_t *limit));

uint64_t ngx_tollbar_refill(const ngx_tollbar_zone_t *zone, const tollbar_policy_spec *policy)
{
    uint64_t refill;

    /* The library gives no permits back to a hot key, of which a worker may have taken permits in
     * advance. */
    if (zone->hot_keys != 0 || tollbar_policy_spec_refill(policy, &refill) != 0) {
        return TOLLBAR_NO_TIME;
    }
    return refill;
}

ngx_uint_t *ngx_tollbar_order(ngx_pool_t *pool, const ngx_array_t *limits, ngx_uint_t n,
                              uint64_t (*refill)(const limit_t *limit))
{
    limit_t **elts = limits->elts;
    ngx_uint_t *order = ngx_pcalloc(pool, (n + 1) * sizeof(ngx_uint_t));
    ngx_uint_t from, to;

    for (from = 0; order != NULL && from < n; from++) {
        for (to = from; to > 0 && is_before(elts[from], elts[order[to - 1]], refill); to--) {
            order[to] = order[to - 1];
        }
        order[to] = from;
    }
    return order;
}

static ngx_flag_t is_before(const limit_t *one, const limit_t *other,
                            uint64_t (*refill)(const limit_t *limit))
{
    const ngx_str_t *a = &one->shm_zone->shm.name;
    const ngx_str_t *b = &other->shm_zone->shm.name;

    if (refill(one) != refill(other)) {
        return refill(one) < refill(other);
    }
    /* The order is descending by name, because many configurations name their zones in ascending
     * order. A limit that is last in the configuration and first in this order needs no peek. */
    return ngx_memn2cmp(a->data, b->data, a->len, b->len) > 0;
}

/* The caller may ignore an error: it means damaged memory, and the table's next call returns it
 * again. */
void ngx_tollbar_give_back(const tollbar_table *table, uint32_t policy, const ngx_str_t *key, uint64_t cost, uint64_t now)
{
    tollbar_reservation charge;

    charge.departs_ns = now;
    charge.wait_ns = 0;
    charge.cost = cost;
    (void) tollbar_table_cancel(table, policy, key->data, key->len, &charge, NULL);
}
