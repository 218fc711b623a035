/* [C5] Which calls allocate or sleep, and [C7] that no call aborts when an allocation fails.
 *
 * For the archive only: it is linked with --wrap for the functions below, so the library calls the
 * wrappers here
 * instead. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_posix_memalign(void **block, size_t align, size_t size);
void __real_free(void *block);
int __real_nanosleep(const struct timespec *time, struct timespec *rest);
void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t size);
char *__real_realpath(const char *path, char *resolved);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void **block, size_t align, size_t size);
void __wrap_free(void *block);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *at, size_t size);
char *__wrap_realpath(const char *path, char *resolved);

/* The counts of calls between on() and off(), where only the library runs: cmocka and this file
 * call the wrappers, too. */
static struct {
    int watching;
    unsigned allocations;
    unsigned frees;
    unsigned sleeps;
    /* The number of the allocation that fails, from 1; 0: none fails. */
    unsigned fails;
} seen;

static void on(unsigned fails) {
    memset(&seen, 0, sizeof seen);
    seen.fails = fails;
    seen.watching = 1;
}

static void off(void) {
    seen.watching = 0;
}

static int refuses(void) {
    return seen.watching && ++seen.allocations == seen.fails;
}

void *__wrap_malloc(size_t size) {
    return refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return refuses() ? NULL : __real_calloc(count, size);
}

int __wrap_posix_memalign(void **block, size_t align, size_t size) {
    return refuses() ? 12 : __real_posix_memalign(block, align, size);
}

void __wrap_free(void *block) {
    if (seen.watching && block != NULL)
        seen.frees++;
    __real_free(block);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest) {
    if (seen.watching)
        seen.sleeps++;
    return __real_nanosleep(time, rest);
}

/* The library maps the memory of tables. */
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    if (refuses()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, file, offset);
}

int __wrap_munmap(void *at, size_t size) {
    if (seen.watching)
        seen.frees++;
    return __real_munmap(at, size);
}

/* realpath allocates its result, which the caller frees. */
char *__wrap_realpath(const char *path, char *resolved) {
    if (refuses()) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_realpath(path, resolved);
}

static void c5_no_decision_allocates_or_sleeps(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = limiter_of(every_algorithm[i]);
        tollbar_policy *policy = policy_of("5/s");
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
        tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        tollbar_cell cell = TOLLBAR_CELL_INIT;
        char line[TOLLBAR_POLICY_TEXT_MAX];
        tollbar_reservation booked;
        uint64_t number = 0;
        int32_t results[4];
        int round;
        on(0);
        for (round = 0; round < 20; round++) {
            tollbar_limiter_check(limiter, 1, &got);
            tollbar_limiter_peek(limiter, 1, &got);
            tollbar_limiter_check_many(limiter, NULL, 4, results);
            tollbar_limiter_take_up_to(limiter, 9, &number);
            tollbar_limiter_charge(limiter, 2, &number);
            tollbar_limiter_charge_at(limiter, 2, SEC, NULL);
            tollbar_limiter_check_at(limiter, 1, (uint64_t)round * SEC, &got);
            tollbar_limiter_peek_at(limiter, 9, (uint64_t)round * SEC, &got);
            tollbar_limiter_reserve(limiter, 1, SEC, &booked);
            tollbar_limiter_reserve_at(limiter, 1, SEC, (uint64_t)round * SEC, &booked);
            tollbar_limiter_get_state(limiter, &view);
            tollbar_limiter_get_policy(limiter, &spec);
            tollbar_limiter_wait(limiter, 1, 0, &got);
            tollbar_limiter_reset(limiter);
            tollbar_cell_check(&cell, policy, 1, &got);
            tollbar_cell_take_up_to_at(&cell, policy, 9, SEC, &number);
            tollbar_cell_check_many_at(&cell, 1, policy, 9, SEC, results);
            tollbar_cell_reset(&cell);
            tollbar_policy_spec_validate(&spec);
            tollbar_policy_spec_print(&spec, line, sizeof line, NULL);
            tollbar_policy_spec_parse("wrong", 5, &spec, NULL);
        }
        off();
        assert_int_equal(seen.allocations, 0);
        assert_int_equal(seen.frees, 0);
        assert_int_equal(seen.sleeps, 0);
        tollbar_policy_free(policy);
        tollbar_limiter_free(limiter);
    }
}

