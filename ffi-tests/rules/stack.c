/* How much stack each function of tollbar_rules.h takes, by the program of ffi-tests/c/stack. The
 * rules: examples/rules/site.toml and site.yaml, and files that nest as deep as a reader goes. */
#include "../c/stack/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tollbar_rules.h"

const size_t world_count = 2;

struct world *world_begin(size_t number) {
    static struct world world;
    world.text = number == 0 ? "examples/rules/site.toml" : "examples/rules/site.yaml";
    return &world;
}
void world_end(struct world *w) {
    (void)w;
}

/* tollbar_rules.h: the calls that read a file take more than the others. */
size_t most_of(const char *name) {
    return strcmp(name, "tollbar_rules_open") == 0 || strncmp(name, "tollbar_rules_reload", 20) == 0 ? 131072 : 16384;
}

/* A file with so many beginnings of a value in each other, and no end. */
static const char *nested(const char *suffix, const char *head, const char *opening, int levels) {
    static char path[64];
    FILE *file;
    snprintf(path, sizeof path, "/tmp/tollbar-stack-%d%s", (int)getpid(), suffix);
    file = fopen(path, "w");
    if (file == NULL) {
        printf("Bail out! %s cannot be written\n", path);
        exit(1);
    }
    fputs(head, file);
    while (levels-- > 0)
        fputs(opening, file);
    fclose(file);
    return path;
}

static tollbar_rules *rules_of(const struct world *w) {
    tollbar_rules *rules = NULL;
    (void)tollbar_rules_open(w->text, NULL, &rules, NULL, 0);
    return rules;
}

static const tollbar_rules_field fields[] = {
    {":method", 7, "POST", 4},
    {":path", 5, "/login?from=/a/b", 16},
    {":address", 8, "\xc0\x00\x02\x01", 4},
    {"x-api-key", 9, "a key of a customer", 19},
};

CASE(tollbar_rules_open) {
    tollbar_rules *rules = NULL;
    RUN(tollbar_rules_open(w->text, NULL, &rules, buffer, sizeof buffer));
    tollbar_rules_close(rules);
    rules = NULL;
    RUN(tollbar_rules_open("ffi-tests/rules/more.toml", NULL, &rules, buffer, sizeof buffer));
    tollbar_rules_close(rules);
    RUN(tollbar_rules_open("Makefile", NULL, &rules, buffer, sizeof buffer));
    {
        const struct {
            const char *suffix, *head, *opening;
        } deep[] = {{".toml", "x = ", "["}, {".toml", "x = ", "{a = "}, {".yaml", "x: ", "["}, {".yaml", "x: ", "{a: "}};
        size_t n;
        for (n = 0; n < COUNT(deep); n++) {
            const char *path = nested(deep[n].suffix, deep[n].head, deep[n].opening, 5000);
            RUN(tollbar_rules_open(path, NULL, &rules, buffer, sizeof buffer));
            unlink(path);
        }
    }
}

/* A case of rules in force. */
#define RULES(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        tollbar_rules *rules = rules_of(w);                                                                                                    \
        tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;                                                                               \
        int n;                                                                                                                                 \
        (void)answer;                                                                                                                          \
        for (n = 0; n < 20; n++)                                                                                                               \
            RUN(name(rules __VA_ARGS__));                                                                                                      \
        tollbar_rules_close(rules);                                                                                                            \
    }
#define OF_REQUEST , fields, COUNT(fields)
RULES(tollbar_rules_check, OF_REQUEST, &answer)
RULES(tollbar_rules_check_at, OF_REQUEST, tollbar_rules_now(rules), &answer)
RULES(tollbar_rules_settle, OF_REQUEST, &answer)
RULES(tollbar_rules_settle_at, OF_REQUEST, &answer, tollbar_rules_now(rules))
RULES(tollbar_rules_word_of_answers, , 0, buffer, sizeof buffer)
RULES(tollbar_rules_reload, , buffer, sizeof buffer)
RULES(tollbar_rules_reload_if_changed, , buffer, sizeof buffer)
RULES(tollbar_rules_reset, , "login", NULL, 0, buffer, sizeof buffer)
CASE(tollbar_rules_adopt) {
    tollbar_rules_options options = TOLLBAR_RULES_OPTIONS_INIT;
    tollbar_rules *rules = NULL;
    options.flags = TOLLBAR_RULES_SHARED;
    (void)tollbar_rules_open(w->text, &options, &rules, NULL, 0);
    RUN(tollbar_rules_adopt(rules));
    tollbar_rules_close(rules);
}
CASE(tollbar_rules_now) {
    tollbar_rules *rules = rules_of(w);
    RUN((tollbar_rules_now(rules), 0));
    tollbar_rules_close(rules);
}
CASE(tollbar_rules_metrics) {
    tollbar_rules *rules = rules_of(w);
    tollbar_rules_source source;
    size_t length;
    source.name = "site", source.name_length = 4, source.rules = rules;
    RUN(tollbar_rules_metrics(&source, 1, 0, buffer, sizeof buffer, &length));
    tollbar_rules_close(rules);
}
CASE(tollbar_rules_close) {
    tollbar_rules *rules = rules_of(w);
    RUN((tollbar_rules_close(rules), 0));
}
