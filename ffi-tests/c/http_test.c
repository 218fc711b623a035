/* HTTP header fields: every dialect byte by byte, the reader's results, too small buffers, and
 * wrong arguments. */
#include "test.h"

static tollbar_http_limit named(const char *name, const tollbar_policy_spec *policy, const tollbar_decision *decision, uint64_t more) {
    const tollbar_http_limit limit = {name, strlen(name), policy, decision, more, NULL, 0};
    return limit;
}

static void each_dialect(void **state) {
    static const struct {
        uint32_t fields;
        const char *text;
    } cases[] = {
        {TOLLBAR_HTTP_RETRY_AFTER, "Retry-After: 30\r\n"},
        {TOLLBAR_HTTP_LEGACY, "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 60\r\n"},
        {TOLLBAR_HTTP_LEGACY_EPOCH, "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1700000060\r\n"},
        {TOLLBAR_HTTP_DRAFT_06, "RateLimit-Limit: 2\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 30\r\nRateLimit-Policy: 2;w=60\r\n"},
        {TOLLBAR_HTTP_DRAFT_07, "RateLimit-Policy: 2;w=60\r\nRateLimit: limit=2, remaining=0, reset=30\r\n"},
        {TOLLBAR_HTTP_DRAFT_11, "RateLimit-Policy: \"a \\\"b\\\"\";q=2;w=60\r\nRateLimit: \"a \\\"b\\\"\";r=0;t=30\r\n"},
        {0, ""},
    };
    const tollbar_policy_spec policy = spec_of("2/min");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_http_limit limit = named("a \"b\"", &policy, &decision, TOLLBAR_NO_TIME);
    tollbar_limiter *limiter;
    char text[300];
    size_t n, length = 0;
    (void)state;
    assert_int_equal(tollbar_limiter_new(&policy, NULL, &limiter), 0);
    assert_int_equal(tollbar_limiter_check_at(limiter, 2, 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, 0, &decision), TOLLBAR_DENIED);
    for (n = 0; n < COUNT(cases); n++) {
        tollbar_http_seen seen = TOLLBAR_HTTP_SEEN_INIT;
        const uint64_t utc = 1700000000ull * 1000000000;
        assert_int_equal(tollbar_http_fields(&limit, 1, cases[n].fields, utc, text, sizeof text, &length), 0);
        assert_string_equal(text, cases[n].text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(tollbar_http_read(text, length, utc, &seen), length == 0 ? TOLLBAR_NO : TOLLBAR_YES);
        if (cases[n].fields >= TOLLBAR_HTTP_DRAFT_06) {
            assert_int_equal(seen.limit, 2);
            assert_int_equal(seen.window_ns, 60000000000);
            assert_int_equal(seen.remaining, 0);
            assert_int_equal(seen.more_after_ns, 30000000000);
            assert_int_equal(seen.retry_after_ns, UINT64_MAX);
        }
    }
    assert_int_equal(tollbar_http_problem(&limit, 1, 429, text, sizeof text, NULL), 0);
    assert_string_equal(text, "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Too many requests\","
                              "\"status\":429,\"violated-policies\":[\"a \\\"b\\\"\"]}");
    tollbar_limiter_free(limiter);
}

/* `t` is the time until one permit more is left, for a limiter and for a table's key. It is never
 * later than a refusal's wait. */
static void more_after(void **state) {
    const tollbar_policy_spec policy = spec_of("6/min");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table;
    tollbar_limiter *limiter;
    uint64_t more = 1;
    (void)state;
    table = table_of(100, "6/min", NULL);
    assert_int_equal(tollbar_limiter_new(&policy, NULL, &limiter), 0);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, 0, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_more_after_at(table, 0, "k", 1, 1, 0, &decision, &more), 0);
    assert_true(more == TOLLBAR_NO_TIME);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 4, 0, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_more_after_at(table, 0, "k", 1, 4, 0, &decision, &more), 0);
    assert_int_equal(more, 10000000000);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 6, 0, &decision), TOLLBAR_DENIED);
    assert_int_equal(decision.retry_after_ns, 40000000000);
    assert_int_equal(tollbar_table_more_after_at(table, 0, "k", 1, 6, 0, &decision, &more), 0);
    assert_int_equal(more, 10000000000);
    /* The table's own clock is far after time 0: all permits are back. */
    assert_int_equal(tollbar_table_more_after(table, 0, "k", 1, 6, &decision, &more), 0);
    assert_int_equal(more, 1);
    assert_int_equal(tollbar_limiter_check_at(limiter, 6, 0, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_more_after_at(limiter, 6, 0, &decision, &more), 0);
    assert_int_equal(more, 10000000000);
    assert_int_equal(tollbar_limiter_more_after(limiter, 6, &decision, &more), 0);
    assert_int_equal(more, 1);
    assert_int_equal(tollbar_table_more_after(table, 7, "k", 1, 1, &decision, &more), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_more_after(NULL, 0, "k", 1, 1, &decision, &more), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_more_after(table, 0, "k", 1, 1, NULL, &more), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_limiter_more_after(limiter, 1, &decision, NULL), TOLLBAR_E_NULL);
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

/* tollbar.h says which buffer is large enough. The test has the longest numbers. With each shorter
 * buffer the call writes nothing behind its end. */
static void buffers(void **state) {
    static char name[100];
    const uint32_t drafts[] = {TOLLBAR_HTTP_DRAFT_06, TOLLBAR_HTTP_DRAFT_07, TOLLBAR_HTTP_DRAFT_11};
    const tollbar_policy_spec policy = spec_of("1000000000/s");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_http_limit limits[TOLLBAR_HTTP_LIMITS_MOST];
    char text[TOLLBAR_HTTP_LIMITS_MOST * 1000 + 1000];
    size_t n, count, length = 0;
    (void)state;
    memset(name, '"', sizeof name);
    decision.verdict = TOLLBAR_DENIED;
    decision.remaining = UINT64_MAX;
    decision.retry_after_ns = decision.reset_after_ns = UINT64_MAX - 1;
    for (n = 0; n < COUNT(limits); n++) {
        limits[n] = named("", &policy, &decision, TOLLBAR_NO_TIME);
        limits[n].name = name;
        limits[n].name_length = limits[n].partition_length = sizeof name;
        limits[n].partition = name;
    }
    for (n = 0; n < COUNT(drafts); n++)
        for (count = 1; count <= COUNT(limits); count++) {
            const uint32_t fields = TOLLBAR_HTTP_RETRY_AFTER | TOLLBAR_HTTP_LEGACY_EPOCH | drafts[n];
            const size_t enough = 300 + count * (100 + 7 * sizeof name);
            assert_int_equal(tollbar_http_fields(limits, count, fields, UINT64_MAX, text, enough, &length), 0);
            assert_int_equal(tollbar_http_fields(limits, count, fields, UINT64_MAX, text, length + 1, NULL), 0);
            text[length] = '#';
            assert_int_equal(tollbar_http_fields(limits, count, fields, UINT64_MAX, text, length, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
            assert_int_equal(text[length], '#');
            length = 0;
            assert_int_equal(tollbar_http_fields(limits, count, fields, UINT64_MAX, text, 0, &length), TOLLBAR_E_BUFFER_TOO_SMALL);
            assert_true(length > 100 && length < enough);
        }
}

static void arguments(void **state) {
    tollbar_policy_spec policy = spec_of("2/min");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_http_limit limit = named("a", &policy, &decision, TOLLBAR_NO_TIME);
    tollbar_http_seen seen = TOLLBAR_HTTP_SEEN_INIT;
    char text[300];
    (void)state;
    assert_int_equal(tollbar_http_fields(NULL, 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_http_fields(&limit, 0, 1, 0, text, sizeof text, NULL), TOLLBAR_E_LIMITS);
    assert_int_equal(tollbar_http_fields(&limit, TOLLBAR_HTTP_LIMITS_MOST + 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_LIMITS);
    assert_int_equal(tollbar_http_fields(&limit, 1, 1, 0, NULL, sizeof text, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_http_fields(&limit, 1, 64, 0, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_http_fields(&limit, 1, TOLLBAR_HTTP_LEGACY | TOLLBAR_HTTP_LEGACY_EPOCH, 0, text, sizeof text, NULL),
                     TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_http_fields(&limit, 1, TOLLBAR_HTTP_DRAFT_06 | TOLLBAR_HTTP_DRAFT_11, 0, text, sizeof text, NULL),
                     TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_http_problem(&limit, 1, 70000, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    decision.verdict = 3;
    assert_int_equal(tollbar_http_fields(&limit, 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_OUT_OF_RANGE);
    decision.verdict = 0;
    decision.struct_size = 8;
    assert_int_equal(tollbar_http_fields(&limit, 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_STRUCT_SIZE);
    decision.struct_size = sizeof decision;
    policy.period_ns = 0;
    assert_int_equal(tollbar_http_fields(&limit, 1, TOLLBAR_HTTP_DRAFT_11, 0, text, sizeof text, NULL), TOLLBAR_E_PERIOD_ZERO);
    policy = spec_of("2/min");
    limit.policy = NULL;
    assert_int_equal(tollbar_http_fields(&limit, 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_NULL);
    limit.policy = &policy;
    limit.name = NULL;
    assert_int_equal(tollbar_http_fields(&limit, 1, 1, 0, text, sizeof text, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_http_read(NULL, 1, 0, &seen), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_http_read(NULL, 0, 0, &seen), TOLLBAR_NO);
    assert_int_equal(tollbar_http_read("a: b", 4, 0, NULL), TOLLBAR_E_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_dialect),
        cmocka_unit_test(more_after),
        cmocka_unit_test(buffers),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
