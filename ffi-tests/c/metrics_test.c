/* Metrics: ten refusals raise one series by ten, short buffers, and wrong arguments. */
#include "test.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_refusals),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
