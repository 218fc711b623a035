/* Tables through each of their calls, at the caller's time: what a C program relies on. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <stdio.h>

/* The number of slots of the smallest table. */
#define LEAST 5120

static int32_t take(const tollbar_table *table, uint32_t policy, uint64_t key, uint64_t now, uint64_t cost) {
    return tollbar_table_check_at(table, policy, &key, sizeof key, cost, now, NULL);
}

static void assert_decision(tollbar_decision got, int32_t verdict, uint64_t remaining, uint64_t retry, uint64_t reset) {
    assert_int_equal(got.struct_size, sizeof got);
    assert_int_equal(got.verdict, verdict);
    assert_int_equal(got.remaining, remaining);
    assert_int_equal(got.retry_after_ns, retry);
    assert_int_equal(got.reset_after_ns, reset);
}

/* Memory with the alignment of a table. */
static void *aligned(size_t size) {
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, size), 0);
    return memory;
}

/* Pseudo-random numbers, the same in every run. */
static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void keys_are_independent_and_answers_exact(void **state) {
    tollbar_table *table = table_of(1000, "2/s", NULL);
    tollbar_table_stats stats;
    uint64_t key;
    (void)state;
    for (key = 0; key < 1000; key++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC, &got), TOLLBAR_ALLOWED);
        assert_decision(got, TOLLBAR_ALLOWED, 1, 0, SEC / 2);
        assert_int_equal(take(table, 0, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC + 1, &got), TOLLBAR_DENIED);
        assert_decision(got, TOLLBAR_DENIED, 0, SEC / 2 - 1, SEC - 1);
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 2, SEC, &got), TOLLBAR_DENIED);
        assert_decision(got, TOLLBAR_DENIED, 0, SEC, SEC);
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 3, SEC, &got), TOLLBAR_NEVER);
        assert_decision(got, TOLLBAR_NEVER, 0, TOLLBAR_NO_TIME, SEC);
        /* A request of cost 0 charges nothing. */
        assert_int_equal(take(table, 0, key, SEC, 0), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, 0, key, SEC + SEC / 2 - 1, 1), TOLLBAR_DENIED);
        assert_int_equal(take(table, 0, key, SEC + SEC / 2, 1), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, 0, key, SEC + SEC / 2, 1), TOLLBAR_DENIED);
    }
    stats = stats_of(table);
    assert_int_equal(stats.keys, 1000);
    assert_int_equal(stats.inserted, 1000);
    tollbar_table_close(table);
}

/* Each key beside a limiter of the same policy: their decisions are equal in every field. */
static void a_key_answers_as_a_limiter_would(void **state) {
    enum { KEYS = 12, STEPS = 4000 };
    size_t algorithm;
    (void)state;
    for (algorithm = 0; algorithm < COUNT(every_algorithm); algorithm++) {
        tollbar_table *table = table_of(KEYS, every_algorithm[algorithm], NULL);
        tollbar_limiter *limiters[KEYS];
        uint64_t seed = algorithm, now = 100 * SEC, admitted = 0, denied = 0;
        int step;
        for (step = 0; step < KEYS; step++)
            limiters[step] = limiter_of(every_algorithm[algorithm]);
        for (step = 0; step < STEPS; step++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT, want = TOLLBAR_DECISION_INIT;
            uint64_t key = next_random(&seed) % KEYS, cost = next_random(&seed) % 7, took = 77, has = 78;
            now += next_random(&seed) % (SEC / 20);
            switch (next_random(&seed) % 3) {
            case 0:
                assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, cost, now, &got),
                                 tollbar_limiter_check_at(limiters[key], cost, now, &want));
                admitted += got.verdict == TOLLBAR_ALLOWED;
                denied += got.verdict == TOLLBAR_DENIED;
                assert_memory_equal(&got, &want, sizeof got);
                break;
            case 1:
                assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, cost, now, &got),
                                 tollbar_limiter_peek_at(limiters[key], cost, now, &want));
                assert_memory_equal(&got, &want, sizeof got);
                break;
            default:
                assert_int_equal(tollbar_table_take_up_to_at(table, 0, &key, sizeof key, cost, now, &took),
                                 tollbar_limiter_take_up_to_at(limiters[key], cost, now, &has));
                assert_int_equal(took, has);
            }
        }
        /* Both verdicts have come often enough for the comparison to mean something. */
        assert_true(admitted > 300 && denied > 150);
        for (step = 0; step < KEYS; step++)
            tollbar_limiter_free(limiters[step]);
        tollbar_table_close(table);
    }
}

static void keys_are_bytes_of_any_length(void **state) {
    enum { LONGEST = 300 };
    tollbar_table *table = table_of(1000, "1/min", NULL);
    static unsigned char zeros[LONGEST + 1];
    char odd[12] = "xkey";
    size_t length;
    (void)state;
    /* These keys differ only in their number of zero bytes. */
    for (length = 1; length <= LONGEST; length++)
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
    /* Bytes behind the length do not matter, nor does the key's address. */
    for (length = 1; length < LONGEST; length++) {
        assert_int_equal(tollbar_table_check_at(table, 0, zeros + 1, length, 1, SEC, NULL), TOLLBAR_DENIED);
        zeros[length] = 7;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_DENIED);
        zeros[length] = 0;
    }
    /* Another first or last byte makes another key. */
    for (length = 1; length <= LONGEST; length++) {
        zeros[0] = 1;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
        zeros[0] = 0;
        zeros[length - 1] = 2;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
        zeros[length - 1] = 0;
    }
    assert_int_equal(tollbar_table_check_at(table, 0, odd + 1, 3, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "key", 3, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
}

static void the_policy_is_part_of_the_key(void **state) {
    tollbar_table *table = table_of(1000, "1/min", "2/min");
    uint64_t key, one = 0, two = 0;
    (void)state;
    for (key = 0; key < 500; key++) {
        assert_int_equal(take(table, 0, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, 1, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, 0, key, SEC, 1), TOLLBAR_DENIED);
        assert_int_equal(take(table, 1, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_hash(table, 0, &key, sizeof key, &one), 0);
        assert_int_equal(tollbar_table_hash(table, 1, &key, sizeof key, &two), 0);
        assert_true(one != two);
    }
    assert_int_equal(stats_of(table).keys, 1000);
    tollbar_table_close(table);
}

static void peek_says_what_check_would_and_remembers_nobody(void **state) {
    tollbar_table *table = table_of(1000, "5/s", NULL);
    uint64_t cost;
    (void)state;
    for (cost = 0; cost <= 6; cost++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        int32_t want = cost == 6 ? TOLLBAR_NEVER : TOLLBAR_ALLOWED;
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, NULL), want);
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, &got), want);
        assert_decision(got, want, 5, cost == 6 ? TOLLBAR_NO_TIME : 0, 0);
    }
    assert_int_equal(stats_of(table).inserted, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 4, SEC, NULL), TOLLBAR_ALLOWED);
    for (cost = 0; cost <= 6; cost++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT, again = TOLLBAR_DECISION_INIT;
        int32_t want = cost == 6 ? TOLLBAR_NEVER : cost > 1 ? TOLLBAR_DENIED : TOLLBAR_ALLOWED;
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, &got), want);
        assert_int_equal(got.remaining, 1);
        /* A refusal charges nothing, so the same call must give the same decision again. */
        if (want != TOLLBAR_ALLOWED) {
            assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, cost, SEC, &again), want);
            assert_memory_equal(&got, &again, sizeof got);
        }
    }
    tollbar_table_close(table);
}

