/* replay_policy.c: reads policies, and counts.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_policy.h"

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
    if (error->code <= TOLLBAR_E_SYNTAX && error->code >= TOLLBAR_E_DUPLICATE_OPTION)
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
        code = tollbar_policy_spec_validate(&spec);
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

int replay_policy_begin(replay_policy *policy, size_t key_count, size_t request_count)
{
    /* One more: to ask for nothing may be answered with NULL. */
    policy->refused = calloc(key_count + 1, sizeof *policy->refused);
    policy->admitted = calloc(request_count / 8 + 1, 1);
    return policy->refused != NULL && policy->admitted != NULL ? 0 : -1;
}

void replay_policy_count(replay_policy *policy, uint32_t key, size_t request, int32_t verdict)
{
    switch (verdict) {
    case TOLLBAR_ALLOWED:
        policy->allowed++;
        policy->admitted[request / 8] |= (unsigned char)(1u << (request % 8));
        break;
    case TOLLBAR_DENIED:
        policy->denied++;
        policy->refused[key]++;
        break;
    default:
        policy->never++;
        policy->refused[key]++;
        break;
    }
}

bool replay_policy_admitted(const replay_policy *policy, size_t request)
{
    return (policy->admitted[request / 8] >> (request % 8) & 1) != 0;
}

void replay_policy_close(replay_policy *policy)
{
    free(policy->refused);
    free(policy->admitted);
    memset(policy, 0, sizeof *policy);
}
