/* A table's counts of decisions by policy and verdict, of all calls, threads and processes. */
#define _POSIX_C_SOURCE 200809L /* fork, kill */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static tollbar_counts counts_of(const tollbar_table *table, uint32_t policy) {
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    assert_int_equal(tollbar_table_get_counts(table, policy, &counts), 0);
    assert_int_equal(counts.struct_size, sizeof counts);
    return counts;
}

static void assert_counts(const tollbar_table *table, uint32_t policy, uint64_t allowed, uint64_t denied, uint64_t never) {
    const tollbar_counts counts = counts_of(table, policy);
    assert_int_equal(counts.allowed, allowed);
    assert_int_equal(counts.denied, denied);
    assert_int_equal(counts.never, never);
}

static void ten_refusals_raise_one_number_by_ten(void **state) {
    tollbar_table *table = table_of(1000, "3/h", "5/h algo fixed-window");
    tollbar_table_stats stats;
    int i;
    (void)state;
    for (i = 0; i < 13; i++)
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, HOUR, NULL), i < 3 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    assert_counts(table, 0, 3, 10, 0);
    assert_counts(table, 1, 0, 0, 0);
    stats = stats_of(table);
    assert_int_equal(stats.allowed, 3);
    assert_int_equal(stats.denied, 10);
    assert_int_equal(stats.never, 0);
    /* A peek is not counted. */
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, HOUR, NULL), TOLLBAR_DENIED);
    assert_counts(table, 0, 3, 10, 0);
    assert_int_equal(tollbar_table_check_at(table, 1, "k", 1, 6, HOUR, NULL), TOLLBAR_NEVER);
    assert_counts(table, 1, 0, 0, 1);
    assert_counts(table, 0, 3, 10, 0);
    tollbar_table_close(table);
}

/* A caller that refuses because of a peek counts the refusal itself. */
static void a_decision_of_the_callers(void **state) {
    tollbar_table *table = table_of(1000, "3/h", "5/h");
    (void)state;
    assert_int_equal(tollbar_table_count_verdict(table, 1, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), 0);
    assert_int_equal(tollbar_table_count_verdict(table, 1, TOLLBAR_NEVER, TOLLBAR_REASON_RATE), 0);
    assert_int_equal(tollbar_table_count_verdict(table, 0, TOLLBAR_ALLOWED, TOLLBAR_REASON_RATE), 0);
    assert_counts(table, 0, 1, 0, 0);
    assert_counts(table, 1, 0, 1, 1);
    assert_int_equal(stats_of(table).keys, 0);
    assert_int_equal(tollbar_table_count_verdict(table, 1, 3, TOLLBAR_REASON_RATE), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_count_verdict(table, 1, -1, TOLLBAR_REASON_RATE), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_count_verdict(table, 2, TOLLBAR_DENIED, TOLLBAR_REASON_RATE),
                     TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_count_verdict(NULL, 0, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), TOLLBAR_E_NULL);
    assert_counts(table, 1, 0, 1, 1);
    tollbar_table_close(table);
}

/* The metrics count refusals by a ban and for a class's reserve, a caller's own refusal because of
 * a peek, and requests with a missing or an exempt key. */
static void c11_reasons(void **state) {
    tollbar_metrics_source source = {"logins", 6, NULL, NULL, 0};
    tollbar_table *table = table_of(1000, "3/h ban 1d after 3", "10/h reserve low 8 high 0");
    char text[8192];
    size_t length = 0;
    int i;
    (void)state;
    for (i = 0; i < 10; i++)
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, HOUR, NULL), i < 3 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    for (i = 0; i < 6; i++)
        assert_int_equal(tollbar_table_check_class_at(table, 1, "k", 1, 1, "low", HOUR, NULL),
                         i < 2 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(table, 0, "", 0, 1, HOUR, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_exempt(table, 0, "e", 1), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "e", 1, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_count_verdict(table, 0, TOLLBAR_DENIED, TOLLBAR_REASON_BANNED), 0);
    assert_int_equal(tollbar_table_count_verdict(table, 0, TOLLBAR_DENIED, 99), 0);
    source.table = table;
    assert_int_equal(tollbar_metrics(&source, 1, TOLLBAR_METRICS_PROMETHEUS, text, sizeof text, &length), 0);
    assert_non_null(strstr(text, "tollbar_reasons_total{limit=\"logins\",reason=\"banned\"} 6\n"));
    assert_non_null(strstr(text, "tollbar_reasons_total{limit=\"logins\",reason=\"reserve\"} 4\n"));
    assert_non_null(strstr(text, "tollbar_reasons_total{limit=\"logins\",reason=\"queue_full\"} 0\n"));
    assert_non_null(strstr(text, "tollbar_reasons_total{limit=\"logins\",reason=\"missing_key\"} 1\n"));
    assert_non_null(strstr(text, "tollbar_reasons_total{limit=\"logins\",reason=\"exempt\"} 1\n"));
    tollbar_table_close(table);
}

static void c4_arguments(void **state) {
    tollbar_table *table = table_of(10, "3/h", NULL);
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    (void)state;
    assert_int_equal(tollbar_table_get_counts(NULL, 0, &counts), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_get_counts(table, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_get_counts(table, 1, &counts), TOLLBAR_E_NO_SUCH_POLICY);
    counts.struct_size = 7;
    assert_int_equal(tollbar_table_get_counts(table, 0, &counts), TOLLBAR_E_STRUCT_SIZE);
    tollbar_table_close(table);
}

/* The counts of a killed child stay. */
static void a_killed_process_is_counted(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    int status, i;
    (void)state;
    ask(&asked, 1000, "3/h", NULL);
    assert_int_equal(tollbar_table_new_shared(asked.policies, asked.count, &asked.options, &table), 0);
    for (i = 0; i < 4; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            int n;
            for (n = 0; n < 5; n++)
                tollbar_table_check_at(table, 0, "k", 1, 1, HOUR, NULL);
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, HOUR, NULL), TOLLBAR_DENIED);
    assert_counts(table, 0, 3, 18, 0);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_refusals_raise_one_number_by_ten),
        cmocka_unit_test(a_decision_of_the_callers),
        cmocka_unit_test(c11_reasons),
        cmocka_unit_test(c4_arguments),
        cmocka_unit_test(a_killed_process_is_counted),
    };
    return cmocka_run_group_tests_name("decisions counted", tests, NULL, NULL);
}
