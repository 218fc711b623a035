/* Limiters with credit: the calls, threads that end, the callers' memory, and both sides of a
 * fork. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* At most 120 permits of a burst of 1000 are credit: 8 stripes of 15. */
#define TEXT "1000/day burst 1000"
enum { BURST = 1000, CREDIT = 120, EACH = 15, AT_ONCE = BURST - CREDIT };

/* The permits that the calling thread could take, one by one. */
static uint64_t available(const tollbar_limiter *limiter, uint64_t now) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    assert_in_range(tollbar_limiter_peek_at(limiter, 1, now, &decision), 0, 1);
    return decision.remaining;
}

static uint64_t drain(const tollbar_limiter *limiter, uint64_t now) {
    uint64_t taken = 0;
    while (tollbar_limiter_check_at(limiter, 1, now, NULL) == TOLLBAR_ALLOWED)
        taken++;
    return taken;
}

/* Every other call spends the thread's credit first, and then the permits that all threads
 * share. */
static void other_calls_spend_credit_too(void **state) {
    tollbar_limiter *limiter = limiter_with_credit(TEXT);
    const uint64_t gap = 24 * HOUR / 1000;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t results[20];
    uint64_t permits = 0;
    tollbar_reservation booked = {7, 7, 7};
    int i;
    (void)state;
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    /* Credit pays for five permits: of a batch, of a booking, and of take_up_to. */
    assert_int_equal(tollbar_limiter_check_many_at(limiter, NULL, 2, HOUR, results), 0);
    assert_int_equal(tollbar_limiter_reserve_at(limiter, 2, 0, HOUR, &booked), TOLLBAR_ALLOWED);
    assert_int_equal(booked.wait_ns, 0);
    assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 1, HOUR, &permits), TOLLBAR_ALLOWED);
    assert_int_equal(permits, 1);
    assert_int_equal(available(limiter, HOUR), AT_ONCE - 6);
    /* The batch takes more permits than the credit has. */
    assert_int_equal(tollbar_limiter_check_many_at(limiter, NULL, COUNT(results), HOUR, results), 0);
    for (i = 0; i < (int)COUNT(results); i++)
        assert_int_equal(results[i], TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, HOUR, &permits), TOLLBAR_ALLOWED);
    assert_int_equal(permits, AT_ONCE - 6 - COUNT(results));
    assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 1, HOUR, &permits), TOLLBAR_DENIED);
    assert_int_equal(permits, 0);
    /* Bookings are exact to the nanosecond, and a refused booking is not charged. */
    assert_int_equal(tollbar_limiter_reserve_at(limiter, 3, 3 * gap - 1, HOUR, &booked), TOLLBAR_DENIED);
    assert_int_equal(tollbar_limiter_reserve_at(limiter, 3, 3 * gap, HOUR, &booked), TOLLBAR_ALLOWED);
    assert_int_equal(booked.wait_ns, 3 * gap);
    assert_int_equal(tollbar_limiter_reserve_at(limiter, AT_ONCE + 1, UINT64_MAX, HOUR, &booked), TOLLBAR_NEVER);
    assert_int_equal(tollbar_limiter_peek_at(limiter, 1, HOUR, &decision), TOLLBAR_DENIED);
    assert_int_equal(decision.retry_after_ns, 4 * gap);
    /* Every call has counted once: 1 + 2 + 1 + 1 + 20 + 1 + 1 were admitted, and two refused, and
     * one never. */
    assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    assert_int_equal(view.allowed, 27);
    assert_int_equal(view.denied, 2);
    assert_int_equal(view.never, 1);
    assert_int_equal(tollbar_limiter_get_policy(limiter, &spec), 0);
    assert_int_equal(spec.burst, BURST);
    tollbar_limiter_free(limiter);
}

static void c4_arguments_are_checked(void **state) {
    const char *const refused[] = {"5/s algo pacer", "5/s algo sliding-log", "5/s algo fixed-window", "5/s borrow", "0/s", "50/s ban 1min"};
    tollbar_policy_spec spec = spec_of(TEXT);
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    size_t i;
    (void)state;
    options.credit = TOLLBAR_CREDIT_ON;
    for (i = 0; i < COUNT(refused); i++) {
        tollbar_policy_spec other = spec_of(refused[i]);
        assert_int_equal(tollbar_limiter_new(&other, &options, &limiter), TOLLBAR_E_OPTION_MISMATCH);
        assert_null(limiter);
    }
    for (options.credit = TOLLBAR_CREDIT_ON + 1; options.credit != 0; options.credit *= 2)
        assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), TOLLBAR_E_OUT_OF_RANGE);
    assert_null(limiter);
    limiter = limiter_with_credit(TEXT);
    decision.struct_size = 3;
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, SEC, &decision), TOLLBAR_E_STRUCT_SIZE);
    /* The calls have charged nothing. */
    assert_int_equal(available(limiter, SEC), AT_ONCE);
    tollbar_limiter_free(limiter);
}

