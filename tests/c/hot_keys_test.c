/* Hot keys of a table: the calls, threads on one key, and both sides of a fork. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "tenant", 6

static tollbar_hot_keys *hot_of(const tollbar_table *table) {
    tollbar_hot_keys *hot = NULL;
    assert_int_equal(tollbar_hot_keys_new(table, 100, &hot), 0);
    assert_non_null(hot);
    return hot;
}

static uint64_t left(const tollbar_table *table) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    assert_in_range(tollbar_table_peek_at(table, 0, KEY, 1, HOUR, &decision), TOLLBAR_ALLOWED, TOLLBAR_DENIED);
    return decision.remaining;
}

static uint64_t drain(tollbar_hot_keys *hot) {
    uint64_t taken = 0;
    while (tollbar_hot_keys_check_at(hot, 0, KEY, 1, HOUR) == TOLLBAR_ALLOWED)
        taken++;
    return taken;
}

static void a_thread_takes_permits_in_advance(void **state) {
    tollbar_table *table = table_of(1000, "1000/day burst 10000", NULL);
    tollbar_hot_keys *hot = hot_of(table);
    uint64_t taken = 0, comes = 0, before = left(table);
    (void)state;
    while (left(table) > 5000) {
        assert_int_equal(tollbar_hot_keys_check_at(hot, 0, KEY, 1, HOUR), TOLLBAR_ALLOWED);
        taken++;
        comes += left(table) != before;
        before = left(table);
    }
    /* Most are of the thread's own credit, all of which has been charged; what is burnt is little at this rate. */
    assert_in_range(comes, 1, taken / 10);
    assert_in_range(taken, 5000 - 1024, 5000);
    assert_int_equal(tollbar_hot_keys_check_at(hot, 0, KEY, 10001, HOUR), TOLLBAR_NEVER);
    assert_int_equal(tollbar_hot_keys_check_at(hot, 0, KEY, 0, HOUR), TOLLBAR_ALLOWED);
    taken += drain(hot);
    assert_in_range(taken, 9900, 10000);
    assert_int_equal(left(table), 0);
    tollbar_hot_keys_free(hot);
    tollbar_table_close(table);
}

static void it_has_the_tables_clock(void **state) {
    tollbar_table *table = table_of(1000, "1000/day burst 1000", NULL);
    tollbar_hot_keys *hot = hot_of(table);
    uint64_t taken = 0;
    (void)state;
    while (tollbar_hot_keys_check(hot, 0, KEY, 1) == TOLLBAR_ALLOWED)
        taken++;
    assert_in_range(taken, 990, 1001);
    tollbar_hot_keys_free(hot);
    tollbar_table_close(table);
}

static void arguments(void **state) {
    tollbar_table *table = table_of(1000, "1000/day burst 1000", NULL);
    tollbar_hot_keys *hot = NULL;
    (void)state;
    assert_int_equal(tollbar_hot_keys_new(NULL, 100, &hot), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hot_keys_new(table, 100, NULL), TOLLBAR_E_NULL);
    assert_null(hot);
    hot = hot_of(table);
    assert_int_equal(tollbar_hot_keys_check(NULL, 0, KEY, 1), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hot_keys_check_at(NULL, 0, KEY, 1, HOUR), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hot_keys_check(hot, 0, NULL, 1, 1), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hot_keys_check((tollbar_hot_keys *)(void *)((char *)hot + 1), 0, KEY, 1), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_hot_keys_check(hot, 1, KEY, 1), TOLLBAR_E_NO_SUCH_POLICY);
    /* A missing key, as the table says: refused. */
    assert_int_equal(tollbar_hot_keys_check(hot, 0, NULL, 0, 1), TOLLBAR_DENIED);
    tollbar_hot_keys_free(hot);
    tollbar_hot_keys_free(NULL);
    tollbar_table_close(table);
}

static void a_child_has_no_credit(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_hot_keys *hot;
    uint64_t before, taken = 0;
    int status = -1;
    pid_t child;
    (void)state;
    ask(&asked, 1000, "1000/day burst 100000", NULL);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    hot = hot_of(table);
    /* Until a request has been paid of credit, of which there is plenty then. */
    do {
        before = left(table);
        assert_int_equal(tollbar_hot_keys_check_at(hot, 0, KEY, 1, HOUR), TOLLBAR_ALLOWED);
        taken++;
    } while (left(table) != before || taken < 500);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* Each request of its own is charged, until it has something in advance itself: so the first is. */
        const uint64_t now = left(table);
        const int is_charged = tollbar_hot_keys_check_at(hot, 0, KEY, 1, HOUR) == TOLLBAR_ALLOWED && left(table) == now - 1;
        tollbar_hot_keys_free(hot);
        tollbar_table_close(table);
        _exit(is_charged ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The parent has its own still. */
    before = left(table);
    assert_int_equal(tollbar_hot_keys_check_at(hot, 0, KEY, 1, HOUR), TOLLBAR_ALLOWED);
    assert_int_equal(left(table), before);
    tollbar_hot_keys_free(hot);
    tollbar_table_close(table);
}

struct asker {
    pthread_t thread;
    const tollbar_table *table;
    uint64_t taken;
};

static void *run(void *asker) {
    struct asker *of = asker;
    tollbar_hot_keys *hot = NULL;
    if (tollbar_hot_keys_new(of->table, 64, &hot) == 0)
        of->taken = drain(hot);
    tollbar_hot_keys_free(hot);
    return NULL;
}

static void threads_get_what_there_is(void **state) {
    tollbar_table *table = table_of(1000, "1000/day burst 300000", NULL);
    struct asker askers[4];
    uint64_t taken = 0;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(askers); i++) {
        askers[i].table = table;
        askers[i].taken = 0;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, run, &askers[i]), 0);
    }
    for (i = 0; i < COUNT(askers); i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        taken += askers[i].taken;
    }
    /* All of them asked until they were refused, so nobody has any credit left; a tick's worth of permits is burnt. */
    assert_in_range(taken, 299900, 300000);
    assert_int_equal(left(table), 0);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_takes_permits_in_advance),
        cmocka_unit_test(it_has_the_tables_clock),
        cmocka_unit_test(arguments),
        cmocka_unit_test(a_child_has_no_credit),
        cmocka_unit_test(threads_get_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
