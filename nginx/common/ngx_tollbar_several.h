/* Several limits of one request: all of them are charged, or none.
 *
 * A module looks at all limits and then charges them, each at the time by its table's clock at which it looked. Another request may take the last
 * permits between the look and the charge. Then the module gives back what it has charged before that limit. No more comes back than is safe
 * (tollbar_table_cancel), so no limit ever admits more than its bound.
 *
 * All requests charge in one order, so requests that race meet at the first limit that they share, and one of them passes. The limit that
 * refills a permit fastest comes first, and limits that take no permits back come last. It is the order of tollbar_take_many. That call is not
 * used because it costs a request half as many instructions again (docs/decisions/0025-several-limits-in-nginx.md). */

#ifndef NGX_TOLLBAR_SEVERAL_H
#define NGX_TOLLBAR_SEVERAL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>
#include "ngx_tollbar_zone.h"

/* In how many nanoseconds a permit that a key of the zone gets back would have come back by itself, at most. TOLLBAR_NO_TIME if its keys get none
 * back. */
uint64_t ngx_tollbar_refill(const ngx_tollbar_zone_t *zone, const tollbar_policy_spec *policy);

/* The order in which the first `n` of `limits` are charged: their indices. `limits` holds pointers to structs that begin with an
 * ngx_shm_zone_t *. `refill` returns what orders a limit; the zones' names order limits that are alike. NULL: no memory. */
ngx_uint_t *ngx_tollbar_order(ngx_pool_t *pool, const ngx_array_t *limits, ngx_uint_t n, uint64_t (*refill)(const void *limit));

/* Gives back a charge that was made at `now`. */
void ngx_tollbar_give_back(const tollbar_table *table, uint32_t policy, const ngx_str_t *key, uint64_t cost, uint64_t now);

#endif
