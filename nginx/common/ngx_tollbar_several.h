/* Several limits of one request: all of them are charged, or none.
 *
 * A module peeks at all limits and then charges them, each at the time that its table's clock had
 * at the peek. Another request may take the last permits of a limit between the peek and the
 * charge. Then the module gives back its charges of the limits before that one.
 * tollbar_table_cancel gives back only permits that keep the bound, so no limit ever admits more
 * than its bound.
 *
 * All requests charge in one order, so requests that race meet at the first limit that they share,
 * and one of them passes. The limit that refills a permit fastest comes first, and limits that take
 * no permits back come last. tollbar_take_many has the same order. The modules do not call it,
 * because it costs a request half as many instructions again
 * (docs/internals/decisions/0025-several-limits-in-nginx.md).
 *
 * The functions that decide a request or a connection return one of these results:
 *
 *     NGX_OK        admitted, perhaps after a delay
 *     NGX_BUSY      refused by a limit
 *     NGX_ERROR     refused because a zone returned an error, or because the value of a rate, a burst or a cost is invalid
 *     NGX_DECLINED  no limit applies
 *     NGX_ABORT     undecided: a key or a value cannot be evaluated, or there is no memory
 */

#ifndef NGX_TOLLBAR_SEVERAL_H
#define NGX_TOLLBAR_SEVERAL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>
#include "ngx_tollbar_zone.h"

/* The time in nanoseconds after which the policy has refilled one permit. TOLLBAR_NO_TIME: keys of
 * the zone take no permits back. */
uint64_t ngx_tollbar_refill(const ngx_tollbar_zone_t *zone, const tollbar_policy_spec *policy);

/* The order in which the first `n` of `limits` are charged: their indices. `limits` holds pointers
 * to structs that begin with an ngx_tollbar_limit_t. `refill` returns a limit's sort key. The
 * zones' names order limits with equal keys. NULL: no memory. */
ngx_uint_t *ngx_tollbar_order(ngx_pool_t *pool, const ngx_array_t *limits, ngx_uint_t n,
                              uint64_t (*refill)(const ngx_tollbar_limit_t *limit));

/* Gives back a charge that was made at `now`. */
void ngx_tollbar_give_back(const tollbar_table *table, uint32_t policy, const ngx_str_t *key, uint64_t cost, uint64_t now);

#endif
