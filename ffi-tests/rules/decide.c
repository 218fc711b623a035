/* Decides on requests of requests.py by the rules file argv[1], and prints "VERDICT STATUS RULE
 * REMAINING" for each, and "= KNOWN" where it settles one. argv[2] is the file for the metrics in
 * the end. */
#include "tollbar_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MOST 32

static int expect(const char *what, int found, int expected) {
    if (found == expected)
        return 0;
    fprintf(stderr, "%s: %d, expected %d\n", what, found, expected);
    return 1;
}

/* The errors for wrong arguments and wrong files. */
static int faults(const char *path) {
    char error[512] = "", tiny[8];
    tollbar_rules *rules = NULL;
    tollbar_rules_options options = TOLLBAR_RULES_OPTIONS_INIT;
    tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;
    tollbar_rules_field field = {NULL, 3, "x", 1};
    int failed = expect("no path", tollbar_rules_open(NULL, NULL, &rules, error, sizeof error), TOLLBAR_E_NULL);
    failed += expect("no place", tollbar_rules_open(path, NULL, NULL, NULL, 0), TOLLBAR_E_NULL);
    failed += expect("no file", tollbar_rules_open("/nowhere.toml", NULL, &rules, error, sizeof error), TOLLBAR_E_OPEN);
    failed += expect("names the file", strncmp(error, "/nowhere.toml: ", 15), 0);
    failed += expect("a C file", tollbar_rules_open(__FILE__, NULL, &rules, error, sizeof error), TOLLBAR_E_SYNTAX);
    failed += expect("names the place", strstr(error, "decide.c:1:") != NULL, 1);
    failed += expect("a small buffer", tollbar_rules_open(__FILE__, NULL, &rules, tiny, sizeof tiny), TOLLBAR_E_SYNTAX);
    failed += expect("its text ends", strlen(tiny) == sizeof tiny - 1, 1);
    options.flags = 2;
    failed += expect("an unknown flag", tollbar_rules_open(path, &options, &rules, NULL, 0), TOLLBAR_E_RESERVED);
    options.flags = TOLLBAR_RULES_SHARED;
    options.keys = 0;
    failed += expect("no keys", tollbar_rules_open(path, &options, &rules, error, sizeof error), TOLLBAR_E_CAPACITY);
    options.keys = 1000;
    failed += expect("shared", tollbar_rules_open(path, &options, &rules, NULL, 0), TOLLBAR_ALLOWED);
    failed += expect("no fields, so no address", tollbar_rules_check(rules, NULL, 0, NULL), TOLLBAR_DENIED);
    failed += expect("null fields", tollbar_rules_check(rules, NULL, 1, NULL), TOLLBAR_E_NULL);
    failed += expect("a null name", tollbar_rules_check(rules, &field, 1, NULL), TOLLBAR_E_NULL);
    field.name = "abc";
    failed += expect("too many", tollbar_rules_check(rules, &field, (size_t)1 << 20, NULL), TOLLBAR_E_OUT_OF_RANGE);
    answer.struct_size = 4;
    failed += expect("a short answer", tollbar_rules_check(rules, &field, 1, &answer), TOLLBAR_E_STRUCT_SIZE);
    failed += expect("no rules", tollbar_rules_check(NULL, &field, 1, NULL), TOLLBAR_E_NULL);
    failed += expect("the same file", tollbar_rules_reload_if_changed(rules, error, sizeof error), TOLLBAR_NO);
    failed += expect("adopts no rules", tollbar_rules_adopt(NULL), TOLLBAR_E_NULL);
    failed += expect("adopts its own", tollbar_rules_adopt(rules), TOLLBAR_ALLOWED);
    failed += expect("a reload", tollbar_rules_reload(rules, NULL, 0), TOLLBAR_ALLOWED);
    answer.struct_size = (uint32_t)sizeof answer;
    failed += expect("a check", tollbar_rules_check(rules, &field, 1, &answer), TOLLBAR_DENIED);
    failed += expect("the generation", (int)answer.generation, 2);
    failed += expect("a reset without a rule", tollbar_rules_reset(rules, NULL, NULL, 0, NULL, 0), TOLLBAR_E_NULL);
    failed += expect("a reset of no rule", tollbar_rules_reset(rules, "none", NULL, 0, error, sizeof error), TOLLBAR_E_NO_SUCH_POLICY);
    failed += expect("it says so", strcmp(error, "no rule \"none\"; expected the name of a rule in force"), 0);
    failed += expect("a key without an address", tollbar_rules_reset(rules, answer.rule, NULL, 7, NULL, 0), TOLLBAR_YES);
    failed += expect("settles without an answer", tollbar_rules_settle(rules, &field, 1, NULL), TOLLBAR_E_NULL);
    failed += expect("settles null fields", tollbar_rules_settle(rules, NULL, 1, &answer), TOLLBAR_E_NULL);
    failed += expect("settles without rules", tollbar_rules_settle(NULL, &field, 1, &answer), TOLLBAR_E_NULL);
    failed += expect("no word of answers", tollbar_rules_word_of_answers(rules, 100, tiny, sizeof tiny), TOLLBAR_NO);
    failed += expect("words of no rules", tollbar_rules_word_of_answers(NULL, 0, tiny, sizeof tiny), TOLLBAR_E_NULL);
    failed += expect("the clock", tollbar_rules_now(rules) > 0, 1);
    tollbar_rules_close(rules);
    tollbar_rules_close(NULL);
    return failed;
}

