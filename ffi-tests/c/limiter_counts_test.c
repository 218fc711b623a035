/* A limiter's counts of decisions by verdict, of all calls and threads. */
#define _POSIX_C_SOURCE 200809L /* fork */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define assert_counts(counts, a, d, n) \
    do { \
        assert_int_equal((counts).allowed, a); \
        assert_int_equal((counts).denied, d); \
        assert_int_equal((counts).never, n); \
    } while (0)

static tollbar_limiter_state state_of(const tollbar_limiter *limiter) {
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    return view;
}

/* Each call that decides counts once, by the verdict that it returns, under every algorithm. */
static void each_call_counts_once(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = limiter_of(every_algorithm[i]);
        uint64_t told[3] = {0, 0, 0}, permits, n;
        tollbar_reservation booked;
        tollbar_decision out = TOLLBAR_DECISION_INIT;
        int32_t results[3], code;
        for (n = 0; n < 300; n++) {
            const uint64_t now = HOUR + n * 20 * MS, cost = n % 7 == 0 ? 6 : n % 7 == 1 ? 0 : 1;
            switch (n % 6) {
            case 0: code = tollbar_limiter_check_at(limiter, cost, now, NULL); break;
            case 1: code = tollbar_limiter_check_at(limiter, cost, now, &out); break;
            case 2: code = tollbar_limiter_take_up_to_at(limiter, 2, now, &permits); break;
            case 3: code = tollbar_limiter_reserve_at(limiter, cost, 0, now, &booked); break;
            case 4: code = tollbar_limiter_check(limiter, cost, NULL); break;
            default:
                assert_int_equal(tollbar_limiter_check_many_at(limiter, NULL, 3, now, results), 0);
                told[results[0]]++;
                told[results[1]]++;
                code = results[2];
            }
            assert_in_range(code, 0, 2);
            told[code]++;
            /* Peeks and errors are not counted. */
            assert_in_range(tollbar_limiter_peek_at(limiter, cost, now, NULL), 0, 2);
            assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 2, now, NULL), TOLLBAR_E_NULL);
            assert_counts(state_of(limiter), told[0], told[1], told[2]);
        }
        assert_true(told[0] > 0 && told[1] > 0 && told[2] > 0);
        assert_int_equal(tollbar_limiter_reset(limiter), 0);
        assert_counts(state_of(limiter), told[0], told[1], told[2]);
        tollbar_limiter_free(limiter);
    }
}

static void ten_refusals_raise_one_number_by_ten(void **state) {
    tollbar_limiter *limiter = limiter_of("3/h");
    tollbar_limiter *credited = limiter_with_credit("3/h");
    int i;
    (void)state;
    for (i = 0; i < 13; i++) {
        const int32_t want = i < 3 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED;
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, HOUR, NULL), want);
        assert_int_equal(tollbar_limiter_check_at(credited, 1, HOUR, NULL), want);
    }
    assert_counts(state_of(limiter), 3, 10, 0);
    assert_counts(state_of(credited), 3, 10, 0);
    assert_int_equal(tollbar_limiter_check_at(credited, 4, HOUR, NULL), TOLLBAR_NEVER);
    assert_counts(state_of(credited), 3, 10, 1);
    assert_int_equal(tollbar_limiter_wait(limiter, 4, MIN, NULL), TOLLBAR_NEVER);
    assert_int_equal(tollbar_limiter_wait(limiter, 0, MIN, NULL), TOLLBAR_ALLOWED);
    assert_counts(state_of(limiter), 4, 10, 1);
    tollbar_limiter_free(credited);
    tollbar_limiter_free(limiter);
}

/* A child counts on from its parent's counts, in its own copy. */
static void a_child_counts_for_itself(void **state) {
    tollbar_limiter *limiter = limiter_of("3/h");
    pid_t child;
    int status;
    (void)state;
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
        tollbar_limiter_check_at(limiter, 1, HOUR, NULL);
        _exit(tollbar_limiter_get_state(limiter, &view) != 0 || view.allowed != 2 || view.denied != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_counts(state_of(limiter), 1, 0, 0);
    tollbar_limiter_free(limiter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_counts_once),
        cmocka_unit_test(ten_refusals_raise_one_number_by_ten),
        cmocka_unit_test(a_child_counts_for_itself),
    };
    return cmocka_run_group_tests_name("a limiter's decisions counted", tests, NULL, NULL);
}