/* The limiter is in the caller's memory. The credit is in other memory, which _close frees. */
static void it_may_lie_in_the_callers_memory(void **state) {
    tollbar_policy_spec spec = spec_of(TEXT);
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    const size_t align = tollbar_limiter_align(), size = tollbar_limiter_size();
    char *block = malloc(size + align);
    void *memory = (void *)(((uintptr_t)block + align - 1) & ~(uintptr_t)(align - 1));
    (void)state;
    options.credit = TOLLBAR_CREDIT_ON;
    assert_int_equal(tollbar_limiter_init_in(memory, size, &spec, &options, &limiter), 0);
    assert_int_equal(drain(limiter, HOUR), AT_ONCE);
    tollbar_limiter_close(limiter);
    free(block);
}

struct job {
    const tollbar_limiter *limiter;
    pthread_barrier_t *start;
    uint64_t most, taken;
};

/* Takes up to `most`, one by one, at one instant. */
static void *take(void *argument) {
    struct job *job = argument;
    if (job->start != NULL)
        pthread_barrier_wait(job->start);
    while (job->taken < job->most && tollbar_limiter_check_at(job->limiter, 1, HOUR, NULL) == TOLLBAR_ALLOWED)
        job->taken++;
    return NULL;
}

/* Threads that end leave unspent credit, at most CREDIT. No other thread gets it. */
static void threads_that_end_leave_their_credit(void **state) {
    tollbar_limiter *limiter = limiter_with_credit(TEXT);
    uint64_t taken = 0;
    int i;
    (void)state;
    for (i = 0; i < 200; i++) {
        struct job job = {limiter, NULL, 1, 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take, &job), 0);
        pthread_join(thread, NULL);
        taken += job.taken;
    }
    assert_int_equal(taken, 200);
    taken += drain(limiter, HOUR);
    assert_in_range(taken, AT_ONCE - CREDIT, AT_ONCE);
    tollbar_limiter_free(limiter);
}

/* After a fork each process has the permits that were left, with the forking thread's credit, and
 * no more. */
static void c5_they_go_on_in_parent_and_child(void **state) {
    tollbar_limiter *limiter = limiter_with_credit(TEXT);
    int status = 0;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = drain(limiter, HOUR) != AT_ONCE - 1;
        struct job job = {limiter, NULL, UINT64_MAX, 0};
        pthread_t thread;
        /* A new thread of the child finds no permits. */
        wrong |= pthread_create(&thread, NULL, take, &job) != 0 || pthread_join(thread, NULL) != 0 || job.taken != 0;
        tollbar_limiter_free(limiter);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(drain(limiter, HOUR), AT_ONCE - 1);
    tollbar_limiter_free(limiter);
}

/* The child does not have the parent's other threads, and its thread cannot spend their credit. */
static void c5_a_child_has_no_other_threads_credit(void **state) {
    tollbar_limiter *limiter = limiter_with_credit(TEXT);
    struct job job = {limiter, NULL, 1, 0};
    uint64_t left;
    int status = 0;
    pthread_t thread;
    pid_t child;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, take, &job), 0);
    pthread_join(thread, NULL);
    left = available(limiter, HOUR);
    assert_in_range(left, AT_ONCE - 1 - EACH, AT_ONCE - 1);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(drain(limiter, HOUR) != left);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(drain(limiter, HOUR), left);
    tollbar_limiter_free(limiter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_calls_spend_credit_too),
        cmocka_unit_test(c4_arguments_are_checked),
        cmocka_unit_test(it_may_lie_in_the_callers_memory),
        cmocka_unit_test(threads_that_end_leave_their_credit),
        cmocka_unit_test(c5_they_go_on_in_parent_and_child),
        cmocka_unit_test(c5_a_child_has_no_other_threads_credit),
    };
    return cmocka_run_group_tests_name("limiter_credit", tests, NULL, NULL);
}
