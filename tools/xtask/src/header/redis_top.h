/* tollbar_redis.h: limits that machines share through Redis or Valkey.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-redis-c/src; changes belong there.
 *
 * The calls are those of libtollbar-redis. Policies, decisions, results and the conventions [C1] to
 * [C8] are tollbar.h's, and results have their names and texts there (tollbar_errname,
 * tollbar_strerror): a program links both libraries (`pkg-config --libs tollbar-redis`).
 */

#ifndef TOLLBAR_REDIS_H
#define TOLLBAR_REDIS_H

#include "tollbar.h"

#ifdef __cplusplus
extern "C" {
#endif

