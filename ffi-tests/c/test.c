#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <time.h>

const char *const every_algorithm[8] = {
    "5/s",
    "5/s algo interval",
    "5/s algo fixed-window",
    "5/s algo weighted-window",
    "5/s algo sliding-window",
    "5/s algo sliding-log",
    /* These admit one request at one instant, and not 5. */
    "5/s algo pacer",
    "5/s algo warm-up warm 1s",
};

static void report(const char *text, int32_t code, const tollbar_policy_error *error) {
    if (code != 0)
        fail_msg("\"%s\": %s at column %u, %s", text, tollbar_errname(code), (unsigned)error->column,
                 error->expected);
}

tollbar_limiter *limiter_of(const char *text) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_limiter *limiter = NULL;
    report(text, tollbar_limiter_from_text(text, &limiter, &error), &error);
    assert_non_null(limiter);
    return limiter;
}

tollbar_policy *policy_of(const char *text) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy *policy = NULL;
    report(text, tollbar_policy_from_text(text, &policy, &error), &error);
    assert_non_null(policy);
    return policy;
}

tollbar_policy_spec spec_of(const char *text) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    report(text, tollbar_policy_spec_parse(text, strlen(text), &spec, &error), &error);
    return spec;
}

tollbar_limiter *limiter_with(const char *text, uint32_t clock, uint32_t waiters) {
    tollbar_policy_spec spec = spec_of(text);
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    options.clock = clock;
    options.waiters = waiters;
    assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), 0);
    return limiter;
}

tollbar_limiter *limiter_with_credit(const char *text) {
    tollbar_policy_spec spec = spec_of(text);
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    options.credit = TOLLBAR_CREDIT_ON;
    assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), 0);
    return limiter;
}

void ask(struct asked *asked, uint64_t capacity, const char *first, const char *second) {
    const tollbar_table_options usual = TOLLBAR_TABLE_OPTIONS_INIT(capacity);
    asked->options = usual;
    asked->options.seed = 1;
    asked->options.flags = TOLLBAR_TABLE_HAS_SEED;
    asked->specs[0] = spec_of(first);
    asked->specs[1] = spec_of(second ? second : first);
    asked->policies[0] = &asked->specs[0];
    asked->policies[1] = &asked->specs[1];
    asked->count = second ? 2 : 1;
}

tollbar_table *table_asked(const struct asked *asked) {
    tollbar_table *table = NULL;
    assert_int_equal(tollbar_table_new(asked->policies, asked->count, &asked->options, &table), 0);
    assert_non_null(table);
    return table;
}

tollbar_table *table_of(uint64_t capacity, const char *first, const char *second) {
    struct asked asked;
    ask(&asked, capacity, first, second);
    return table_asked(&asked);
}

tollbar_table_stats stats_of(const tollbar_table *table) {
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    assert_int_equal(tollbar_table_get_stats(table, &stats), 0);
    return stats;
}

void assert_answers(const char *text, const uint64_t *times, size_t count, const char *want) {
    tollbar_limiter *limiter = limiter_of(text);
    char got[64];
    size_t i;
    assert_true(count < sizeof got);
    for (i = 0; i < count; i++) {
        int32_t verdict = tollbar_limiter_check_at(limiter, 1, times[i], NULL);
        assert_in_range(verdict, TOLLBAR_ALLOWED, TOLLBAR_DENIED);
        got[i] = verdict == TOLLBAR_ALLOWED ? 'T' : 'F';
    }
    got[count] = '\0';
    tollbar_limiter_free(limiter);
    if (strcmp(got, want) != 0)
        fail_msg("\"%s\": %s, not %s", text, got, want);
}

void away_from_edges(uint64_t period) {
    const struct timespec nap = {0, 50000000};
    struct timespec now;
    for (;;) {
        assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
        if (period - ((uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec) % period >= 10 * SEC)
            return;
        nanosleep(&nap, NULL);
    }
}

uint64_t monotonic(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}
