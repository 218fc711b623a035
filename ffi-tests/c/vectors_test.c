/* The golden vectors: limiters, cells and tables give the decisions of the oracle, and texts are
 * read as policies.json says. VECTORS is the path of their folder. */
#include "test.h"
#include "vectors.h"

/* A decision on one step by a limiter, a cell or a table, which is `self`. */
typedef int32_t decide(const void *self, const struct vector_step *step, tollbar_decision *decision);

static int32_t by_limiter(const void *self, const struct vector_step *step, tollbar_decision *decision) {
    return tollbar_limiter_check_at(self, step->cost, step->now, decision);
}

static int32_t by_table(const void *self, const struct vector_step *step, tollbar_decision *decision) {
    return tollbar_table_check_at(self, 0, "key", 3, step->cost, step->now, decision);
}

static tollbar_cell cell;

static int32_t by_cell(const void *self, const struct vector_step *step, tollbar_decision *decision) {
    return tollbar_cell_check_at(&cell, self, step->cost, step->now, decision);
}

static void repeat(const char *face, decide *decide, const void *self, const struct golden_vector *vector) {
    size_t i;
    for (i = 0; i < vector->count; i++) {
        const struct vector_step *step = &vector->steps[i];
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        int32_t verdict = decide(self, step, &got);
        if (verdict != step->verdict || got.remaining != step->remaining || got.retry_after_ns != step->retry_after)
            fail_msg("\"%s\", step %u, the %s: verdict %d, %llu left, again in %llu ns", vector->policy, (unsigned)i, face, (int)verdict,
                     (unsigned long long)got.remaining, (unsigned long long)got.retry_after_ns);
    }
}

static void vectors(size_t at_least, void (*each)(const struct golden_vector *vector)) {
    static struct golden_vector vector;
    FILE *file = fopen(VECTORS "/decisions.json", "r");
    size_t count = 0;
    int more;
    assert_non_null(file);
    while ((more = vector_read(file, &vector)) == 1) {
        each(&vector);
        count++;
    }
    fclose(file);
    assert_int_equal(more, 0);
    assert_true(count >= at_least);
}

static void repeat_by_limiter(const struct golden_vector *vector) {
    tollbar_limiter *limiter = limiter_with(vector->policy, TOLLBAR_CLOCK_WALL, 0);
    repeat("limiter", by_limiter, limiter, vector);
    tollbar_limiter_free(limiter);
}

static void repeat_by_table(const struct golden_vector *vector) {
    struct asked asked;
    tollbar_table *table;
    ask(&asked, 100, vector->policy, NULL);
    asked.options.clock = TOLLBAR_CLOCK_WALL;
    table = table_asked(&asked);
    repeat("table", by_table, table, vector);
    tollbar_table_close(table);
}

static size_t cells;

/* The states of some algorithms are longer than a cell. */
static void repeat_by_cell(const struct golden_vector *vector) {
    const tollbar_cell fresh = TOLLBAR_CELL_INIT;
    tollbar_policy *policy = NULL;
    if (tollbar_policy_from_text(vector->policy, &policy, NULL) != 0)
        return;
    cell = fresh;
    cells++;
    repeat("cell", by_cell, policy, vector);
    tollbar_policy_free(policy);
}

static void limiters(void **state) {
    (void)state;
    vectors(33, repeat_by_limiter);
}

static void tables(void **state) {
    (void)state;
    vectors(33, repeat_by_table);
}

static void cells_of_one_word(void **state) {
    (void)state;
    vectors(33, repeat_by_cell);
    assert_true(cells >= 20);
}

static void reads(const struct policy_vector *vector) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, again = TOLLBAR_POLICY_SPEC_INIT;
    char text[TOLLBAR_POLICY_TEXT_MAX];
    size_t length = 0;
    uint64_t last = 0;
    assert_int_equal(tollbar_policy_spec_parse(vector->text, strlen(vector->text), &spec, NULL), 0);
    assert_int_equal(tollbar_policy_spec_print(&spec, text, sizeof text, &length), 0);
    assert_string_equal(text, vector->policy);
    assert_int_equal(length, strlen(text));
    assert_int_equal(tollbar_policy_spec_last_time(&spec, &last), 0);
    assert_int_equal(last, vector->last);
    assert_int_equal(tollbar_policy_spec_parse(text, length, &again, NULL), 0);
    assert_memory_equal(&spec, &again, sizeof spec);
}

/* Every call that takes a text returns the same error, and makes nothing. */
static void refuses(const struct policy_vector *vector) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, before = spec;
    tollbar_limiter *limiter = NULL;
    tollbar_policy *policy = NULL;
    const int32_t code = tollbar_policy_spec_parse(vector->text, strlen(vector->text), &spec, &error);
    const char *const expected = vector->expected[0] ? vector->expected : tollbar_strerror(vector->code);
    if (code != vector->code || error.code != code || error.column != vector->column || strcmp(error.expected, expected) != 0)
        fail_msg("\"%s\": %s (%d) at column %u: %s", vector->text, tollbar_errname(code), (int)error.code, (unsigned)error.column,
                 error.expected);
    assert_int_equal(error.struct_size, sizeof error);
    assert_memory_equal(&spec, &before, sizeof spec);
    assert_int_equal(tollbar_policy_spec_parse(vector->text, strlen(vector->text), &spec, NULL), code);
    assert_int_equal(tollbar_limiter_from_text(vector->text, &limiter, NULL), code);
    assert_int_equal(tollbar_policy_from_text(vector->text, &policy, NULL), code);
    assert_null(limiter);
    assert_null(policy);
}

static void texts_of_policies(void **state) {
    static struct policy_vector vector;
    FILE *file = fopen(VECTORS "/policies.json", "r");
    size_t read = 0, refused = 0;
    int more;
    (void)state;
    assert_non_null(file);
    while ((more = policy_vector_read(file, &vector)) == 1) {
        if (vector.code == 0)
            reads(&vector), read++;
        else
            refuses(&vector), refused++;
    }
    fclose(file);
    assert_int_equal(more, 0);
    assert_true(read >= 80 && refused >= 90);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_policies),
        cmocka_unit_test(limiters),
        cmocka_unit_test(tables),
        cmocka_unit_test(cells_of_one_word),
    };
    return cmocka_run_group_tests_name("golden vectors", tests, NULL, NULL);
}
