/* [C4] A NULL, misaligned or out-of-range argument of a lease's or client's call is an error, and
 * [C2] then nothing is written or taken. */
#include "arguments.h"
#include "tollbar_redis.h"

#define NOWHERE "unix:/no-such-directory/redis.sock"

/* The ways of making a node, under one signature. */
typedef int32_t maker(const char *, size_t, const tollbar_policy_spec *, const tollbar_lease_options *, tollbar_lease **);

static unsigned char memory[1 << 20];

static unsigned char *aligned(void) {
    return memory + (64 - (uintptr_t)memory % 64) % 64;
}

static int32_t in_memory(const char *name, size_t length, const tollbar_policy_spec *spec,
                         const tollbar_lease_options *options, tollbar_lease **out) {
    return tollbar_lease_init_in(aligned(), sizeof memory - 64, name, length, spec, options, out);
}

static maker *const makers[] = {tollbar_lease_new, tollbar_lease_new_shared, in_memory};

static tollbar_lease *lease_of(const char *text) {
    const tollbar_policy_spec spec = spec_of(text);
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *lease = NULL;
    assert_int_equal(tollbar_lease_new("limit", 5, &spec, &options, &lease), 0);
    return lease;
}

static void c4_pointers_of_making_one(void **state) {
    const tollbar_policy_spec spec = spec_of("1000/s burst 200");
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *out = (tollbar_lease *)(void *)room.words;
    uint64_t bytes = 7;
    size_t m, i;
    (void)state;
    for (m = 0; m < COUNT(makers); m++) {
        maker *const make = makers[m];
        NULL_IS(make(NULL, 5, &spec, &options, &out));
        NULL_IS(make("limit", 5, NULL, &options, &out));
        NULL_IS(make("limit", 5, &spec, NULL, &out));
        NULL_IS(make("limit", 5, &spec, &options, NULL));
        ODD_IS(make("limit", 5, ODD(tollbar_policy_spec), &options, &out));
        ODD_IS(make("limit", 5, &spec, ODD(tollbar_lease_options), &out));
        ODD_IS(make("limit", 5, &spec, &options, ODD(tollbar_lease *)));
        assert_int_equal(make("limit", TOO_LONG, &spec, &options, &out), TOLLBAR_E_BUFFER_TOO_SMALL);
    }
    NULL_IS(tollbar_lease_bytes(NULL, &options, &bytes));
    NULL_IS(tollbar_lease_bytes(&spec, NULL, &bytes));
    NULL_IS(tollbar_lease_bytes(&spec, &options, NULL));
    ODD_IS(tollbar_lease_bytes(ODD(tollbar_policy_spec), &options, &bytes));
    ODD_IS(tollbar_lease_bytes(&spec, ODD(tollbar_lease_options), &bytes));
    ODD_IS(tollbar_lease_bytes(&spec, &options, ODD(uint64_t)));
    assert_int_equal(bytes, 7);

    NULL_IS(tollbar_lease_init_in(NULL, sizeof memory, "limit", 5, &spec, &options, &out));
    ODD_IS(tollbar_lease_init_in(aligned() + 8, sizeof memory - 128, "limit", 5, &spec, &options, &out));
    assert_int_equal(tollbar_lease_init_in(aligned(), 4096, "limit", 5, &spec, &options, &out), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_lease_init_in(aligned(), 0, "limit", 5, &spec, &options, &out), TOLLBAR_E_BUFFER_TOO_SMALL);
    NULL_IS(tollbar_lease_attach(NULL, sizeof memory, &out));
    NULL_IS(tollbar_lease_attach(aligned(), sizeof memory - 64, NULL));
    ODD_IS(tollbar_lease_attach(aligned() + 8, sizeof memory - 128, &out));
    ODD_IS(tollbar_lease_attach(aligned(), sizeof memory - 64, ODD(tollbar_lease *)));
    assert_int_equal(tollbar_lease_attach(aligned(), sizeof memory - 64, &out), TOLLBAR_E_NOT_A_LEASE);
    assert_int_equal(tollbar_lease_attach(aligned(), 0, &out), TOLLBAR_E_NOT_A_LEASE);
    assert_ptr_equal(out, room.words);
    for (i = 0; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0);
    tollbar_lease_close(NULL);
}

