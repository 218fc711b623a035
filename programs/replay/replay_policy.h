/* replay_policy.h: a policy, and what it decided.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_POLICY_H
#define REPLAY_POLICY_H

#include "tollbar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct replay_policy {
    /* Canonical. */
    char text[TOLLBAR_POLICY_TEXT_MAX];
    tollbar_policy_spec spec;
    /* Where its keys are, by the policy's number there. The table is not the policy's to free. */
    const tollbar_table *table;
    uint32_t number;
    /* Requests denied, now or for ever, by the number of the key: a table knows no names. */
    uint64_t *refused;
    /* A bit for each request, in input order: admitted. */
    unsigned char *admitted;
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
} replay_policy;

/* Reads a policy's text. False if it is none; standard error has been told why. */
bool replay_policy_open(replay_policy *policy, const char *text);

/* Makes room for what is decided on so many keys and requests. 0, or -1 if there is no memory. */
int replay_policy_begin(replay_policy *policy, size_t key_count, size_t request_count);

/* Counts what was decided on request number `request` of key number `key`, both from 0. */
void replay_policy_count(replay_policy *policy, uint32_t key, size_t request, int32_t verdict);

bool replay_policy_admitted(const replay_policy *policy, size_t request);

void replay_policy_close(replay_policy *policy);

#endif
