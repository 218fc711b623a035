/* Limiters: the memory that the library or the caller gives them, their calls on each clock, the
 * sizes of their structs, and changes of their policy. vectors_test.c tests what each algorithm
 * decides. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The number of permits that a fresh limiter of every_algorithm admits at one instant. */
static uint64_t at_once(size_t algorithm) {
    return algorithm >= TOLLBAR_ALGORITHM_PACER ? 1 : 5;
}

static void check_many_is_check_for_each(void **state) {
    static const uint64_t costs[] = {1, 2, 9, 0, 3, 2, 1};
    size_t i, j;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *one = limiter_of(every_algorithm[i]), *many = limiter_of(every_algorithm[i]);
        int32_t results[COUNT(costs) + 1];
        results[COUNT(costs)] = 77;
        assert_int_equal(tollbar_limiter_check_many_at(many, costs, COUNT(costs), SEC, results), 0);
        for (j = 0; j < COUNT(costs); j++)
            assert_int_equal(results[j], tollbar_limiter_check_at(one, costs[j], SEC, NULL));
        assert_int_equal(results[COUNT(costs)], 77);
        assert_int_equal(tollbar_limiter_check_many_at(many, NULL, 2, 10 * SEC, results), 0);
        for (j = 0; j < 2; j++)
            assert_int_equal(results[j], tollbar_limiter_check_at(one, 1, 10 * SEC, NULL));
        tollbar_limiter_free(one);
        tollbar_limiter_free(many);
    }
}

/* S37: a sender of 100 MB/s in costs of 1,500 bytes is off by less than one cost after 10 s, and one
 * that takes what there is by nothing. */
static void s37_bytes_are_permits(void **state) {
    static const char text[] = "100mb/s burst 15000 unit bytes";
    const uint64_t cost = 1500, begin = 1000 * SEC, bytes = 15000 + 10 * UINT64_C(100000000);
    tollbar_limiter *whole = limiter_of(text), *all = limiter_of(text);
    uint64_t now, taken = 0, sent = 0, got = 0;
    (void)state;
    for (now = begin; now <= begin + 10 * SEC; now += 100 * US) {
        while (tollbar_limiter_check_at(whole, cost, now, NULL) == TOLLBAR_ALLOWED)
            sent += cost;
        if (tollbar_limiter_take_up_to_at(all, UINT64_MAX, now, &taken) == TOLLBAR_ALLOWED)
            got += taken;
    }
    assert_in_range(sent, bytes - cost + 1, bytes);
    assert_int_equal(got, bytes);
    tollbar_limiter_free(whole);
    tollbar_limiter_free(all);
}

static void get_policy_gives_what_it_was_made_of(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = limiter_of(every_algorithm[i]), *again = NULL;
        tollbar_policy_spec want = spec_of(every_algorithm[i]), got = TOLLBAR_POLICY_SPEC_INIT;
        assert_int_equal(tollbar_limiter_get_policy(limiter, &got), 0);
        assert_int_equal(got.algorithm, i);
        assert_memory_equal(&got, &want, sizeof got);
        assert_int_equal(tollbar_limiter_new(&got, NULL, &again), 0);
        tollbar_limiter_free(again);
        tollbar_limiter_free(limiter);
    }
}

