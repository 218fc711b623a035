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

/* --------------------------------------------------------------------------------------------
 * 1. Rules: limits from a file
 * -------------------------------------------------------------------------------------------- */

/* For tollbar_rules_options.flags: the states are in memory that this process shares with the
 * processes that it forks later. Then only this process can reload. */
#define TOLLBAR_RULES_SHARED 1u

/* Rules in force. Any number of threads may check requests while another one reloads. */
typedef struct tollbar_rules tollbar_rules;

/* How rules are opened. Start from TOLLBAR_RULES_OPTIONS_INIT. */
typedef struct tollbar_rules_options {
    /* sizeof(tollbar_rules_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_RULES_ flags. */
    uint32_t flags;
    /* Keys that can have a debt at one time: a key counts once for each of its limits. */
    uint64_t keys;
    /* The most segments of a sliding window, or permits of a sliding log, for which each key has
     * room (tollbar_table_options.room). A reload may then change such a limit to any other, and
     * any other to it, and keys keep the permits that they have left. 0: none, and such a limit
     * begins anew if its policy changes. */
    uint32_t room;
    /* Must be 0. */
    uint32_t reserved;
} tollbar_rules_options;

/* A field of a request. The names ":method", ":path" and ":address" are the request's method, its
 * target as the client sent it, and the address of the connection's other end. Any other name that
 * begins with a colon is a word of the server, for `key = "field NAME"`. All other fields are
 * headers; their names have no case. */
typedef struct tollbar_rules_field {
    /* The name. */
    const char *name;
    /* Its length in bytes. */
    size_t name_length;
    /* The value. */
    const char *value;
    /* Its length in bytes. */
    size_t value_length;
} tollbar_rules_field;

/* The decision on a request. Start from TOLLBAR_RULES_ANSWER_INIT. */
typedef struct tollbar_rules_answer {
    /* sizeof(tollbar_rules_answer), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER. */
    uint32_t verdict;
    /* A TOLLBAR_REASON_ number. */
    uint32_t reason;
    /* The HTTP status to answer; 200 for a request that may pass. */
    uint32_t status;
    /* Permits that are left of the rule with the fewest. */
    uint64_t remaining;
    /* Nanoseconds until the same request would pass; TOLLBAR_NO_TIME if waiting does not help. */
    uint64_t retry_after_ns;
    /* Nanoseconds until all limits are as good as fresh. */
    uint64_t reset_after_ns;
    /* The number of the set of rules that decided: each reload that succeeds adds 1. */
    uint64_t generation;
    /* The name of the rule that refuses or, in an admission, has the fewest permits left. Empty if
     * no rule matches. */
    char rule[64];
    /* The body to answer; empty for a request that may pass. */
    char body[256];
    /* Permits per period of the limit that binds, in three numbers as tollbar_http_fields wants a
     * policy's. */
    uint64_t limit;
    /* Its period in nanoseconds. 0: no limit took part in the decision. */
    uint64_t period_ns;
    /* The most permits that it lets a key take at once. */
    uint64_t burst;
    /* For tollbar_rules_settle: when the request took its estimates, on the scale of
     * tollbar_rules_now. 0 if no cost of the rules is that of an answer. */
    uint64_t taken_at_ns;
    /* For tollbar_rules_settle: a bit for each shadow that has taken nothing. */
    uint64_t refused_shadows;
} tollbar_rules_answer;

/* Rules, and the name of their series. */
typedef struct tollbar_rules_source {
    /* The value of the label `limit` of their series, in UTF-8. The sources of a call must have
     * different names. */
    const char *name;
    /* The bytes of the name. */
    size_t name_length;
    /* The rules. */
    const tollbar_rules *rules;
} tollbar_rules_source;

/* Reads the rules file and puts its rules in force. A name that ends in .yaml, .yml or .json is
 * YAML, any other is TOML. `options` may be NULL for the defaults. The caller ends `*out` with
 * tollbar_rules_close.
 *
 * Returns TOLLBAR_E_SYNTAX if the file has faults, TOLLBAR_E_OPEN if it cannot be read, or another
 * error. `error` may be NULL. Otherwise the call writes a text of at most `error_size` bytes
 * there, NUL included. The text has one line for each fault, such as
 * `site.toml:3:11: group.a.limit: "r/y" in "5r/y"; expected a limit: a whole number`. */
int32_t tollbar_rules_open(const char *path,
                           const tollbar_rules_options *options,
                           tollbar_rules **out,
                           char *error,
                           size_t error_size);

/* Decides on a request, by the tables' clock: takes its cost of all limits of all rules that it
 * matches, or of none.
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER, as in `out->verdict`, or an error.
 * With an error nothing has been charged, and the caller says whether the request passes. */
int32_t tollbar_rules_check(const tollbar_rules *rules,
                            const tollbar_rules_field *fields,
                            size_t count,
                            tollbar_rules_answer *out);

/* tollbar_rules_check at the caller's time, on the scale of tollbar_rules_now. */
int32_t tollbar_rules_check_at(const tollbar_rules *rules,
                               const tollbar_rules_field *fields,
                               size_t count,
                               uint64_t now_ns,
                               tollbar_rules_answer *out);

/* Reads the tables' clock: nanoseconds of UTC since TOLLBAR_TIME_ZERO. Returns 0 for NULL. */
uint64_t tollbar_rules_now(const tollbar_rules *rules);

/* Reads the file again and puts its rules in force as a whole. Keys of rules whose name stays keep
 * their states. With an error the old rules stay in force; `error` is as for tollbar_rules_open.
 * TOLLBAR_E_OWNER: the rules are shared, and another process opened them. */
