/* replay_output.h: text to a file, with every fault noticed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_OUTPUT_H
#define REPLAY_OUTPUT_H

#include "replay_keys.h"

#include <stddef.h>
#include <stdint.h>

#define REPLAY_PROGRAM "tollbar-replay"

#define REPLAY_STATUS_IO 1
#define REPLAY_STATUS_USAGE 2

/* Writing stops at the first fault; `error` keeps its errno. */
typedef struct replay_output {
    int file;
    int error;
    size_t used;
    char buffer[1 << 16];
} replay_output;

void replay_output_open(replay_output *out, int file);
void replay_output_bytes(replay_output *out, const char *bytes, size_t count);
void replay_output_text(replay_output *out, const char *text);
void replay_output_number(replay_output *out, uint64_t number);
/* As printf; for lines of up to 511 bytes. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
void replay_output_print(replay_output *out, const char *format, ...);
/* A key, in letters that a terminal does not take for commands: other bytes as \xNN. */
void replay_output_key(replay_output *out, const replay_keys *keys, uint32_t key);
/* Writes what is left. 0, or the errno of the first fault. */
int replay_output_flush(replay_output *out);

/* One line on standard error, after the program's name. Returns `status`. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int replay_complain(int status, const char *format, ...);

#endif