static void take_up_to_takes_what_there_is(void **state) {
    tollbar_table *table = table_of(1000, "10/s", NULL);
    uint64_t taken = 77;
    (void)state;
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 0, SEC, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken, 0);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 4, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 4);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, UINT64_MAX, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 6);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 1, SEC, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken, 0);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 9, SEC + SEC / 5, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 2);
    tollbar_table_close(table);
}

/* check_many_at gives the same results as single calls. */
static void assert_as_singles(const tollbar_table *many, const tollbar_table *one, uint64_t now,
                              const tollbar_request *requests, size_t count) {
    int32_t results[101];
    size_t i;
    for (i = 0; i < COUNT(results); i++)
        results[i] = 77;
    assert_int_equal(tollbar_table_check_many_at(many, requests, count, now, results), 0);
    for (i = 0; i < count; i++)
        assert_int_equal(results[i], tollbar_table_check_at(one, requests[i].policy, requests[i].key, requests[i].length,
                                                            requests[i].cost, now, NULL));
    for (; i < COUNT(results); i++)
        assert_int_equal(results[i], 77);
}

/* Both tables hold the same keys in the same states, in the same slots. */
static void assert_same_content(const tollbar_table *a, const tollbar_table *b, uint64_t now) {
    tollbar_table_entry of_a = TOLLBAR_TABLE_ENTRY_INIT, of_b = TOLLBAR_TABLE_ENTRY_INIT;
    int32_t more;
    do {
        more = tollbar_table_next(a, of_a.next, now, &of_a);
        assert_int_equal(tollbar_table_next(b, of_b.next, now, &of_b), more);
        assert_memory_equal(&of_a, &of_b, sizeof of_a);
    } while (more == TOLLBAR_YES);
}

static void check_many_is_check_for_each(void **state) {
    static const size_t counts[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 100};
    static const char *const policies[][2] = {{"3/s", "2/min"}, {"5/s algo sliding-log", NULL}, {"4/s algo fixed-window", "9/h"}};
    size_t p, n, i;
    (void)state;
    for (p = 0; p < COUNT(policies); p++) {
        tollbar_table *many = table_of(100, policies[p][0], policies[p][1]);
        tollbar_table *one = table_of(100, policies[p][0], policies[p][1]);
        uint64_t keys[100], seed = p, now = SEC;
        for (n = 0; n < COUNT(counts); n++) {
            tollbar_request requests[100];
            for (i = 0; i < counts[n]; i++) {
                const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
                requests[i] = fresh;
                keys[i] = next_random(&seed) % 40;
                requests[i].key = &keys[i];
                /* Keys of several lengths. An empty key is refused. */
                requests[i].length = next_random(&seed) % 9;
                requests[i].policy = policies[p][1] ? (uint32_t)next_random(&seed) % 2 : 0;
                /* Costs from 0, which charges nothing, to one above the burst. */
                requests[i].cost = next_random(&seed) % 12 / 2;
            }
            /* Numbers of missing policies, in the middle of the batch and at its end. */
            for (i = 7; i < counts[n]; i += 24)
                requests[i].policy = i == 7 ? 2 : UINT32_MAX;
            assert_as_singles(many, one, now, requests, counts[n]);
            /* Again, now that the keys are known. */
            assert_as_singles(many, one, now + SEC / 10, requests, counts[n]);
            now += SEC / 3;
        }
        assert_same_content(many, one, now);
        assert_true(stats_of(many).keys > 30);
        tollbar_table_close(one);
        tollbar_table_close(many);
    }
}

/* One batch with different costs, an error of one entry, and several entries for one key. */
static void check_many_gives_each_its_own_answer(void **state) {
    static const struct {
        uint32_t policy;
        uint64_t cost;
        int32_t want;
    } rows[] = {
        {0, 2, TOLLBAR_ALLOWED}, {0, 2, TOLLBAR_DENIED},           {0, 4, TOLLBAR_NEVER},
        {2, 1, TOLLBAR_E_NO_SUCH_POLICY},                          {1, 1, TOLLBAR_ALLOWED},
        {0, 1, TOLLBAR_ALLOWED}, {UINT32_MAX, 0, TOLLBAR_E_NO_SUCH_POLICY}, {0, 1, TOLLBAR_DENIED},
        {0, 0, TOLLBAR_ALLOWED}, {1, 1, TOLLBAR_DENIED},
    };
    tollbar_table *table = table_of(100, "3/min", "1/min");
    tollbar_request requests[COUNT(rows)];
    int32_t results[COUNT(rows)];
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
        requests[i] = fresh;
        requests[i].key = "key";
        requests[i].length = 3;
        requests[i].policy = rows[i].policy;
        requests[i].cost = rows[i].cost;
    }
    assert_int_equal(tollbar_table_check_many_at(table, requests, COUNT(rows), SEC, results), 0);
    for (i = 0; i < COUNT(rows); i++)
        assert_int_equal(results[i], rows[i].want);
    tollbar_table_close(table);
}

static void a_reset_key_begins_again_until_its_places_are_full(void **state) {
    tollbar_table *table = table_of(1000, "2/min", NULL);
    uint64_t taken;
    int round;
    (void)state;
    /* A key has twelve slots, and each reset leaves one that no key may take until the debt would have been paid. */
    for (round = 0; round < 12; round++) {
        assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 10, SEC, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 2);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
        assert_int_equal(tollbar_table_reset_at(table, 0, "k", 1, SEC), round < 11 ? TOLLBAR_YES : TOLLBAR_NO);
    }
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(stats_of(table).resets, 11);
    assert_int_equal(stats_of(table).vacated, 11);
    assert_int_equal(stats_of(table).keys, 1);
    /* The debts are paid by 62 s. */
    assert_int_equal(tollbar_table_reset_at(table, 0, "k", 1, 62 * SEC), TOLLBAR_YES);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 2, 62 * SEC, NULL), TOLLBAR_ALLOWED);
    /* A key that is not in the table counts as reset. */
    assert_int_equal(tollbar_table_reset_at(table, 0, "other", 5, SEC), TOLLBAR_YES);
    assert_int_equal(tollbar_table_reset_at(table, 1, "k", 1, SEC), TOLLBAR_E_NO_SUCH_POLICY);
    tollbar_table_close(table);
}

