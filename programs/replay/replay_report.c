/* replay_report.c: counts, rankings, tables.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L

#include "replay_report.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define RANKS 10

/* Denied keys, the most denied first; keys with as many in their order. Returns how many there are
 * in all; `ranks` has the first of them, and REPLAY_NO_KEY behind. */
static size_t rank(const replay_keys *keys, const replay_policy *policy, uint32_t ranks[RANKS])
{
    size_t denied = 0, used = 0;
    uint32_t key;

    for (key = 0; key < keys->count; key++) {
        uint64_t refused = policy->refused[key];
        size_t at = used;

        if (refused == 0)
            continue;
        denied++;
        for (; at > 0; at--) {
            uint64_t above = policy->refused[ranks[at - 1]];

            if (above > refused || (above == refused && replay_keys_compare(keys, ranks[at - 1], key) < 0))
                break;
        }
        if (at == RANKS)
            continue;
        if (used < RANKS)
            used++;
        memmove(ranks + at + 1, ranks + at, (used - 1 - at) * sizeof *ranks);
        ranks[at] = key;
    }
    for (; used < RANKS; used++)
        ranks[used] = REPLAY_NO_KEY;
    return denied;
}

static void print_time(replay_output *out, const replay_input *input, uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    char text[64];
    struct tm tm;

    if (input->is_trace || gmtime_r(&seconds, &tm) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        replay_output_number(out, time_ns);
    else
        replay_output_text(out, text);
}

void replay_report_input(replay_output *out, const replay_input *input)
{
    replay_output_text(out, "log            ");
    replay_output_text(out, input->name);
    replay_output_print(out, ", %" PRIu64 " lines\n", input->lines);
    replay_output_print(out, "requests       %zu\n", input->history.count);
    replay_output_print(out, "bad lines      %" PRIu64 "\n", input->bad);
    if (input->blank > 0)
        replay_output_print(out, "blank lines    %" PRIu64 "\n", input->blank);
    replay_output_print(out, "out of order   %" PRIu64 "\n", input->backwards);
    replay_output_print(out, "keys           %zu\n", input->keys.count);
    if (input->history.count > 0) {
        replay_output_text(out, "times          ");
        print_time(out, input, input->first_ns);
        replay_output_text(out, " to ");
        print_time(out, input, input->last_ns);
        replay_output_text(out, input->is_trace ? " ns\n" : " UTC\n");
    }
}

void replay_report_tables(replay_output *out, const replay_tables *tables)
{
    /* In the order of the TOLLBAR_ON_FULL_ numbers. */
    static const char *const got[] = {"admitted, another key forgotten", "with another key's debt",
                                      "admitted, not remembered", "refused"};
    uint64_t homeless = replay_tables_homeless(tables);

    replay_output_print(out, "tables         %zu for %" PRIu64 " keys a policy, %.1f MB\n", tables->count,
                        tables->room.keys, (double)replay_tables_bytes(tables) / 1e6);
    replay_output_print(out, "no place       %" PRIu64 "%s%s\n", homeless, homeless > 0 ? ", " : "",
                        homeless > 0 ? got[tables->room.on_full] : "");
}

void replay_report_policy(replay_output *out, const replay_input *input, const replay_policy *policy)
{
    uint32_t ranks[RANKS], who;
    size_t denied_keys = rank(&input->keys, policy, ranks);
    uint64_t most = replay_history_most(&input->history, &input->keys, policy, &who);
    size_t i;

    replay_output_text(out, "\npolicy         ");
    replay_output_text(out, policy->text);
    replay_output_print(out, "\nrequests       %zu\n", input->history.count);
    replay_output_print(out, "allowed        %" PRIu64 "\n", policy->allowed);
    replay_output_print(out, "denied         %" PRIu64 ", of them never %" PRIu64 "\n",
                        policy->denied + policy->never, policy->never);
    replay_output_print(out, "keys           %zu, of them denied %zu\n", input->keys.count, denied_keys);
    replay_output_print(out, "most admitted  %" PRIu64 " in one period", most);
    if (who != REPLAY_NO_KEY) {
        replay_output_text(out, ", ");
        replay_output_key(out, &input->keys, who);
    }
    replay_output_text(out, "\nmost denied    ");
    if (denied_keys == 0)
        replay_output_text(out, "none\n");
    for (i = 0; i < RANKS && ranks[i] != REPLAY_NO_KEY; i++) {
        replay_output_print(out, "%s%8" PRIu64 "  ", i == 0 ? "" : "               ",
                            policy->refused[ranks[i]]);
        replay_output_key(out, &input->keys, ranks[i]);
        replay_output_text(out, "\n");
    }
}

void replay_report_table(replay_output *out, const replay_input *input, const replay_policy *policies,
                         size_t count)
{
    int width = (int)strlen("policy");
    size_t i;

    for (i = 0; i < count; i++) {
        if ((int)strlen(policies[i].text) > width)
            width = (int)strlen(policies[i].text);
    }
    replay_output_print(out, "\n%-*s %10s %10s %11s %12s %15s  %s\n", width, "policy", "allowed", "denied",
                        "of it never", "keys denied", "most in period", "of key");
    for (i = 0; i < count; i++) {
        const replay_policy *policy = &policies[i];
        uint32_t ranks[RANKS], who;
        size_t denied_keys = rank(&input->keys, policy, ranks);
        uint64_t most = replay_history_most(&input->history, &input->keys, policy, &who);

        replay_output_print(out, "%-*s %10" PRIu64 " %10" PRIu64 " %11" PRIu64, width, policy->text,
                            policy->allowed, policy->denied + policy->never, policy->never);
        replay_output_print(out, " %12zu %15" PRIu64 "  ", denied_keys, most);
        if (who != REPLAY_NO_KEY)
            replay_output_key(out, &input->keys, who);
        else
            replay_output_text(out, "-");
        replay_output_text(out, "\n");
    }
}
