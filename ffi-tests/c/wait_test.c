/* Waits on the real clock. The upper bounds of times are wide, because a busy machine makes every
 * sleep longer. The lower bounds are exact. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static void nap(uint64_t ns) {
    struct timespec time;
    time.tv_sec = (time_t)(ns / SEC);
    time.tv_nsec = (long)(ns % SEC);
    nanosleep(&time, NULL);
}

static void s16_take_with_wait(void **state) {
    tollbar_limiter *limiter = limiter_of("20/s burst 1");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t begun = monotonic();
    int i;
    (void)state;
    for (i = 0; i < 4; i++) {
        assert_int_equal(tollbar_limiter_wait(limiter, 1, MIN, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.verdict, TOLLBAR_ALLOWED);
        assert_int_equal(got.retry_after_ns, 0);
    }
    /* Three intervals of 50 ms, less the difference of two readings of two clocks. */
    assert_in_range(monotonic() - begun, 150 * MS - MS, MIN);
    tollbar_limiter_free(limiter);
}

static void *wait_for_one(void *limiter) {
    static int32_t refused = 1;
    return tollbar_limiter_wait(limiter, 1, MIN, NULL) == TOLLBAR_ALLOWED ? NULL : &refused;
}

enum { CAP = 3 };

/* CAP threads sleep, so a further caller is refused although it has enough patience. Returns the
 * least time that a refusal took, or UINT64_MAX if the machine was so slow that sleepers had
 * returned before. */
static uint64_t refuse_above_the_cap(void) {
    tollbar_limiter *limiter = limiter_with("1/300ms burst 1", TOLLBAR_CLOCK_MONOTONIC, CAP);
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    uint64_t least = UINT64_MAX;
    pthread_t threads[CAP];
    void *refused;
    int i;
    assert_int_equal(tollbar_limiter_check(limiter, 1, NULL), TOLLBAR_ALLOWED);
    for (i = 0; i < CAP; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, limiter), 0);
    for (i = 0; i < 250 && view.waiting < CAP; i++) {
        nap(MS);
        tollbar_limiter_get_state(limiter, &view);
    }
    for (i = 0; i < 20 && view.waiting == CAP; i++) {
        uint64_t begun = monotonic(), took;
        int32_t verdict = tollbar_limiter_wait(limiter, 1, MIN, NULL);
        took = monotonic() - begun;
        tollbar_limiter_get_state(limiter, &view);
        /* CAP callers sleep after the refusal, and no other caller has come, so CAP callers slept
         * during it. */
        if (view.waiting == CAP) {
            assert_int_equal(verdict, TOLLBAR_DENIED);
            least = took < least ? took : least;
        }
    }
    for (i = 0; i < CAP; i++) {
        assert_int_equal(pthread_join(threads[i], &refused), 0);
        assert_null(refused);
    }
    tollbar_limiter_get_state(limiter, &view);
    assert_int_equal(view.waiting, 0);
    tollbar_limiter_free(limiter);
    return least;
}

static void s21_sleepers_are_bounded(void **state) {
    uint64_t least = UINT64_MAX;
    const uint64_t begun = monotonic();
    (void)state;
    /* A call that slept would take an interval in each try. A busy machine may make a refusal late
     * in most of them. */
    while (least > MS && monotonic() - begun < MIN)
        least = refuse_above_the_cap();
    assert_in_range(least, 0, MS);
}

/* Callers that wait in one queue, started 20 ms apart. Each writes its number when it has its
 * permit. */
enum { QUEUED = 6 };

