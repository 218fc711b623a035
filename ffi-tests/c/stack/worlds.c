/* Policies of each kind, and tables in the states in which a decision does more than usual. */
#include "worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What is done to a world's table before the calls. */
enum state {
    FRESH,
    /* All its slots have keys that owe, and nothing is evicted for others. */
    FULL,
    /* Its keys are under a former version of the policy. */
    CHANGED,
    /* The process keeps no further compiled version: a call compiles on its own stack. */
    CHANGED_OFTEN,
    /* Another key is exempt, and another has a policy of its own; refusals are recorded. */
    SPECIAL,
    /* Threads take permits in advance. */
    HOT
};

static const struct kind {
    const char *text;
    enum state state;
} kinds[] = {
    {"1000/s burst 100", FRESH},
    {"1000/s burst 100", FULL},
    {"1000/s burst 100", CHANGED},
    {"1000/s burst 100", CHANGED_OFTEN},
    {"1000/s burst 100", SPECIAL},
    {"1000/s burst 100", HOT},
    {"10/s; 1000/day", CHANGED},
    {"100/s algo interval", FRESH},
    {"100/s algo fixed-window", FRESH},
    {"100/s algo weighted-window", FRESH},
    {"100/s algo sliding-window", FRESH},
    {"100/s algo sliding-log", FRESH},
    {"100/s algo pacer slack 5", FRESH},
    {"100/s algo warm-up warm 10s", FRESH},
    {"100/min curve ln", CHANGED_OFTEN},
    {"100/s burst 200 refill 0:50% 50%:100%", FRESH},
    {"100/s reserve standard 20 urgent 0", CHANGED_OFTEN},
    {"50/min ban 1h after 3", FULL},
    {"1000/forever", FRESH},
    {"1000/month zone CET-1CEST,M3.5.0,M10.5.0/3", CHANGED_OFTEN},
};
const size_t world_count = COUNT(kinds);

static void expect(int32_t code, const char *what, const char *text) {
    if (code >= 0)
        return;
    printf("Bail out! %s of \"%s\": %s\n", what, text, tollbar_errname(code));
    exit(1);
}

/* The world's policy with a limit of `more` more, and a burst that is the limit under those
 * policies that want it so. */
static tollbar_policy_spec greater(const struct world *w, uint64_t more) {
    tollbar_policy_spec spec = w->spec;
    if (spec.burst == spec.limit)
        spec.burst += more;
    spec.limit += more;
    return spec;
}

static void prepare(struct world *w, enum state state) {
    uint64_t n;
    tollbar_policy_spec spec;
    for (n = 0; n < (state == FULL ? 20000 : 16); n++)
        expect(tollbar_table_check_at(w->table, 0, &n, sizeof n, 1, w->now, NULL), "a check", w->text);
    expect(tollbar_table_check_at(w->table, 0, KEY, 1, w->now, NULL), "a check", w->text);
    for (n = 1; n <= (state == CHANGED_OFTEN ? 4200 : state == CHANGED ? 1 : 0); n++) {
        spec = greater(w, n);
        expect(tollbar_table_set_policy(w->table, 0, &spec, TOLLBAR_KEEP_COUNT), "a change", w->text);
        expect(tollbar_table_peek_at(w->table, 0, "a", 1, 1, w->now, NULL), "a peek", w->text);
    }
    if (state == SPECIAL) {
        expect(tollbar_table_exempt(w->table, 0, "exempt", 6), "an exemption", w->text);
        spec = greater(w, 1);
        expect(tollbar_table_set_override(w->table, 0, "own", 3, &spec, TOLLBAR_KEEP_COUNT), "an override", w->text);
        expect(tollbar_table_record_refusals(w->table, 1), "recording", w->text);
    }
}

static void make(struct world *w, const struct kind *kind) {
    tollbar_limiter_options of_limiter = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1);
    size_t n;
    memset(w, 0, sizeof *w);
    w->text = kind->text;
    w->is_first = kind == kinds;
    w->spec = (tollbar_policy_spec)TOLLBAR_POLICY_SPEC_INIT;
    expect(tollbar_policy_spec_parse(w->text, strlen(w->text), &w->spec, NULL), "a policy", w->text);
    w->clock = w->spec.algorithm == TOLLBAR_ALGORITHM_CALENDAR ? TOLLBAR_CLOCK_WALL : TOLLBAR_CLOCK_TSC;
    of_limiter.clock = w->clock;
    expect(tollbar_limiter_new(&w->spec, &of_limiter, &w->limiter), "a limiter", w->text);
    if (tollbar_policy_new(&w->spec, &w->policy) != 0)
        w->policy = NULL;
    options.clock = w->clock;
    options.seed = 7;
    options.flags = TOLLBAR_TABLE_HAS_SEED;
    options.hot_keys = kind->state == HOT ? 64 : 0;
    options.on_full = kind->state == FULL ? TOLLBAR_ON_FULL_DENY : TOLLBAR_ON_FULL_EVICT_NEAREST;
    w->options = options;
    /* A table of several words has one policy. */
    w->count = w->spec.algorithm == TOLLBAR_ALGORITHM_SLIDING_WINDOW || w->spec.algorithm == TOLLBAR_ALGORITHM_SLIDING_LOG ? 1 : COUNT(w->policies);
    for (n = 0; n < w->count; n++)
        w->policies[n] = &w->spec;
    expect(tollbar_table_new(w->policies, w->count == 1 ? 1 : 2, &w->options, &w->table), "a table", w->text);
    expect(tollbar_table_now(w->table, &w->now), "a time", w->text);
    snprintf(w->path, sizeof w->path, "/dev/shm/tollbar-stack-%d", (int)getpid());
    w->key = (kind - kinds) % 2 == 0 ? "key" : "a key that is longer than the sixteen bytes of the usual case";
    w->length = strlen(w->key);
    prepare(w, kind->state);
}

struct world *world_begin(size_t number) {
    static struct world world;
    make(&world, &kinds[number]);
    unlink(world.path);
    return &world;
}

void world_end(struct world *w) {
    unlink(w->path);
    tollbar_limiter_free(w->limiter);
    tollbar_policy_free(w->policy);
    tollbar_table_close(w->table);
}

/* tollbar.h [C5]. */
size_t most_of(const char *name) {
    (void)name;
    return 16384;
}
