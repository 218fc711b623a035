/* Metrics: ten refusals raise one series by ten, short buffers, wrong arguments, and times. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <stdio.h>
#include <unistd.h>

static void ten_refusals(void **state) {
    tollbar_table *table = table_of(100, "5/min", "7/h");
    tollbar_limiter *limiter = limiter_of("1/h");
    const tollbar_metrics_source sources[] = {{"logins", 6, NULL, table, 0}, {"api", 3, limiter, NULL, 0}};
    char before[16384], after[16384], *was, *is;
    size_t length = 0, changed = 0, lines = 0;
    int n;
    (void)state;
    for (n = 0; n < 5; n++)
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_metrics(sources, 2, TOLLBAR_METRICS_PROMETHEUS, before, sizeof before, NULL), 0);
    for (n = 0; n < 10; n++)
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, 0, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_metrics(sources, 2, TOLLBAR_METRICS_PROMETHEUS, after, sizeof after, &length), 0);
    assert_int_equal(length, strlen(after));
    for (was = before, is = after; *was != 0 && *is != 0; was += strcspn(was, "\n") + 1, is += strcspn(is, "\n") + 1, lines++)
        if (strncmp(was, is, strcspn(is, "\n") + 1) != 0) {
            static const char line[] = "tollbar_decisions_total{limit=\"logins\",policy=\"0\",verdict=\"denied\"} 10\n";
            assert_int_equal(strncmp(is, line, sizeof line - 1), 0);
            changed++;
        }
    assert_int_equal(changed, 1);
    assert_true(lines > 30 && *was == 0 && *is == 0);
    assert_int_equal(tollbar_metrics(sources, 2, TOLLBAR_METRICS_OPENMETRICS, after, sizeof after, &length), 0);
    assert_string_equal(after + length - 6, "# EOF\n");
    assert_int_equal(tollbar_metrics(sources, 2, TOLLBAR_METRICS_OPENMETRICS, after, length, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_metrics(sources, 2, TOLLBAR_METRICS_OPENMETRICS, after, length + 1, NULL), 0);
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

static void arguments(void **state) {
    tollbar_limiter *limiter = limiter_of("1/h");
    tollbar_table *table = table_of(10, "1/h", NULL);
    tollbar_metrics_source source = {"api", 3, limiter, NULL, 0};
    char text[16384];
    (void)state;
    assert_int_equal(tollbar_metrics(NULL, 0, 0, text, sizeof text, NULL), 0);
    assert_int_equal(tollbar_metrics(NULL, 1, 0, text, sizeof text, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_metrics(&source, 1, 0, NULL, 100, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_metrics(&source, 1, 2, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_metrics(&source, TOLLBAR_METRICS_MOST + 1, 0, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    source.table = table;
    assert_int_equal(tollbar_metrics(&source, 1, 0, text, sizeof text, NULL), TOLLBAR_E_LIMITS);
    source.table = NULL;
    source.limiter = NULL;
    assert_int_equal(tollbar_metrics(&source, 1, 0, text, sizeof text, NULL), TOLLBAR_E_LIMITS);
    source.limiter = limiter;
    source.name = "a\xff";
    source.name_length = 2;
    assert_int_equal(tollbar_metrics(&source, 1, 0, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

/* S52: one of 1,024 calls is measured, and a call of two milliseconds is in a bucket above one. */
static void one_in_1024_calls_is_measured(void **state) {
    static tollbar_times times, empty;
    const tollbar_times_source sources[] = {{"api", 3, &times}, {"idle", 4, &empty}};
    char text[8192], line[96];
    size_t length = 0, measured = 0;
    uint64_t begin, fast = 0;
    int n;
    (void)state;
    for (n = 0; n < 2 * TOLLBAR_TIMES_EVERY; n++) {
        begin = tollbar_times_begin(&times);
        measured += begin != 0;
        tollbar_times_end(&times, begin);
    }
    assert_int_equal(measured, 2);
    assert_int_equal(times.calls, 2 * TOLLBAR_TIMES_EVERY);
    begin = tollbar_times_begin(&times);
    usleep(2000);
    tollbar_times_end(&times, begin);
    assert_true(times.sum_ns >= 2000000);
    /* Those of up to 2^20 ns, which on a busy machine the others may exceed, too. */
    for (n = 0; n <= 20 - 8; n++)
        fast += times.counts[n];
    assert_true(fast <= 2);
    snprintf(line, sizeof line, "tollbar_decision_nanoseconds_bucket{limit=\"api\",le=\"1048576\"} %u\n",
        (unsigned)fast);
    assert_int_equal(tollbar_times_metrics(sources, 2, text, sizeof text, &length), 0);
    assert_int_equal(length, strlen(text));
    assert_ptr_equal(strstr(text, "# TYPE tollbar_decision_nanoseconds histogram\n"), strstr(text, "# TYPE"));
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "tollbar_decision_nanoseconds_bucket{limit=\"api\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "tollbar_decision_nanoseconds_count{limit=\"api\"} 3\n"));
    assert_non_null(strstr(text, "tollbar_decision_nanoseconds_bucket{limit=\"idle\",le=\"256\"} 0\n"));
    assert_non_null(strstr(text, "tollbar_decision_nanoseconds_sum{limit=\"idle\"} 0\n"));
    assert_int_equal(tollbar_times_metrics(sources, 2, text, length, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_times_metrics(sources, 2, text, length + 1, NULL), 0);
}

