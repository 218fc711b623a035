/* replay_policy.c: where the replay meets the library.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_policy.h"

#include "replay_keys.h"
#include "replay_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says what is wrong with a policy, and shows where. */
static void explain(const char *text, const tollbar_policy_error *error)
{
    const char *what = tollbar_strerror(error->code);
    const char *expected = error->expected != NULL ? error->expected : "";
    uint64_t column;
    const char *c;

    /* Either the text is none of the grammar, and something else was expected; or it is, and
     * `expected` says why it is refused. */
    if (error->code <= TOLLBAR_E_SYNTAX && error->code >= TOLLBAR_E_DUPLICATE)
        replay_complain(0, "policy, column %llu: %s: expected %s", (unsigned long long)error->column, what,
                        expected);
    else
        replay_complain(0, "policy, column %llu: %s", (unsigned long long)error->column,
                        *expected != '\0' ? expected : what);
    fputs("  ", stderr);
    for (c = text; *c != '\0'; c++)
        fputc((unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c, stderr);
    fputs("\n  ", stderr);
    for (c = text, column = 1; column < error->column && *c != '\0'; c++, column++) {
        /* One blank a letter, also where UTF-8 has several bytes for it. */
        if (((unsigned char)*c & 0xc0) != 0x80)
            fputc(' ', stderr);
    }
    fputs("^\n", stderr);
}

bool replay_policy_open(replay_policy *policy, const char *text)
{
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    int32_t code;

    memset(policy, 0, sizeof *policy);
    code = tollbar_policy_spec_parse(text, strlen(text), &spec, &error);
    if (code == 0) {
        /* Cells where that can be: 8 bytes a key. */
        code = tollbar_policy_new(&spec, &policy->compiled);
        if (code == TOLLBAR_E_NOT_ONE_WORD)
            code = tollbar_policy_spec_check(&spec);
        error.column = 1;
        error.expected = NULL;
    }
    if (code == 0)
        code = tollbar_policy_spec_print(&spec, policy->text, sizeof policy->text, NULL);
    if (code != 0) {
        error.code = code;
        explain(text, &error);
        replay_policy_close(policy);
        return false;
    }
    policy->spec = spec;
    return true;
}

static int32_t step(replay_policy *policy, replay_slot *slot, uint64_t time_ns, uint64_t cost,
                    tollbar_decision *out)
{
    if (policy->compiled != NULL)
        return tollbar_cell_check_at(&slot->state.cell, policy->compiled, time_ns, cost, out);
    if (slot->state.limiter == NULL) {
        int32_t code = tollbar_limiter_new(&policy->spec, NULL, &slot->state.limiter);

        if (code != 0)
            return code;
    }
    return tollbar_limiter_check_at(slot->state.limiter, time_ns, cost, out);
}

int32_t replay_policy_decide(replay_policy *policy, uint32_t key, size_t number, uint64_t time_ns,
                             uint64_t cost, tollbar_decision *out)
{
    replay_slot *slot;
    int32_t verdict;

    if (replay_grow(&policy->slots, &policy->slot_room, (size_t)key + 1, sizeof *policy->slots) != 0 ||
        replay_grow(&policy->admitted, &policy->admitted_room, number / 8 + 1, 1) != 0)
        return TOLLBAR_E_NO_MEMORY;
    slot = &policy->slots[key];
    verdict = step(policy, slot, time_ns, cost, out);
    switch (verdict) {
    case TOLLBAR_ALLOWED:
        policy->allowed++;
        policy->admitted[number / 8] |= (unsigned char)(1u << (number % 8));
        break;
    case TOLLBAR_DENIED:
        policy->denied++;
        slot->refused++;
        break;
    case TOLLBAR_NEVER:
        policy->never++;
        slot->refused++;
        break;
    default:
        break;
    }
    return verdict;
}

bool replay_policy_admitted(const replay_policy *policy, size_t number)
{
    return (policy->admitted[number / 8] >> (number % 8) & 1) != 0;
}

void replay_policy_close(replay_policy *policy)
{
    size_t key;

    /* Room beyond the keys is zeroed, and NULL is nothing to free. */
    if (policy->compiled == NULL) {
        for (key = 0; key < policy->slot_room; key++)
            tollbar_limiter_free(policy->slots[key].state.limiter);
    }
    tollbar_policy_free(policy->compiled);
    free(policy->slots);
    free(policy->admitted);
    memset(policy, 0, sizeof *policy);
}
