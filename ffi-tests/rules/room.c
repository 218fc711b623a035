/* A reload turns the algorithm of a rule into any other, and a key keeps the permits that it has
 * left, if the rules have room. argv[1] is the rules file, which this program writes. */
#include "tollbar_rules.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const limits[] = {"10/h", "10/h algo sliding-window segments 20", "10/h algo sliding-log",
    "10/h algo fixed-window",
                                     "10/h algo sliding-log", "10/h"};

static void expect(const char *what, unsigned long long found, unsigned long long expected) {
    if (found != expected) {
        fprintf(stderr, "%s: %llu, expected %llu\n", what, found, expected);
        exit(1);
    }
}

static void write_limit(const char *path, const char *limit) {
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "version = 1\n[group.a]\nkey = 'address'\nlimit = '%s'\n", limit) < 0 ||
        fclose(file) != 0)
        exit(2);
}

static uint64_t left(tollbar_rules *rules, uint64_t now) {
    static const tollbar_rules_field fields[] = {{":path", 5, "/", 1}, {":address", 8, "192.0.2.1", 9}};
    tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;
    expect("a check", (unsigned)tollbar_rules_check_at(rules, fields, 2, now, &answer), TOLLBAR_ALLOWED);
    return answer.remaining;
}

int main(int count, char **arguments) {
    tollbar_rules_options options = TOLLBAR_RULES_OPTIONS_INIT;
    const size_t changes = sizeof limits / sizeof *limits;
    tollbar_rules *rules;
    uint64_t now;
    size_t n;
    if (count != 2)
        return 2;
    options.keys = 1000;
    options.reserved = 1;
    write_limit(arguments[1], limits[0]);
    expect("a reserved field", tollbar_rules_open(arguments[1], &options, &rules, NULL, 0) == TOLLBAR_E_RESERVED, 1);
    options.reserved = 0;
    options.room = 30;
    expect("opens", (unsigned)tollbar_rules_open(arguments[1], &options, &rules, NULL, 0), TOLLBAR_ALLOWED);
    now = tollbar_rules_now(rules);
    for (n = 0; n < changes; n++) {
        write_limit(arguments[1], limits[n]);
        expect("reloads", (unsigned)tollbar_rules_reload(rules, NULL, 0), TOLLBAR_ALLOWED);
        expect(limits[n], left(rules, now), 9 - n);
    }
    tollbar_rules_close(rules);

    /* A program that was compiled before there was room. */
    options.struct_size = 16;
    write_limit(arguments[1], limits[0]);
    expect("opens without room", (unsigned)tollbar_rules_open(arguments[1], &options, &rules, NULL, 0),
        TOLLBAR_ALLOWED);
    expect("without room", left(rules, now), 9);
    write_limit(arguments[1], limits[1]);
    expect("reloads without room", (unsigned)tollbar_rules_reload(rules, NULL, 0), TOLLBAR_ALLOWED);
    expect("a window without room begins anew", left(rules, now), 9);
    tollbar_rules_close(rules);
    return 0;
}
