/* replay_report.h: what came of it, for people.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

#include "replay_history.h"
#include "replay_keys.h"
#include "replay_output.h"
#include "replay_policy.h"
#include "replay_tables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The input and what was found in it. */
typedef struct replay_input {
    const char *name;
    /* A trace's times are numbers, a log's are dates. */
    bool is_trace;
    uint64_t lines;
    uint64_t bad;
    uint64_t blank;
    /* Requests with an earlier time than one before them. */
    uint64_t backwards;
    uint64_t first_ns;
    uint64_t last_ns;
    replay_keys keys;
    replay_history history;
} replay_input;

void replay_report_input(replay_output *out, const replay_input *input);

/* The tables, and whether they were large enough. */
void replay_report_tables(replay_output *out, const replay_tables *tables);

/* One policy in full. */
void replay_report_policy(replay_output *out, const replay_input *input, const replay_policy *policy);

/* A line for each policy. */
void replay_report_table(replay_output *out, const replay_input *input, const replay_policy *policies,
                         size_t count);

#endif
