/* replay_tables.h: the policies' tables, which hold what each key has used up.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REPLAY_TABLES_H
#define REPLAY_TABLES_H

#include "replay_policy.h"

#include <stddef.h>
#include <stdint.h>

/* What tables are asked for. */
typedef struct replay_room {
    /* Keys that are to have a place under each policy at one time; 0: enough for those of the log. */
    uint64_t keys;
    /* A TOLLBAR_ON_FULL_ number. */
    uint32_t on_full;
    /* A file that the table is in, and lives on in; NULL: memory of this process. */
    const char *path;
} replay_room;

typedef struct replay_tables {
    /* Policies share a table where they can. A pointer for each policy: there are no more tables. */
    tollbar_table **tables;
    size_t count;
    /* In a file: the requests that had found no place before this replay. */
    uint64_t homeless_before;
    replay_room room;
} replay_tables;

/* Whether there can be tables for these policies: 0, or the exit status, and standard error has been told
 * why not. */
int replay_tables_check(const replay_room *room, replay_policy *policies, size_t count);

/* Makes the tables, and tells each policy where it is. `room->keys` is not 0. Returns as the call above. */
int replay_tables_open(replay_tables *tables, const replay_room *room, replay_policy *policies, size_t count);

/* The bytes of all tables. */
uint64_t replay_tables_bytes(const replay_tables *tables);

/* Requests of new keys for which there was no place. */
uint64_t replay_tables_homeless(const replay_tables *tables);

/* Writes a file's table to its disk. Returns as the calls above. */
int replay_tables_sync(const replay_tables *tables);

void replay_tables_close(replay_tables *tables);

#endif
