/* [C5] Which calls allocate or sleep, and [C7] that none aborts when there is no memory.
 *
 * For the archive only: it is linked with --wrap for the functions below, so that every call that the
 * library makes of them comes here, and nobody else's. */
#include "test.h"

#include <time.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_posix_memalign(void **block, size_t align, size_t size);
void __real_free(void *block);
int __real_nanosleep(const struct timespec *time, struct timespec *rest);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void **block, size_t align, size_t size);
void __wrap_free(void *block);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

/* Only what is called between on() and off() is the library's: cmocka and this file are linked with the
 * same option. */
static struct {
    int watching;
    unsigned allocations;
    unsigned frees;
    unsigned sleeps;
    /* The allocation that fails, from 1; 0: none. */
    unsigned fails;
} seen;

static void on(unsigned fails) {
    memset(&seen, 0, sizeof seen);
    seen.fails = fails;
    seen.watching = 1;
}

static void off(void) {
    seen.watching = 0;
}

static int refuses(void) {
    return seen.watching && ++seen.allocations == seen.fails;
}

void *__wrap_malloc(size_t size) {
    return refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return refuses() ? NULL : __real_calloc(count, size);
}

int __wrap_posix_memalign(void **block, size_t align, size_t size) {
    return refuses() ? 12 : __real_posix_memalign(block, align, size);
}

void __wrap_free(void *block) {
    if (seen.watching && block != NULL)
        seen.frees++;
    __real_free(block);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest) {
    if (seen.watching)
        seen.sleeps++;
    return __real_nanosleep(time, rest);
}

static void c5_no_decision_allocates_or_sleeps(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = limiter_of(every_algorithm[i]);
        tollbar_policy *policy = policy_of("5/s");
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
        tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        tollbar_cell cell = TOLLBAR_CELL_INIT;
        char line[TOLLBAR_POLICY_TEXT_MAX];
        uint64_t number = 0;
        int32_t results[4];
        int round;
        on(0);
        for (round = 0; round < 20; round++) {
            tollbar_limiter_check(limiter, 1, &got);
            tollbar_limiter_peek(limiter, 1, &got);
            tollbar_limiter_check_many(limiter, NULL, 4, results);
            tollbar_limiter_take_up_to(limiter, 9, &number);
            tollbar_limiter_check_at(limiter, (uint64_t)round * SEC, 1, &got);
            tollbar_limiter_peek_at(limiter, (uint64_t)round * SEC, 9, &got);
            tollbar_limiter_reserve_at(limiter, (uint64_t)round * SEC, 1, SEC, &number);
            tollbar_limiter_get_state(limiter, &view);
            tollbar_limiter_get_policy(limiter, &spec);
            tollbar_limiter_wait(limiter, 1, 0, &got);
            tollbar_limiter_reset(limiter);
            tollbar_cell_check(&cell, policy, 1, &got);
            tollbar_cell_take_up_to_at(&cell, policy, SEC, 9, &number);
            tollbar_cell_check_many_at(&cell, 1, policy, SEC, 9, results);
            tollbar_cell_reset(&cell);
            tollbar_policy_spec_check(&spec);
            tollbar_policy_spec_print(&spec, line, sizeof line, NULL);
            tollbar_policy_spec_parse("wrong", 5, &spec, NULL);
        }
        off();
        assert_int_equal(seen.allocations, 0);
        assert_int_equal(seen.frees, 0);
        assert_int_equal(seen.sleeps, 0);
        tollbar_policy_free(policy);
        tollbar_limiter_free(limiter);
    }
}

static void what_is_made_is_freed(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = NULL;
        on(0);
        assert_int_equal(tollbar_limiter_from_text(every_algorithm[i], &limiter, NULL), 0);
        tollbar_limiter_free(limiter);
        off();
        assert_true(seen.allocations > 0);
        assert_int_equal(seen.allocations, seen.frees);
    }
}

static void without_memory_it_is_an_error(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        unsigned fails = 0;
        int32_t code;
        do {
            tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
            tollbar_limiter *limiter = NULL;
            on(++fails);
            code = tollbar_limiter_from_text(every_algorithm[i], &limiter, &error);
            off();
            assert_true(code == 0 || code == TOLLBAR_E_NO_MEMORY);
            assert_true((code == 0) == (limiter != NULL));
            assert_int_equal(error.code, code);
            /* The allocation that failed is the only one without its free. */
            assert_int_equal(seen.allocations, seen.frees + (code == 0 ? fails - 1 : 1));
            tollbar_limiter_free(limiter);
        } while (code != 0);
        assert_true(fails > 1);
    }
}

static void policies_too(void **state) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy_spec spec = spec_of("5/s");
    tollbar_policy *policy = NULL;
    (void)state;
    on(1);
    assert_int_equal(tollbar_policy_new(&spec, &policy), TOLLBAR_E_NO_MEMORY);
    on(1);
    assert_int_equal(tollbar_policy_from_text("5/s", &policy, &error), TOLLBAR_E_NO_MEMORY);
    off();
    assert_null(policy);
    assert_int_equal(error.code, TOLLBAR_E_NO_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_no_decision_allocates_or_sleeps),
        cmocka_unit_test(what_is_made_is_freed),
        cmocka_unit_test(without_memory_it_is_an_error),
        cmocka_unit_test(policies_too),
    };
    return cmocka_run_group_tests_name("allocations", tests, NULL, NULL);
}
