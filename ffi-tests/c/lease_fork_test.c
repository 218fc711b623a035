/* [C5] Leases on both sides of a fork, on a real redis-server. */
#define _DEFAULT_SOURCE
#include "lease.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes permits of one key, and returns whether the store has charged exactly what this node has
 * had. A child calls it, so it makes no assertions. */
static int goes_on(tollbar_lease *lease, tollbar_lease_client *client, const char *key) {
    const uint64_t start = monotonic();
    int64_t before, taken;
    int i;
    /* The first call after a fork releases the parent's connection. */
    turn(&client, 1);
    while (told_by(lease).circuit != TOLLBAR_CIRCUIT_CLOSED || tollbar_lease_client_fd(client, NULL) < 0) {
        turn(&client, 1);
        if (monotonic() - start > 30 * SEC)
            return 1;
    }
    take(lease, key);
    settle(client);
    before = charged(key);
    taken = had(lease);
    for (i = 0; i < 200; i++) {
        take(lease, key);
        turn(&client, 1);
    }
    settle(client);
    return told_by(lease).owed != 0 || had(lease) <= taken || charged(key) - before != (had(lease) - taken) * 1000000;
}

/* The child's copy of the client opens another connection, and both processes go on. */
static void c5_a_client_on_both_sides_of_a_fork(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = client_of(lease);
    int status = 0;
    pid_t child;
    (void)state;
    connect_to_store(client);
    connections_become(1);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = goes_on(lease, client, "child");
        const uint64_t start = monotonic();
        /* The child's connection beside the parent's. The server notices a new one with a delay. */
        while (redis_clients(&redis) != 2 && monotonic() - start < 30 * SEC)
            turn(&client, 1);
        wrong |= redis_clients(&redis) != 2;
        wrong |= tollbar_lease_client_close(client, 10000) != 0;
        tollbar_lease_close(lease);
        _exit(wrong);
    }
    assert_int_equal(goes_on(lease, client, "parent"), 0);
    while (waitpid(child, &status, WNOHANG) == 0)
        turn(&client, 1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(told_by(lease).opened, 0);
    connections_become(1);
    end(lease, client, 10000, 0);
}

/* Two of the three workers are killed. */
enum { WORKERS = 3, ROUNDS = 3 };

/* Shared by the workers of one node. */
struct board {
    uint64_t admitted;
    /* Each worker's descriptor plus 1, or 0. Only the worker that asks the store has one. */
    int fd[WORKERS];
};

static void be_a_worker(tollbar_lease *lease, struct board *board, int number) {
    tollbar_lease_client *client = client_of(lease);
    const pid_t parent = getppid();
    while (getppid() == parent) {
        turn(&client, 1);
        __atomic_fetch_add(&board->admitted, take(lease, ""), __ATOMIC_SEQ_CST);
        __atomic_store_n(&board->fd[number], tollbar_lease_client_fd(client, NULL) + 1, __ATOMIC_SEQ_CST);
    }
    _exit(0);
}

static void c5_of_a_shared_nodes_workers_one_asks_and_another_takes_over(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new_shared, "2000/s burst 400", 1);
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const uint64_t start = monotonic();
    pid_t workers[WORKERS];
    int i, round;
    (void)state;
    assert_true(board != MAP_FAILED);
    for (i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        assert_true(workers[i] >= 0);
        if (workers[i] == 0)
            be_a_worker(lease, board, i);
    }
    for (round = 0; round < ROUNDS; round++) {
        const uint64_t before = monotonic();
        uint64_t asked;
        int leader = -1;
        /* The worker that asks the store, once the store has answered it. */
        while (leader < 0 || told_by(lease).circuit != TOLLBAR_CIRCUIT_CLOSED) {
            for (i = 0; i < WORKERS; i++)
                if (__atomic_load_n(&board->fd[i], __ATOMIC_SEQ_CST) != 0)
                    leader = i;
            usleep(1000);
            assert_in_range(monotonic() - before, 0, 30 * SEC);
        }
        asked = told_by(lease).asked;
        while (told_by(lease).asked == asked) {
            usleep(1000);
            assert_in_range(monotonic() - before, 0, 30 * SEC);
        }
        if (round > 0)
            print_message("another asks %u ms after the kill\n", (unsigned)((monotonic() - before) / MS));
        connections_become(1);
        if (round == ROUNDS - 1)
            break;
        assert_int_equal(kill(workers[leader], SIGKILL), 0);
        assert_int_equal(waitpid(workers[leader], NULL, 0), workers[leader]);
        __atomic_store_n(&board->fd[leader], 0, __ATOMIC_SEQ_CST);
        workers[leader] = 0;
    }
    for (i = 0; i < WORKERS; i++)
        if (workers[i] != 0 && kill(workers[i], SIGKILL) == 0)
            waitpid(workers[i], NULL, 0);
    assert_true(board->admitted > 0);
    assert_in_range(board->admitted, 0, 400 + (monotonic() - start) / (SEC / 2000) + 1);
    tollbar_lease_close(lease);
    munmap(board, sizeof *board);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_REDIS(c5_a_client_on_both_sides_of_a_fork),
        WITH_REDIS(c5_of_a_shared_nodes_workers_one_asks_and_another_takes_over),
    };
    return cmocka_run_group_tests_name("leases and forks", tests, NULL, NULL);
}
