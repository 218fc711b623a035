/* [C5] Several processes use one table: in memory that they inherit, in the caller's memory, in a
 * file. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child reports by its exit status, because a failed assertion in it would jump into the parent's
 * code. */
static int status_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

enum { KEYS = 64, PERMITS = 100 };

/* Shared by the workers beside the table. */
struct board {
    int ready;
    int wrong;
    uint64_t admitted;
};

static void meet(struct board *board, int all) {
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < all)
        sched_yield();
}

/* More requests than there are permits, at one instant, for one key after the other: single
 * requests or batches. */
static void hammer(const tollbar_table *table, struct board *board, int batches) {
    tollbar_request requests[KEYS];
    int32_t results[KEYS];
    uint64_t keys[KEYS], admitted = 0;
    int round, i;
    for (i = 0; i < KEYS; i++) {
        const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
        requests[i] = fresh;
        /* The two processes use the keys in opposite order, so that they meet at each. */
        keys[i] = (uint64_t)(batches ? KEYS - 1 - i : i);
        requests[i].key = &keys[i];
        requests[i].length = sizeof keys[i];
    }
    meet(board, 2);
    for (round = 0; round < PERMITS + 3; round++)
        if (batches) {
            board->wrong |= tollbar_table_check_many_at(table, requests, KEYS, SEC, results) != 0;
            for (i = 0; i < KEYS; i++)
                admitted += results[i] == TOLLBAR_ALLOWED;
        } else {
            for (i = 0; i < KEYS; i++)
                admitted += tollbar_table_check_at(table, 0, requests[i].key, sizeof keys[i], 1, SEC, NULL) == TOLLBAR_ALLOWED;
        }
    __atomic_fetch_add(&board->admitted, admitted, __ATOMIC_SEQ_CST);
}

/* How the second process gets the table. */
enum way { INHERITED, ATTACHED, OPENED };

static const char *const policies[] = {
    "100/h", "100/h algo interval", "100/h algo fixed-window", "100/h algo sliding-window mode strict", "100/h algo sliding-log",
};

static void two_processes(enum way way, const char *policy) {
    struct board *board = shared_memory(sizeof *board);
    char path[64];
    struct asked asked;
    tollbar_table *table = NULL;
    uint64_t bytes = 0;
    void *memory = NULL;
    pid_t child;
    ask(&asked, KEYS, policy, NULL);
    assert_int_equal(tollbar_table_bytes(asked.policies, 1, &asked.options, &bytes), 0);
    snprintf(path, sizeof path, "/tmp/tollbar-fork-%ld", (long)getpid());
    switch (way) {
    case INHERITED:
        assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
        break;
    case ATTACHED:
        memory = shared_memory((size_t)bytes);
        assert_int_equal(tollbar_table_init_in(memory, (size_t)bytes, asked.policies, 1, &asked.options, &table), 0);
        break;
    default:
        unlink(path);
    }
    child = fork();
    assert_true(child >= 0);
    if (way == OPENED) {
        /* Each process opens the file, and one of them makes it. */
        board->wrong |= tollbar_table_open(path, asked.policies, 1, &asked.options, &table) != 0;
    } else if (way == ATTACHED && child == 0) {
        /* The child makes another view. Its close of the inherited view does not end the
         * parent's. */
        tollbar_table_close(table);
        board->wrong |= tollbar_table_attach(memory, (size_t)bytes, &table) != 0;
    }
    hammer(table, board, child == 0);
    if (child == 0) {
        tollbar_table_close(table);
        _exit(board->wrong);
    }
    if (way == OPENED)
        unlink(path);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(board->admitted, KEYS * PERMITS);
    assert_int_equal(stats_of(table).keys, KEYS);
    assert_int_equal(stats_of(table).inserted, KEYS);
    tollbar_table_close(table);
    if (memory)
        munmap(memory, (size_t)bytes);
    munmap(board, sizeof *board);
}

static void c5_a_shared_table_admits_exactly_the_burst_to_both(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(policies); i++)
        two_processes(INHERITED, policies[i]);
}

static void c5_so_does_one_in_the_callers_memory(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(policies); i++)
        two_processes(ATTACHED, policies[i]);
}

static void c5_and_one_in_a_file(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(policies); i++)
        two_processes(OPENED, policies[i]);
}

static void c5_a_table_of_ones_own_is_copied(void **state) {
    tollbar_table *table = table_of(100, "3/min", NULL);
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = tollbar_table_check_at(table, 0, "k", 1, 2, SEC, NULL) != TOLLBAR_ALLOWED ||
                    tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL) != TOLLBAR_DENIED ||
                    tollbar_table_check_at(table, 0, "child's", 7, 3, SEC, NULL) != TOLLBAR_ALLOWED;
        tollbar_table_close(table);
        _exit(wrong);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "child's", 7, 3, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

