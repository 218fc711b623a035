/* replay_history.h: all requests, to find what was admitted in the fullest window.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_HISTORY_H
#define REPLAY_HISTORY_H

#include "replay_keys.h"
#include "replay_policy.h"

#include <stddef.h>
#include <stdint.h>

typedef struct replay_event {
    uint64_t time_ns;
    uint64_t cost;
    /* Its place in the input. */
    size_t number;
} replay_event;

typedef struct replay_history {
    /* In input order until replay_history_sort, then by key, and each key's by time. */
    replay_event *events;
    size_t count;
    size_t room;
    /* The key of each request, in input order. */
    uint32_t *keys;
    size_t keys_room;
    /* After replay_history_sort: where each key's events begin; one more, for the end. */
    size_t *begins;
} replay_history;

/* 0, or -1 if there is no memory. A zeroed struct is an empty history. */
int replay_history_add(replay_history *history, uint32_t key, uint64_t time_ns, uint64_t cost);

/* To be done once, before asking. 0, or -1 if there is no memory. */
int replay_history_sort(replay_history *history, size_t key_count);

/* The largest sum of costs that the policy admitted for one key in a window (t - period, t], and the
 * key in `*who`: the first in order if several have it, REPLAY_NO_KEY if nothing was admitted. */
uint64_t replay_history_most(const replay_history *history, const replay_keys *keys,
                             const replay_policy *policy, uint32_t *who);

void replay_history_free(replay_history *history);

#endif