int main(int count, char **arguments) {
    static char line[1 << 16];
    char error[4096];
    tollbar_rules *rules;
    if (count != 2 && count != 3)
        return 2;
    if (count == 3 && faults(arguments[1]) != 0)
        return 1;
    if (tollbar_rules_open(arguments[1], NULL, &rules, error, sizeof error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        static tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;
        tollbar_rules_field fields[FIELDS_MOST];
        size_t used = 0;
        int settles = *line == '=';
        char *end;
        uint64_t now = strtoull(line + settles, &end, 10);
        while (*end == '\t' && used < FIELDS_MOST) {
            fields[used].name = end + 1;
            fields[used].name_length = strcspn(end + 1, "\t\n");
            end += 1 + fields[used].name_length;
            fields[used].value = end + 1;
            fields[used].value_length = strcspn(end + 1, "\t\n");
            end += 1 + fields[used].value_length;
            used++;
        }
        if (settles) {
            printf("= %d\n", answer.verdict == TOLLBAR_ALLOWED && tollbar_rules_settle_at(rules, fields, used, &answer, now) == TOLLBAR_YES);
            continue;
        }
        if (tollbar_rules_check_at(rules, fields, used, now, &answer) < 0)
            return 1;
        printf("%u %u %s %llu\n", answer.verdict, answer.status, answer.rule[0] ? answer.rule : "-",
               (unsigned long long)answer.remaining);
    }
    if (count == 3) {
        static char text[1 << 16];
        tollbar_rules_source source = {"site", 4, NULL};
        size_t length = 0;
        FILE *out = fopen(arguments[2], "w");
        if (out == NULL || expect("no rules", tollbar_rules_metrics(&source, 1, 0, text, sizeof text, &length), TOLLBAR_E_NULL) != 0)
            return 1;
        source.rules = rules;
        if (expect("a format", tollbar_rules_metrics(&source, 1, 2, text, sizeof text, &length), TOLLBAR_E_OUT_OF_RANGE) != 0 ||
            expect("a small buffer", tollbar_rules_metrics(&source, 1, 0, text, 100, &length), TOLLBAR_E_BUFFER_TOO_SMALL) != 0 ||
            expect("metrics", tollbar_rules_metrics(&source, 1, 0, text, length + 1, NULL), 0) != 0)
            return 1;
        if (expect("their length", strlen(text) == length, 1) != 0 || fwrite(text, 1, length, out) != length || fclose(out) != 0)
            return 1;
    }
    tollbar_rules_close(rules);
    return 0;
}