/* A change by one process is effective in the other at once. */
static void c5_changes_are_seen_by_all(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_policy_spec spec = spec_of("7/min");
    uint32_t number = 0;
    pid_t child;
    (void)state;
    ask(&asked, 100, "3/min", NULL);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "reset", 5, 3, SEC, NULL), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = tollbar_table_exempt(table, 0, "exempt", 6) != 0 ||
                    tollbar_table_reset_at(table, 0, "reset", 5, SEC) != TOLLBAR_YES ||
                    tollbar_table_add_policy(table, &spec, &number) != 0 ||
                    tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT) != 0;
        tollbar_table_close(table);
        _exit(wrong);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "exempt", 6, 100, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "reset", 5, 7, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 1, "other", 5, 7, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(table).policies, 2);
    tollbar_table_close(table);
}

enum { CROWD = 1500, EACH = 4, KILLS = 150 };

/* Counts that outlive a killed process: its requests, and the permits that each key got. */
struct tally {
    uint64_t tries;
    uint32_t got[CROWD];
};

/* One request for one of the keys, which are new at first. If the process is killed, it has at most
 * one permit that it has not counted yet. */
static void try_one(const tollbar_table *table, struct tally *tally, uint64_t *seed) {
    uint64_t key;
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    key = (*seed >> 33) % CROWD;
    if (tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC, NULL) == TOLLBAR_ALLOWED)
        __atomic_fetch_add(&tally->got[key], 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&tally->tries, 1, __ATOMIC_SEQ_CST);
}

static void kill_in_the_middle(const char *policy) {
    struct tally *tally = shared_memory(sizeof *tally);
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    struct asked asked;
    tollbar_table *table = NULL;
    uint64_t seed = 1, all = 0, key;
    const pid_t parent = getpid();
    unsigned round, found = 0;
    ask(&asked, CROWD, policy, NULL);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 1, &asked.options, &table), 0);
    for (round = 0; round < KILLS; round++) {
        const uint64_t until = tally->tries + 5 + round % 50;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            uint64_t own = seed + round + 1;
            /* Until the parent kills it, or has ended. */
            while (getppid() == parent)
                try_one(table, tally, &own);
            _exit(0);
        }
        /* The child is killed at any instruction, while this process makes requests, too. */
        while (__atomic_load_n(&tally->tries, __ATOMIC_SEQ_CST) < until)
            sched_yield();
        if (round % 3 == 0) {
            int i;
            /* No call waits for a stopped process, either. */
            assert_int_equal(kill(child, SIGSTOP), 0);
            for (i = 0; i < 20; i++)
                try_one(table, tally, &seed);
        } else {
            try_one(table, tally, &seed);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(status_of(child), 255);
        try_one(table, tally, &seed);
    }
    /* This process takes the permits that are left. */
    for (key = 0; key < CROWD; key++) {
        while (tollbar_table_check_at(table, 0, &key, sizeof key, 1, SEC, NULL) == TOLLBAR_ALLOWED)
            tally->got[key]++;
        assert_in_range(tally->got[key], 0, EACH);
        all += tally->got[key];
    }
    assert_in_range(all, CROWD * EACH - KILLS, CROWD * EACH);
    while (tollbar_table_next(table, entry.next, SEC, &entry) == TOLLBAR_YES) {
        assert_int_equal(entry.remaining, 0);
        found++;
    }
    assert_int_equal(found, CROWD);
    /* Later every key has all its permits again. */
    for (key = 0; key < CROWD; key++)
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, EACH, 3 * HOUR, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
    munmap(tally, sizeof *tally);
}

static void c5_the_killed_leave_nothing_to_wait_for(void **state) {
    (void)state;
    kill_in_the_middle("4/h");
}

static void c5_nor_those_of_windows_and_logs(void **state) {
    (void)state;
    kill_in_the_middle("4/h algo sliding-window mode strict");
    kill_in_the_middle("4/h algo sliding-log");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_a_shared_table_admits_exactly_the_burst_to_both),
        cmocka_unit_test(c5_so_does_one_in_the_callers_memory),
        cmocka_unit_test(c5_and_one_in_a_file),
        cmocka_unit_test(c5_a_table_of_ones_own_is_copied),
        cmocka_unit_test(c5_changes_are_seen_by_all),
        cmocka_unit_test(c5_the_killed_leave_nothing_to_wait_for),
        cmocka_unit_test(c5_nor_those_of_windows_and_logs),
    };
    return cmocka_run_group_tests_name("tables and forks", tests, NULL, NULL);
}
