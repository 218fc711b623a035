/* replay_keys.c: a hash map with open addressing from bytes to numbers.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_keys.h"

#include <stdlib.h>
#include <string.h>

int replay_grow(void *items, size_t *room, size_t count, size_t size)
{
    size_t more = *room < 64 ? 64 : *room;
    void *old, *grown;

    if (count <= *room)
        return 0;
    while (more < count) {
        if (more > SIZE_MAX / 2)
            return -1;
        more *= 2;
    }
    if (more > SIZE_MAX / size)
        return -1;
    /* `items` is the address of a pointer to any type: copied, since it may not be read as void *. */
    memcpy(&old, items, sizeof old);
    grown = realloc(old, more * size);
    if (grown == NULL)
        return -1;
    memset((char *)grown + *room * size, 0, (more - *room) * size);
    memcpy(items, &grown, sizeof grown);
    *room = more;
    return 0;
}

/* FNV-1a, and a last mixing: its low bits alone are poor. */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i;

    for (i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* The place that holds the key, or the free one where it belongs. There always is a free one. */
static size_t find(const replay_keys *keys, uint64_t hash, const char *text, size_t length)
{
    size_t mask = keys->place_count - 1;
    size_t place = (size_t)hash & mask;

    while (keys->places[place] != 0) {
        const replay_key *key = &keys->keys[keys->places[place] - 1];

        if (key->hash == hash && key->length == length &&
            (length == 0 || memcmp(keys->bytes + key->offset, text, length) == 0))
            break;
        place = (place + 1) & mask;
    }
    return place;
}

/* Twice the places, and every key in its new one. */
static int spread(replay_keys *keys)
{
    size_t count = keys->place_count < 64 ? 128 : keys->place_count * 2;
    uint32_t *places = calloc(count, sizeof *places);
    size_t i;

    if (places == NULL)
        return -1;
    for (i = 0; i < keys->count; i++) {
        size_t place = (size_t)keys->keys[i].hash & (count - 1);

        while (places[place] != 0)
            place = (place + 1) & (count - 1);
        places[place] = (uint32_t)i + 1;
    }
    free(keys->places);
    keys->places = places;
    keys->place_count = count;
    return 0;
}

uint32_t replay_keys_number(replay_keys *keys, const char *text, size_t length)
{
    uint64_t hash = hash_of(text, length);
    replay_key *key;
    size_t place;

    if (keys->count >= keys->place_count / 2 && spread(keys) != 0)
        return REPLAY_NO_KEY;
    place = find(keys, hash, text, length);
    if (keys->places[place] != 0)
        return keys->places[place] - 1;

    if (keys->count >= REPLAY_NO_KEY - 1 || length > SIZE_MAX - keys->bytes_used ||
        replay_grow(&keys->keys, &keys->room, keys->count + 1, sizeof *keys->keys) != 0 ||
        replay_grow(&keys->bytes, &keys->bytes_room, keys->bytes_used + length, 1) != 0)
        return REPLAY_NO_KEY;
    key = &keys->keys[keys->count];
    key->hash = hash;
    key->offset = keys->bytes_used;
    key->length = length;
    if (length > 0)
        memcpy(keys->bytes + keys->bytes_used, text, length);
    keys->bytes_used += length;
    keys->places[place] = (uint32_t)++keys->count;
    return (uint32_t)keys->count - 1;
}

int replay_keys_compare(const replay_keys *keys, uint32_t a, uint32_t b)
{
    const replay_key *x = &keys->keys[a], *y = &keys->keys[b];
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = shorter == 0 ? 0 : memcmp(keys->bytes + x->offset, keys->bytes + y->offset, shorter);

    if (order != 0)
        return order;
    return (x->length > y->length) - (x->length < y->length);
}

void replay_keys_free(replay_keys *keys)
{
    free(keys->keys);
    free(keys->bytes);
    free(keys->places);
    memset(keys, 0, sizeof *keys);
}
