/* replay_output.c: buffered writing.
 *
 * Not stdio, whose buffer says that a write failed but, by the time one asks, no longer why.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L

#include "replay_output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void replay_output_open(replay_output *out, int file)
{
    out->file = file;
    out->error = 0;
    out->used = 0;
}

int replay_output_flush(replay_output *out)
{
    size_t done = 0;

    while (done < out->used && out->error == 0) {
        ssize_t wrote = write(out->file, out->buffer + done, out->used - done);

        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0)
            out->error = EIO;
        else if (errno != EINTR)
            out->error = errno;
    }
    out->used = 0;
    return out->error;
}

void replay_output_bytes(replay_output *out, const char *bytes, size_t count)
{
    while (count > 0) {
        size_t room = sizeof out->buffer - out->used;
        size_t part = count < room ? count : room;

        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        count -= part;
        if (out->used == sizeof out->buffer)
            replay_output_flush(out);
    }
}

void replay_output_text(replay_output *out, const char *text)
{
    replay_output_bytes(out, text, strlen(text));
}

void replay_output_number(replay_output *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    replay_output_bytes(out, digits + at, sizeof digits - at);
}

void replay_output_print(replay_output *out, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    replay_output_text(out, line);
}

void replay_output_key(replay_output *out, const replay_keys *keys, uint32_t key)
{
    static const char hex[] = "0123456789abcdef";
    size_t length = keys->keys[key].length;
    const char *bytes = keys->bytes + keys->keys[key].offset;
    size_t i;

    for (i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escape[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};

        if (byte > 0x20 && byte < 0x7f && byte != '\\')
            replay_output_bytes(out, bytes + i, 1);
        else
            replay_output_bytes(out, escape, sizeof escape);
    }
}

int replay_complain(int status, const char *format, ...)
{
    va_list arguments;

    fputs(REPLAY_PROGRAM ": ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}