/* Every way of making a node refuses these options, with this error. */
static void refused_with(const char *name, const tollbar_policy_spec *spec, const tollbar_lease_options *options,
                         int32_t code) {
    tollbar_lease *out = (tollbar_lease *)(void *)room.words;
    size_t m;
    for (m = 0; m < COUNT(makers); m++) {
        const int32_t got = makers[m](name, strlen(name), spec, options, &out);
        if (got != code)
            fail_msg("%s, not %s", tollbar_errname(got), tollbar_errname(code));
    }
    assert_ptr_equal(out, room.words);
}

static void c4_choices_of_making_one(void **state) {
    static const struct {
        const char *policy;
        int32_t code;
    } policies[] = {
        {"10/s algo fixed-window", TOLLBAR_E_LEASE_ALGORITHM}, {"10/s algo sliding-log", TOLLBAR_E_LEASE_ALGORITHM},
        {"10/s algo pacer", TOLLBAR_E_LEASE_ALGORITHM},        {"10/s burst 20 borrow", TOLLBAR_E_LEASE_ALGORITHM},
        {"10/s burst 20 init 0", TOLLBAR_E_LEASE_ALGORITHM},   {"0/s", TOLLBAR_E_LEASE_ALGORITHM},
        {"7/day burst 1000000", TOLLBAR_E_LEASE_TOO_LARGE},
    };
    static const char *const names[] = {"",
                                        "two words",
                                        "brace{",
                                        "brace}",
                                        "tab\t",
                                        "\xc3\xa9",
                                        "\xff",
                                        "del\x7f",
                                        "0123456789012345678901234567890123456789012345678901234567890123+"};
    const tollbar_lease_options usual = TOLLBAR_LEASE_OPTIONS_INIT(4);
    const tollbar_policy_spec good = spec_of("1000/s burst 200");
    tollbar_policy_spec spec;
    tollbar_lease_options options;
    uint64_t bytes = 7;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(policies); i++) {
        spec = spec_of(policies[i].policy);
        refused_with("limit", &spec, &usual, policies[i].code);
        assert_int_equal(tollbar_lease_bytes(&spec, &usual, &bytes), policies[i].code);
    }
    for (i = 0; i < COUNT(names); i++)
        refused_with(names[i], &good, &usual, TOLLBAR_E_LEASE_NAME);
    spec = good;
    spec.period_ns = 0;
    refused_with("limit", &spec, &usual, TOLLBAR_E_PERIOD_ZERO);
    spec = good;
    spec.struct_size = 1;
    refused_with("limit", &spec, &usual, TOLLBAR_E_STRUCT_SIZE);

#define REFUSED(field, value, code)                                                                                        \
    do {                                                                                                                   \
        options = usual;                                                                                                   \
        options.field = (value);                                                                                           \
        refused_with("limit", &good, &options, (code));                                                                    \
        assert_int_equal(tollbar_lease_bytes(&good, &options, &bytes), (code));                                            \
    } while (0)
    REFUSED(struct_size, 0, TOLLBAR_E_STRUCT_SIZE);
    REFUSED(struct_size, (uint32_t)sizeof options - 1, TOLLBAR_E_STRUCT_SIZE);
    REFUSED(struct_size, UINT32_MAX, TOLLBAR_E_STRUCT_SIZE);
    REFUSED(nodes, 0, TOLLBAR_E_LEASE_NODES);
    REFUSED(nodes, 65536, TOLLBAR_E_LEASE_NODES);
    REFUSED(nodes, UINT32_MAX, TOLLBAR_E_LEASE_NODES);
    REFUSED(capacity, 0, TOLLBAR_E_CAPACITY);
    REFUSED(capacity, (UINT64_C(1) << 24) + 1, TOLLBAR_E_CAPACITY);
    REFUSED(capacity, UINT64_MAX, TOLLBAR_E_CAPACITY);
    REFUSED(life_ns, 1, TOLLBAR_E_LEASE_LIFE);
    REFUSED(life_ns, MS - 1, TOLLBAR_E_LEASE_LIFE);
    REFUSED(life_ns, 10 * MIN + 1, TOLLBAR_E_LEASE_LIFE);
    REFUSED(life_ns, UINT64_MAX, TOLLBAR_E_LEASE_LIFE);
    REFUSED(fallback, TOLLBAR_FALLBACK_ALLOW + 1, TOLLBAR_E_OUT_OF_RANGE);
    REFUSED(fallback, UINT32_MAX, TOLLBAR_E_OUT_OF_RANGE);
    REFUSED(flags, 8, TOLLBAR_E_RESERVED);
    REFUSED(flags, UINT32_C(1) << 31, TOLLBAR_E_RESERVED);
    /* An overdraft without its flag, which the library would ignore. */
    REFUSED(overdraft, 1, TOLLBAR_E_RESERVED);