static void exempt_keys_are_never_charged(void **state) {
    tollbar_table *table = table_of(1000, "1/min", "1/min");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    tollbar_request request = {"monitor", 7, 50, 0, 0};
    uint64_t taken = 0;
    int32_t result = 77;
    (void)state;
    assert_int_equal(tollbar_table_exempt(table, 0, "monitor", 7), 0);
    assert_int_equal(tollbar_table_exempt(table, 0, "monitor", 7), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, UINT64_MAX, SEC, &got), TOLLBAR_ALLOWED);
    assert_decision(got, TOLLBAR_ALLOWED, UINT64_MAX, 0, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_peek_at(table, 0, "monitor", 7, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "monitor", 7, 99, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 99);
    assert_int_equal(tollbar_table_check_many_at(table, &request, 1, SEC, &result), 0);
    assert_int_equal(result, TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(table).keys, 0);
    /* Under the other policy the key is not exempt. */
    assert_int_equal(tollbar_table_check_at(table, 1, "monitor", 7, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 1, "monitor", 7, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_unexempt(table, 1, "monitor", 7), TOLLBAR_NO);
    assert_int_equal(tollbar_table_unexempt(table, 0, "monitor", 7), TOLLBAR_YES);
    assert_int_equal(tollbar_table_unexempt(table, 0, "monitor", 7), TOLLBAR_NO);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_exempt(table, 2, "monitor", 7), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_unexempt(table, 2, "monitor", 7), TOLLBAR_E_NO_SUCH_POLICY);
    tollbar_table_close(table);
}