static void by_the_librarys_clock(void **state) {
    uint32_t clock;
    (void)state;
    for (clock = TOLLBAR_CLOCK_TSC; clock <= TOLLBAR_CLOCK_COARSE; clock++) {
        tollbar_limiter *limiter = limiter_with("3/h", clock, 0);
        tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        uint64_t taken = 0, now = 0;
        int32_t results[2] = {77, 77};
        assert_int_equal(tollbar_limiter_peek(limiter, 3, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.remaining, 3);
        assert_int_equal(tollbar_limiter_check(limiter, 1, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_limiter_check_many(limiter, NULL, 1, results), 0);
        assert_int_equal(results[0], TOLLBAR_ALLOWED);
        assert_int_equal(results[1], 77);
        assert_int_equal(tollbar_limiter_take_up_to(limiter, 9, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 1);
        assert_int_equal(tollbar_limiter_check(limiter, 1, &got), TOLLBAR_DENIED);
        assert_in_range(got.retry_after_ns, HOUR / 3 - 10 * SEC, HOUR / 3);

        assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
        assert_int_equal(view.struct_size, sizeof view);
        assert_int_equal(tollbar_limiter_now(limiter, &now), 0);
        assert_in_range(view.now_ns, now - 10 * SEC, now);
        assert_int_equal(view.remaining, 0);
        assert_int_equal(view.waiting, 0);
        assert_in_range(view.retry_after_ns, 1, HOUR / 3);
        assert_in_range(view.reset_after_ns, HOUR - 10 * SEC, HOUR);
        tollbar_limiter_free(limiter);
    }
}

static void the_clocks_have_one_scale(void **state) {
    uint32_t clock;
    int round;
    (void)state;
    assert_in_range(tollbar_clock_is_counter(), 0, 1);
    for (round = 0; round < 1000; round++)
        for (clock = TOLLBAR_CLOCK_TSC; clock <= TOLLBAR_CLOCK_COARSE; clock++) {
            uint64_t before = monotonic(), now = 0;
            assert_int_equal(tollbar_clock_now(clock, &now), 0);
            /* The coarse clock lags by a tick, and a virtual machine may get a tick late. The
             * counter may be off by 100 ppm of the second since the last comparison. */
            assert_in_range(now, before - (clock == TOLLBAR_CLOCK_COARSE ? SEC : MS), monotonic() + MS);
        }
}

struct newer_state {
    tollbar_limiter_state known;
    uint64_t later;
};

static void c6_state_struct_sizes(void **state) {
    static const uint32_t garbage[] = {0, 71, 4097, UINT32_MAX};
    tollbar_limiter *limiter = limiter_of("5/s");
    struct newer_state newer;
    size_t i;
    (void)state;
    memset(&newer, 0x55, sizeof newer);
    for (i = 0; i < COUNT(garbage); i++) {
        newer.known.struct_size = garbage[i];
        assert_int_equal(tollbar_limiter_get_state(limiter, &newer.known), TOLLBAR_E_STRUCT_SIZE);
        assert_true(newer.known.remaining == UINT64_C(0x5555555555555555));
    }
    newer.known.struct_size = (uint32_t)sizeof newer;
    assert_int_equal(tollbar_limiter_get_state(limiter, &newer.known), 0);
    assert_int_equal(newer.known.remaining, 5);
    assert_int_equal(newer.later, 0);
    tollbar_limiter_free(limiter);
}

static void c6_options_struct_sizes(void **state) {
    static const uint32_t garbage[] = {0, 15, 4097, UINT32_MAX};
    struct {
        tollbar_limiter_options known;
        uint32_t later[2];
    } newer = {TOLLBAR_LIMITER_OPTIONS_INIT, {0, 0}};
    tollbar_policy_spec spec = spec_of("5/s");
    tollbar_limiter *limiter = NULL;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(garbage); i++) {
        newer.known.struct_size = garbage[i];
        assert_int_equal(tollbar_limiter_new(&spec, &newer.known, &limiter), TOLLBAR_E_STRUCT_SIZE);
    }
    newer.known.struct_size = (uint32_t)sizeof newer;
    newer.later[1] = 1;
    assert_int_equal(tollbar_limiter_new(&spec, &newer.known, &limiter), TOLLBAR_E_RESERVED);
    assert_null(limiter);
    newer.later[1] = 0;
    assert_int_equal(tollbar_limiter_new(&spec, &newer.known, &limiter), 0);
    tollbar_limiter_free(limiter);
}

static void limiters_live_in_the_callers_memory(void **state) {
    const size_t size = tollbar_limiter_size(), align = tollbar_limiter_align();
    char *block = malloc(size + 2 * align), *place = block;
    size_t i;
    (void)state;
    assert_non_null(block);
    assert_true(align != 0 && (align & (align - 1)) == 0);
    place += (align - (uintptr_t)block % align) % align;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, none = spec;
        tollbar_limiter *limiter = NULL;
        uint64_t passed = 0;
        assert_int_equal(tollbar_policy_spec_parse(every_algorithm[i], strlen(every_algorithm[i]), &spec, NULL), 0);
        assert_int_equal(tollbar_limiter_init_in(place, size - 1, &spec, NULL, &limiter), TOLLBAR_E_BUFFER_TOO_SMALL);
        assert_int_equal(tollbar_limiter_init_in(place + 1, size, &spec, NULL, &limiter), TOLLBAR_E_MISALIGNED);
        assert_int_equal(tollbar_limiter_init_in(NULL, size, &spec, NULL, &limiter), TOLLBAR_E_NULL);
        assert_int_equal(tollbar_limiter_init_in(place, size, NULL, NULL, &limiter), TOLLBAR_E_NULL);
        assert_int_equal(tollbar_limiter_init_in(place, size, &spec, NULL, NULL), TOLLBAR_E_NULL);
        assert_int_equal(tollbar_limiter_init_in(place, size, &none, NULL, &limiter), TOLLBAR_E_PERIOD_ZERO);
        assert_null(limiter);
        assert_int_equal(tollbar_limiter_init_in(place, size, &spec, NULL, &limiter), 0);
        assert_ptr_equal(limiter, place);
        while (tollbar_limiter_check_at(limiter, 1, 1000 * SEC, NULL) == TOLLBAR_ALLOWED)
            passed++;
        assert_int_equal(passed, at_once(i));
        tollbar_limiter_close(limiter);
    }
    tollbar_limiter_close(NULL);
    free(block);
}

/* Changes at a time of the caller, far from the clock's: a limiter without permits has none after the
 * change, from any algorithm to any other. */
static void a1_a_change_at_the_callers_time(void **state) {
    static const char *const texts[] = {
        "10/h", "10/h algo interval", "10/h algo fixed-window", "10/h algo weighted-window", "10/h algo sliding-window",
        "10/h algo sliding-log", "10/h curve ln", "10/h algo pacer",
    };
    const uint64_t now = 2 * HOUR - SEC;
    size_t from, to;
    (void)state;
    for (from = 0; from < COUNT(texts); from++)
        for (to = 0; to < COUNT(texts); to++) {
            tollbar_limiter *limiter = limiter_of(texts[from]);
            const tollbar_policy_spec next = spec_of(texts[to]);
            uint64_t taken = 0;
            (void)tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, now, &taken);
            assert_true(taken > 0);
            assert_int_equal(tollbar_limiter_set_policy_at(limiter, &next, TOLLBAR_KEEP_COUNT, now), 0);
            (void)tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, now, &taken);
            if (taken != 0)
                fail_msg("%s to %s: %u more", texts[from], texts[to], (unsigned)taken);
            tollbar_limiter_free(limiter);
        }
}

