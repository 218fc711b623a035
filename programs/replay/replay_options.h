/* replay_options.h: the command line.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_OPTIONS_H
#define REPLAY_OPTIONS_H

#include "replay_output.h"
#include "replay_policy.h"
#include "replay_tables.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct replay_options {
    replay_policy *policies;
    size_t policy_count;
    size_t policy_room;
    /* No policy was named: the usual ones, in a table. */
    bool compares;
    bool one_key;
    bool is_trace;
    replay_room room;
    /* "-" is standard input. */
    const char *log_path;
    /* NULL: not wanted. */
    const char *decisions_path;
} replay_options;

/* Fills in a zeroed struct. 0: go on; below 0: what was asked for is in `out`, and that is all; above:
 * the exit status, and standard error has been told why. */
int replay_options_read(replay_options *options, replay_output *out, int argc, char **argv);

void replay_options_free(replay_options *options);

#endif
