/* replay_history.c: the fullest window, by sorting and sliding.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_history.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int replay_history_add(replay_history *history, uint32_t key, uint64_t time_ns, uint64_t cost)
{
    replay_event *event;

    if (replay_grow(&history->events, &history->room, history->count + 1, sizeof *history->events) != 0 ||
        replay_grow(&history->keys, &history->keys_room, history->count + 1, sizeof *history->keys) != 0)
        return -1;
    event = &history->events[history->count];
    event->time_ns = time_ns;
    event->cost = cost;
    event->number = history->count;
    history->keys[history->count++] = key;
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const replay_event *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Logs are nearly in order, and most keys' lines wholly. */
static void sort_one_key(replay_event *events, size_t count)
{
    size_t i;

    for (i = 1; i < count; i++) {
        if (events[i].time_ns < events[i - 1].time_ns) {
            qsort(events, count, sizeof *events, by_time);
            return;
        }
    }
}

int replay_history_sort(replay_history *history, size_t key_count)
{
    size_t *begins = calloc(key_count + 2, sizeof *begins);
    replay_event *sorted = malloc((history->count + 1) * sizeof *sorted);
    size_t i;

    if (begins == NULL || sorted == NULL) {
        free(begins);
        free(sorted);
        return -1;
    }
    /* Count two places up, so that filling in moves each key's end to the next one's beginning. */
    for (i = 0; i < history->count; i++)
        begins[history->keys[i] + 2]++;
    for (i = 2; i <= key_count; i++)
        begins[i] += begins[i - 1];
    for (i = 0; i < history->count; i++)
        sorted[begins[history->keys[i] + 1]++] = history->events[i];
    for (i = 0; i < key_count; i++)
        sort_one_key(sorted + begins[i], begins[i + 1] - begins[i]);
    free(history->events);
    history->events = sorted;
    history->room = history->count + 1;
    history->begins = begins;
    return 0;
}

static uint64_t most_of_key(const replay_event *event, const replay_event *end, const replay_policy *policy)
{
    const replay_event *oldest = event;
    uint64_t sum = 0, most = 0;

    for (; event < end; event++) {
        if (!replay_policy_admitted(policy, event->number))
            continue;
        /* Times do not fall, so this does not wrap. */
        for (; event->time_ns - oldest->time_ns >= policy->spec.period_ns; oldest++) {
            if (replay_policy_admitted(policy, oldest->number))
                sum -= oldest->cost;
        }
        sum += event->cost;
        if (sum > most)
            most = sum;
    }
    return most;
}

uint64_t replay_history_most(const replay_history *history, const replay_keys *keys,
                             const replay_policy *policy, uint32_t *who)
{
    uint64_t most = 0;
    uint32_t key;

    *who = REPLAY_NO_KEY;
    for (key = 0; key < keys->count; key++) {
        const replay_event *events = history->events;
        uint64_t n = most_of_key(events + history->begins[key], events + history->begins[key + 1], policy);

        if (n > most || (n == most && n > 0 && replay_keys_compare(keys, key, *who) < 0)) {
            most = n;
            *who = key;
        }
    }
    return most;
}

void replay_history_free(replay_history *history)
{
    free(history->events);
    free(history->keys);
    free(history->begins);
    memset(history, 0, sizeof *history);
}
