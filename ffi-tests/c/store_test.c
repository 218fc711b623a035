/* Decisions of a real redis-server, carried by the test's own connections. */
#define _DEFAULT_SOURCE
#include "test.h"

#include "redis.h"
#include "tollbar_redis.h"
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct redis server;

static int start_server(void **state) {
    (void)state;
    redis_start(&server);
    return 0;
}

static int end_server(void **state) {
    (void)state;
    redis_end(&server);
    return 0;
}

static tollbar_store_limit *limit_named(const char *name, const char *text) {
    const tollbar_policy_spec spec = spec_of(text);
    tollbar_store_limit *limit = NULL;
    assert_int_equal(tollbar_store_limit_new(name, strlen(name), &spec, &limit), 0);
    return limit;
}

/* Asks the server. Unless NULL, `now_ns` gets its time. */
static int32_t asked(const tollbar_store_limit *limit, uint32_t ask, const char *key, uint64_t cost, tollbar_decision *decision,
                     uint64_t *taken, uint64_t *now_ns) {
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    int64_t numbers[8];
    size_t count;
    assert_int_equal(tollbar_store_ask(limit, ask, key, strlen(key), cost, &question), 0);
    count = redis_eval_numbers(&server, question.script, question.key, question.key_length, question.args, question.arg_count,
                               numbers, COUNT(numbers));
    assert_true(count >= 1);
    if (now_ns != NULL && count >= 3)
        *now_ns = (uint64_t)numbers[2] * 1000;
    return tollbar_store_answer(limit, &question, numbers, count, decision, taken);
}

static const char *const each_algorithm[] = {
    "100/day burst 100", "100/day algo interval", "100/day algo fixed-window", "100/day algo weighted-window",
    "100/day algo sliding-window segments 24", "100/day algo sliding-log",
};

/* Two machines ask at once, each through a limit of its own: together they get the limit, and none is
 * refused before. */
