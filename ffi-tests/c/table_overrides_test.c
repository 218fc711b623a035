/* Keys with a policy of their own, seen by all processes of a table. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int32_t set(tollbar_table *table, const char *key, const char *text) {
    const tollbar_policy_spec spec = spec_of(text);
    return tollbar_table_set_override(table, 0, key, strlen(key), &spec, TOLLBAR_KEEP_COUNT);
}

static uint64_t left(const tollbar_table *table, const char *key, uint64_t now) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    assert_true(tollbar_table_peek_at(table, 0, key, strlen(key), 1, now, &decision) >= 0);
    return decision.remaining;
}

/* The number of overrides that the table lists. */
static uint64_t listed(const tollbar_table *table) {
    tollbar_table_override found = TOLLBAR_TABLE_OVERRIDE_INIT;
    uint64_t count = 0;
    while (tollbar_table_next_override(table, found.next, &found, NULL) == TOLLBAR_YES)
        count++;
    return count;
}

static void a_key_has_a_policy_of_its_own(void **state) {
    tollbar_table *table = table_of(1000, "3/min", "4/min");
    tollbar_table_override found = TOLLBAR_TABLE_OVERRIDE_INIT;
    tollbar_policy_spec own = TOLLBAR_POLICY_SPEC_INIT;
    uint64_t hash = 0;
    (void)state;
    assert_int_equal(set(table, "acme", "1000/s burst 50"), 0);
    assert_int_equal(left(table, "acme", SEC), 50);
    assert_int_equal(left(table, "other", SEC), 3);
    assert_int_equal(tollbar_table_check_at(table, 0, "acme", 4, 50, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "acme", 4, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_get_override(table, 0, "acme", 4, &own), TOLLBAR_YES);
    assert_int_equal(own.burst, 50);
    assert_int_equal(tollbar_table_get_override(table, 0, "other", 5, &own), TOLLBAR_NO);
    assert_int_equal(tollbar_table_get_override(table, 1, "acme", 4, &own), TOLLBAR_NO);
    own.burst = 0;
    assert_int_equal(tollbar_table_next_override(table, 0, &found, &own), TOLLBAR_YES);
    assert_int_equal(tollbar_table_hash(table, 0, "acme", 4, &hash), 0);
    assert_true(found.hash == hash && found.policy == 0 && own.burst == 50);
    assert_int_equal(tollbar_table_next_override(table, found.next, &found, NULL), TOLLBAR_NO);
    assert_int_equal(stats_of(table).overrides, 1);
    assert_int_equal(tollbar_table_clear_override(table, 0, "acme", 4), TOLLBAR_YES);
    assert_int_equal(tollbar_table_clear_override(table, 0, "acme", 4), TOLLBAR_NO);
    assert_int_equal(stats_of(table).overrides, 0);
    assert_int_equal(left(table, "acme", SEC), 0);
    tollbar_table_close(table);
}

static void errors_say_why_and_change_nothing(void **state) {
    struct asked asked;
    tollbar_table *table;
    tollbar_policy_spec spec = spec_of("5/s"), log = spec_of("5/s algo sliding-log");
    (void)state;
    ask(&asked, 1000, "3/min", NULL);
    asked.options.overrides = 2;
    table = table_asked(&asked);
    assert_int_equal(set(table, "a", "5/s"), 0);
    assert_int_equal(set(table, "b", "6/s"), 0);
    assert_int_equal(set(table, "c", "7/s"), TOLLBAR_E_OVERRIDES_FULL);
    assert_int_equal(set(table, "a", "7/s"), 0);
    assert_int_equal(tollbar_table_set_override(table, 1, "a", 1, &spec, 0), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_set_override(table, 0, "a", 1, &log, 0), TOLLBAR_E_MIXED_POLICIES);
    assert_int_equal(tollbar_table_set_override(table, 0, "a", 1, &spec, 3), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_set_override(table, 0, "a", 1, NULL, 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_set_override(table, 0, "", 0, &spec, 0), TOLLBAR_E_MISSING_KEY);
    assert_int_equal(tollbar_table_clear_override(table, 0, "", 0), TOLLBAR_E_MISSING_KEY);
    assert_int_equal(tollbar_table_clear_override(table, 1, "a", 1), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_get_override(table, 0, "a", 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_next_override(table, 0, NULL, NULL), TOLLBAR_E_NULL);
    assert_true(left(table, "a", SEC) == 7 && left(table, "b", SEC) == 6 && left(table, "c", SEC) == 3);
    assert_int_equal(listed(table), 2);
    tollbar_table_close(table);
    asked.options.overrides = (1 << 19) + 1;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &asked.options, &table), TOLLBAR_E_OVERRIDES_FULL);
}

static void they_are_in_the_file_and_in_a_copy(void **state) {
    struct asked asked;
    tollbar_table *table = NULL, *copy;
    tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/tollbar-overrides-%ld", (long)getpid());
    unlink(path);
    ask(&asked, 1000, "3/min", NULL);
    assert_int_equal(tollbar_table_open(path, asked.policies, 1, &asked.options, &table), 0);
    assert_int_equal(set(table, "acme", "1000/s burst 50"), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "acme", 4, 20, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
    asked.options.overrides = 3;
    assert_int_equal(tollbar_table_open(path, asked.policies, 1, &asked.options, &table), TOLLBAR_E_OTHER_OPTIONS);
    asked.options.overrides = 0;
    assert_int_equal(tollbar_table_open(path, asked.policies, 1, &asked.options, &table), 0);
    assert_int_equal(left(table, "acme", SEC), 30);
    asked.options.capacity = 50000;
    copy = table_asked(&asked);
    assert_int_equal(tollbar_table_copy(copy, table, SEC, &copied), 0);
    assert_int_equal(copied.copied, 1);
    assert_true(left(copy, "acme", SEC) == 30 && stats_of(copy).overrides == 1);
    tollbar_table_close(copy);
    tollbar_table_close(table);
    unlink(path);
}

enum { WORKERS = 4, ROUNDS = 50, OWN = 200 };

/* Memory that the processes share beside the table. `gate` counts how many of them have reached
 * each gate. */
struct board {
    int gate[4 * ROUNDS];
    int wrong;
    uint64_t admitted;
};

static void *shared(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void meet(struct board *board, int gate) {
    __atomic_fetch_add(&board->gate[gate], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&board->gate[gate], __ATOMIC_SEQ_CST) < WORKERS)
        sched_yield();
}

/* In each round another process sets the override of a new key, and clears it. All see it at once,
 * and all together get what it allows. */
static void work(tollbar_table *table, struct board *board, int me) {
    const tollbar_policy_spec own = spec_of("200/h");
    uint64_t admitted = 0;
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        const uint64_t key = (uint64_t)round;
        tollbar_decision told = TOLLBAR_DECISION_INIT;
        if (round % WORKERS == me)
            board->wrong |= tollbar_table_set_override(table, 0, &key, sizeof key, &own, TOLLBAR_KEEP_COUNT) != 0;
        meet(board, 4 * round);
        tollbar_table_peek_at(table, 0, &key, sizeof key, 1, SEC, &told);
        board->wrong |= told.remaining != OWN;
        meet(board, 4 * round + 1);
        for (i = 0; i < OWN; i++)
            admitted += tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC, NULL) == TOLLBAR_ALLOWED;
        meet(board, 4 * round + 2);
        if ((round + 1) % WORKERS == me)
            board->wrong |= tollbar_table_clear_override(table, 0, &key, sizeof key) != TOLLBAR_YES;
        meet(board, 4 * round + 3);
        /* The key keeps its debt: no permit is left under the policy either. An hour later it has
         * the policy's whole burst. */
        board->wrong |= tollbar_table_peek_at(table, 0, &key, sizeof key, 1, SEC, NULL) != TOLLBAR_DENIED;
        tollbar_table_peek_at(table, 0, &key, sizeof key, 1, SEC + 2 * HOUR, &told);
        board->wrong |= told.remaining != 5;
    }
    __atomic_fetch_add(&board->admitted, admitted, __ATOMIC_SEQ_CST);
}

