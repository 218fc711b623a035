/* [C4] A NULL, misaligned or out-of-range argument of a table's call is an error, and [C2] then
 * nothing is written or charged. */
#include "arguments.h"

#include <errno.h>

/* The ways of making a table, under one signature. A refused call needs no memory and no file. */
typedef int32_t maker(const tollbar_policy_spec *const *, size_t, const tollbar_table_options *, tollbar_table **);

static unsigned char memory[334 * 1024];

static int32_t in_memory(const tollbar_policy_spec *const *policies, size_t count, const tollbar_table_options *options,
                         tollbar_table **out) {
    unsigned char *at = memory + (64 - (uintptr_t)memory % 64) % 64;
    return tollbar_table_init_in(at, sizeof memory - 64, policies, count, options, out);
}

/* The directory does not exist: a call refuses an argument before it looks for the file. */
static int32_t in_file(const tollbar_policy_spec *const *policies, size_t count, const tollbar_table_options *options,
                       tollbar_table **out) {
    return tollbar_table_open("/no-such-directory/table", policies, count, options, out);
}

static int32_t bytes_of(const tollbar_policy_spec *const *policies, size_t count, const tollbar_table_options *options,
                        tollbar_table **out) {
    /* `out` has room for a pointer and for a number. */
    return tollbar_table_bytes(policies, count, options, (uint64_t *)(void *)out);
}

static maker *const makers[] = {tollbar_table_new, tollbar_table_new_shared, in_memory, in_file, bytes_of};

static void c4_arguments_of_making_one(void **state) {
    static const char *const refused[] = {"1/s algo sliding-log", "1/s"};
    const tollbar_policy_spec *policies[129];
    struct asked asked;
    size_t m, i;
    (void)state;
    for (m = 0; m < COUNT(makers); m++) {
        maker *const make = makers[m];
        tollbar_table *out = (tollbar_table *)(void *)room.words;
        tollbar_table_options *const options = &asked.options;
        ask(&asked, 1000, refused[0], refused[1]);
        for (i = 0; i < COUNT(policies); i++)
            policies[i] = &asked.specs[1];

        NULL_IS(make(policies, 1, NULL, &out));
        NULL_IS(make(NULL, 1, options, &out));
        NULL_IS(make(policies, 1, options, NULL));
        ODD_IS(make(policies, 1, ODD(tollbar_table_options), &out));
        ODD_IS(make(ODD(const tollbar_policy_spec *const), 1, options, &out));
        ODD_IS(make(policies, 1, options, ODD(tollbar_table *)));
        policies[0] = NULL;
        NULL_IS(make(policies, 1, options, &out));
        policies[0] = ODD(tollbar_policy_spec);
        ODD_IS(make(policies, 1, options, &out));
        policies[0] = &asked.specs[1];
        policies[2] = NULL;
        NULL_IS(make(policies, 3, options, &out));
        policies[2] = &asked.specs[1];

        assert_int_equal(make(policies, 0, options, &out), TOLLBAR_E_POLICY_COUNT);
        assert_int_equal(make(NULL, 0, options, &out), TOLLBAR_E_POLICY_COUNT);
        assert_int_equal(make(policies, 129, options, &out), TOLLBAR_E_POLICY_COUNT);
        assert_int_equal(make(policies, SIZE_MAX, options, &out), TOLLBAR_E_POLICY_COUNT);
        assert_int_equal(make(asked.policies, 2, options, &out), TOLLBAR_E_MIXED_POLICIES);

        options->on_full = TOLLBAR_ON_FULL_DENY + 1;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_OUT_OF_RANGE);
        options->on_full = UINT32_MAX;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_OUT_OF_RANGE);
        options->on_full = 0;
        options->missing_key = TOLLBAR_MISSING_REPORT + 1;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_OUT_OF_RANGE);
        options->missing_key = 0;
        options->clock = TOLLBAR_CLOCK_WALL + 1;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_OUT_OF_RANGE);
        options->clock = 0;
        options->flags |= 8;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_RESERVED);
        options->flags = UINT32_C(1) << 31;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_RESERVED);
        /* A seed without its flag, which the library would ignore. */
        options->flags = 0;
        options->seed = 1;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_RESERVED);
        options->seed = 0;
        /* Bits that are no permissions, such as those of st_mode's file type. */
        options->mode = 01600;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_RESERVED);
        options->mode = 0100600;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_RESERVED);
        options->mode = 0;
        options->capacity = 0;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_CAPACITY);
        options->capacity = UINT64_MAX;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_CAPACITY);
        options->capacity = UINT64_C(1) << 40;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_CAPACITY);
        options->capacity = 1000;

        asked.specs[1].period_ns = 0;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_PERIOD_ZERO);
        asked.specs[1].period_ns = SEC;
        asked.specs[1].mode = 3;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_OUT_OF_RANGE);
        asked.specs[1].mode = 0;
        asked.specs[1].struct_size = 1;
        assert_int_equal(make(policies, 1, options, &out), TOLLBAR_E_STRUCT_SIZE);
        assert_ptr_equal(out, room.words);
    }
    for (i = 0; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0);
}

