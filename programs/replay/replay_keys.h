/* replay_keys.h: keys as small numbers, in the order in which they are first seen.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_KEYS_H
#define REPLAY_KEYS_H

#include <stddef.h>
#include <stdint.h>

#define REPLAY_NO_KEY UINT32_MAX

typedef struct replay_key {
    uint64_t hash;
    /* Where its bytes are, in replay_keys.bytes. */
    size_t offset;
    size_t length;
} replay_key;

typedef struct replay_keys {
    replay_key *keys;
    size_t count;
    size_t room;
    char *bytes;
    size_t bytes_used;
    size_t bytes_room;
    /* Open addressing: a key's number plus 1, or 0. A power of two, at most half full. */
    uint32_t *places;
    size_t place_count;
} replay_keys;

/* The number of a key; REPLAY_NO_KEY if it is new and there is no memory for it. A zeroed struct is
 * an empty map. */
uint32_t replay_keys_number(replay_keys *keys, const char *text, size_t length);

/* Below 0, 0 or above 0 as two keys stand in the order of their bytes. */
int replay_keys_compare(const replay_keys *keys, uint32_t a, uint32_t b);

void replay_keys_free(replay_keys *keys);

/* `*items` with room for at least `count` items of `size` bytes; `*room` follows. The new ones are
 * zeroed. 0, or -1 if there is no memory (then nothing changes). */
int replay_grow(void *items, size_t *room, size_t count, size_t size);

#endif