/* A limiter that has taken four of ten permits, and then changed to `to`. The changes read the
 * clock after `*now`. By at most half a second, so that at 100/min at most one permit is missing at
 * `*now`. */
static tollbar_limiter *changed(const tollbar_policy_spec *to, uint32_t keep, uint64_t *now) {
    const uint64_t begun = monotonic();
    while (monotonic() - begun < MIN) {
        tollbar_limiter *limiter = limiter_with("10/min", TOLLBAR_CLOCK_WALL, 0);
        uint64_t after = 0;
        assert_int_equal(tollbar_limiter_set_policy(limiter, &(tollbar_policy_spec){0}, keep), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_limiter_now(limiter, now), 0);
        assert_int_equal(tollbar_limiter_check_at(limiter, 4, *now, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_limiter_set_policy(limiter, to, keep), 0);
        assert_int_equal(tollbar_limiter_set_policy(limiter, to, keep), 0);
        assert_int_equal(tollbar_limiter_now(limiter, &after), 0);
        if (after - *now < SEC / 2)
            return limiter;
        tollbar_limiter_free(limiter);
    }
    fail_msg("the machine was always too slow");
    return NULL;
}

/* How many permits a limiter keeps when its policy changes depends on TOLLBAR_KEEP_. */
static void a_policy_changes_while_it_is_used(void **state) {
    static const uint64_t least[] = {5, 59, 100}, most[] = {6, 60, 100};
    tollbar_policy_spec to = spec_of("100/min"), told = TOLLBAR_POLICY_SPEC_INIT;
    uint32_t keep;
    (void)state;
    for (keep = TOLLBAR_KEEP_COUNT; keep <= TOLLBAR_KEEP_RESET; keep++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        uint64_t now = 0, taken = 0;
        tollbar_limiter *limiter = changed(&to, keep, &now);
        assert_int_equal(tollbar_limiter_get_policy(limiter, &told), 0);
        assert_memory_equal(&told, &to, sizeof told);
        assert_int_equal(tollbar_limiter_peek_at(limiter, 1, now, &got), TOLLBAR_ALLOWED);
        assert_in_range(got.remaining, least[keep], most[keep]);
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, now, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 1000, now, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, got.remaining - 1);
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, now, NULL), TOLLBAR_DENIED);
        assert_int_equal(tollbar_limiter_check_at(limiter, 101, now, NULL), TOLLBAR_NEVER);
        assert_int_equal(tollbar_limiter_set_policy(limiter, &to, TOLLBAR_KEEP_RESET + 1), TOLLBAR_E_OUT_OF_RANGE);
        tollbar_limiter_free(limiter);
    }
}

static void changes_are_bounded(void **state) {
    tollbar_limiter *limiter = limiter_of("1/s"), *credited = limiter_with_credit("1000000/s burst 10000");
    tollbar_policy_spec to = spec_of("1/s");
    (void)state;
    assert_int_equal(tollbar_limiter_set_policy(credited, &to, TOLLBAR_KEEP_COUNT), TOLLBAR_E_OPTION_MISMATCH);
    for (to.limit = 2; to.limit <= 4097; to.limit++)
        assert_int_equal(tollbar_limiter_set_policy(limiter, &to, TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(tollbar_limiter_set_policy(limiter, &to, TOLLBAR_KEEP_COUNT), TOLLBAR_E_POLICY_CHANGES);
    assert_non_null(strstr(tollbar_strerror(TOLLBAR_E_POLICY_CHANGES), "4096"));
    to.limit = 7;
    assert_int_equal(tollbar_limiter_set_policy(limiter, &to, TOLLBAR_KEEP_COUNT), 0);
    tollbar_limiter_free(limiter);
    tollbar_limiter_free(credited);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limiters_live_in_the_callers_memory),
        cmocka_unit_test(check_many_is_check_for_each),
        cmocka_unit_test(s37_bytes_are_permits),
        cmocka_unit_test(get_policy_gives_what_it_was_made_of),
        cmocka_unit_test(by_the_librarys_clock),
        cmocka_unit_test(the_clocks_have_one_scale),
        cmocka_unit_test(c6_state_struct_sizes),
        cmocka_unit_test(c6_options_struct_sizes),
        cmocka_unit_test(a_policy_changes_while_it_is_used),
        cmocka_unit_test(a1_a_change_at_the_callers_time),
        cmocka_unit_test(changes_are_bounded),
    };
    return cmocka_run_group_tests_name("limiters", tests, NULL, NULL);
}