static void c4_arguments_of_opening_one(void **state) {
    tollbar_table *out = (tollbar_table *)(void *)room.words;
    struct asked asked;
    unsigned char *at = memory + (64 - (uintptr_t)memory % 64) % 64;
    (void)state;
    ask(&asked, 1000, "1/s", NULL);
    NULL_IS(tollbar_table_open(NULL, asked.policies, 1, &asked.options, &out));
    NULL_IS(tollbar_table_open(NULL, NULL, 0, NULL, &out));
    NULL_IS(tollbar_table_open("/no-such-directory/table", NULL, 0, NULL, NULL));
    ODD_IS(tollbar_table_open("/no-such-directory/table", NULL, 0, NULL, ODD(tollbar_table *)));
    /* Policies and options come together. A call without both opens any table. */
    NULL_IS(tollbar_table_open("/no-such-directory/table", asked.policies, 1, NULL, &out));
    assert_int_equal(tollbar_table_open("/no-such-directory/table", NULL, 0, &asked.options, &out), TOLLBAR_E_POLICY_COUNT);
    errno = 0;
    assert_int_equal(tollbar_table_open("/no-such-directory/table", NULL, 0, NULL, &out), TOLLBAR_E_OPEN);
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_int_equal(in_file(asked.policies, 1, &asked.options, &out), TOLLBAR_E_OPEN);
    assert_int_equal(errno, ENOENT);

    NULL_IS(tollbar_table_init_in(NULL, sizeof memory, asked.policies, 1, &asked.options, &out));
    ODD_IS(tollbar_table_init_in(at + 1, sizeof memory - 64, asked.policies, 1, &asked.options, &out));
    ODD_IS(tollbar_table_init_in(at + 32, sizeof memory - 128, asked.policies, 1, &asked.options, &out));
    assert_int_equal(tollbar_table_init_in(at, 4096, asked.policies, 1, &asked.options, &out), TOLLBAR_E_BUFFER_TOO_SMALL);
    NULL_IS(tollbar_table_attach(NULL, sizeof memory, &out));
    NULL_IS(tollbar_table_attach(at, sizeof memory - 64, NULL));
    ODD_IS(tollbar_table_attach(at, sizeof memory - 64, ODD(tollbar_table *)));
    assert_int_equal(tollbar_table_attach(at, sizeof memory - 64, &out), TOLLBAR_E_NOT_A_TABLE);
    assert_ptr_equal(out, room.words);
    tollbar_table_close(NULL);
}