/* The macros measure the same calls as the functions. */
static void the_macros_measure_one_in_1024_calls(void **state) {
    static tollbar_times times;
    size_t measured = 0;
    uint64_t begin;
    int n;
    (void)state;
    for (n = 0; n < 3 * TOLLBAR_TIMES_EVERY; n++) {
        begin = TOLLBAR_TIMES_BEGIN(&times);
        assert_int_equal(begin != 0, n % TOLLBAR_TIMES_EVERY == 0);
        measured += begin != 0;
        TOLLBAR_TIMES_END(&times, begin);
    }
    assert_int_equal(measured, 3);
    assert_int_equal(times.calls, 3 * TOLLBAR_TIMES_EVERY);
    for (n = 0, measured = 0; n < 18; n++)
        measured += times.counts[n];
    assert_int_equal(measured, 3);
    /* A call of either kind counts for both. */
    assert_int_not_equal(tollbar_times_begin(&times), 0);
    assert_int_equal(TOLLBAR_TIMES_BEGIN(&times), 0);
    assert_int_equal(times.calls, 3 * TOLLBAR_TIMES_EVERY + 2);
}

static void arguments_of_times(void **state) {
    tollbar_times times = {0};
    tollbar_times_source source = {"api", 3, NULL};
    char text[8192];
    (void)state;
    assert_int_equal(tollbar_times_begin(NULL), 0);
    tollbar_times_end(NULL, 1);
    assert_int_equal(tollbar_times_metrics(NULL, 0, text, sizeof text, NULL), 0);
    assert_int_equal(tollbar_times_metrics(NULL, 1, text, sizeof text, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_times_metrics(&source, 1, text, sizeof text, NULL), TOLLBAR_E_NULL);
    source.times = &times;
    assert_int_equal(tollbar_times_metrics(&source, 1, NULL, 100, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_times_metrics(&source, TOLLBAR_METRICS_MOST + 1, text, sizeof text, NULL),
        TOLLBAR_E_OUT_OF_RANGE);
    source.name = "a\xff";
    source.name_length = 2;
    assert_int_equal(tollbar_times_metrics(&source, 1, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_in_1024_calls_is_measured),
        cmocka_unit_test(the_macros_measure_one_in_1024_calls),
        cmocka_unit_test(arguments_of_times),
        cmocka_unit_test(ten_refusals),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
