/* replay_parse.h: a line as a request.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_PARSE_H
#define REPLAY_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct replay_request {
    uint64_t time_ns;
    uint64_t cost;
    /* Points into the line. */
    const char *key;
    size_t key_length;
} replay_request;

/* Both return NULL, or why the line is no request (a static text). `cut`: the line goes on, and its
 * rest is not known. */
typedef const char *replay_parse(const char *text, size_t length, bool cut, replay_request *out);

/* A line of the Common or Combined Log Format: the client's address first, the time in brackets. The
 * time is in nanoseconds of Unix time, the cost 1. */
replay_parse replay_parse_clf;

/* `time_ns key cost`, with blanks between them. The key is any word. */
replay_parse replay_parse_trace;

/* Nothing but blanks. */
bool replay_is_blank(const char *text, size_t length);

#endif