static void c4_arguments_of_decisions(void **state) {
    tollbar_table *table = table_of(1000, "10/s burst 3", NULL);
    tollbar_decision decision = TOLLBAR_DECISION_INIT, absurd = TOLLBAR_DECISION_INIT;
    tollbar_reservation booked = {7, 7, 7};
    uint64_t number = 7;
    (void)state;
    absurd.struct_size = 1;

    NULL_IS(tollbar_table_check(NULL, 0, "k", 1, 1, &decision));
    NULL_IS(tollbar_table_check_at(NULL, 0, "k", 1, 1, 0, NULL));
    NULL_IS(tollbar_table_peek(NULL, 0, "k", 1, 1, &decision));
    NULL_IS(tollbar_table_peek_at(NULL, 0, "k", 1, 1, 0, NULL));
    NULL_IS(tollbar_table_take_up_to(NULL, 0, "k", 1, 1, &number));
    NULL_IS(tollbar_table_take_up_to_at(NULL, 0, "k", 1, 1, 0, &number));
    NULL_IS(tollbar_table_take_up_to(table, 0, "k", 1, 1, NULL));
    NULL_IS(tollbar_table_take_up_to_at(table, 0, "k", 1, 1, 0, NULL));
    NULL_IS(tollbar_table_check_leaving(NULL, 0, "k", 1, 1, 2, NULL));
    NULL_IS(tollbar_table_check_leaving(table, 0, NULL, 1, 1, 2, NULL));
    NULL_IS(tollbar_table_check_leaving_at(NULL, 0, "k", 1, 1, 2, 0, NULL));
    NULL_IS(tollbar_table_charge(NULL, 0, "k", 1, 1, &number));
    NULL_IS(tollbar_table_charge_at(NULL, 0, "k", 1, 1, 0, &number));
    NULL_IS(tollbar_table_charge(table, 0, NULL, 1, 1, &number));
    NULL_IS(tollbar_table_reserve(NULL, 0, "k", 1, 1, 0, &booked));
    NULL_IS(tollbar_table_reserve(table, 0, "k", 1, 1, 0, NULL));
    NULL_IS(tollbar_table_reserve_at(NULL, 0, "k", 1, 1, 0, 0, &booked));
    NULL_IS(tollbar_table_reserve_at(table, 0, "k", 1, 1, 0, 0, NULL));
    NULL_IS(tollbar_table_wait(NULL, 0, "k", 1, 1, 0, NULL));
    NULL_IS(tollbar_table_cancel(NULL, 0, "k", 1, &booked, NULL));
    NULL_IS(tollbar_table_cancel(table, 0, "k", 1, NULL, NULL));
    NULL_IS(tollbar_table_cancel(table, 0, NULL, 1, &booked, NULL));
    NULL_IS(tollbar_table_cancel_at(NULL, 0, "k", 1, &booked, 0, NULL));
    NULL_IS(tollbar_table_cancel_at(table, 0, "k", 1, NULL, 0, NULL));
    NULL_IS(tollbar_table_reset(NULL, 0, "k", 1));
    NULL_IS(tollbar_table_reset_at(NULL, 0, "k", 1, 0));
    NULL_IS(tollbar_table_exempt(NULL, 0, "k", 1));
    NULL_IS(tollbar_table_unexempt(NULL, 0, "k", 1));
    NULL_IS(tollbar_table_hash(NULL, 0, "k", 1, &number));
    NULL_IS(tollbar_table_hash(table, 0, "k", 1, NULL));

    ODD_IS(tollbar_table_check(ODD(tollbar_table), 0, "k", 1, 1, &decision));
    ODD_IS(tollbar_table_check_at(ODD(tollbar_table), 0, "k", 1, 1, 0, NULL));
    ODD_IS(tollbar_table_check(table, 0, "k", 1, 1, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_check_at(table, 0, "k", 1, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_peek(ODD(tollbar_table), 0, "k", 1, 1, &decision));
    ODD_IS(tollbar_table_peek(table, 0, "k", 1, 1, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_peek_at(table, 0, "k", 1, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_take_up_to(ODD(tollbar_table), 0, "k", 1, 1, &number));
    ODD_IS(tollbar_table_take_up_to(table, 0, "k", 1, 1, ODD(uint64_t)));
    ODD_IS(tollbar_table_take_up_to_at(table, 0, "k", 1, 1, 0, ODD(uint64_t)));
    ODD_IS(tollbar_table_check_leaving(table, 0, "k", 1, 1, 2, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_check_leaving_at(table, 0, "k", 1, 1, 2, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_charge(ODD(tollbar_table), 0, "k", 1, 1, &number));
    ODD_IS(tollbar_table_charge(table, 0, "k", 1, 1, ODD(uint64_t)));
    ODD_IS(tollbar_table_charge_at(table, 0, "k", 1, 1, 0, ODD(uint64_t)));
    ODD_IS(tollbar_table_reserve(table, 0, "k", 1, 1, 0, ODD(tollbar_reservation)));
    ODD_IS(tollbar_table_reserve_at(table, 0, "k", 1, 1, 0, 0, ODD(tollbar_reservation)));
    ODD_IS(tollbar_table_wait(table, 0, "k", 1, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_table_cancel(table, 0, "k", 1, ODD(tollbar_reservation), NULL));
    ODD_IS(tollbar_table_cancel_at(table, 0, "k", 1, &booked, 0, ODD(uint64_t)));
    ODD_IS(tollbar_table_reset(ODD(tollbar_table), 0, "k", 1));
    ODD_IS(tollbar_table_reset_at(ODD(tollbar_table), 0, "k", 1, 0));
    ODD_IS(tollbar_table_exempt(ODD(tollbar_table), 0, "k", 1));
    ODD_IS(tollbar_table_unexempt(ODD(tollbar_table), 0, "k", 1));
    ODD_IS(tollbar_table_hash(ODD(tollbar_table), 0, "k", 1, &number));
    ODD_IS(tollbar_table_hash(table, 0, "k", 1, ODD(uint64_t)));

    assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, 0, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_table_peek(table, 0, "k", 1, 1, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, 0, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(absurd.remaining, 0);

    /* A NULL key is an error unless its length is 0. */
    NULL_IS(tollbar_table_check(table, 0, NULL, 1, 1, &decision));
    NULL_IS(tollbar_table_check_at(table, 0, NULL, SIZE_MAX, 1, 0, NULL));
    NULL_IS(tollbar_table_peek(table, 0, NULL, 1, 1, &decision));
    NULL_IS(tollbar_table_take_up_to(table, 0, NULL, 1, 1, &number));
    NULL_IS(tollbar_table_reserve(table, 0, NULL, 1, 1, 0, &booked));
    NULL_IS(tollbar_table_wait(table, 0, NULL, 1, 1, 0, NULL));
    NULL_IS(tollbar_table_reset(table, 0, NULL, 1));
    NULL_IS(tollbar_table_exempt(table, 0, NULL, 1));
    NULL_IS(tollbar_table_unexempt(table, 0, NULL, 1));
    NULL_IS(tollbar_table_hash(table, 0, NULL, 1, &number));
    assert_int_equal(tollbar_table_check(table, 0, "k", TOO_LONG, 1, &decision), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", SIZE_MAX, 1, 0, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_peek(table, 0, "k", TOO_LONG, 1, &decision), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_take_up_to(table, 0, "k", TOO_LONG, 1, &number), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_reserve(table, 0, "k", TOO_LONG, 1, 0, &booked), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_wait(table, 0, "k", TOO_LONG, 1, 0, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_reset(table, 0, "k", TOO_LONG), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_exempt(table, 0, "k", TOO_LONG), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_unexempt(table, 0, "k", TOO_LONG), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_hash(table, 0, "k", TOO_LONG, &number), TOLLBAR_E_BUFFER_TOO_SMALL);

    assert_int_equal(tollbar_table_check(table, 1, "k", 1, 1, &decision), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_check_at(table, 127, "k", 1, 1, 0, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_peek(table, 128, "k", 1, 1, &decision), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_take_up_to(table, UINT32_MAX, "k", 1, 1, &number), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_cancel(table, UINT32_MAX, "k", 1, &booked, &number), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_reserve(table, UINT32_MAX, "k", 1, 1, 0, &booked), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_wait(table, UINT32_MAX, "k", 1, 1, 0, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_hash(table, 1, "k", 1, &number), TOLLBAR_E_NO_SUCH_POLICY);

    assert_int_equal(number, 7);
    assert_int_equal(decision.remaining, 0);
    assert_int_equal(decision.reset_after_ns, 0);
    assert_int_equal(stats_of(table).inserted, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 3, 0, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

static void c4_arguments_of_batches(void **state) {
    tollbar_table *table = table_of(1000, "10/s burst 3", NULL);
    const tollbar_request fresh = {"k", 1, 1, 0, 0};
    tollbar_request requests[40];
    int32_t results[40];
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(requests); i++) {
        requests[i] = fresh;
        results[i] = 77;
    }
    NULL_IS(tollbar_table_check_many(NULL, requests, 2, results));
    NULL_IS(tollbar_table_check_many(table, NULL, 2, results));
    NULL_IS(tollbar_table_check_many(table, requests, 2, NULL));
    NULL_IS(tollbar_table_check_many_at(NULL, requests, 2, 0, results));
    NULL_IS(tollbar_table_check_many_at(table, NULL, 2, 0, results));
    NULL_IS(tollbar_table_check_many_at(table, requests, 2, 0, NULL));
    ODD_IS(tollbar_table_check_many(ODD(tollbar_table), requests, 2, results));
    ODD_IS(tollbar_table_check_many(table, ODD(tollbar_request), 2, results));
    ODD_IS(tollbar_table_check_many(table, requests, 2, ODD(int32_t)));
    ODD_IS(tollbar_table_check_many_at(table, ODD(tollbar_request), 2, 0, results));
    ODD_IS(tollbar_table_check_many_at(table, requests, 2, 0, ODD(int32_t)));
    /* One wrong request makes the whole batch fail, at any index, and no request before it is
     * charged. */
    for (i = 0; i < COUNT(requests); i += 39) {
        requests[i].key = NULL;
        NULL_IS(tollbar_table_check_many(table, requests, COUNT(requests), results));
        NULL_IS(tollbar_table_check_many_at(table, requests, COUNT(requests), 0, results));
        requests[i] = fresh;
        requests[i].length = TOO_LONG;
        assert_int_equal(tollbar_table_check_many(table, requests, COUNT(requests), results), TOLLBAR_E_BUFFER_TOO_SMALL);
        requests[i] = fresh;
    }
    for (i = 0; i < COUNT(results); i++)
        assert_int_equal(results[i], 77);
    assert_int_equal(stats_of(table).inserted, 0);
    /* Without requests the pointers may be anything. */
    assert_int_equal(tollbar_table_check_many(table, NULL, 0, NULL), 0);
    assert_int_equal(tollbar_table_check_many_at(table, ODD(tollbar_request), 0, 0, ODD(int32_t)), 0);
    NULL_IS(tollbar_table_check_many(NULL, NULL, 0, NULL));
    tollbar_table_close(table);
}

static void c4_arguments_of_the_rest(void **state) {
    tollbar_table *table = table_of(1000, "10/s burst 3", NULL);
    tollbar_policy_spec spec = spec_of("7/s"), wrong = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    uint64_t number = 7;
    uint32_t policy = 7;
    (void)state;
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, 0, NULL), TOLLBAR_ALLOWED);

    NULL_IS(tollbar_table_add_policy(NULL, &spec, &policy));
    NULL_IS(tollbar_table_add_policy(table, NULL, &policy));
    NULL_IS(tollbar_table_add_policy(table, &spec, NULL));
    ODD_IS(tollbar_table_add_policy(ODD(tollbar_table), &spec, &policy));
    ODD_IS(tollbar_table_add_policy(table, ODD(tollbar_policy_spec), &policy));
    NULL_IS(tollbar_table_find_or_add_policy(NULL, &spec, &policy));
    NULL_IS(tollbar_table_find_or_add_policy(table, NULL, &policy));
    NULL_IS(tollbar_table_find_or_add_policy(table, &spec, NULL));
    ODD_IS(tollbar_table_find_or_add_policy(ODD(tollbar_table), &spec, &policy));
    ODD_IS(tollbar_table_find_or_add_policy(table, ODD(tollbar_policy_spec), &policy));
    ODD_IS(tollbar_table_add_policy(table, &spec, ODD(uint32_t)));
    assert_int_equal(tollbar_table_add_policy(table, &wrong, &policy), TOLLBAR_E_PERIOD_ZERO);
    NULL_IS(tollbar_table_set_policy(NULL, 0, &spec, TOLLBAR_KEEP_COUNT));
    NULL_IS(tollbar_table_set_policy(table, 0, NULL, TOLLBAR_KEEP_COUNT));
    ODD_IS(tollbar_table_set_policy(ODD(tollbar_table), 0, &spec, TOLLBAR_KEEP_COUNT));
    ODD_IS(tollbar_table_set_policy(table, 0, ODD(tollbar_policy_spec), TOLLBAR_KEEP_COUNT));
    assert_int_equal(tollbar_table_set_policy(table, 0, &wrong, TOLLBAR_KEEP_COUNT), TOLLBAR_E_PERIOD_ZERO);
    NULL_IS(tollbar_table_get_policy(NULL, 0, &spec));
    NULL_IS(tollbar_table_get_policy(table, 0, NULL));
    ODD_IS(tollbar_table_get_policy(ODD(tollbar_table), 0, &spec));
    ODD_IS(tollbar_table_get_policy(table, 0, ODD(tollbar_policy_spec)));
    wrong.struct_size = 3;
    assert_int_equal(tollbar_table_get_policy(table, 0, &wrong), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(wrong.limit, 0);
    assert_int_equal(spec.limit, 7);
    assert_int_equal(policy, 7);

    NULL_IS(tollbar_table_get_stats(NULL, &stats));
    NULL_IS(tollbar_table_get_stats(table, NULL));
    ODD_IS(tollbar_table_get_stats(ODD(tollbar_table), &stats));
    ODD_IS(tollbar_table_get_stats(table, ODD(tollbar_table_stats)));
    NULL_IS(tollbar_table_sync(NULL));
    ODD_IS(tollbar_table_sync(ODD(tollbar_table)));
    NULL_IS(tollbar_table_now(NULL, &number));
    NULL_IS(tollbar_table_now(table, NULL));
    ODD_IS(tollbar_table_now(ODD(tollbar_table), &number));
    ODD_IS(tollbar_table_now(table, ODD(uint64_t)));
    NULL_IS(tollbar_table_next(NULL, 0, 0, &entry));
    NULL_IS(tollbar_table_next(table, 0, 0, NULL));
    ODD_IS(tollbar_table_next(ODD(tollbar_table), 0, 0, &entry));
    ODD_IS(tollbar_table_next(table, 0, 0, ODD(tollbar_table_entry)));
    NULL_IS(tollbar_table_sweep(NULL, 0, UINT64_MAX, HOUR, &swept));
    NULL_IS(tollbar_table_sweep(table, 0, UINT64_MAX, HOUR, NULL));
    ODD_IS(tollbar_table_sweep(ODD(tollbar_table), 0, UINT64_MAX, HOUR, &swept));
    ODD_IS(tollbar_table_sweep(table, 0, UINT64_MAX, HOUR, ODD(tollbar_table_sweep_result)));
    NULL_IS(tollbar_table_validate(NULL, 0, &health));
    NULL_IS(tollbar_table_validate(table, 0, NULL));
    ODD_IS(tollbar_table_validate(ODD(tollbar_table), 0, &health));
    ODD_IS(tollbar_table_validate(table, 0, ODD(tollbar_table_health)));
    NULL_IS(tollbar_table_repair(NULL, 0, &health));
    NULL_IS(tollbar_table_repair(table, 0, NULL));
    ODD_IS(tollbar_table_repair(ODD(tollbar_table), 0, &health));
    ODD_IS(tollbar_table_repair(table, 0, ODD(tollbar_table_health)));
    assert_int_equal(health.vacant, 0);
    health.struct_size = 47;
    assert_int_equal(tollbar_table_validate(table, 0, &health), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_table_repair(table, 0, &health), TOLLBAR_E_STRUCT_SIZE);
    assert_true(number == 7 && entry.hash == 0 && entry.next == 0 && stats.capacity == 0 && swept.done == 0);

    /* The calls have added, changed and swept nothing. */
    stats = stats_of(table);
    assert_int_equal(stats.policies, 1);
    assert_int_equal(stats.keys, 1);
    assert_int_equal(tollbar_table_get_policy(table, 0, &spec), 0);
    assert_int_equal(spec.limit, 10);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c4_arguments_of_making_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_opening_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_decisions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_the_rest, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("arguments of tables", tests, NULL, NULL);
}