static void what_is_made_is_freed(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_limiter *limiter = NULL;
        on(0);
        assert_int_equal(tollbar_limiter_from_text(every_algorithm[i], &limiter, NULL), 0);
        tollbar_limiter_free(limiter);
        off();
        assert_true(seen.allocations > 0);
        assert_int_equal(seen.allocations, seen.frees);
    }
}

static void without_memory_it_is_an_error(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        unsigned fails = 0;
        int32_t code;
        do {
            tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
            tollbar_limiter *limiter = NULL;
            on(++fails);
            code = tollbar_limiter_from_text(every_algorithm[i], &limiter, &error);
            off();
            assert_true(code == 0 || code == TOLLBAR_E_NO_MEMORY);
            assert_true((code == 0) == (limiter != NULL));
            assert_int_equal(error.code, code);
            /* Every allocation but the failed one is freed. */
            assert_int_equal(seen.allocations, seen.frees + (code == 0 ? fails - 1 : 1));
            tollbar_limiter_free(limiter);
        } while (code != 0);
        assert_true(fails > 1);
    }
}

static void policies_too(void **state) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy_spec spec = spec_of("5/s");
    tollbar_policy *policy = NULL;
    (void)state;
    on(1);
    assert_int_equal(tollbar_policy_new(&spec, &policy), TOLLBAR_E_NO_MEMORY);
    on(1);
    assert_int_equal(tollbar_policy_from_text("5/s", &policy, &error), TOLLBAR_E_NO_MEMORY);
    off();
    assert_null(policy);
    assert_int_equal(error.code, TOLLBAR_E_NO_MEMORY);
}

static void c5_no_decision_of_a_table_allocates(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_table *table = table_of(100, every_algorithm[i], NULL);
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
        tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
        tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
        tollbar_reservation booked;
        uint64_t number = 0, key;
        on(0);
        for (key = 0; key < 50; key++) {
            tollbar_request requests[2] = {{NULL, sizeof key, 1, 0, 0}, {NULL, sizeof key, 1, 9, 0}};
            int32_t results[2];
            requests[0].key = requests[1].key = &key;
            tollbar_table_check(table, 0, &key, sizeof key, 1, &got);
            tollbar_table_check(table, 0, &key, sizeof key, 1, NULL);
            tollbar_table_check_at(table, 0, &key, sizeof key, 1, key * SEC, &got);
            tollbar_table_peek(table, 0, &key, sizeof key, 9, &got);
            tollbar_table_check_many(table, requests, 2, results);
            tollbar_table_take_up_to(table, 0, &key, sizeof key, 9, &number);
            tollbar_table_charge(table, 0, &key, sizeof key, 2, &number);
            tollbar_table_charge_at(table, 0, &key, sizeof key, 2, SEC, NULL);
            tollbar_table_reserve(table, 0, &key, sizeof key, 1, SEC, &booked);
            tollbar_table_cancel(table, 0, &key, sizeof key, &booked, &number);
            tollbar_table_wait(table, 0, &key, sizeof key, 1, 0, &got);
            tollbar_table_hash(table, 0, &key, sizeof key, &number);
            tollbar_table_now(table, &number);
            tollbar_table_next(table, 0, SEC, &entry);
            tollbar_table_get_policy(table, 0, &spec);
            tollbar_table_get_stats(table, &stats);
            if (key % 2) {
                tollbar_table_exempt(table, 0, &key, sizeof key);
                tollbar_table_unexempt(table, 0, &key, sizeof key);
                tollbar_table_reset(table, 0, &key, sizeof key);
                tollbar_table_sweep(table, 0, UINT64_MAX, key * SEC, &swept);
            }
        }
        off();
        assert_true(stats_of(table).inserted >= 50);
        assert_int_equal(seen.allocations, 0);
        assert_int_equal(seen.frees, 0);
        assert_int_equal(seen.sleeps, 0);
        tollbar_table_close(table);
    }
}