int32_t tollbar_rules_reload(const tollbar_rules *rules, char *error, size_t error_size);

/* tollbar_rules_reload if the file has changed since it was last read. Returns TOLLBAR_YES after a
 * reload, TOLLBAR_NO if the file is the same, or an error, once for each change. */
int32_t tollbar_rules_reload_if_changed(const tollbar_rules *rules,
                                        char *error,
                                        size_t error_size);

/* Lets the keys of a rule begin anew: the one of `key_length` bytes at `key`, as `keys` and
 * `exempt` of the file write it, or all of them if `key` is NULL. Requests go on meanwhile. A
 * reset of all keys reads every slot of the table. Sliding windows and logs get a new table, which
 * processes that were forked before do not see.
 *
 * Returns TOLLBAR_YES, or TOLLBAR_NO if the key keeps its debt, because the table has no other
 * slot for it. TOLLBAR_E_NO_SUCH_POLICY if no rule has the name, TOLLBAR_E_ADDRESS if the rule's
 * key is the client's address and `key` is none, TOLLBAR_E_OUT_OF_RANGE if a key of the rule has
 * no text, because it comes from several sources or is that of all requests. TOLLBAR_E_OWNER: all
 * keys of shared rules, which only the process that may reload them can reset. `error` is as for
 * tollbar_rules_open. */
int32_t tollbar_rules_reset(const tollbar_rules *rules,
                            const char *rule,
                            const char *key,
                            size_t key_length,
                            char *error,
                            size_t error_size);

/* Makes this process the one that may reload shared rules, after it was forked from the process
 * that could before. That one must not reload any more. It is for a server that reads its
 * configuration, forks, and goes on in the child. Returns 0 or TOLLBAR_E_NULL. */
int32_t tollbar_rules_adopt(const tollbar_rules *rules);

/* Writes the metrics of `count` rules into `buffer`, as tollbar_metrics writes those of limiters
 * and tables:
 *
 * tollbar_rule_decisions_total{rule,mode,verdict}        requests by rule: allowed by all rules, refused by this one, missing a key, exempt
 * tollbar_shadow_disagreements_total{rule,of,would}      requests that a shadow would refuse or allow, and that were decided otherwise
 * tollbar_rules_reasons_total{reason}                    refusals by a ban (banned), or for the reserve of other classes (reserve)
 * tollbar_rules_evictions_total                          keys with a debt whose slot a new key took
 * tollbar_rules_generation                               the number of the set of rules in force
 * tollbar_rules_last_reload_failed                       1 if the last reload failed, so that the former rules are in force, else 0
 *
 * The label `limit` of each is the source's name, `mode` is enforced or shadow, and no key is a
 * label. Shared rules count the requests of all processes. tollbar_metrics has `format`, `length`,
 * the most of `count`, and the errors. */
int32_t tollbar_rules_metrics(const tollbar_rules_source *sources,
                              size_t count,
                              uint32_t format,
                              char *buffer,
                              size_t capacity,
                              size_t *length);

/* Ends rules that no call is using. NULL is allowed and does nothing. */
void tollbar_rules_close(tollbar_rules *rules);

/* The defaults: room for 100,000 keys, in this process's own memory. */
#define TOLLBAR_RULES_OPTIONS_INIT                                                                   \
    { (uint32_t)sizeof(tollbar_rules_options), 0, 100000, 0, 0 }

/* An answer to be filled in. */
#define TOLLBAR_RULES_ANSWER_INIT                                                                    \
    { (uint32_t)sizeof(tollbar_rules_answer), 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 2. Costs that answers tell
 * -------------------------------------------------------------------------------------------- */

/* Charges what the answer to an admitted request has cost, under rules with
 * `cost = "answer NAME"`. `answer` is that of tollbar_rules_check, and `fields` are those of the
 * request again, with the words of the answer (":NAME") among them. A cost above the estimate
 * makes a debt, which later requests of the key wait for. Of a cost below it the rest goes back to
 * the key, without what the key has regained since.
 *
 * Returns TOLLBAR_YES, or TOLLBAR_NO if the words lack a cost or have one that is no whole number:
 * there the estimate stays. Call this once for each admission, because a second call would give
 * back twice. After a reload that changes which requests a rule is for, or their key or cost, the
 * estimates of before stay under that rule.
 *
 * tollbar_rules_field with_tokens[3] = {request[0], request[1], {":tokens", 7, "1700", 4}};
 * tollbar_rules_settle(rules, with_tokens, 3, &answer); */
int32_t tollbar_rules_settle(const tollbar_rules *rules,
                             const tollbar_rules_field *fields,
                             size_t count,
                             const tollbar_rules_answer *answer);

/* tollbar_rules_settle at the caller's time, on the scale of tollbar_rules_now. */
int32_t tollbar_rules_settle_at(const tollbar_rules *rules,
                                const tollbar_rules_field *fields,
                                size_t count,
                                const tollbar_rules_answer *answer,
                                uint64_t now_ns);

/* Writes the name of a word of answers that tells costs, as `tokens` of `cost = "answer tokens"`,
 * with a NUL. The words of the rules in force are numbered from 0 on, each once. A server asks for
 * them when it reads its configuration, and says which it cannot give.
 *
 * Returns TOLLBAR_YES, TOLLBAR_NO if there are no more words, or TOLLBAR_E_BUFFER_TOO_SMALL. */
int32_t tollbar_rules_word_of_answers(const tollbar_rules *rules,
                                      size_t number,
                                      char *word,
                                      size_t size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_RULES_H */