static void so_many_keys_may_be_exempt(void **state) {
    enum { MOST = 1536, MORE = 3000 };
    tollbar_table *table = table_of(1000, "0/min", NULL);
    uint64_t key, refused = 0;
    (void)state;
    for (key = 0; key < MORE; key++) {
        int32_t code = tollbar_table_exempt(table, 0, &key, sizeof key);
        assert_true(code == 0 || (code == TOLLBAR_E_EXEMPTIONS_FULL && key >= MOST));
        refused += code != 0;
        /* The policy denies all, so only exempt keys pass. */
        assert_int_equal(take(table, 0, key, SEC, 1), code == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    }
    assert_true(refused > 0);
    for (key = 0; key < MOST; key++)
        assert_int_equal(tollbar_table_unexempt(table, 0, &key, sizeof key), TOLLBAR_YES);
    for (key = 0; key < MOST; key++)
        assert_int_equal(take(table, 0, key, SEC, 1), TOLLBAR_DENIED);
    tollbar_table_close(table);
}

static void policies_change_while_keys_keep_their_debt(void **state) {
    tollbar_table *table = table_of(1000, "10/min", "5/min");
    tollbar_policy_spec twenty = spec_of("20/min"), hourly = spec_of("1/h"), got = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint32_t number = 77;
    int i;
    (void)state;
    assert_int_equal(take(table, 0, 1, SEC, 10), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_set_policy(table, 0, &twenty, TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(tollbar_table_get_policy(table, 0, &got), 0);
    assert_memory_equal(&got, &twenty, sizeof got);
    assert_int_equal(tollbar_table_get_policy(table, 1, &got), 0);
    assert_int_equal(got.limit, 5);
    /* The key had no permits left and keeps that number: it has none now, and half of the new burst after half a minute. */
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_DENIED);
    {
        uint64_t key = 1;
        assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 1, 31 * SEC + 16, &decision), TOLLBAR_ALLOWED);
        assert_int_equal(decision.remaining, 10);
    }
    /* A new key has the whole new burst. */
    assert_int_equal(take(table, 0, 2, SEC, 20), TOLLBAR_ALLOWED);
    /* A policy can change any number of times. */
    for (i = 0; i < 600; i++) {
        twenty.limit = twenty.burst = 20 + (uint64_t)(i % 7);
        assert_int_equal(tollbar_table_set_policy(table, 0, &twenty, TOLLBAR_KEEP_COUNT), 0);
    }
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_DENIED);

    assert_int_equal(tollbar_table_add_policy(table, &hourly, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(stats_of(table).policies, 3);
    assert_int_equal(take(table, 2, 1, SEC, 1), TOLLBAR_ALLOWED);
    assert_int_equal(take(table, 2, 1, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_find_or_add_policy(table, &hourly, &number), 0);
    assert_int_equal(number, 2);
    hourly.burst++;
    for (i = 0; i < 2; i++) {
        assert_int_equal(tollbar_table_find_or_add_policy(table, &hourly, &number), 0);
        assert_int_equal(number, 3);
    }
    assert_int_equal(stats_of(table).policies, 4);
    assert_int_equal(tollbar_table_set_policy(table, 4, &hourly, TOLLBAR_KEEP_COUNT), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_set_policy(table, 0, &hourly, 3), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_set_policy(table, 4, &hourly, TOLLBAR_KEEP_TIME), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_set_policy(table, UINT32_MAX, &hourly, TOLLBAR_KEEP_COUNT), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_get_policy(table, 4, &got), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(got.limit, 5);
    tollbar_table_close(table);
}

/* A key keeps the number of permits that it has left, or the time of its debt. */
static void a_changed_policy_keeps_what_is_asked_for(void **state) {
    uint32_t keep;
    (void)state;
    for (keep = TOLLBAR_KEEP_COUNT; keep <= TOLLBAR_KEEP_TIME; keep++) {
        tollbar_table *table = table_of(1000, "3/min", NULL);
        tollbar_policy_spec raised = spec_of("1000/s burst 1000");
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        const uint64_t key = 1;
        assert_int_equal(take(table, 0, key, HOUR, 3), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_set_policy(table, 0, &raised, keep), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 1, HOUR, &decision), TOLLBAR_DENIED);
        if (keep == TOLLBAR_KEEP_COUNT)
            assert_int_equal(decision.retry_after_ns, MS);
        else
            assert_in_range(decision.retry_after_ns, 59 * SEC - 2 * MS, 59 * SEC + 2 * MS);
        tollbar_table_close(table);
    }
}

static void a_table_has_128_policies_at_most(void **state) {
    struct asked asked;
    const tollbar_policy_spec *policies[128];
    tollbar_table *table = NULL;
    uint32_t number = 77, i;
    (void)state;
    ask(&asked, 1000, "1/min", NULL);
    for (i = 0; i < COUNT(policies); i++)
        policies[i] = asked.policies[0];
    assert_int_equal(tollbar_table_new(policies, COUNT(policies), &asked.options, &table), 0);
    assert_int_equal(stats_of(table).policies, 128);
    for (i = 0; i < COUNT(policies); i++) {
        assert_int_equal(take(table, i, 1, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, i, 1, SEC, 1), TOLLBAR_DENIED);
    }
    assert_int_equal(take(table, 128, 1, SEC, 1), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    assert_int_equal(number, 77);
    tollbar_table_close(table);

    table = table_asked(&asked);
    for (i = 1; i < COUNT(policies); i++) {
        assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), 0);
        assert_int_equal(number, i);
    }
    assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    assert_int_equal(tollbar_table_find_or_add_policy(table, &asked.specs[0], &number), 0);
    assert_int_equal(number, 0);
    asked.specs[0].burst++;
    assert_int_equal(tollbar_table_find_or_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    tollbar_table_close(table);
}

static void stats_count_what_happened(void **state) {
    tollbar_table *table = table_of(4096, "1/s", "1/h");
    tollbar_table_stats stats;
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    uint64_t key, bytes = 0;
    struct asked asked;
    (void)state;
    ask(&asked, 4096, "1/s", "1/h");
    assert_int_equal(tollbar_table_bytes(asked.policies, asked.count, &asked.options, &bytes), 0);
    stats = stats_of(table);
    assert_int_equal(stats.struct_size, sizeof stats);
    assert_int_equal(stats.policies, 2);
    assert_int_equal(stats.capacity, 4096);
    assert_int_equal(stats.slots, LEAST);
    assert_int_equal(stats.bytes, bytes);
    assert_true(bytes >= LEAST * 16);
    assert_true(stats.keys == 0 && stats.inserted == 0 && stats.reclaimed == 0 && stats.vacated == 0 && stats.resets == 0 &&
                stats.refused == 0 && stats.inherited == 0 && stats.untracked == 0 && stats.evicted == 0 &&
                stats.retries == 0 && stats.backward_steps == 0);
    for (key = 0; key < 100; key++)
        assert_int_equal(take(table, 0, key, 10 * SEC, 1), TOLLBAR_ALLOWED);
    for (key = 0; key < 50; key++)
        assert_int_equal(take(table, 1, key, 10 * SEC, 1), TOLLBAR_ALLOWED);
    for (key = 0; key < 7; key++)
        assert_int_equal(tollbar_table_reset_at(table, 1, &key, sizeof key, 10 * SEC), TOLLBAR_YES);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 12 * SEC, &swept), 0);
    stats = stats_of(table);
    assert_int_equal(stats.keys, 43);
    assert_int_equal(stats.inserted, 150);
    assert_int_equal(stats.resets, 7);
    assert_int_equal(stats.vacated, 107);
    /* Far more keys than slots, a thousand every two seconds: they take the slots of expired keys. */
    for (key = 0; key < 20000; key++)
        assert_int_equal(take(table, 0, 1000 + key, (20 + key / 1000 * 2) * SEC, 1), TOLLBAR_ALLOWED);
    stats = stats_of(table);
    assert_true(stats.reclaimed > 10000);
    assert_int_equal(stats.inserted + stats.reclaimed, 150 + 20000);
    assert_int_equal(stats.keys, stats.inserted - stats.vacated);
    assert_int_equal(stats.backward_steps, 0);
    assert_int_equal(stats.retries, 0);
    /* Times before that of an earlier request. */
    assert_int_equal(take(table, 0, 20999, 56 * SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(take(table, 0, 20999, 57 * SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(stats_of(table).backward_steps, 2);
    tollbar_table_close(table);
}

struct seen {
    uint32_t policy;
    uint64_t hash;
};

static int by_hash(const void *a, const void *b) {
    const struct seen *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void next_finds_each_key_exactly_once(void **state) {
    enum { KEYS = 3000 };
    tollbar_table *table = table_of(4000, "4/s", "1/min");
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    struct seen *want = calloc(KEYS, sizeof *want), *got = calloc(KEYS + 1, sizeof *got);
    uint64_t key, last = 0;
    size_t found = 0, i;
    (void)state;
    assert_non_null(want);
    assert_non_null(got);
    for (key = 0; key < KEYS; key++) {
        want[key].policy = key % 3 == 0;
        assert_int_equal(take(table, want[key].policy, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_hash(table, want[key].policy, &key, sizeof key, &want[key].hash), 0);
    }
    while (tollbar_table_next(table, entry.next, SEC, &entry) == TOLLBAR_YES) {
        assert_int_equal(entry.struct_size, sizeof entry);
        assert_true(entry.next > last && entry.next <= LEAST);
        last = entry.next;
        assert_true(found < KEYS);
        got[found].policy = entry.policy;
        got[found++].hash = entry.hash;
        assert_int_equal(entry.remaining, entry.policy == 0 ? 3 : 0);
        /* A state counts in steps of some nanoseconds, and the time is never too short. */
        assert_in_range(entry.reset_after_ns, entry.policy == 0 ? SEC / 4 : MIN, (entry.policy == 0 ? SEC / 4 : MIN) + 8);
    }
    assert_int_equal(found, KEYS);
    /* At the end of the table the call writes no entry. */
    assert_int_equal(entry.next, last);
    assert_int_equal(tollbar_table_next(table, UINT64_MAX, SEC, &entry), TOLLBAR_NO);
    qsort(want, KEYS, sizeof *want, by_hash);
    qsort(got, KEYS, sizeof *got, by_hash);
    for (i = 0; i < KEYS; i++) {
        assert_true(got[i].hash == want[i].hash);
        assert_int_equal(got[i].policy, want[i].policy);
    }
    /* Later, the same entries have expired. */
    entry.next = 0;
    for (found = 0; tollbar_table_next(table, entry.next, 62 * SEC, &entry) == TOLLBAR_YES; found++) {
        assert_int_equal(entry.reset_after_ns, 0);
        assert_int_equal(entry.remaining, entry.policy == 0 ? 4 : 1);
    }
    assert_int_equal(found, KEYS);
    free(want);
    free(got);
    tollbar_table_close(table);
}

static void sweeping_leaves_those_with_a_debt(void **state) {
    tollbar_table *table = table_of(1000, "1/s", "1/min");
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    uint64_t key, live = 0, vacated = 0, calls = 0;
    (void)state;
    for (key = 0; key < 100; key++)
        assert_int_equal(take(table, key % 4 == 0, key, SEC, 1), TOLLBAR_ALLOWED);
    /* The sweep of one piece after the other. A `from` beyond the end is the end. */
    do {
        assert_int_equal(tollbar_table_sweep(table, swept.next, 1000, 3 * SEC, &swept), 0);
        live += swept.live;
        vacated += swept.vacated;
        calls++;
        assert_int_equal(swept.next, swept.done ? 0 : calls * 1000);
    } while (!swept.done);
    assert_int_equal(calls, LEAST / 1000 + 1);
    assert_int_equal(live, 25);
    assert_int_equal(vacated, 75);
    assert_int_equal(stats_of(table).keys, 25);
    assert_int_equal(tollbar_table_sweep(table, 0, 0, 62 * SEC, &swept), 0);
    assert_true(swept.done == 0 && swept.next == 0 && swept.live == 0 && swept.vacated == 0);
    assert_int_equal(tollbar_table_sweep(table, UINT64_MAX, UINT64_MAX, 62 * SEC, &swept), 0);
    assert_true(swept.done == 1 && swept.next == 0 && swept.live == 0 && swept.vacated == 0);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 62 * SEC, &swept), 0);
    assert_true(swept.done == 1 && swept.next == 0 && swept.live == 0 && swept.vacated == 25);
    assert_int_equal(stats_of(table).keys, 0);
    tollbar_table_close(table);
}

static void by_the_tables_clock(void **state) {
    uint32_t clock;
    (void)state;
    for (clock = TOLLBAR_CLOCK_TSC; clock <= TOLLBAR_CLOCK_COARSE; clock++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_limiter *limiter;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        tollbar_request requests[2] = {{"k", 1, 1, 0, 0}, {"k", 1, 4, 0, 0}};
        int32_t results[3] = {77, 77, 77};
        uint64_t before = 0, now = 0, after = 0, taken = 0;
        ask(&asked, 1000, "4/h", NULL);
        asked.options.clock = clock;
        table = table_asked(&asked);
        limiter = limiter_with("4/h", clock, 0);
        assert_int_equal(tollbar_limiter_now(limiter, &before), 0);
        assert_int_equal(tollbar_table_now(table, &now), 0);
        assert_int_equal(tollbar_limiter_now(limiter, &after), 0);
        assert_in_range(now, before, after);
        tollbar_limiter_free(limiter);

        assert_int_equal(tollbar_table_peek(table, 0, "k", 1, 4, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.remaining, 4);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.remaining, 2);
        assert_int_equal(tollbar_table_check_many(table, requests, 2, results), 0);
        assert_int_equal(results[0], TOLLBAR_ALLOWED);
        assert_int_equal(results[1], TOLLBAR_DENIED);
        assert_int_equal(results[2], 77);
        assert_int_equal(tollbar_table_take_up_to(table, 0, "k", 1, 9, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 1);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, &got), TOLLBAR_DENIED);
        assert_in_range(got.retry_after_ns, HOUR / 4 - 10 * SEC, HOUR / 4);
        /* Calls with `_at` and without it use the same scale of time. */
        assert_int_equal(tollbar_table_now(table, &now), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, now + HOUR / 4, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_reset(table, 0, "k", 1), TOLLBAR_YES);
        assert_int_equal(tollbar_table_peek(table, 0, "k", 1, 4, NULL), TOLLBAR_ALLOWED);
        /* The sync of a table without a file does nothing. */
        assert_int_equal(tollbar_table_sync(table), 0);
        tollbar_table_close(table);
    }
}

static void a_request_without_a_key(void **state) {
    static const int32_t want[] = {TOLLBAR_DENIED, TOLLBAR_ALLOWED, TOLLBAR_E_MISSING_KEY};
    uint32_t mode;
    (void)state;
    for (mode = TOLLBAR_MISSING_DENY; mode <= TOLLBAR_MISSING_REPORT; mode++) {
        const void *const keys[] = {NULL, "not looked at"};
        struct asked asked;
        tollbar_table *table;
        size_t i;
        ask(&asked, 1000, "1/min", NULL);
        asked.options.missing_key = mode;
        table = table_asked(&asked);
        for (i = 0; i < COUNT(keys); i++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT;
            tollbar_request requests[2] = {{NULL, 0, 1, 0, 0}, {"a", 1, 1, 0, 0}};
            uint64_t taken = 77;
            int32_t results[2] = {77, 77};
            requests[0].key = keys[i];
            assert_int_equal(tollbar_table_check_at(table, 0, keys[i], 0, 1, SEC, NULL), want[mode]);
            assert_int_equal(tollbar_table_check_at(table, 0, keys[i], 0, 1, SEC, &got), want[mode]);
            if (mode == TOLLBAR_MISSING_DENY)
                assert_decision(got, TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, TOLLBAR_NO_TIME);
            else
                assert_decision(got, TOLLBAR_ALLOWED, mode == TOLLBAR_MISSING_ALLOW ? UINT64_MAX : 0, 0, 0);
            if (mode != TOLLBAR_MISSING_REPORT)
                assert_int_equal(got.reason, TOLLBAR_REASON_MISSING_KEY);
            assert_int_equal(tollbar_table_peek_at(table, 0, keys[i], 0, 1, SEC, &got), want[mode]);
            assert_int_equal(tollbar_table_take_up_to_at(table, 0, keys[i], 0, 9, SEC, &taken), want[mode]);
            assert_int_equal(taken, mode == TOLLBAR_MISSING_DENY ? 0 : mode == TOLLBAR_MISSING_ALLOW ? 9 : 77);
            /* In a batch only that entry gets the answer. */
            assert_int_equal(tollbar_table_check_many_at(table, requests, 2, SEC, results), 0);
            assert_int_equal(results[0], want[mode]);
            assert_int_equal(results[1], i == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        }
        assert_int_equal(stats_of(table).keys, 1);
        tollbar_table_close(table);
    }
}

/* The answers to new keys that find no free slot. A peek gives the same answer before. */
static void full_tables(void **state) {
    enum { KEYS = 12000 };
    /* In the order of the TOLLBAR_ON_FULL_ numbers. */
    static const uint32_t of_full[] = {TOLLBAR_REASON_ADMITTED, TOLLBAR_REASON_INHERITED_DEBT, TOLLBAR_REASON_TABLE_FULL,
                                       TOLLBAR_REASON_TABLE_FULL};
    uint32_t on_full;
    (void)state;
    for (on_full = TOLLBAR_ON_FULL_EVICT_NEAREST; on_full <= TOLLBAR_ON_FULL_DENY; on_full++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_table_stats stats;
        uint64_t key, allowed = 0, reasons[TOLLBAR_REASON_BANNED + 1] = {0};
        ask(&asked, 1, "10/min burst 3", NULL);
        asked.options.on_full = on_full;
        table = table_asked(&asked);
        for (key = 0; key < KEYS; key++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT, told = TOLLBAR_DECISION_INIT;
            uint64_t refused = stats_of(table).refused;
            int32_t verdict = tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC, &told);
            assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 2, SEC, &got), verdict);
            assert_int_equal(got.retry_after_ns, told.retry_after_ns);
            assert_int_equal(got.reason, told.reason);
            reasons[got.reason]++;
            allowed += verdict == TOLLBAR_ALLOWED;
            if (stats_of(table).refused != refused) {
                /* A slot is free exactly at `retry_after_ns`. */
                assert_int_equal(verdict, TOLLBAR_DENIED);
                assert_in_range(got.retry_after_ns, 1, 12 * SEC + 8);
                assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC + got.retry_after_ns - 1, NULL),
                                 TOLLBAR_DENIED);
                assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC + got.retry_after_ns, NULL),
                                 TOLLBAR_ALLOWED);
            }
        }
        stats = stats_of(table);
        assert_int_equal(stats.slots, LEAST);
        assert_int_equal(reasons[TOLLBAR_REASON_ADMITTED] + (on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? 0 : reasons[of_full[on_full]]), KEYS);
        assert_int_equal(reasons[TOLLBAR_REASON_ADMITTED], on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? KEYS : stats.inserted);
        assert_true(stats.inserted > LEAST - LEAST / 10 && stats.inserted <= LEAST);
        assert_int_equal(stats.keys, stats.inserted);
        switch (on_full) {
        case TOLLBAR_ON_FULL_DENY:
            assert_int_equal(allowed, stats.inserted);
            assert_int_equal(stats.refused, KEYS - allowed);
            /* The table has forgotten no key. */
            for (key = 0; key < KEYS; key++)
                assert_int_equal(take(table, 0, key, SEC, 2), TOLLBAR_DENIED);
            break;
        case TOLLBAR_ON_FULL_INHERIT:
            /* Each slot has one of three permits left, so no new key gets two. */
            assert_int_equal(allowed, stats.inserted);
            assert_int_equal(stats.inherited, 0);
            for (key = KEYS; key < 2 * KEYS; key++)
                allowed += take(table, 0, key, SEC, 1) == TOLLBAR_ALLOWED;
            stats = stats_of(table);
            assert_int_equal(allowed, stats.inserted + stats.inherited);
            assert_true(stats.inherited > LEAST / 2 && stats.inherited <= LEAST);
            break;
        case TOLLBAR_ON_FULL_ALLOW:
            assert_int_equal(allowed, KEYS);
            assert_int_equal(stats.untracked, KEYS - stats.inserted);
            break;
        default:
            assert_int_equal(allowed, KEYS);
            assert_int_equal(stats.evicted, KEYS - stats.inserted);
            /* The table has stored the last key, with its debt. */
            key = KEYS - 1;
            assert_int_equal(take(table, 0, key, SEC, 2), TOLLBAR_DENIED);
        }
        /* All keys have expired, so every new key gets a slot. */
        for (key = 0; key < 1000; key++)
            assert_int_equal(take(table, 0, key, 100 * SEC, 3), TOLLBAR_ALLOWED);
        tollbar_table_close(table);
    }
}

