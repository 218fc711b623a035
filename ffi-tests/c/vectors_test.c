/* The golden vectors: limiters, cells and tables give the decisions of the oracle. VECTORS is the path of the file. */
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
    FILE *file = fopen(VECTORS, "r");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limiters),
        cmocka_unit_test(tables),
        cmocka_unit_test(cells_of_one_word),
    };
    return cmocka_run_group_tests_name("golden vectors", tests, NULL, NULL);
}
