/* replay_policy.h: a policy and the limiters that follow it, one a key.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_POLICY_H
#define REPLAY_POLICY_H

#include "tollbar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a key has under one policy: 8 bytes of state where a word is enough. */
typedef struct replay_slot {
    union {
        tollbar_cell cell;
        tollbar_limiter *limiter;
    } state;
    /* Requests denied, now or for ever. */
    uint64_t refused;
} replay_slot;

typedef struct replay_policy {
    /* Canonical. */
    char text[TOLLBAR_POLICY_TEXT_MAX];
    tollbar_policy_spec spec;
    /* NULL: the algorithm needs more than a word, so each key has a limiter. */
    tollbar_policy *compiled;
    /* By the key's number. Zeroed is fresh. */
    replay_slot *slots;
    size_t slot_room;
    /* A bit for each request, in input order: admitted. */
    unsigned char *admitted;
    size_t admitted_room;
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
} replay_policy;

/* Reads a policy's text. False if it is none; standard error has been told why. */
bool replay_policy_open(replay_policy *policy, const char *text);

/* Decides on request number `number` (from 0) of the key. Returns as tollbar_cell_check_at. */
int32_t replay_policy_decide(replay_policy *policy, uint32_t key, size_t number, uint64_t time_ns,
                             uint64_t cost, tollbar_decision *out);

bool replay_policy_admitted(const replay_policy *policy, size_t number);

void replay_policy_close(replay_policy *policy);

#endif
