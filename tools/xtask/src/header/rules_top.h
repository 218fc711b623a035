/* tollbar_rules.h: rate limits from a file in TOML or YAML.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-rules-c/src; changes belong there.
 *
 * The calls are those of libtollbar-rules (`pkg-config --libs tollbar-rules`), which needs no other
 * library of tollbar. Results and their conventions [C1] to [C8] are tollbar.h's, but
 * tollbar_rules_open and the reloads take up to 128 KiB of stack for a file that nests its values
 * as deep as a file may. docs/rules.md describes the file.
 *
 *     char error[4096];
 *     tollbar_rules *rules;
 *     if (tollbar_rules_open("site.toml", NULL, &rules, error, sizeof error) < 0)
 *         return fprintf(stderr, "%s\n", error), 1;
 *     tollbar_rules_field request[] = {{":path", 5, path, strlen(path)}, {":address", 8, address, strlen(address)}};
 *     tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;
 *     int32_t verdict = tollbar_rules_check(rules, request, 2, &answer);
 *     if (verdict < 0)
 *         refuse(503, "", "");                              (an error: the rules have not decided)
 *     else if (verdict != TOLLBAR_ALLOWED)
 *         refuse(answer.status, answer.body, answer.rule);
 */

#ifndef TOLLBAR_RULES_H
#define TOLLBAR_RULES_H

#include "tollbar.h"

#ifdef __cplusplus
extern "C" {
#endif