static void s31_two_clients_at_once_get_exactly_the_limit(void **state) {
    size_t n;
    (void)state;
    away_from_edges(24 * HOUR);
    for (n = 0; n < COUNT(each_algorithm); n++) {
        int pipes[2], child, i, status = 0;
        unsigned char theirs = 0;
        tollbar_store_limit *limit = limit_named("both", each_algorithm[n]);
        char key[8];
        unsigned admitted = 0;
        snprintf(key, sizeof key, "k%u", (unsigned)n);
        assert_int_equal(pipe(pipes), 0);
        child = fork();
        for (i = 0; i < 75; i++)
            admitted += asked(limit, TOLLBAR_STORE_CHECK, key, 1, NULL, NULL, NULL) == TOLLBAR_ALLOWED;
        if (child == 0) {
            theirs = (unsigned char)admitted;
            _exit(write(pipes[1], &theirs, 1) != 1);
        }
        assert_int_equal(read(pipes[0], &theirs, 1), 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        print_message("%s: %u and %u of 100\n", each_algorithm[n], admitted, theirs);
        assert_int_equal(admitted + theirs, 100);
        close(pipes[0]);
        close(pipes[1]);
        tollbar_store_limit_free(limit);
    }
}

static uint64_t whole_micros(uint64_t time) {
    return time == TOLLBAR_NO_TIME ? time : (time + 999) / 1000 * 1000;
}

/* Random requests of the server and, at the server's time, of a limiter. */
static void s31_a_decision_is_that_of_a_limiter_at_the_servers_time(void **state) {
    static const char *const texts[] = {
        "60/s burst 3", "3/50ms algo interval", "3/50ms algo fixed-window anchor first", "5/100ms algo weighted-window",
        "4/80ms algo sliding-window segments 4 mode interpolated", "3/40ms algo sliding-log",
    };
    uint64_t random = 31;
    size_t n;
    (void)state;
    for (n = 0; n < COUNT(texts); n++) {
        tollbar_store_limit *limit = limit_named("trace", texts[n]);
        tollbar_limiter *local = limiter_of(texts[n]);
        unsigned i, admitted = 0, refused = 0;
        char key[8];
        snprintf(key, sizeof key, "t%u", (unsigned)n);
        for (i = 0; i < 600; i++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT, want = TOLLBAR_DECISION_INIT;
            uint64_t taken = 77, own = 0, now = 0, cost;
            int32_t verdict;
            random = random * UINT64_C(6364136223846793005) + 1;
            cost = (random >> 40) % 10 == 0 ? (random >> 50) % 12 : 1;
            if (random >> 58 == 0) {
                /* Permits of a whole period come back. */
                const struct timespec some = {0, 110000000};
                nanosleep(&some, NULL);
            }
            switch ((random >> 33) % 8) {
            case 0:
                verdict = asked(limit, TOLLBAR_STORE_PEEK, key, cost, &got, &taken, &now);
                assert_int_equal(verdict, tollbar_limiter_peek_at(local, cost, now, &want));
                assert_int_equal(taken, 0);
                break;
            case 1:
                verdict = asked(limit, TOLLBAR_STORE_UP_TO, key, cost, NULL, &taken, &now);
                assert_int_equal(verdict, tollbar_limiter_take_up_to_at(local, cost, now, &own));
                assert_int_equal(taken, own);
                continue;
            default:
                verdict = asked(limit, TOLLBAR_STORE_CHECK, key, cost, &got, &taken, &now);
                assert_int_equal(verdict, tollbar_limiter_check_at(local, cost, now, &want));
                assert_int_equal(taken, verdict == TOLLBAR_ALLOWED ? cost : 0);
                admitted += verdict == TOLLBAR_ALLOWED;
                refused += verdict == TOLLBAR_DENIED;
            }
            assert_int_equal(got.remaining, want.remaining);
            assert_int_equal(got.retry_after_ns, whole_micros(want.retry_after_ns));
            assert_int_equal(got.reset_after_ns, whole_micros(want.reset_after_ns));
        }
        print_message("%s: %u admitted, %u refused\n", texts[n], admitted, refused);
        assert_true(admitted > 10 && refused > 10);
        tollbar_store_limit_free(limit);
        tollbar_limiter_free(local);
    }
}

static void a_key_is_forgotten_and_anothers_value_is_kept(void **state) {
    tollbar_store_limit *limit = limit_named("a/b~c", "2/day");
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint64_t taken = 0;
    (void)state;
    assert_int_equal(asked(limit, TOLLBAR_STORE_UP_TO, "k", 9, NULL, &taken, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 2);
    assert_int_equal(asked(limit, TOLLBAR_STORE_CHECK, "k", 1, &decision, NULL, NULL), TOLLBAR_DENIED);
    assert_true(decision.retry_after_ns > 11 * HOUR && decision.reason == TOLLBAR_REASON_RATE);
    assert_int_equal(asked(limit, TOLLBAR_STORE_RESET, "k", 0, NULL, NULL, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(asked(limit, TOLLBAR_STORE_CHECK, "k", 2, &decision, &taken, NULL), TOLLBAR_ALLOWED);
    assert_true(taken == 2 && decision.remaining == 0);
    tollbar_store_limit_free(limit);
    limit = limit_named("mine", "2/day");
    (void)redis_ask(&server, "SET tollbar:{mine}:k poem");
    assert_int_equal(asked(limit, TOLLBAR_STORE_CHECK, "k", 1, NULL, NULL, NULL), TOLLBAR_E_STORE_VALUE);
    assert_string_equal(redis_ask(&server, "GET tollbar:{mine}:k"), "poem");
    tollbar_store_limit_free(limit);
}

static void a_limit_of_none_needs_no_call(void **state) {
    tollbar_store_limit *limit = limit_named("none", "0/s");
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    (void)state;
    assert_int_equal(tollbar_store_ask(limit, TOLLBAR_STORE_CHECK, "k", 1, 1, &question), 0);
    assert_null(question.script);
    assert_int_equal(question.arg_count, 0);
    assert_int_equal(tollbar_store_answer(limit, &question, NULL, 0, NULL, NULL), TOLLBAR_NEVER);
    tollbar_store_limit_free(limit);
}

static void wrong_arguments(void **state) {
    static const char long_key[513] = {0};
    static const struct {
        const char *text;
        int32_t code;
    } policies[] = {
        {"5/s algo sliding-window anchor first", TOLLBAR_E_STORE_ALGORITHM}, {"5/s algo pacer", TOLLBAR_E_STORE_ALGORITHM}, {"5/s ban 1s after 2", TOLLBAR_E_STORE_ALGORITHM},
        {"5/s; 9/min", TOLLBAR_E_STORE_ALGORITHM}, {"5/s borrow", TOLLBAR_E_STORE_ALGORITHM},
        {"5/7ns algo fixed-window", TOLLBAR_E_STORE_NUMBERS}, {"9000000001/day", TOLLBAR_E_STORE_NUMBERS},
    };
    tollbar_store_limit *limit = limit_named("wrong", "5/min"), *out = NULL;
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const tollbar_policy_spec spec = spec_of("5/min");
    /* A verdict that there is not, too few and too many numbers, a debt below 0, more than was asked. */
    const int64_t few[] = {0, 1}, wrong_ones[][5] = {{-1, 0, 9, 0}, {4, 0, 9, 0}, {0, 1, 9, -5}, {0, 2, 9, 0}, {3, 0, 9, 0}};
    size_t n;
    (void)state;
    for (n = 0; n < COUNT(policies); n++) {
        const tollbar_policy_spec wrong = spec_of(policies[n].text);
        assert_int_equal(tollbar_store_limit_new("a", 1, &wrong, &out), policies[n].code);
    }
    assert_int_equal(tollbar_store_limit_new("", 0, &spec, &out), TOLLBAR_E_LEASE_NAME);
    assert_int_equal(tollbar_store_limit_new("a}", 2, &spec, &out), TOLLBAR_E_LEASE_NAME);
    assert_int_equal(tollbar_store_limit_new("a\xff", 2, &spec, &out), TOLLBAR_E_LEASE_NAME);
    assert_int_equal(tollbar_store_limit_new(NULL, 1, &spec, &out), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_store_limit_new("a", 1, NULL, &out), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_store_limit_new("a", 1, &spec, NULL), TOLLBAR_E_NULL);
    assert_null(out);
    tollbar_store_limit_free(NULL);
    assert_int_equal(tollbar_store_ask(NULL, 0, "k", 1, 1, &question), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_store_ask(limit, 0, NULL, 1, 1, &question), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_store_ask(limit, 0, "k", 1, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_store_ask(limit, 4, "k", 1, 1, &question), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_store_ask(limit, 0, "", 0, 1, &question), TOLLBAR_E_STORE_KEY);
    assert_int_equal(tollbar_store_ask(limit, 0, long_key, 513, 1, &question), TOLLBAR_E_STORE_KEY);
    assert_int_equal(tollbar_store_ask(limit, 0, long_key, 512, UINT64_MAX, &question), 0);
    assert_int_equal(question.key_length, sizeof "tollbar:{wrong}:" - 1 + 512);
    assert_true(question.args[1] == UINT64_C(1) << 53);
    assert_int_equal(tollbar_store_answer(limit, &question, NULL, 3, NULL, NULL), TOLLBAR_E_NULL);
    question.cost = 1;
    for (n = 0; n < COUNT(wrong_ones); n++)
        assert_int_equal(tollbar_store_answer(limit, &question, wrong_ones[n], 4, NULL, NULL), TOLLBAR_E_STORE_REPLY);
    assert_int_equal(tollbar_store_answer(limit, &question, wrong_ones[0], 3, NULL, NULL), TOLLBAR_E_STORE_REPLY);
    assert_int_equal(tollbar_store_answer(limit, &question, wrong_ones[0], 5, NULL, NULL), TOLLBAR_E_STORE_REPLY);
    assert_int_equal(tollbar_store_answer(limit, &question, few, 2, NULL, NULL), TOLLBAR_E_STORE_REPLY);
    assert_int_equal(tollbar_store_answer(limit, &question, NULL, 0, NULL, NULL), TOLLBAR_E_STORE_REPLY);
    decision.struct_size = 4;
    assert_int_equal(tollbar_store_answer(limit, &question, few, 2, &decision, NULL), TOLLBAR_E_STRUCT_SIZE);
    question.ask = 9;
    assert_int_equal(tollbar_store_answer(limit, &question, few, 2, NULL, NULL), TOLLBAR_E_OUT_OF_RANGE);
    question.struct_size = 12;
    assert_int_equal(tollbar_store_answer(limit, &question, few, 2, NULL, NULL), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_store_ask(limit, 0, "k", 1, 1, &question), TOLLBAR_E_STRUCT_SIZE);
    tollbar_store_limit_free(limit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s31_two_clients_at_once_get_exactly_the_limit),
        cmocka_unit_test(s31_a_decision_is_that_of_a_limiter_at_the_servers_time),
        cmocka_unit_test(a_key_is_forgotten_and_anothers_value_is_kept),
        cmocka_unit_test(a_limit_of_none_needs_no_call),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests_name("decisions of a store", tests, start_server, end_server);
}