#undef REFUSED
    options = usual;
    options.flags = TOLLBAR_LEASE_HAS_OVERDRAFT;
    options.overdraft = UINT64_MAX;
    refused_with("limit", &good, &options, TOLLBAR_E_LEASE_BURST);
    options.overdraft = 100;
    refused_with("limit", &good, &options, TOLLBAR_E_LEASE_BURST);
    assert_int_equal(bytes, 7);
}

/* A longer struct of a newer caller is accepted if its tail is zero, and otherwise refused. */
static void c6_options_may_grow(void **state) {
    struct {
        tollbar_lease_options options;
        uint64_t tail;
    } newer = {TOLLBAR_LEASE_OPTIONS_INIT(4), 0};
    const tollbar_policy_spec spec = spec_of("1000/s burst 200");
    tollbar_lease *lease = NULL;
    (void)state;
    newer.options.struct_size = sizeof newer;
    assert_int_equal(tollbar_lease_new("limit", 5, &spec, &newer.options, &lease), 0);
    tollbar_lease_close(lease);
    lease = NULL;
    newer.tail = 1;
    assert_int_equal(tollbar_lease_new("limit", 5, &spec, &newer.options, &lease), TOLLBAR_E_RESERVED);
    assert_null(lease);
}

static void c4_arguments_of_decisions(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_decision decision = TOLLBAR_DECISION_INIT, absurd = TOLLBAR_DECISION_INIT;
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    tollbar_lease_request request = TOLLBAR_LEASE_REQUEST_INIT(1, 0);
    const uint64_t now = tollbar_lease_now(lease);
    (void)state;
    absurd.struct_size = 1;
    NULL_IS(tollbar_lease_check(NULL, "k", 1, 1, &decision));
    NULL_IS(tollbar_lease_check_at(NULL, "k", 1, 1, now, NULL));
    NULL_IS(tollbar_lease_peek(NULL, "k", 1, 1, &decision));
    ODD_IS(tollbar_lease_check(ODD(tollbar_lease), "k", 1, 1, &decision));
    ODD_IS(tollbar_lease_check_at(ODD(tollbar_lease), "k", 1, 1, now, NULL));
    ODD_IS(tollbar_lease_peek(ODD(tollbar_lease), "k", 1, 1, &decision));
    ODD_IS(tollbar_lease_check(lease, "k", 1, 1, ODD(tollbar_decision)));
    ODD_IS(tollbar_lease_check_at(lease, "k", 1, 1, now, ODD(tollbar_decision)));
    ODD_IS(tollbar_lease_peek(lease, "k", 1, 1, ODD(tollbar_decision)));
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 1, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_lease_check_at(lease, "k", 1, 1, now, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_lease_peek(lease, "k", 1, 1, &absurd), TOLLBAR_E_STRUCT_SIZE);
    /* A NULL key is an error unless its length is 0. */
    NULL_IS(tollbar_lease_check(lease, NULL, 1, 1, &decision));
    NULL_IS(tollbar_lease_check_at(lease, NULL, SIZE_MAX, 1, now, NULL));
    NULL_IS(tollbar_lease_peek(lease, NULL, 1, 1, &decision));
    assert_int_equal(tollbar_lease_check(lease, "k", TOO_LONG, 1, &decision), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_lease_check_at(lease, "k", SIZE_MAX, 1, now, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_lease_peek(lease, "k", TOO_LONG, 1, &decision), TOLLBAR_E_BUFFER_TOO_SMALL);
    NULL_IS(tollbar_lease_wait(NULL, "k", 1, 1, 0, &decision));
    ODD_IS(tollbar_lease_wait(ODD(tollbar_lease), "k", 1, 1, 0, &decision));
    ODD_IS(tollbar_lease_wait(lease, "k", 1, 1, 0, ODD(tollbar_decision)));
    assert_int_equal(tollbar_lease_wait(lease, "k", 1, 1, 0, &absurd), TOLLBAR_E_STRUCT_SIZE);
    NULL_IS(tollbar_lease_wait(lease, NULL, 1, 1, 0, NULL));
    assert_int_equal(tollbar_lease_wait(lease, "k", TOO_LONG, 1, 0, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    NULL_IS(tollbar_lease_poll(NULL, "k", 1, &request, &decision));
    NULL_IS(tollbar_lease_poll(lease, "k", 1, NULL, &decision));
    NULL_IS(tollbar_lease_poll(lease, NULL, 1, &request, &decision));
    ODD_IS(tollbar_lease_poll(ODD(tollbar_lease), "k", 1, &request, &decision));
    ODD_IS(tollbar_lease_poll(lease, "k", 1, ODD(tollbar_lease_request), &decision));
    ODD_IS(tollbar_lease_poll(lease, "k", 1, &request, ODD(tollbar_decision)));
    assert_int_equal(tollbar_lease_poll(lease, "k", 1, &request, &absurd), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_lease_poll(lease, "k", SIZE_MAX, &request, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_lease_now(NULL), 0);
    assert_int_equal(tollbar_lease_now(ODD(tollbar_lease)), 0);

    NULL_IS(tollbar_lease_get_stats(NULL, &stats));
    NULL_IS(tollbar_lease_get_stats(lease, NULL));
    ODD_IS(tollbar_lease_get_stats(ODD(tollbar_lease), &stats));
    ODD_IS(tollbar_lease_get_stats(lease, ODD(tollbar_lease_stats)));
    stats.struct_size = (uint32_t)offsetof(tollbar_lease_stats, denied_pending) - 1;
    assert_int_equal(tollbar_lease_get_stats(lease, &stats), TOLLBAR_E_STRUCT_SIZE);
    stats.struct_size = (uint32_t)sizeof stats;
    assert_true(decision.remaining == 0 && decision.retry_after_ns == 0 && absurd.remaining == 0);
    /* The calls have taken and counted nothing. */
    assert_int_equal(tollbar_lease_get_stats(lease, &stats), 0);
    assert_true(stats.fallback_permits == 0 && stats.denied == 0 && stats.queue_full == 0);
    tollbar_lease_close(lease);
}

static void c4_arguments_of_clients(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_lease_client *out = (tollbar_lease_client *)(void *)room.words, *client = NULL;
    uint32_t wait = 7, events = 7;
    (void)state;
    NULL_IS(tollbar_lease_client_new(NULL, NOWHERE, strlen(NOWHERE), NULL, &out));
    NULL_IS(tollbar_lease_client_new(lease, NULL, 5, NULL, &out));
    NULL_IS(tollbar_lease_client_new(lease, NOWHERE, strlen(NOWHERE), NULL, NULL));
    ODD_IS(tollbar_lease_client_new(ODD(tollbar_lease), NOWHERE, strlen(NOWHERE), NULL, &out));
    ODD_IS(tollbar_lease_client_new(lease, NOWHERE, strlen(NOWHERE), NULL, ODD(tollbar_lease_client *)));
    ODD_IS(tollbar_lease_client_new(lease, "nonsense", 8, ODD(size_t), &out));
    assert_int_equal(tollbar_lease_client_new(lease, NOWHERE, TOO_LONG, NULL, &out), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_ptr_equal(out, room.words);

    NULL_IS(tollbar_lease_client_on_change(NULL, NULL, NULL));
    NULL_IS(tollbar_lease_client_run(NULL));
    NULL_IS(tollbar_lease_client_stop(NULL));
    NULL_IS(tollbar_lease_client_tick(NULL, &wait));
    ODD_IS(tollbar_lease_client_on_change(ODD(tollbar_lease_client), NULL, NULL));
    ODD_IS(tollbar_lease_client_run(ODD(tollbar_lease_client)));
    ODD_IS(tollbar_lease_client_stop(ODD(tollbar_lease_client)));
    ODD_IS(tollbar_lease_client_tick(ODD(tollbar_lease_client), &wait));
    ODD_IS(tollbar_lease_client_close(ODD(tollbar_lease_client), 0));
    assert_int_equal(tollbar_lease_client_fd(NULL, &events), -1);
    assert_int_equal(tollbar_lease_client_fd(ODD(tollbar_lease_client), &events), -1);
    assert_int_equal(tollbar_lease_client_circuit(NULL), TOLLBAR_CIRCUIT_UNKNOWN);
    assert_int_equal(tollbar_lease_client_circuit(ODD(tollbar_lease_client)), TOLLBAR_CIRCUIT_UNKNOWN);
    assert_string_equal(tollbar_lease_client_error(NULL), "");
    assert_string_equal(tollbar_lease_client_error(ODD(tollbar_lease_client)), "");
    assert_string_equal(tollbar_lease_client_lease_error(NULL, lease), "");
    assert_string_equal(tollbar_lease_client_lease_error(ODD(tollbar_lease_client), lease), "");
    ODD_IS(tollbar_lease_client_remove(ODD(tollbar_lease_client), lease, 0));
    ODD_IS(tollbar_lease_client_report(ODD(tollbar_lease_client), lease, 0));
    NULL_IS(tollbar_lease_client_report(NULL, lease, 0));
    assert_int_equal(tollbar_lease_client_close(NULL, 1000), 0);
    assert_true(wait == 7 && events == 7);

    assert_int_equal(tollbar_lease_client_new(lease, NOWHERE, strlen(NOWHERE), NULL, &client), 0);
    ODD_IS(tollbar_lease_client_tick(client, ODD(uint32_t)));
    ODD_IS(tollbar_lease_client_remove(client, ODD(tollbar_lease), 0));
    assert_string_equal(tollbar_lease_client_lease_error(client, NULL), "");
    assert_string_equal(tollbar_lease_client_lease_error(client, ODD(tollbar_lease)), "");
    assert_int_equal(tollbar_lease_client_fd(client, ODD(uint32_t)), -1);
    /* An output or a callback that the caller does not want may be NULL. */
    assert_int_equal(tollbar_lease_client_tick(client, NULL), 0);
    assert_int_equal(tollbar_lease_client_fd(client, NULL), -1);
    assert_int_equal(tollbar_lease_client_on_change(client, NULL, NULL), 0);
    assert_int_equal(tollbar_lease_client_close(client, 0), 0);
    tollbar_lease_close(lease);
}

static void urls_that_cannot_be_read_say_where(void **state) {
    static const struct {
        const char *url;
        int32_t code;
    } urls[] = {
        {"redis://127.0.0.1", 0},
        {"redis://user:word@[::1]:6380/3", 0},
        {"unix:/tmp/redis.sock?db=1&user=a&password=b", 0},
        {"", TOLLBAR_E_URL},
        {"http://127.0.0.1", TOLLBAR_E_URL},
        {"rediss://127.0.0.1", TOLLBAR_E_URL},
        {"redis://127.0.0.1:99999", TOLLBAR_E_URL},
        {"redis://127.0.0.1/x", TOLLBAR_E_URL},
        {"unix:", TOLLBAR_E_URL},
        {"unix:/s?what=1", TOLLBAR_E_URL},
        {"redis://\xff", TOLLBAR_E_URL},
    };
    tollbar_lease *lease = lease_of("1000/s burst 200");
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(urls); i++) {
        tollbar_lease_client *client = NULL;
        size_t column = 0;
        const int32_t code = tollbar_lease_client_new(lease, urls[i].url, strlen(urls[i].url), &column, &client);
        if (code != urls[i].code || (code == 0) != (client != NULL))
            fail_msg("\"%s\": %s", urls[i].url, tollbar_errname(code));
        assert_true(code == 0 ? column == 0 : column >= 1 && column <= strlen(urls[i].url) + 1);
        if (code == 0)
            assert_int_equal(tollbar_lease_client_close(client, 0), 0);
        else
            assert_int_equal(tollbar_lease_client_new(lease, urls[i].url, strlen(urls[i].url), NULL, &client), code);
    }
    tollbar_lease_close(lease);
}

static void c7_numbers_of_choices_are_as_promised(void **state) {
    (void)state;
    assert_int_equal(TOLLBAR_FALLBACK_SHARE, 0);
    assert_int_equal(TOLLBAR_FALLBACK_DENY, 1);
    assert_int_equal(TOLLBAR_FALLBACK_ALLOW, 2);
    assert_int_equal(TOLLBAR_LEASE_INEXACT, 1);
    assert_int_equal(TOLLBAR_LEASE_HAS_OVERDRAFT, 2);
    assert_int_equal(TOLLBAR_CIRCUIT_UNKNOWN, 0);
    assert_int_equal(TOLLBAR_CIRCUIT_CLOSED, 1);
    assert_int_equal(TOLLBAR_CIRCUIT_OPEN, 2);
    assert_int_equal(TOLLBAR_EVENT_READ, 1);
    assert_int_equal(TOLLBAR_EVENT_WRITE, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c4_pointers_of_making_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_choices_of_making_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c6_options_may_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_decisions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_arguments_of_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(urls_that_cannot_be_read_say_where, set_up, tear_down),
        cmocka_unit_test(c7_numbers_of_choices_are_as_promised),
    };
    return cmocka_run_group_tests_name("arguments of leases", tests, NULL, NULL);
}