static void windows_and_logs_have_a_table_for_themselves(void **state) {
    static const char *const wide[] = {"3/s algo sliding-window segments 10 mode strict", "3/s algo sliding-log"};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(wide); i++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_policy_spec one = spec_of("1/s"), spec = spec_of(wide[i]), got = TOLLBAR_POLICY_SPEC_INIT;
        uint64_t key, bytes = 0, plain = 0, now;
        uint32_t number = 77;
        ask(&asked, 1000, wide[i], "1/s");
        table = (tollbar_table *)&asked;
        assert_int_equal(tollbar_table_new(asked.policies, 2, &asked.options, &table), TOLLBAR_E_MIXED_POLICIES);
        assert_ptr_equal(table, &asked);
        assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_bytes(asked.policies, 1, &asked.options, &bytes), 0);
        assert_int_equal(tollbar_table_bytes(asked.policies + 1, 1, &asked.options, &plain), 0);
        /* The table has memory for three side words a slot. */
        assert_true(bytes >= plain + LEAST * 3 * 8);

        table = table_asked((asked.count = 1, &asked));
        assert_int_equal(tollbar_table_add_policy(table, &one, &number), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_set_policy(table, 0, &one, TOLLBAR_KEEP_COUNT), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(number, 77);
        assert_int_equal(tollbar_table_get_policy(table, 0, &got), 0);
        assert_memory_equal(&got, &spec, sizeof got);
        for (now = SEC; now < 10 * SEC; now += 4 * SEC)
            for (key = 0; key < 2000; key++) {
                uint64_t other = key + now, taken = 0;
                assert_int_equal(tollbar_table_take_up_to_at(table, 0, &other, sizeof other, 2, now, &taken), TOLLBAR_ALLOWED);
                assert_int_equal(taken, 2);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 1), TOLLBAR_ALLOWED);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 1), TOLLBAR_DENIED);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 4), TOLLBAR_NEVER);
                /* Two permits are back when the first two charges are out of the window. */
                assert_int_equal(take(table, 0, other, now + SEC + SEC / 4, 2), TOLLBAR_ALLOWED);
                assert_int_equal(take(table, 0, other, now + SEC + SEC / 4, 1), TOLLBAR_DENIED);
            }
        assert_true(stats_of(table).reclaimed > 30);
        tollbar_table_close(table);

        table = table_of(1000, "1/s", NULL);
        assert_int_equal(tollbar_table_add_policy(table, &spec, &number), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(number, 77);
        tollbar_table_close(table);
    }
}

