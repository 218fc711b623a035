/* replay_lines.h: the lines of a file, however long they are and whatever bytes they hold.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_LINES_H
#define REPLAY_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a longer line only so many bytes are kept: what a log line must tell stands at its beginning,
 * and a file without line ends must not take all the memory there is. */
#define REPLAY_LINE_MOST ((size_t)1 << 20)

typedef struct replay_lines {
    int file;
    bool ended;
    /* The rest of the line that was cut is still to be passed over. */
    bool passing;
    char *buffer;
    size_t begin;
    size_t end;
    /* Lines given and bytes read so far. */
    uint64_t number;
    uint64_t bytes;
} replay_lines;

/* Points into the reader: good until the next line is asked for. */
typedef struct replay_line {
    const char *text;
    /* Without the line end, "\n" or "\r\n". */
    size_t length;
    /* Longer than REPLAY_LINE_MOST. */
    bool cut;
} replay_line;

/* `file` stays the caller's. False if there is no memory. */
bool replay_lines_open(replay_lines *lines, int file);

/* 1: `*line` is the next line; 0: there is none; -1: reading failed, and errno says why. */
int replay_lines_next(replay_lines *lines, replay_line *line);

void replay_lines_close(replay_lines *lines);

#endif
