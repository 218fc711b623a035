/* Tables with hot keys: every call that uses credit, each way of making a table, and both sides of
 * a fork. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "tenant", 6

/* A table with hot keys, and a view of the same memory without hot keys. */
struct views {
    void *memory;
    tollbar_table *hot, *plain;
};

static struct views views_of(const char *text) {
    struct views views = {NULL, NULL, NULL};
    struct asked asked;
    uint64_t bytes = 0;
    ask(&asked, 1000, text, NULL);
    asked.options.hot_keys = 100;
    assert_int_equal(tollbar_table_bytes(asked.policies, 1, &asked.options, &bytes), 0);
    assert_int_equal(posix_memalign(&views.memory, 64, bytes), 0);
    assert_int_equal(tollbar_table_init_in(views.memory, bytes, asked.policies, 1, &asked.options, &views.hot), 0);
    assert_int_equal(tollbar_table_attach(views.memory, bytes, &views.plain), 0);
    return views;
}

static void close_views(struct views *views) {
    tollbar_table_close(views->hot);
    tollbar_table_close(views->plain);
    free(views->memory);
}

static uint64_t left(const tollbar_table *table) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    assert_in_range(tollbar_table_peek_at(table, 0, KEY, 1, HOUR, &decision), TOLLBAR_ALLOWED, TOLLBAR_DENIED);
    return decision.remaining;
}

static int32_t check(const tollbar_table *table, uint64_t cost) {
    return tollbar_table_check_at(table, 0, KEY, cost, HOUR, NULL);
}

/* The view with hot keys has more permits left than the other one: the thread's credit. */
static void other_calls_use_credit(void **state) {
    struct views views = views_of("1000/day burst 10000");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    tollbar_request requests[3];
    uint64_t taken = 0, permits, before, credit;
    int32_t results[3];
    size_t i;
    (void)state;
    while (left(views.hot) < left(views.plain) + 20 && taken++ < 1000)
        assert_int_equal(check(views.hot, 1), TOLLBAR_ALLOWED);
    before = left(views.plain);
    credit = left(views.hot) - before;
    assert_in_range(credit, 20, 1024);
    /* A full decision. */
    assert_int_equal(tollbar_table_check_at(views.hot, 0, KEY, 2, HOUR, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(decision.remaining, before + credit - 2);
    assert_int_equal(decision.reason, TOLLBAR_REASON_ADMITTED);
    assert_int_equal(left(views.plain), before);
    /* take_up_to spends credit first. */
    assert_int_equal(tollbar_table_take_up_to_at(views.hot, 0, KEY, 4, HOUR, &permits), TOLLBAR_ALLOWED);
    assert_int_equal(permits, 4);
    assert_int_equal(left(views.plain), before);
    /* A batch uses no credit. */
    for (i = 0; i < COUNT(requests); i++) {
        const tollbar_request request = {KEY, 1, 0, 0};
        requests[i] = request;
    }
    assert_int_equal(tollbar_table_check_many_at(views.hot, requests, COUNT(requests), HOUR, results), 0);
    assert_int_equal(results[0] + results[1] + results[2], TOLLBAR_ALLOWED);
    assert_int_equal(left(views.plain), before - 3);
    assert_int_equal(left(views.hot), before - 3 + credit - 6);
    /* Every request has been counted once. */
    assert_int_equal(tollbar_table_get_counts(views.plain, 0, &counts), 0);
    assert_int_equal(counts.allowed, taken + 1 + 1 + 3);
    /* A reset voids the thread's credit. */
    assert_int_equal(tollbar_table_reset_at(views.hot, 0, KEY, HOUR), TOLLBAR_YES);
    assert_int_equal(left(views.hot), 10000);
    assert_int_equal(left(views.plain), 10000);
    close_views(&views);
}

/* Each call that makes or opens a table takes the option. A view without options gets it
 * afterwards. */
static void every_kind_of_table_takes_the_option(void **state) {
    struct asked asked;
    tollbar_table *tables[5] = {NULL, NULL, NULL, NULL, NULL};
    char path[] = "/tmp/tollbar-hot-XXXXXX";
    tollbar_table_options any = TOLLBAR_TABLE_OPTIONS_INIT(0);
    int fd = mkstemp(path), sealed = -1;
    size_t i, n;
    (void)state;
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    ask(&asked, 1000, "1000/day burst 100000", NULL);
    asked.options.hot_keys = 1;
    asked.options.flags |= TOLLBAR_TABLE_TRUST_ANYONE;
    any.hot_keys = 64;
    any.flags = TOLLBAR_TABLE_TRUST_ANYONE;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &asked.options, &tables[0]), 0);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &tables[1]), 0);
    assert_int_equal(tollbar_table_open(path, asked.policies, 1, &asked.options, &tables[2]), 0);
    assert_int_equal(tollbar_table_open(path, NULL, 0, &any, &tables[3]), 0);
    asked.options.hot_keys = UINT32_MAX;
    assert_int_equal(tollbar_table_new_sealed(asked.policies, 1, &asked.options, &sealed, &tables[4]), 0);
    tollbar_table_close(tables[4]);
    assert_int_equal(tollbar_table_open_fd(sealed, &tables[4]), 0);
    assert_int_equal(tollbar_table_set_hot_keys(tables[4], 200), 0);
    assert_int_equal(close(sealed), 0);
    assert_int_equal(unlink(path), 0);
    for (i = 0; i < COUNT(tables); i++) {
        /* Credit is charged before the thread spends it. So after a hundred requests a thread
         * without credit sees fewer permits. */
        uint64_t own;
        for (n = 0; n < 100; n++)
            assert_int_equal(check(tables[i], 1), TOLLBAR_ALLOWED);
        own = left(tables[i]);
        assert_int_equal(tollbar_table_set_hot_keys(tables[i], 0), 0);
        assert_true(left(tables[i]) < own);
        tollbar_table_close(tables[i]);
    }
}

static void c4_arguments(void **state) {
    struct views views = views_of("1000/day burst 1000");
    (void)state;
    assert_int_equal(tollbar_table_set_hot_keys(NULL, 100), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_set_hot_keys((tollbar_table *)(void *)((char *)views.hot + 1), 100), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_table_check_at(views.hot, 0, NULL, 1, 1, HOUR, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_check_at(views.hot, 1, KEY, 1, HOUR, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    /* The table refuses a missing key. */
    assert_int_equal(tollbar_table_check_at(views.hot, 0, NULL, 0, 1, HOUR, NULL), TOLLBAR_DENIED);
    close_views(&views);
}

static void c5_a_child_has_no_credit(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    uint64_t before;
    int status = -1, n;
    pid_t child;
    (void)state;
    ask(&asked, 1000, "1000/day burst 100000", NULL);
    asked.options.hot_keys = 100;
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    for (n = 0; n < 500; n++)
        assert_int_equal(check(table, 1), TOLLBAR_ALLOWED);
    before = left(table);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* The child has no credit, so it sees fewer permits than the parent's thread. */
        const uint64_t shared = left(table);
        const int is_charged = shared < before && check(table, 1) == TOLLBAR_ALLOWED && left(table) == shared - 1;
        tollbar_table_close(table);
        _exit(is_charged ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The parent still has its credit, and the child's one request was charged. */
    assert_int_equal(left(table), before - 1);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_calls_use_credit),
        cmocka_unit_test(every_kind_of_table_takes_the_option),
        cmocka_unit_test(c4_arguments),
        cmocka_unit_test(c5_a_child_has_no_credit),
    };
    return cmocka_run_group_tests_name("hot keys", tests, NULL, NULL);
}