/* Tables of every way of making give the same answers. */
static void each_way_of_making_one(void **state) {
    struct asked asked;
    tollbar_table *tables[3] = {NULL, NULL, NULL};
    uint64_t bytes = 0, key;
    void *memory;
    size_t i;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    memory = aligned((size_t)bytes);
    /* init_in overwrites the memory's former content. */
    memset(memory, 0x5a, (size_t)bytes);
    assert_int_equal(tollbar_table_new(asked.policies, 2, &asked.options, &tables[0]), 0);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 2, &asked.options, &tables[1]), 0);
    assert_int_equal(tollbar_table_init_in(memory, (size_t)bytes, asked.policies, 2, &asked.options, &tables[2]), 0);
    for (i = 0; i < COUNT(tables); i++) {
        for (key = 0; key < 300; key++) {
            assert_int_equal(take(tables[i], 0, key, SEC, 2), TOLLBAR_ALLOWED);
            assert_int_equal(take(tables[i], 1, key, SEC, 1), TOLLBAR_ALLOWED);
        }
        assert_int_equal(stats_of(tables[i]).bytes, bytes);
        assert_same_content(tables[0], tables[i], SEC);
    }
    for (i = 0; i < COUNT(tables); i++)
        tollbar_table_close(tables[i]);
    free(memory);
}

