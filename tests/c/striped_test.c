/* Striped limiters: the calls, threads that come and go, and both sides of a fork. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a burst of 1000, 120 may be credit: 8 seats of 15. */
#define TEXT "1000/day burst 1000"
enum { BURST = 1000, CREDIT = 120, EACH = 15, AT_ONCE = BURST - CREDIT };

static tollbar_striped *striped_of(const char *text) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_striped *striped = NULL;
    int32_t code = tollbar_striped_from_text(text, &striped, &error);
    if (code != 0)
        fail_msg("\"%s\": %s at column %u", text, tollbar_errname(code), (unsigned)error.column);
    assert_non_null(striped);
    return striped;
}

static uint64_t available(const tollbar_striped *striped, uint64_t now) {
    uint64_t permits = 0;
    assert_int_equal(tollbar_striped_available_at(striped, now, &permits), 0);
    return permits;
}

static uint64_t drain(const tollbar_striped *striped, uint64_t now) {
    uint64_t taken = 0;
    while (tollbar_striped_check_at(striped, 1, now, NULL) == TOLLBAR_ALLOWED)
        taken++;
    return taken;
}

static void one_thread_gets_the_burst_without_the_credit(void **state) {
    tollbar_striped *striped = striped_of(TEXT);
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    (void)state;
    assert_int_equal(available(striped, HOUR), AT_ONCE);
    assert_int_equal(tollbar_striped_check_at(striped, AT_ONCE + 1, HOUR, NULL), TOLLBAR_NEVER);
    assert_int_equal(tollbar_striped_check_at(striped, 0, HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_striped_check_at(striped, 1, HOUR, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(decision.remaining, AT_ONCE - 1);
    assert_int_equal(available(striped, HOUR), AT_ONCE - 1);
    assert_int_equal(drain(striped, HOUR), AT_ONCE - 1);
    /* In full: when, to the nanosecond. */
    assert_int_equal(tollbar_striped_check_at(striped, 1, HOUR, &decision), TOLLBAR_DENIED);
    assert_int_equal(decision.remaining, 0);
    assert_int_equal(decision.retry_after_ns, 24 * HOUR / 1000);
    assert_int_equal(tollbar_striped_check_at(striped, 1, HOUR + decision.retry_after_ns - 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_striped_check_at(striped, 1, HOUR + decision.retry_after_ns, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_striped_reset(striped), 0);
    assert_int_equal(drain(striped, 2 * HOUR), AT_ONCE);
    tollbar_striped_free(striped);
}

static void it_has_a_clock(void **state) {
    const uint32_t clocks[] = {TOLLBAR_CLOCK_TSC, TOLLBAR_CLOCK_MONOTONIC, TOLLBAR_CLOCK_COARSE};
    tollbar_policy_spec spec = spec_of("1000/day burst 100");
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(clocks); i++) {
        tollbar_striped *striped = NULL;
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        uint64_t taken = 0, permits = 1;
        assert_int_equal(tollbar_striped_new(&spec, clocks[i], &striped), 0);
        while (tollbar_striped_check(striped, 1, NULL) == TOLLBAR_ALLOWED)
            taken++;
        /* Not a permit more within the minute and a half that one takes, if this runs as fast as that. */
        assert_in_range(taken, 90, 91);
        assert_int_equal(tollbar_striped_available(striped, &permits), 0);
        assert_int_equal(permits, 0);
        assert_int_equal(tollbar_striped_check(striped, 1, &decision), TOLLBAR_DENIED);
        assert_in_range(decision.retry_after_ns, 1, 24 * HOUR / 1000);
        tollbar_striped_free(striped);
    }
}

static void c4_arguments_are_checked(void **state) {
    const char *const refused[] = {"5/s algo pacer", "5/s algo sliding-log", "5/s borrow", "0/s"};
    tollbar_policy_spec spec = spec_of(TEXT);
    tollbar_striped *striped = NULL;
    tollbar_striped *const nothing = NULL;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    char memory[sizeof(void *) * 2];
    tollbar_striped *odd = (tollbar_striped *)(void *)(((uintptr_t)memory & ~(uintptr_t)1) + 1);
    uint64_t permits = 7;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(refused); i++) {
        tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
        tollbar_policy_spec other = spec_of(refused[i]);
        assert_int_equal(tollbar_striped_from_text(refused[i], &striped, &error), TOLLBAR_E_OPTION_MISMATCH);
        assert_int_equal(tollbar_striped_from_text(refused[i], &striped, NULL), TOLLBAR_E_OPTION_MISMATCH);
        assert_int_equal(tollbar_striped_new(&other, 0, &striped), TOLLBAR_E_OPTION_MISMATCH);
    }
    assert_int_equal(tollbar_striped_new(NULL, 0, &striped), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_new(&spec, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_new(&spec, 4, &striped), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_striped_from_text(NULL, &striped, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_from_text(TEXT, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_from_text("1000/parsec", &striped, NULL), TOLLBAR_E_SYNTAX);
    assert_null(striped);
    assert_int_equal(tollbar_striped_check(nothing, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_check_at(nothing, 1, SEC, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_available(nothing, &permits), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_available_at(nothing, SEC, &permits), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_reset(nothing), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_striped_check_at(odd, 1, SEC, NULL), TOLLBAR_E_MISALIGNED);
    striped = striped_of(TEXT);
    assert_int_equal(tollbar_striped_available_at(striped, SEC, NULL), TOLLBAR_E_NULL);
    decision.struct_size = 3;
    assert_int_equal(tollbar_striped_check_at(striped, 1, SEC, &decision), TOLLBAR_E_STRUCT_SIZE);
    /* And nothing was charged. */
    assert_int_equal(available(striped, SEC), AT_ONCE);
    assert_int_equal(permits, 7);
    tollbar_striped_free(striped);
    tollbar_striped_free(NULL);
}

struct job {
    const tollbar_striped *striped;
    pthread_barrier_t *start;
    uint64_t most, taken;
};

/* Takes up to `most`, one by one, at one instant. */
static void *take(void *argument) {
    struct job *job = argument;
    if (job->start != NULL)
        pthread_barrier_wait(job->start);
    while (job->taken < job->most && tollbar_striped_check_at(job->striped, 1, HOUR, NULL) == TOLLBAR_ALLOWED)
        job->taken++;
    return NULL;
}

static void threads_together_get_the_burst_without_the_credit(void **state) {
    enum { THREADS = 16, ROUNDS = 50 };
    int round;
    (void)state;
    for (round = 0; round < ROUNDS; round++) {
        tollbar_striped *striped = striped_of("100000/day burst 100000");
        uint64_t at_once = available(striped, HOUR), taken = 0;
        pthread_barrier_t start;
        pthread_t threads[THREADS];
        struct job jobs[THREADS];
        int i;
        assert_in_range(at_once, 100000 - 100000 / 8, 100000);
        assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
        for (i = 0; i < THREADS; i++) {
            const struct job job = {striped, &start, UINT64_MAX, 0};
            jobs[i] = job;
            assert_int_equal(pthread_create(&threads[i], NULL, take, &jobs[i]), 0);
        }
        for (i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            taken += jobs[i].taken;
        }
        pthread_barrier_destroy(&start);
        assert_int_equal(taken, at_once);
        assert_int_equal(drain(striped, HOUR), 0);
        tollbar_striped_free(striped);
    }
}

/* What threads that ended leave is credit, C at most, and not handed out twice. */
static void threads_that_end_leave_their_credit(void **state) {
    tollbar_striped *striped = striped_of(TEXT);
    uint64_t taken = 0;
    int i;
    (void)state;
    for (i = 0; i < 200; i++) {
        struct job job = {striped, NULL, 1, 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take, &job), 0);
        pthread_join(thread, NULL);
        taken += job.taken;
    }
    assert_int_equal(taken, 200);
    taken += drain(striped, HOUR);
    assert_in_range(taken, AT_ONCE - CREDIT, AT_ONCE);
    tollbar_striped_free(striped);
}

/* A limiter where another was is a new one: no credit comes with the memory, or the thread. */
static void limiters_come_and_go(void **state) {
    tollbar_striped *many[100];
    int round;
    size_t i;
    (void)state;
    for (round = 0; round < 20; round++) {
        for (i = 0; i < COUNT(many); i++) {
            many[i] = striped_of(TEXT);
            assert_int_equal(tollbar_striped_check_at(many[i], 1, HOUR, NULL), TOLLBAR_ALLOWED);
        }
        for (i = 0; i < COUNT(many); i++) {
            assert_int_equal(available(many[i], HOUR), AT_ONCE - 1);
            tollbar_striped_free(many[i]);
        }
    }
}

/* As with a limiter: each side has what there was, its thread's credit included, and no more. */
static void c5_they_go_on_in_parent_and_child(void **state) {
    tollbar_striped *striped = striped_of(TEXT);
    int status = 0;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_striped_check_at(striped, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = drain(striped, HOUR) != AT_ONCE - 1;
        struct job job = {striped, NULL, UINT64_MAX, 0};
        pthread_t thread;
        /* A new thread of the child's finds nothing more. */
        wrong |= pthread_create(&thread, NULL, take, &job) != 0 || pthread_join(thread, NULL) != 0 || job.taken != 0;
        tollbar_striped_free(striped);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(drain(striped, HOUR), AT_ONCE - 1);
    tollbar_striped_free(striped);
}

/* Threads of the parent's that the child has not: their credit is not the child's to find. */
static void c5_a_child_has_no_other_threads_credit(void **state) {
    tollbar_striped *striped = striped_of(TEXT);
    struct job job = {striped, NULL, 1, 0};
    uint64_t left;
    int status = 0;
    pthread_t thread;
    pid_t child;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, take, &job), 0);
    pthread_join(thread, NULL);
    left = available(striped, HOUR);
    assert_in_range(left, AT_ONCE - 1 - EACH, AT_ONCE - 1);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(drain(striped, HOUR) != left);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(drain(striped, HOUR), left);
    tollbar_striped_free(striped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_gets_the_burst_without_the_credit),
        cmocka_unit_test(it_has_a_clock),
        cmocka_unit_test(c4_arguments_are_checked),
        cmocka_unit_test(threads_together_get_the_burst_without_the_credit),
        cmocka_unit_test(threads_that_end_leave_their_credit),
        cmocka_unit_test(limiters_come_and_go),
        cmocka_unit_test(c5_they_go_on_in_parent_and_child),
        cmocka_unit_test(c5_a_child_has_no_other_threads_credit),
    };
    return cmocka_run_group_tests_name("striped", tests, NULL, NULL);
}
