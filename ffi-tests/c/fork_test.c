/* [C5] After a fork, parent and child can use all objects. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child reports by its exit status, because a failed assertion in it would jump into the parent's
 * code. */
static int status_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void c5_limiters_go_on_in_parent_and_child(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = limiter_of(every_algorithm[i]);
        uint64_t left = 0;
        pid_t child;
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, SEC, NULL), TOLLBAR_ALLOWED);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            /* The child has its own copy. It is fresh again 10 s later, and the child's requests do
             * not charge the parent's. */
            int wrong = tollbar_limiter_check_at(limiter, 1, 11 * SEC, NULL) != TOLLBAR_ALLOWED;
            while (tollbar_limiter_check_at(limiter, 1, 11 * SEC, NULL) == TOLLBAR_ALLOWED)
                continue;
            tollbar_limiter_free(limiter);
            _exit(wrong);
        }
        assert_int_equal(status_of(child), 0);
        while (tollbar_limiter_check_at(limiter, 1, SEC, NULL) == TOLLBAR_ALLOWED)
            left++;
        assert_int_equal(left, i >= TOLLBAR_ALGORITHM_PACER ? 0 : 4);
        tollbar_limiter_free(limiter);
    }
}

static void *sleeps(void *limiter) {
    tollbar_limiter_wait(limiter, 1, 700 * MS, NULL);
    return NULL;
}

static void *sleeps_long(void *limiter) {
    tollbar_limiter_wait(limiter, 1, MIN, NULL);
    return NULL;
}

static uint32_t sleepers(const tollbar_limiter *limiter) {
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    return view.waiting;
}

/* A thread of the parent has the only place for a sleeper. The child has no such thread, so its
 * caller gets a place. Returns 0, and has shown nothing, if the machine was so slow that the thread
 * had its permit before. */
static int a_child_sleeps_beside(tollbar_limiter *limiter) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    pthread_t thread;
    pid_t child;
    int tries, slept, wrong;
    int32_t verdict;
    assert_int_equal(tollbar_limiter_check(limiter, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(pthread_create(&thread, NULL, sleeps_long, limiter), 0);
    for (tries = 0; tries < 900 && sleepers(limiter) == 0; tries++)
        usleep(1000);
    /* The thread sleeps for up to a second, so another caller of this process gets no place. */
    verdict = tollbar_limiter_wait(limiter, 1, MIN, &decision);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(tollbar_limiter_wait(limiter, 1, MIN, NULL) != TOLLBAR_ALLOWED);
    slept = sleepers(limiter) == 1;
    wrong = status_of(child);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    if (slept) {
        assert_int_equal(verdict, TOLLBAR_DENIED);
        assert_int_equal(decision.reason, TOLLBAR_REASON_QUEUE_FULL);
    }
    assert_int_equal(tollbar_limiter_wait(limiter, 1, MIN, NULL), TOLLBAR_ALLOWED);
    return slept;
}

static void c5_a_child_has_none_of_its_parents_sleepers(void **state) {
    int tries, slept = 0;
    (void)state;
    for (tries = 0; tries < 20 && !slept; tries++) {
        tollbar_limiter *limiter = limiter_with("1/s burst 1", TOLLBAR_CLOCK_TSC, 1);
        slept = a_child_sleeps_beside(limiter);
        tollbar_limiter_free(limiter);
    }
    assert_true(slept);
}

/* A child is born while threads of its parent wait, and may hold the queue's lock. Its own callers
 * wait in a queue of their own. */
static void a2_a_child_has_a_queue_of_its_own(void **state) {
    enum { CHILDREN = 20 };
    tollbar_limiter *limiter = limiter_with("200/s burst 1", TOLLBAR_CLOCK_TSC, 0);
    pthread_t threads[4];
    size_t i;
    (void)state;
    for (i = 0; i < CHILDREN; i++) {
        size_t n;
        pid_t child;
        for (n = 0; n < COUNT(threads); n++)
            assert_int_equal(pthread_create(&threads[n], NULL, sleeps, limiter), 0);
        usleep((useconds_t)(i * 700));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
            int wrong = 0, call;
            for (call = 0; call < 3; call++)
                wrong |= tollbar_limiter_wait(limiter, 1, 10 * SEC, NULL) != TOLLBAR_ALLOWED;
            tollbar_limiter_get_state(limiter, &view);
            tollbar_limiter_free(limiter);
            _exit(wrong || view.waiting != 0);
        }
        for (n = 0; n < COUNT(threads); n++)
            pthread_join(threads[n], NULL);
        assert_int_equal(status_of(child), 0);
    }
    tollbar_limiter_free(limiter);
}

static void c5_the_clock_goes_on_in_parent_and_child(void **state) {
    uint64_t before = 0, after = 0;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_clock_now(TOLLBAR_CLOCK_TSC, &before), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t now = 0, system = monotonic();
        int wrong = tollbar_clock_now(TOLLBAR_CLOCK_TSC, &now) != 0;
        _exit(wrong || now < before || now + MS < system || now > monotonic() + MS);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(tollbar_clock_now(TOLLBAR_CLOCK_TSC, &after), 0);
    assert_true(after > before);
}

static void c5_waiting_goes_on_in_parent_and_child(void **state) {
    tollbar_limiter *limiter = limiter_of("20/s burst 1");
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_limiter_check(limiter, 1, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(tollbar_limiter_wait(limiter, 2, MIN, NULL) != TOLLBAR_NEVER ||
              tollbar_limiter_wait(limiter, 1, MIN, NULL) != TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_wait(limiter, 1, MIN, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(tollbar_limiter_get_state(limiter, &view), 0);
    assert_int_equal(view.waiting, 0);
    tollbar_limiter_free(limiter);
}

/* Processes share the memory of one cell. Together they get the burst and no more. */
static void c5_cells_in_shared_memory_are_one_for_all_processes(void **state) {
    enum { PROCESSES = 4, BURST = 1000 };
    tollbar_policy *policy = policy_of("1000/s");
    struct {
        tollbar_cell cell;
        uint64_t taken[PROCESSES];
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES];
    uint64_t all = 0;
    int i;
    (void)state;
    assert_true(shared != MAP_FAILED);
    for (i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            int call;
            for (call = 0; call < BURST; call++)
                shared->taken[i] +=
                    tollbar_cell_check_at(&shared->cell, policy, 1, SEC, NULL) == TOLLBAR_ALLOWED;
            _exit(0);
        }
    }
    for (i = 0; i < PROCESSES; i++) {
        assert_int_equal(status_of(children[i]), 0);
        all += shared->taken[i];
    }
    assert_int_equal(all, BURST);
    assert_int_equal(tollbar_cell_check_at(&shared->cell, policy, 1, SEC, NULL), TOLLBAR_DENIED);
    munmap(shared, sizeof *shared);
    tollbar_policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_limiters_go_on_in_parent_and_child),
        cmocka_unit_test(c5_a_child_has_none_of_its_parents_sleepers),
        cmocka_unit_test(a2_a_child_has_a_queue_of_its_own),
        cmocka_unit_test(c5_the_clock_goes_on_in_parent_and_child),
        cmocka_unit_test(c5_waiting_goes_on_in_parent_and_child),
        cmocka_unit_test(c5_cells_in_shared_memory_are_one_for_all_processes),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