static void tables_live_in_the_callers_memory(void **state) {
    enum { BEYOND = 64 };
    struct asked asked;
    tollbar_table *table = NULL, *view = NULL, *moved = NULL, *const untouched = (tollbar_table *)&asked;
    tollbar_table *none = untouched;
    uint64_t bytes = 0;
    size_t size, i;
    unsigned char *memory, *copy;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    size = (size_t)bytes;
    memory = aligned(size + BEYOND);
    copy = aligned(size + BEYOND);
    memset(memory, 0x5a, size + BEYOND);
    memset(copy, 0x5a, size + BEYOND);

    assert_int_equal(tollbar_table_init_in(memory, size - 1, asked.policies, 2, &asked.options, &none), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_init_in(memory, 0, asked.policies, 2, &asked.options, &none), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_init_in(memory + 32, size, asked.policies, 2, &asked.options, &none), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_table_attach(memory, size, &none), TOLLBAR_E_NOT_A_TABLE);
    for (i = 0; i < size + BEYOND; i++)
        assert_int_equal(memory[i], 0x5a);

    assert_int_equal(tollbar_table_init_in(memory, size + BEYOND, asked.policies, 2, &asked.options, &table), 0);
    assert_int_equal(take(table, 0, 7, SEC, 2), TOLLBAR_ALLOWED);
    /* Two views show one table. */
    assert_int_equal(tollbar_table_attach(memory, size, &view), 0);
    assert_true(view != table);
    assert_int_equal(take(view, 0, 7, SEC, 2), TOLLBAR_DENIED);
    assert_int_equal(take(view, 0, 7, SEC, 1), TOLLBAR_ALLOWED);
    assert_int_equal(take(table, 0, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_exempt(table, 0, "e", 1), 0);
    assert_int_equal(tollbar_table_check_at(view, 0, "e", 1, 99, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_set_policy(view, 1, &asked.specs[0], TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(take(table, 1, 7, SEC, 3), TOLLBAR_ALLOWED);
    tollbar_table_close(view);
    /* The table's content does not depend on its address. */
    memcpy(copy, memory, size);
    tollbar_table_close(table);
    assert_int_equal(tollbar_table_attach(copy, size + BEYOND, &moved), 0);
    assert_int_equal(take(moved, 0, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(take(moved, 1, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(moved, 0, "e", 1, 99, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(moved).keys, 2);
    tollbar_table_close(moved);
    for (i = size; i < size + BEYOND; i++) {
        assert_int_equal(memory[i], 0x5a);
        assert_int_equal(copy[i], 0x5a);
    }

    /* Memory that is not a table is refused. */
    assert_int_equal(tollbar_table_attach(copy, size - 1, &none), TOLLBAR_E_TRUNCATED);
    assert_int_equal(tollbar_table_attach(copy, 0, &none), TOLLBAR_E_TRUNCATED);
    memmove(copy + 32, copy, size);
    assert_int_equal(tollbar_table_attach(copy + 32, size, &none), TOLLBAR_E_MISALIGNED);
    memcpy(copy, memory, size);
    copy[0] ^= 1;
    assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_NOT_A_TABLE);
    copy[0] ^= 1;
    copy[8] ^= 1;
    assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_TABLE_VERSION);
    copy[8] ^= 1;
    /* A change of any byte of the fixed parameters or of their checksum is noticed. */
    for (i = 16; i < 96; i++) {
        copy[i] ^= 0x10;
        assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_CORRUPT);
        copy[i] ^= 0x10;
    }
    assert_ptr_equal(none, untouched);
    assert_int_equal(tollbar_table_attach(copy, size, &moved), 0);
    tollbar_table_close(moved);
    free(memory);
    free(copy);
}

/* The counts of validate, which must return `want`. */
static tollbar_table_health health_of(const tollbar_table *table, uint64_t now, int32_t want) {
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    assert_int_equal(tollbar_table_validate(table, now, &health), want);
    assert_int_equal(health.struct_size, sizeof health);
    assert_int_equal(health.claimed, 0);
    assert_int_equal(health.vacant + health.waiting + health.expired + health.live + health.unknown + health.duplicate, LEAST);
    return health;
}

static void a_damaged_table_is_told_and_repaired(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    uint64_t bytes = 0, key, *slots;
    unsigned char *memory;
    size_t n, empty = 0, full = 0;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    memory = aligned((size_t)bytes);
    assert_int_equal(tollbar_table_init_in(memory, (size_t)bytes, asked.policies, 2, &asked.options, &table), 0);
    for (key = 0; key < 40; key++)
        assert_int_equal(take(table, key < 10, key, SEC, 1), TOLLBAR_ALLOWED);
    for (key = 10; key < 15; key++)
        assert_int_equal(tollbar_table_reset_at(table, 0, &key, sizeof key, SEC), TOLLBAR_YES);
    health = health_of(table, 3 * SEC, 0);
    assert_int_equal(health.expired, 10);
    assert_int_equal(health.live, 25);
    assert_int_equal(health.waiting, 5);
    /* The repair of a sound table changes nothing. */
    assert_int_equal(tollbar_table_repair(table, 3 * SEC, &health), 0);
    assert_int_equal(health.live, 25);
    assert_int_equal(health_of(table, 3 * SEC, 0).expired, 10);
    assert_int_equal(take(table, 0, 39, SEC, 3), TOLLBAR_DENIED);

    /* Behind the first 219 KiB are the slots, pairs of a key word and a state word, four in a line. The test puts a key of an
     * unknown version into one slot, and a second copy of a key with a debt into another. */
    slots = (uint64_t *)(void *)(memory + 219 * 1024);
    for (n = 0; n < LEAST && (empty == 0 || full == 0); n++) {
        const uint64_t *line = slots + n / 4 * 8;
        int lonely = line[0] != 0 && line[2] == 0 && line[3] == 0;
        if (n % 4 == 0 && lonely && full == 0 && line[0] >> 56 == 1)
            full = n;
        else if (n > 100 && slots[2 * n] == 0 && slots[2 * n + 1] == 0 && n / 4 != full / 4)
            empty = n;
    }
    assert_true(empty != 0 && full != 0);
    slots[2 * empty] = UINT64_C(0xfa00000000000123);
    slots[2 * empty + 1] = 1;
    slots[2 * full + 2] = slots[2 * full];
    slots[2 * full + 3] = slots[2 * full + 1];
    health = health_of(table, 3 * SEC, TOLLBAR_E_SLOTS_INVALID);
    assert_int_equal(health.unknown, 1);
    assert_int_equal(health.duplicate, 1);
    /* repair returns the counts of before. After it there is nothing to repair, and all debts stay. */
    assert_int_equal(tollbar_table_repair(table, 3 * SEC, &health), TOLLBAR_E_SLOTS_INVALID);
    assert_int_equal(health.unknown, 1);
    assert_int_equal(health.duplicate, 1);
    health = health_of(table, 3 * SEC, 0);
    assert_int_equal(health.expired, 10);
    assert_int_equal(health.live, 25);
    for (key = 15; key < 40; key++)
        assert_int_equal(take(table, 0, key, SEC, 3), TOLLBAR_DENIED);
    tollbar_table_close(table);
    free(memory);
}

static void a_seed_is_kept_and_without_one_tables_differ(void **state) {
    struct asked asked;
    tollbar_table *tables[4];
    uint64_t hashes[4];
    size_t i;
    (void)state;
    ask(&asked, 1000, "1/s", NULL);
    for (i = 0; i < COUNT(tables); i++) {
        asked.options.flags = i < 2 ? TOLLBAR_TABLE_HAS_SEED : i == 2 ? TOLLBAR_TABLE_SMALL_PAGES : 0;
        asked.options.seed = i < 2 ? 42 : 0;
        tables[i] = table_asked(&asked);
        assert_int_equal(tollbar_table_hash(tables[i], 0, "k", 1, &hashes[i]), 0);
        tollbar_table_close(tables[i]);
    }
    assert_true(hashes[0] == hashes[1]);
    /* Two random seeds give equal hashes once in 2^64. */
    assert_true(hashes[1] != hashes[2]);
    assert_true(hashes[2] != hashes[3]);
}

static void c3_going_back_admits_nothing_more(void **state) {
    static const uint64_t times[] = {0, 1, 10 * SEC, UINT64_C(1) << 61, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
    size_t i, t;
    (void)state;
    for (i = 0; i < COUNT(every_algorithm); i++) {
        tollbar_table *table = table_of(10, every_algorithm[i], NULL);
        uint64_t passed = 0;
        /* A burst of 5, or of 1 with algorithms that space requests. */
        while (take(table, 0, 1, 100 * SEC, 1) == TOLLBAR_ALLOWED)
            passed++;
        assert_int_equal(passed, i >= TOLLBAR_ALGORITHM_PACER ? 1 : 5);
        for (t = 0; t < 100; t++)
            assert_int_equal(take(table, 0, 1, t * SEC, 1), TOLLBAR_DENIED);
        for (t = 0; t < COUNT(times); t++) {
            uint64_t key = 2 + t, taken = 0;
            assert_in_range(take(table, 0, key, times[t], 1), TOLLBAR_ALLOWED, TOLLBAR_DENIED);
            assert_int_equal(take(table, 0, key, times[t], UINT64_MAX), TOLLBAR_NEVER);
            assert_true(tollbar_table_take_up_to_at(table, 0, &key, sizeof key, UINT64_MAX, times[t], &taken) >= 0);
            assert_in_range(taken, 0, 5);
        }
        tollbar_table_close(table);
    }
}

#define GARBAGE(type) {0, (uint32_t)sizeof(type) - 1, 4097, UINT32_MAX}

/* Structs of a newer caller, and sizes that no version has. */
static void c6_struct_sizes(void **state) {
    static const uint32_t of_stats[] = GARBAGE(tollbar_table_stats), of_entry[] = GARBAGE(tollbar_table_entry),
                          of_sweep[] = GARBAGE(tollbar_table_sweep_result), of_options[] = GARBAGE(tollbar_table_options);
    struct {
        tollbar_table_stats known;
        uint64_t later;
    } stats;
    struct {
        tollbar_table_entry known;
        uint64_t later;
    } entry;
    struct {
        tollbar_table_sweep_result known;
        uint64_t later;
    } swept;
    struct {
        tollbar_table_options known;
        uint64_t later;
    } options;
    struct asked asked;
    tollbar_table *table = table_of(1000, "1/s", NULL), *other = NULL;
    const uint64_t untouched = UINT64_C(0x5555555555555555);
    size_t i;
    (void)state;
    memset(&stats, 0x55, sizeof stats);
    memset(&entry, 0x55, sizeof entry);
    memset(&swept, 0x55, sizeof swept);
    ask(&asked, 1000, "1/s", NULL);
    options.known = asked.options;
    options.later = 0;
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_ALLOWED);
    for (i = 0; i < COUNT(of_stats); i++) {
        stats.known.struct_size = of_stats[i];
        entry.known.struct_size = of_entry[i];
        swept.known.struct_size = of_sweep[i];
        options.known.struct_size = of_options[i];
        assert_int_equal(tollbar_table_get_stats(table, &stats.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_next(table, 0, SEC, &entry.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 5 * SEC, &swept.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), TOLLBAR_E_STRUCT_SIZE);
        assert_true(stats.known.keys == untouched && entry.known.hash == untouched && swept.known.live == untouched);
    }
    assert_null(other);
    /* The refused sweep has swept nothing. */
    assert_int_equal(stats_of(table).keys, 1);

    stats.known.struct_size = (uint32_t)sizeof stats;
    entry.known.struct_size = (uint32_t)sizeof entry;
    swept.known.struct_size = (uint32_t)sizeof swept;
    options.known.struct_size = (uint32_t)sizeof options;
    assert_int_equal(tollbar_table_get_stats(table, &stats.known), 0);
    assert_int_equal(tollbar_table_next(table, 0, SEC, &entry.known), TOLLBAR_YES);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, SEC, &swept.known), 0);
    assert_int_equal(stats.known.keys, 1);
    assert_in_range(entry.known.reset_after_ns, SEC, SEC + 8);
    assert_int_equal(swept.known.live, 1);
    assert_true(stats.later == 0 && entry.later == 0 && swept.later == 0);
    assert_int_equal(stats.known.struct_size, sizeof stats);
    options.later = 1;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), TOLLBAR_E_RESERVED);
    assert_null(other);
    options.later = 0;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), 0);
    tollbar_table_close(other);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_independent_and_answers_exact),
        cmocka_unit_test(a_key_answers_as_a_limiter_would),
        cmocka_unit_test(keys_are_bytes_of_any_length),
        cmocka_unit_test(the_policy_is_part_of_the_key),
        cmocka_unit_test(peek_says_what_check_would_and_remembers_nobody),
        cmocka_unit_test(take_up_to_takes_what_there_is),
        cmocka_unit_test(check_many_is_check_for_each),
        cmocka_unit_test(check_many_gives_each_its_own_answer),
        cmocka_unit_test(a_reset_key_begins_again_until_its_places_are_full),
        cmocka_unit_test(exempt_keys_are_never_charged),
        cmocka_unit_test(so_many_keys_may_be_exempt),
        cmocka_unit_test(policies_change_while_keys_keep_their_debt),
        cmocka_unit_test(a_changed_policy_keeps_what_is_asked_for),
        cmocka_unit_test(a_table_has_128_policies_at_most),
        cmocka_unit_test(stats_count_what_happened),
        cmocka_unit_test(next_finds_each_key_exactly_once),
        cmocka_unit_test(sweeping_leaves_those_with_a_debt),
        cmocka_unit_test(by_the_tables_clock),
        cmocka_unit_test(a_request_without_a_key),
        cmocka_unit_test(full_tables),
        cmocka_unit_test(windows_and_logs_have_a_table_for_themselves),
        cmocka_unit_test(each_way_of_making_one),
        cmocka_unit_test(tables_live_in_the_callers_memory),
        cmocka_unit_test(a_damaged_table_is_told_and_repaired),
        cmocka_unit_test(a_seed_is_kept_and_without_one_tables_differ),
        cmocka_unit_test(c3_going_back_admits_nothing_more),
        cmocka_unit_test(c6_struct_sizes),
    };
    return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
