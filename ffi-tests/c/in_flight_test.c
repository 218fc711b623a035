/* Permits in flight by key, and send windows. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static tollbar_in_flight *table_for(uint64_t capacity) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *table = NULL;
    options.capacity = capacity;
    assert_int_equal(tollbar_in_flight_new_shared(&options, &table), 0);
    return table;
}

static int32_t acquire(const tollbar_in_flight *table, uint32_t limit, tollbar_ticket *ticket) {
    return tollbar_in_flight_acquire(table, "k", 1, limit, ticket);
}

static uint64_t count(const tollbar_in_flight *table) {
    uint64_t n = 99;
    assert_int_equal(tollbar_in_flight_count(table, "k", 1, &n), 0);
    return n;
}

static void a_key_has_its_limit(void **state) {
    tollbar_in_flight *table = table_for(100);
    tollbar_ticket tickets[3], more = 7;
    size_t n;
    (void)state;
    assert_int_equal(tollbar_in_flight_join(table), 0);
    for (n = 0; n < 3; n++)
        assert_int_equal(acquire(table, 3, &tickets[n]), TOLLBAR_ALLOWED);
    assert_int_equal(acquire(table, 3, &more), TOLLBAR_DENIED);
    assert_int_equal(more, 7);
    assert_int_equal(count(table), 3);
    /* A lower limit refuses until enough permits are released. */
    assert_int_equal(tollbar_in_flight_release(table, tickets[0]), TOLLBAR_ALLOWED);
    assert_int_equal(acquire(table, 2, &more), TOLLBAR_DENIED);
    assert_int_equal(tollbar_in_flight_release(table, tickets[2]), TOLLBAR_ALLOWED);
    assert_int_equal(acquire(table, 2, &more), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_in_flight_release(table, more), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_in_flight_release(table, tickets[1]), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_in_flight_release(table, tickets[1]), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_in_flight_release(table, 0), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_in_flight_release(table, UINT64_MAX), TOLLBAR_E_TICKET);
    assert_int_equal(count(table), 0);
    tollbar_in_flight_close(table);
    tollbar_in_flight_close(NULL);
}