/* The first request under a new policy compiles it. If the allocation for that fails, each request
 * compiles it on its stack. */
static void without_memory_a_policy_is_compiled_on_the_stack(void **state) {
    tollbar_table *table = table_of(100, "5/s", NULL);
    tollbar_policy_spec spec = spec_of("3/s");
    tollbar_request request = {"k", 1, 1, 1, 0};
    uint32_t number = 0;
    int32_t result = 77;
    (void)state;
    assert_int_equal(tollbar_table_add_policy(table, &spec, &number), 0);
    assert_int_equal(number, 1);
    on(1);
    assert_int_equal(tollbar_table_check_at(table, 1, "k", 1, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(seen.allocations, 1);
    on(1);
    assert_int_equal(tollbar_table_check_many_at(table, &request, 1, SEC, &result), 0);
    off();
    assert_int_equal(result, TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 1, "k", 1, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 1, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
}

/* A process allocates memory for the first 4,096 policies that it compiles, and for no later
 * ones. */
static void policies_that_never_come_back_take_memory_to_a_bound(void **state) {
    tollbar_table *table = table_of(100, "5/s", NULL);
    tollbar_policy_spec spec = spec_of("5/s");
    unsigned n, allocations = 0;
    (void)state;
    for (n = 1; n <= 10000; n++) {
        spec.limit = 5 + n;
        spec.burst = 5 + n;
        on(0);
        assert_int_equal(tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 5 + n, n * 1000 * SEC, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, n * 1000 * SEC, NULL), TOLLBAR_DENIED);
        off();
        allocations += seen.allocations;
    }
    /* The table's first policy was the first of the 4,096. */
    assert_int_equal(allocations, 4095);
    tollbar_table_close(table);
}

/* The ways of making a table. */
typedef int32_t maker(const struct asked *asked, tollbar_table **out);

static char path[64];

static int32_t by_new(const struct asked *asked, tollbar_table **out) {
    return tollbar_table_new(asked->policies, asked->count, &asked->options, out);
}

static int32_t by_shared(const struct asked *asked, tollbar_table **out) {
    return tollbar_table_new_shared(asked->policies, asked->count, &asked->options, out);
}

static void *memory;
static uint64_t memory_size;

static int32_t by_init_in(const struct asked *asked, tollbar_table **out) {
    return tollbar_table_init_in(memory, (size_t)memory_size, asked->policies, asked->count, &asked->options, out);
}

static int32_t by_attach(const struct asked *asked, tollbar_table **out) {
    (void)asked;
    return tollbar_table_attach(memory, (size_t)memory_size, out);
}

static int32_t by_making_a_file(const struct asked *asked, tollbar_table **out) {
    return tollbar_table_open(path, asked->policies, asked->count, &asked->options, out);
}

static int32_t by_opening_a_file(const struct asked *asked, tollbar_table **out) {
    (void)asked;
    return tollbar_table_open(path, NULL, 0, NULL, out);
}

/* The order matters: by_attach uses the table of by_init_in, and by_opening_a_file uses the file of
 * by_making_a_file. */
static maker *const makers[] = {by_new, by_shared, by_init_in, by_attach, by_making_a_file, by_making_a_file, by_opening_a_file};

/* The descriptor that the next file gets. It changes if the library leaves a file open. */
static int next_descriptor(void) {
    int file = open("/dev/null", O_RDONLY);
    assert_true(file >= 0);
    close(file);
    return file;
}

static void without_memory_there_is_no_table(void **state) {
    static const char *const policies[][2] = {{"5/s", "3/min"}, {"5/s algo sliding-log", NULL}};
    size_t i, m;
    (void)state;
    snprintf(path, sizeof path, "/tmp/tollbar-alloc-%ld", (long)getpid());
    for (i = 0; i < COUNT(policies); i++) {
        struct asked asked;
        ask(&asked, 100, policies[i][0], policies[i][1]);
        assert_int_equal(tollbar_table_bytes(asked.policies, asked.count, &asked.options, &memory_size), 0);
        assert_int_equal(posix_memalign(&memory, 64, (size_t)memory_size), 0);
        for (m = 0; m < COUNT(makers); m++) {
            const int descriptor = next_descriptor();
            unsigned fails = 0;
            int32_t code;
            do {
                tollbar_table *table = NULL;
                on(++fails);
                code = makers[m](&asked, &table);
                off();
                /* If realpath fails, the file cannot be opened, and errno says why. */
                assert_true(code == 0 || code == TOLLBAR_E_NO_MEMORY || (code == TOLLBAR_E_OPEN && errno == ENOMEM));
                assert_true((code == 0) == (table != NULL));
                assert_int_equal(next_descriptor(), descriptor);
                /* Every allocation but the failed one is freed. */
                if (code != 0)
                    assert_int_equal(seen.allocations, seen.frees + 1);
                if (code == 0) {
                    unsigned made = seen.allocations, back = seen.frees;
                    on(0);
                    tollbar_table_close(table);
                    off();
                    assert_int_equal(made, back + seen.frees);
                }
            } while (code != 0);
            assert_true(fails > 1);
        }
        unlink(path);
        free(memory);
    }
}

static void c5_no_permit_in_flight_allocates(void **state) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *table;
    tollbar_send_window window = {0};
    uint64_t count;
    int round;
    (void)state;
    options.capacity = 100;
    assert_int_equal(tollbar_in_flight_new(&options, &table), 0);
    on(0);
    for (round = 0; round < 20; round++) {
        tollbar_ticket ticket = 0, more;
        tollbar_in_flight_acquire(table, "k", 1, 1, &ticket);
        tollbar_in_flight_acquire(table, "k", 1, 1, &more);
        tollbar_in_flight_count(table, "k", 1, &count);
        tollbar_in_flight_release(table, ticket);
        tollbar_send_window_resize(&window, 1);
        tollbar_send_window_acquire(&window, 1, NULL);
        tollbar_send_window_release(&window, 1);
    }
    off();
    assert_int_equal(seen.allocations + seen.sleeps + seen.frees, 0);
    tollbar_in_flight_close(table);
}

static void without_memory_there_is_no_in_flight_table(void **state) {
    unsigned fails = 0;
    int32_t code;
    (void)state;
    do {
        tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
        tollbar_in_flight *table = NULL;
        options.capacity = 100;
        on(++fails);
        code = tollbar_in_flight_new_shared(&options, &table);
        if (code == 0)
            tollbar_in_flight_close(table);
        off();
        assert_true(code == 0 || code == TOLLBAR_E_NO_MEMORY);
        /* Every allocation but the failed one is freed. */
        assert_int_equal(seen.allocations, seen.frees + (code == 0 ? 0 : 1));
    } while (code != 0);
    assert_true(fails > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_no_decision_allocates_or_sleeps),
        cmocka_unit_test(what_is_made_is_freed),
        cmocka_unit_test(without_memory_it_is_an_error),
        cmocka_unit_test(policies_too),
        cmocka_unit_test(c5_no_decision_of_a_table_allocates),
        cmocka_unit_test(without_memory_a_policy_is_compiled_on_the_stack),
        cmocka_unit_test(policies_that_never_come_back_take_memory_to_a_bound),
        cmocka_unit_test(without_memory_there_is_no_table),
        cmocka_unit_test(c5_no_permit_in_flight_allocates),
        cmocka_unit_test(without_memory_there_is_no_in_flight_table),
    };
    return cmocka_run_group_tests_name("allocations", tests, NULL, NULL);
}