static void four_processes_share_them(void **state) {
    struct board *board = shared(sizeof *board);
    struct asked asked;
    tollbar_table *table = NULL;
    pid_t children[WORKERS - 1];
    int i, status = 0;
    (void)state;
    ask(&asked, 1000, "5/h", NULL);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    for (i = 0; i < WORKERS - 1; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            work(table, board, i);
            _exit(0);
        }
    }
    work(table, board, WORKERS - 1);
    for (i = 0; i < WORKERS - 1; i++)
        assert_true(waitpid(children[i], &status, 0) == children[i] && status == 0);
    assert_int_equal(board->wrong, 0);
    assert_int_equal(board->admitted, (uint64_t)ROUNDS * OWN);
    assert_int_equal(stats_of(table).overrides, 0);
    tollbar_table_close(table);
    munmap(board, sizeof *board);
}

enum { KILLS = 150, KEYS = 12 };

/* Sets and clears overrides until it is killed. Most differ, so that records are freed and written
 * all the time. */
static void change_until_killed(tollbar_table *table, uint64_t from) {
    tollbar_policy_spec own = spec_of("1000/h");
    uint64_t n;
    for (n = from;; n++) {
        const uint64_t key = n % KEYS;
        own.limit = own.burst = 1000 + n % 400;
        tollbar_table_set_override(table, 0, &key, sizeof key, &own, (uint32_t)(n % 3));
        tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC + n, NULL);
        if (n % 5 == 0)
            tollbar_table_clear_override(table, 0, &key, sizeof key);
    }
}

