/* replay_lines.c: a buffer that is read into, and lines that point into it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L

#include "replay_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool replay_lines_open(replay_lines *lines, int file)
{
    memset(lines, 0, sizeof *lines);
    lines->file = file;
    lines->buffer = malloc(REPLAY_LINE_MOST);
    return lines->buffer != NULL;
}

void replay_lines_close(replay_lines *lines)
{
    free(lines->buffer);
    lines->buffer = NULL;
}

/* Reads behind what is there. 0, or -1 with errno; `ended` says whether that was all. */
static int more(replay_lines *lines)
{
    ssize_t got;

    if (lines->begin > 0) {
        memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    do
        got = read(lines->file, lines->buffer + lines->end, REPLAY_LINE_MOST - lines->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -1;
    lines->ended = got == 0;
    lines->end += (size_t)got;
    lines->bytes += (uint64_t)got;
    return 0;
}

/* Passes over the rest of a line that was cut. 0, or -1 with errno. */
static int pass(replay_lines *lines)
{
    while (lines->passing) {
        size_t have = lines->end - lines->begin;
        const char *start = lines->buffer + lines->begin;
        const char *newline = have > 0 ? memchr(start, '\n', have) : NULL;

        if (newline != NULL) {
            lines->begin += (size_t)(newline - start) + 1;
            lines->passing = false;
        } else {
            lines->begin = lines->end;
            if (lines->ended)
                lines->passing = false;
            else if (more(lines) != 0)
                return -1;
        }
    }
    return 0;
}

/* The `length` bytes at the beginning of the buffer as a line. */
static int give(replay_lines *lines, replay_line *line, size_t length, size_t ending)
{
    line->text = lines->buffer + lines->begin;
    line->length = length;
    if (!line->cut && length > 0 && line->text[length - 1] == '\r')
        line->length = length - 1;
    lines->begin += length + ending;
    lines->number++;
    return 1;
}

int replay_lines_next(replay_lines *lines, replay_line *line)
{
    size_t seen = 0;

    if (pass(lines) != 0)
        return -1;
    line->cut = false;
    for (;;) {
        size_t have = lines->end - lines->begin;
        const char *start = lines->buffer + lines->begin;
        const char *newline = have > seen ? memchr(start + seen, '\n', have - seen) : NULL;

        if (newline != NULL)
            return give(lines, line, (size_t)(newline - start), 1);
        if (lines->ended)
            return have > 0 ? give(lines, line, have, 0) : 0;
        if (have == REPLAY_LINE_MOST) {
            lines->passing = true;
            line->cut = true;
            return give(lines, line, have, 0);
        }
        seen = have;
        if (more(lines) != 0)
            return -1;
    }
}