static void what_a_killed_child_held_comes_back(void **state) {
    tollbar_in_flight *table = table_for(100);
    tollbar_ticket ticket, mine;
    siginfo_t ended;
    uint64_t start, began;
    int pipes[2], status;
    char byte;
    pid_t child;
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(acquire(table, 3, &mine), TOLLBAR_ALLOWED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* The child has none of its parent's permits. */
        int ok = tollbar_in_flight_release(table, mine) == TOLLBAR_E_TICKET && acquire(table, 3, &ticket) == 0 && acquire(table, 3, &ticket) == 0;
        byte = (char)ok;
        if (write(pipes[1], &byte, 1) != 1)
            _exit(1);
        pause();
        _exit(2);
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    assert_int_equal(acquire(table, 3, &ticket), TOLLBAR_DENIED);
    assert_int_equal(kill(child, SIGKILL), 0);
    /* The child has ended, and stays a zombie. */
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    start = monotonic();
    /* A call that begins a second later gets the permit: the machine may stop this process for any
     * time. */
    while (began = monotonic(), acquire(table, 3, &ticket) != TOLLBAR_ALLOWED)
        assert_true(began - start < SEC);
    assert_int_equal(count(table), 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(tollbar_in_flight_release(table, mine), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_in_flight_release(table, ticket), TOLLBAR_ALLOWED);
    close(pipes[0]);
    close(pipes[1]);
    tollbar_in_flight_close(table);
}

static void in_a_file_and_in_ones_own_memory(void **state) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *first, *second;
    tollbar_ticket ticket;
    uint64_t bytes;
    void *memory;
    char path[64];
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/tollbar-in-flight-%ld", (long)getpid());
    options.capacity = 100;
    /* One that an interrupted run has left. */
    unlink(path);
    errno = 0;
    assert_int_equal(tollbar_in_flight_open(path, NULL, &first), TOLLBAR_E_OPEN);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(tollbar_in_flight_open(path, &options, &first), 0);
    assert_int_equal(tollbar_in_flight_open(path, NULL, &second), 0);
    assert_int_equal(acquire(first, 1, &ticket), TOLLBAR_ALLOWED);
    assert_int_equal(acquire(second, 1, &ticket), TOLLBAR_DENIED);
    /* Closing a view releases its permits. */
    tollbar_in_flight_close(first);
    assert_int_equal(acquire(second, 1, &ticket), TOLLBAR_ALLOWED);
    options.capacity = 1000;
    assert_int_equal(tollbar_in_flight_open(path, &options, &first), TOLLBAR_E_OTHER_CAPACITY);
    tollbar_in_flight_close(second);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(tollbar_in_flight_bytes(&options, &bytes), 0);
    memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(tollbar_in_flight_attach(memory, (size_t)bytes, &first), TOLLBAR_E_NOT_A_TABLE);
    assert_int_equal(tollbar_in_flight_init_in(memory, (size_t)bytes - 1, &options, &first), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_in_flight_init_in(memory, (size_t)bytes, &options, &first), 0);
    assert_int_equal(tollbar_in_flight_attach(memory, (size_t)bytes, &second), 0);
    assert_int_equal(acquire(first, 1, &ticket), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_in_flight_release(second, ticket), TOLLBAR_E_TICKET);
    assert_int_equal(acquire(second, 1, &ticket), TOLLBAR_DENIED);
    tollbar_in_flight_close(first);
    tollbar_in_flight_close(second);
    assert_int_equal(munmap(memory, (size_t)bytes), 0);
}

static void a_full_table_says_so(void **state) {
    tollbar_in_flight *table = table_for(1);
    tollbar_ticket ticket;
    int32_t code = 0;
    uint32_t key;
    (void)state;
    for (key = 0; key < 100 && code == 0; key++)
        code = tollbar_in_flight_acquire(table, &key, sizeof key, 1, &ticket);
    assert_int_equal(code, TOLLBAR_E_IN_FLIGHT_FULL);
    tollbar_in_flight_close(table);
}

static void errors_change_nothing(void **state) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *table = NULL;
    tollbar_ticket ticket;
    uint64_t bytes;
    (void)state;
    assert_int_equal(tollbar_in_flight_new(&options, &table), TOLLBAR_E_CAPACITY);
    options.capacity = 10;
    options.flags = 2;
    assert_int_equal(tollbar_in_flight_new(&options, &table), TOLLBAR_E_RESERVED);
    options.flags = 0;
    options.mode = 01000;
    assert_int_equal(tollbar_in_flight_new(&options, &table), TOLLBAR_E_RESERVED);
    options.mode = 0;
    options.struct_size = 8;
    assert_int_equal(tollbar_in_flight_bytes(&options, &bytes), TOLLBAR_E_STRUCT_SIZE);
    options.struct_size = (uint32_t)sizeof options;
    assert_int_equal(tollbar_in_flight_new(NULL, &table), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_new(&options, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_bytes(&options, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_open(NULL, &options, &table), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_init_in(NULL, 1 << 20, &options, &table), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_attach(NULL, 1 << 20, &table), TOLLBAR_E_NULL);
    assert_null(table);
    assert_int_equal(tollbar_in_flight_new(&options, &table), 0);
    assert_int_equal(tollbar_in_flight_join(NULL), TOLLBAR_E_NULL);
    assert_int_equal(acquire(NULL, 1, &ticket), TOLLBAR_E_NULL);
    assert_int_equal(acquire(table, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_acquire(table, NULL, 1, 1, &ticket), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_release(NULL, 1), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_in_flight_count(table, "k", 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(count(table), 0);
    tollbar_in_flight_close(table);
}

/* Four threads acquire the only permit, again and again. */
static tollbar_in_flight *shared;
static int inside;

static void *worker(void *admitted) {
    size_t n;
    for (n = 0; n < 20000; n++) {
        tollbar_ticket ticket;
        if (acquire(shared, 1, &ticket) != TOLLBAR_ALLOWED)
            continue;
        /* This is a plain int, so the thread sanitizer reports two threads that write it at one
         * time. */
        if (inside++ != 0)
            return NULL;
        inside--;
        *(size_t *)admitted += 1;
        if (tollbar_in_flight_release(shared, ticket) != TOLLBAR_ALLOWED)
            return NULL;
    }
    return shared;
}

static void threads_hand_a_permit_on(void **state) {
    pthread_t threads[4];
    size_t admitted[4] = {0}, all = 0, n;
    (void)state;
    shared = table_for(10);
    for (n = 0; n < 4; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, worker, &admitted[n]), 0);
    for (n = 0; n < 4; n++) {
        void *ok = NULL;
        assert_int_equal(pthread_join(threads[n], &ok), 0);
        assert_ptr_equal(ok, shared);
        all += admitted[n];
    }
    /* If only one thread is scheduled, it may pass every time, and the others never. */
    assert_true(all > 0);
    assert_int_equal(count(shared), 0);
    tollbar_in_flight_close(shared);
}

static void s05_a_window_of_four(void **state) {
    tollbar_send_window window = {0};
    tollbar_send_window_state seen = TOLLBAR_SEND_WINDOW_STATE_INIT;
    uint32_t last = 99, n;
    (void)state;
    assert_int_equal(tollbar_send_window_acquire(&window, 1, &last), TOLLBAR_DENIED);
    assert_int_equal(tollbar_send_window_resize(&window, 4), 0);
    for (n = 1; n <= 4; n++) {
        assert_int_equal(tollbar_send_window_acquire(&window, 1, &last), TOLLBAR_ALLOWED);
        assert_int_equal(last, n);
    }
    assert_int_equal(tollbar_send_window_acquire(&window, 1, NULL), TOLLBAR_DENIED);
    /* A cumulative acknowledgement of two frees two. */
    assert_int_equal(tollbar_send_window_acknowledge(&window, 2), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_send_window_read(&window, &seen), 0);
    assert_int_equal(seen.usable, 2);
    assert_int_equal(tollbar_send_window_acknowledge(&window, 2), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_send_window_acknowledge(&window, 5), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_send_window_acquire(&window, 1, NULL), TOLLBAR_ALLOWED);
    /* With 3 in flight a limit of 2 refuses until two of them are acknowledged. */
    assert_int_equal(tollbar_send_window_resize(&window, 2), 0);
    assert_int_equal(tollbar_send_window_acquire(&window, 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_send_window_acknowledge(&window, 3), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_send_window_acquire(&window, 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_send_window_acknowledge(&window, 4), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_send_window_read(&window, &seen), 0);
    assert_int_equal(seen.limit, 2);
    assert_int_equal(seen.sent, 5);
    assert_int_equal(seen.acknowledged, 4);
    assert_int_equal(seen.in_flight, 1);
    assert_int_equal(seen.usable, 1);
    assert_int_equal(tollbar_send_window_release(&window, 2), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_send_window_resize(&window, 1 << 20), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_send_window_acquire(NULL, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_send_window_read(&window, NULL), TOLLBAR_E_NULL);
    seen.struct_size = 4;
    assert_int_equal(tollbar_send_window_read(&window, &seen), TOLLBAR_E_STRUCT_SIZE);
}

/* A million random calls, against numbers that are sent and acknowledged one by one. */
static void s05_random_calls_equal_a_model(void **state) {
    tollbar_send_window window = {0};
    tollbar_send_window_state seen = TOLLBAR_SEND_WINDOW_STATE_INIT;
    uint32_t limit = 4, sent = 0, acknowledged = 0, n, refused = 0, late = 0;
    uint64_t random = 5;
    (void)state;
    assert_int_equal(tollbar_send_window_resize(&window, limit), 0);
    for (n = 0; n < 1000000; n++) {
        uint32_t choice, few, last = 0;
        random = random * UINT64_C(6364136223846793005) + 1;
        choice = (uint32_t)(random >> 40) % 10, few = (uint32_t)(random >> 50) % 4 + 1;
        if (choice < 5) {
            const int fits = sent - acknowledged + few <= limit;
            assert_int_equal(tollbar_send_window_acquire(&window, few, &last), fits ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
            sent += fits ? few : 0;
            refused += !fits;
            if (fits)
                assert_int_equal(last, sent);
        } else if (choice < 8) {
            const uint32_t number = acknowledged + few - 1;
            const int is_new = number > acknowledged && number <= sent;
            if (number == 0)
                continue;
            assert_int_equal(tollbar_send_window_acknowledge(&window, number), is_new ? TOLLBAR_ALLOWED : TOLLBAR_E_TICKET);
            acknowledged = is_new ? number : acknowledged;
            late += !is_new;
        } else {
            limit = few * 2;
            assert_int_equal(tollbar_send_window_resize(&window, limit), 0);
        }
        assert_int_equal(tollbar_send_window_read(&window, &seen), 0);
        assert_int_equal(seen.sent, sent);
        assert_int_equal(seen.acknowledged, acknowledged);
        assert_int_equal(seen.in_flight, sent - acknowledged);
        assert_int_equal(seen.usable, limit > sent - acknowledged ? limit - (sent - acknowledged) : 0);
    }
    assert_true(n == 1000000 && refused > 100000 && late > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_its_limit),
        cmocka_unit_test(what_a_killed_child_held_comes_back),
        cmocka_unit_test(in_a_file_and_in_ones_own_memory),
        cmocka_unit_test(a_full_table_says_so),
        cmocka_unit_test(errors_change_nothing),
        cmocka_unit_test(threads_hand_a_permit_on),
        cmocka_unit_test(s05_random_calls_equal_a_model),
        cmocka_unit_test(s05_a_window_of_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