/* A process that is killed in the middle of a change leaves the map usable, and a repair removes
 * its half-made entries. */
static void a_kill_leaves_the_map_usable(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    uint64_t n, too_many = 0;
    int kills;
    (void)state;
    ask(&asked, 1000, "5/h", NULL);
    asked.options.overrides = 64;
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    for (kills = 0; kills < KILLS; kills++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            change_until_killed(table, (uint64_t)kills * 1000);
        usleep((useconds_t)(200 + kills * 37 % 2000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        too_many += stats_of(table).overrides - listed(table);
        for (n = 0; n < KEYS; n++) {
            tollbar_policy_spec own = TOLLBAR_POLICY_SPEC_INIT;
            const int32_t has = tollbar_table_get_override(table, 0, &n, sizeof n, &own);
            tollbar_decision told = TOLLBAR_DECISION_INIT;
            assert_true(has == TOLLBAR_YES || has == TOLLBAR_NO);
            assert_int_equal(tollbar_table_peek_at(table, 0, &n, sizeof n, 1, SEC * 100000, &told), TOLLBAR_ALLOWED);
            assert_int_equal(told.remaining, has == TOLLBAR_YES ? own.burst : 5);
        }
        if (kills % 10 == 9) {
            tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
            assert_int_equal(tollbar_table_repair(table, SEC, &health), TOLLBAR_ALLOWED);
            assert_int_equal(stats_of(table).overrides, listed(table));
        }
    }
    /* After the repair there is room for as many as the options say, and for as many versions as
     * before. */
    for (n = 0; n < KEYS; n++)
        tollbar_table_clear_override(table, 0, &n, sizeof n);
    assert_int_equal(stats_of(table).overrides, 0);
    for (n = 0; n < 64; n++) {
        tollbar_policy_spec own = spec_of("1000/h");
        own.limit = 5000 + n;
        assert_int_equal(tollbar_table_set_override(table, 0, &n, sizeof n, &own, 0), 0);
    }
    for (n = 0; n < 600; n++) {
        tollbar_policy_spec changed = spec_of("5/h");
        changed.limit = 5 + n;
        assert_int_equal(tollbar_table_set_policy(table, 0, &changed, TOLLBAR_KEEP_COUNT), 0);
    }
    assert_int_equal(listed(table), 64);
    print_message("%d kills left %d counts too high\n", KILLS, (int)too_many);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_a_policy_of_its_own),
        cmocka_unit_test(errors_say_why_and_change_nothing),
        cmocka_unit_test(they_are_in_the_file_and_in_a_copy),
        cmocka_unit_test(four_processes_share_them),
        cmocka_unit_test(a_kill_leaves_the_map_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