static struct {
    tollbar_limiter *limiter;
    pthread_mutex_t lock;
    int order[QUEUED], done;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *takes_its_turn(void *number) {
    static int32_t refused = 1;
    int32_t verdict = tollbar_limiter_wait(queue.limiter, 1, MIN, NULL);
    pthread_mutex_lock(&queue.lock);
    queue.order[queue.done++] = *(int *)number;
    pthread_mutex_unlock(&queue.lock);
    return verdict == TOLLBAR_ALLOWED ? NULL : &refused;
}

static void handled(int signal) {
    (void)signal;
}

/* Whether QUEUED threads that begin to wait one after the other end in this order. Signals arrive
 * before the first one passes, and nobody wakes early. */
static int in_order(const char *text) {
    pthread_t threads[QUEUED];
    int numbers[QUEUED], n, ordered = 1;
    uint64_t begun;
    queue.limiter = limiter_of(text);
    queue.done = 0;
    begun = monotonic();
    assert_int_equal(tollbar_limiter_check(queue.limiter, 1, NULL), TOLLBAR_ALLOWED);
    for (n = 0; n < QUEUED; n++) {
        tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
        numbers[n] = n;
        assert_int_equal(pthread_create(&threads[n], NULL, takes_its_turn, &numbers[n]), 0);
        /* The next thread is created when this one waits in the queue. On a slow machine it may
         * have its permit by then. */
        while (view.waiting + (uint32_t)__atomic_load_n(&queue.done, __ATOMIC_SEQ_CST) < (uint32_t)n + 1) {
            assert_int_equal(tollbar_limiter_get_state(queue.limiter, &view), 0);
            nap(MS / 10);
        }
    }
    for (n = 0; n < 100; n++) {
        if (__atomic_load_n(&queue.done, __ATOMIC_SEQ_CST) == 0)
            pthread_kill(threads[n % QUEUED], SIGUSR1);
        nap(MS / 2);
    }
    for (n = 0; n < QUEUED; n++) {
        void *refused;
        assert_int_equal(pthread_join(threads[n], &refused), 0);
        assert_null(refused);
        ordered &= queue.order[n] == n;
    }
    /* Six intervals, less the difference of two readings of two clocks. */
    assert_in_range(monotonic() - begun, QUEUED * 100 * MS - MS, 2 * MIN);
    tollbar_limiter_free(queue.limiter);
    return ordered;
}

/* Nobody is overtaken, whether or not the algorithm books ahead. A thread that the machine stops
 * between its permit and its note for an interval notes late, so another try follows, for a
 * minute. */
static void a2_callers_wait_in_a_queue(void **state) {
    static const char *const texts[] = {"10/s burst 1", "10/s algo pacer", "1/100ms algo sliding-log",
                                        "1/100ms algo fixed-window anchor first"};
    struct sigaction action, old;
    size_t i;
    (void)state;
    memset(&action, 0, sizeof action);
    action.sa_handler = handled;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    for (i = 0; i < COUNT(texts); i++) {
        const uint64_t begun = monotonic();
        int ordered = 0;
        while (!ordered && monotonic() - begun < MIN)
            ordered = in_order(texts[i]);
        assert_true(ordered);
    }
    sigaction(SIGUSR1, &old, NULL);
}

#ifdef __linux__
static void *is_cancelled(void *limiter) {
    int32_t verdict = tollbar_limiter_wait(limiter, 1, MIN, NULL);
    int ignored;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
    return verdict == TOLLBAR_ALLOWED ? NULL : limiter;
}

/* A cancelled thread ends its wait first, so it leaves no place in the queue. */
static void a2_a_wait_is_no_cancellation_point(void **state) {
    tollbar_limiter *limiter = limiter_of("10/s burst 1");
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    pthread_t threads[3];
    void *got;
    size_t n;
    (void)state;
    assert_int_equal(tollbar_limiter_check(limiter, 1, NULL), TOLLBAR_ALLOWED);
    for (n = 0; n < COUNT(threads); n++)
        assert_int_equal(pthread_create(&threads[n], NULL, is_cancelled, limiter), 0);
    for (n = 0; n < 1000 && view.waiting == 0; n++) {
        nap(MS / 10);
        assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    }
    for (n = 0; n < COUNT(threads); n++)
        pthread_cancel(threads[n]);
    for (n = 0; n < COUNT(threads); n++) {
        assert_int_equal(pthread_join(threads[n], &got), 0);
        assert_null(got);
    }
    assert_int_equal(tollbar_limiter_wait(limiter, 1, MIN, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    assert_int_equal(view.waiting, 0);
    tollbar_limiter_free(limiter);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s16_take_with_wait),
        cmocka_unit_test(s21_sleepers_are_bounded),
        cmocka_unit_test(a2_callers_wait_in_a_queue),
#ifdef __linux__
        cmocka_unit_test(a2_a_wait_is_no_cancellation_point),
#endif
    };
    return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
