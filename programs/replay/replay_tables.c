/* replay_tables.c: which policies share a table, and tables as they are opened.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_tables.h"

#include "replay_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The most policies that a table has. */
#define GROUP_MOST 128

/* Policies that share a table; a request names one by its place. */
typedef struct group {
    replay_policy *members[GROUP_MOST];
    const tollbar_policy_spec *specs[GROUP_MOST];
    size_t count;
} group;

/* A sliding window or log must be its table's only policy. */
static bool is_alone(const replay_policy *policy)
{
    return policy->spec.algorithm == TOLLBAR_ALGORITHM_SLIDING_WINDOW ||
           policy->spec.algorithm == TOLLBAR_ALGORITHM_SLIDING_LOG;
}

/* The first of the policies that has no table yet, and those that can share its table. */
static void gather(group *group, replay_policy *policies, size_t count)
{
    size_t i;

    group->count = 0;
    for (i = 0; i < count && group->count < GROUP_MOST; i++) {
        if (policies[i].table != NULL || (group->count > 0 && is_alone(&policies[i])))
            continue;
        group->members[group->count] = &policies[i];
        group->specs[group->count++] = &policies[i].spec;
        if (is_alone(&policies[i]))
            break;
    }
}

static tollbar_table_options options_of(const replay_room *room, uint64_t keys, const group *group)
{
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(keys);

    /* A key has a place for each policy that it is asked under. */
    options.capacity = keys > UINT64_MAX / group->count ? UINT64_MAX : keys * group->count;
    options.on_full = room->on_full;
    /* All keys here have bytes: one without would be a fault of this program. */
    options.missing_key = TOLLBAR_MISSING_REPORT;
    /* Few keys in a wide table touch few small pages, and every huge one. */
    options.flags = TOLLBAR_TABLE_SMALL_PAGES;
    /* Where keys meet in a full table, and so who is refused, is the same in each replay of a log. In a
     * file, which others may write to as well, nobody is to know it. */
    if (room->path == NULL)
        options.flags |= TOLLBAR_TABLE_HAS_SEED;
    return options;
}

/* Why a policy has no table, where the library's one line would mislead. */
static const char *reason(int32_t code)
{
    switch (code) {
    case TOLLBAR_E_OPTION_MISMATCH:
        return "windows of many keys cannot start at a first request: leave out 'anchor first'";
    case TOLLBAR_E_LOG_TOO_LARGE:
        return "logs of many keys cannot have so many entries in so short a period";
    default:
        return tollbar_strerror(code);
    }
}

static int refuse(int status, const replay_room *room, uint64_t keys, const group *group, int32_t code)
{
    /* What the system refused, errno tells. */
    const char *system = code <= TOLLBAR_E_OPEN && code >= TOLLBAR_E_SYNC ? strerror(errno) : NULL;
    tollbar_table_options options = options_of(room, keys, group);
    uint64_t bytes;

    replay_complain(0, "%s: %s%s%s", room->path != NULL ? room->path : group->members[0]->text, reason(code),
                    system != NULL ? ": " : "", system != NULL ? system : "");
    if (tollbar_table_bytes(group->specs, group->count, &options, &bytes) == 0)
        replay_complain(0, "a table of %" PRIu64 " keys takes %" PRIu64 " bytes", options.capacity, bytes);
    return status;
}

int replay_tables_check(const replay_room *room, replay_policy *policies, size_t count)
{
    /* Not yet known where it is to be enough for the log. */
    uint64_t keys = room->keys > 0 ? room->keys : 1;
    group group;
    size_t i;

    for (i = 0; i < count; i++) {
        replay_room anywhere = *room;
        tollbar_table_options options;
        uint64_t bytes;
        int32_t code;

        gather(&group, &policies[i], 1);
        options = options_of(room, keys, &group);
        code = tollbar_table_bytes(group.specs, 1, &options, &bytes);
        anywhere.path = NULL;
        if (code != 0)
            return refuse(REPLAY_STATUS_USAGE, &anywhere, keys, &group, code);
    }
    gather(&group, policies, count);
    if (room->path != NULL && group.count < count)
        return replay_complain(REPLAY_STATUS_USAGE, "%s: the policies do not share one table", room->path);
    return 0;
}

int replay_tables_open(replay_tables *tables, const replay_room *room, replay_policy *policies, size_t count)
{
    group group;

    tables->room = *room;
    tables->tables = calloc(count, sizeof *tables->tables);
    if (tables->tables == NULL)
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    for (gather(&group, policies, count); group.count > 0; gather(&group, policies, count)) {
        tollbar_table_options options = options_of(room, room->keys, &group);
        tollbar_table *table;
        int32_t code;
        size_t i;

        if (room->path != NULL)
            code = tollbar_table_open(room->path, group.specs, group.count, &options, &table);
        else
            code = tollbar_table_new(group.specs, group.count, &options, &table);
        if (code != 0)
            return refuse(REPLAY_STATUS_IO, room, room->keys, &group, code);
        tables->tables[tables->count++] = table;
        for (i = 0; i < group.count; i++) {
            group.members[i]->table = table;
            group.members[i]->number = (uint32_t)i;
        }
    }
    tables->homeless_before = replay_tables_homeless(tables);
    return 0;
}

uint64_t replay_tables_bytes(const replay_tables *tables)
{
    uint64_t bytes = 0;
    size_t i;

    for (i = 0; i < tables->count; i++) {
        tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;

        tollbar_table_get_stats(tables->tables[i], &stats);
        bytes += stats.bytes;
    }
    return bytes;
}

uint64_t replay_tables_homeless(const replay_tables *tables)
{
    uint64_t homeless = 0;
    size_t i;

    for (i = 0; i < tables->count; i++) {
        tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;

        tollbar_table_get_stats(tables->tables[i], &stats);
        /* One of these, as `on_full` says. */
        homeless += stats.refused + stats.inherited + stats.untracked + stats.evicted;
    }
    /* A file's counters are as old as the file. */
    return homeless - tables->homeless_before;
}

int replay_tables_sync(const replay_tables *tables)
{
    int32_t code = tables->room.path != NULL ? tollbar_table_sync(tables->tables[0]) : 0;

    if (code == 0)
        return 0;
    return replay_complain(REPLAY_STATUS_IO, "%s: %s: %s", tables->room.path, tollbar_strerror(code),
                           strerror(errno));
}

void replay_tables_close(replay_tables *tables)
{
    size_t i;

    for (i = 0; i < tables->count; i++)
        tollbar_table_close(tables->tables[i]);
    free(tables->tables);
    memset(tables, 0, sizeof *tables);
}
