/* Queues: items that are cancelled, closed queues, patience, work in threads and after a fork, and
 * wrong arguments. */
#define _XOPEN_SOURCE 600
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static tollbar_queue *queue_of(const char *text, uint64_t capacity) {
    tollbar_queue *queue = NULL;
    if (tollbar_queue_from_text(text, capacity, &queue, NULL) != 0)
        fail_msg("%s", text);
    return queue;
}

/* Items are the addresses of these bytes. */
static char items[64];

/* S07: of fifteen offers at once one leaves at once, ten wait, and four are refused. The eleven leave
 * in their order, one each 100 ms. */
static void s07_eleven_of_fifteen_leave_in_order(void **state) {
    tollbar_queue *queue = queue_of("10/s algo pacer", 10);
    uint64_t n, at = 0;
    void *item = NULL;
    (void)state;
    for (n = 0; n < 15; n++)
        assert_int_equal(tollbar_queue_offer_at(queue, &items[n], 0, NULL), n < 11 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    for (n = 0; n < 11; n++) {
        assert_int_equal(tollbar_queue_next_departure_at(queue, at, &at), TOLLBAR_YES);
        assert_int_equal(at, n * 100 * MS);
        if (at > 0)
            assert_int_equal(tollbar_queue_take_at(queue, at - 1, &item), TOLLBAR_DENIED);
        assert_int_equal(tollbar_queue_take_at(queue, at, &item), TOLLBAR_ALLOWED);
        assert_ptr_equal(item, &items[n]);
    }
    assert_int_equal(tollbar_queue_next_departure_at(queue, at, &at), TOLLBAR_NO);
    tollbar_queue_free(queue);
}

static void a_cancelled_item_makes_room_for_those_behind(void **state) {
    tollbar_queue *queue = queue_of("10/s algo pacer", 2);
    tollbar_queue_ticket tickets[3];
    uint64_t n, length = 0;
    void *item = NULL;
    (void)state;
    for (n = 0; n < 3; n++)
        assert_int_equal(tollbar_queue_offer_at(queue, &items[n], 0, &tickets[n]), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_queue_offer_at(queue, &items[3], 0, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_queue_cancel(queue, &tickets[0], &item), TOLLBAR_YES);
    assert_ptr_equal(item, &items[0]);
    assert_int_equal(tollbar_queue_cancel(queue, &tickets[0], &item), TOLLBAR_NO);
    assert_int_equal(tollbar_queue_offer_at(queue, &items[3], 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_queue_take_at(queue, 0, &item), TOLLBAR_ALLOWED);
    assert_ptr_equal(item, &items[1]);
    assert_int_equal(tollbar_queue_cancel(queue, &tickets[1], &item), TOLLBAR_NO);
    assert_int_equal(tollbar_queue_length(queue, &length), 0);
    assert_int_equal(length, 2);
    /* tollbar_queue_drain ignores the policy's pace. */
    assert_int_equal(tollbar_queue_drain(queue, &item), TOLLBAR_YES);
    assert_ptr_equal(item, &items[2]);
    assert_int_equal(tollbar_queue_drain(queue, &item), TOLLBAR_YES);
    assert_ptr_equal(item, &items[3]);
    assert_int_equal(tollbar_queue_drain(queue, &item), TOLLBAR_NO);
    tollbar_queue_free(queue);
}

/* One may leave, two wait, and two more wait in the spare. All leave in the order of the offers. */
static void the_spare_holds_what_overflows(void **state) {
    static const uint64_t places[6] = {0, 0, 0, 1, 2, 9};
    const tollbar_policy_spec spec = spec_of("10/s algo pacer");
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    tollbar_queue_ticket ticket = {0, 0, 0};
    tollbar_queue *queue = NULL;
    uint64_t n;
    void *item = NULL;
    (void)state;
    options.spare = 2;
    assert_int_equal(tollbar_queue_new(&spec, 2, &options, &queue), 0);
    for (n = 0; n < 6; n++) {
        ticket.spare = 9;
        assert_int_equal(tollbar_queue_offer_at(queue, &items[n], 0, &ticket), n < 5 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        assert_int_equal(ticket.spare, places[n]);
    }
    for (n = 0; n < 5; n++) {
        assert_int_equal(tollbar_queue_take_at(queue, n * 100 * MS, &item), TOLLBAR_ALLOWED);
        assert_ptr_equal(item, &items[n]);
        assert_int_equal(tollbar_queue_take_at(queue, n * 100 * MS, &item), TOLLBAR_DENIED);
    }
    tollbar_queue_free(queue);
}

static void a_closed_queue_gives_what_it_has(void **state) {
    tollbar_queue *queue = queue_of("1000000/s burst 100", 10);
    uint64_t now = 0;
    void *item = NULL;
    (void)state;
    assert_int_equal(tollbar_queue_now(queue, &now), 0);
    assert_int_equal(tollbar_queue_offer(queue, NULL, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_queue_close(queue), 0);
    assert_int_equal(tollbar_queue_offer(queue, &items[1], NULL), TOLLBAR_E_CLOSED);
    assert_int_equal(tollbar_queue_offer_within(queue, &items[1], MIN, NULL), TOLLBAR_E_CLOSED);
    item = &items[2];
    assert_int_equal(tollbar_queue_take(queue, &item), TOLLBAR_ALLOWED);
    assert_null(item);
    assert_int_equal(tollbar_queue_take(queue, &item), TOLLBAR_E_CLOSED);
    assert_int_equal(tollbar_queue_take_within(queue, MIN, &item), TOLLBAR_E_CLOSED);
    tollbar_queue_free(queue);
}

static void patience_ends(void **state) {
    tollbar_queue *queue = queue_of("1/h algo pacer", 1);
    const uint64_t begun = monotonic();
    void *item = NULL;
    (void)state;
    assert_int_equal(tollbar_queue_take_within(queue, 10 * MS, &item), TOLLBAR_DENIED);
    assert_int_equal(tollbar_queue_offer(queue, &items[0], NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_queue_offer(queue, &items[1], NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_queue_offer_within(queue, &items[2], 10 * MS, NULL), TOLLBAR_DENIED);
    /* Two intervals of 10 ms. The test's clock and the queue's were read at slightly different
     * times, so the bound is a little lower. */
    assert_in_range(monotonic() - begun, 20 * MS - MS, MIN);
    tollbar_queue_free(queue);
}

struct gateway {
    pthread_mutex_t lock;
    uint64_t sent, first, last, wrong;
};

static void send_one(void *context, void *item) {
    struct gateway *gateway = context;
    pthread_mutex_lock(&gateway->lock);
    if (gateway->sent == 0)
        gateway->first = monotonic();
    gateway->last = monotonic();
    gateway->wrong += item != &items[gateway->sent % COUNT(items)];
    gateway->sent++;
    pthread_mutex_unlock(&gateway->lock);
}

static uint64_t sent(struct gateway *gateway) {
    uint64_t sent;
    pthread_mutex_lock(&gateway->lock);
    sent = gateway->sent;
    pthread_mutex_unlock(&gateway->lock);
    return sent;
}

struct run {
    tollbar_queue *queue;
    struct gateway *gateway;
    pthread_t thread;
};

static void *run(void *argument) {
    struct run *run = argument;
    if (tollbar_queue_run(run->queue, send_one, run->gateway) != 0)
        abort();
    return NULL;
}

/* Two threads work beside each other, and return when the queue is closed and empty. */
static void runs_end_with_the_queue(void **state) {
    static struct gateway gateway = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0};
    tollbar_queue *queue = queue_of("1000000/s burst 8", 8);
    struct run workers[2];
    size_t n;
    (void)state;
    for (n = 0; n < 8; n++)
        assert_int_equal(tollbar_queue_offer(queue, &items[n], NULL), TOLLBAR_ALLOWED);
    for (n = 0; n < COUNT(workers); n++) {
        workers[n].queue = queue;
        workers[n].gateway = &gateway;
        assert_int_equal(pthread_create(&workers[n].thread, NULL, run, &workers[n]), 0);
    }
    assert_int_equal(tollbar_queue_close(queue), 0);
    for (n = 0; n < COUNT(workers); n++)
        assert_int_equal(pthread_join(workers[n].thread, NULL), 0);
    assert_int_equal(sent(&gateway), 8);
    tollbar_queue_free(queue);
}

/* A forked child has the parent's items in its copy, and works on by itself. */
static void a_fork_copies_the_queue(void **state) {
    static struct gateway gateway = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0};
    tollbar_queue *queue = queue_of("1000/s", 8);
    void *item = NULL;
    int status = -1;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_queue_offer(queue, &items[0], NULL), TOLLBAR_ALLOWED);
    child = fork();
    if (child == 0) {
        int wrong = tollbar_queue_close(queue) != 0;
        wrong |= tollbar_queue_run(queue, send_one, &gateway) != 0;
        wrong |= sent(&gateway) != 1;
        tollbar_queue_free(queue);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tollbar_queue_take(queue, &item), TOLLBAR_ALLOWED);
    assert_ptr_equal(item, &items[0]);
    tollbar_queue_free(queue);
}

/* What a driver admits: how many, and the sum of the times. */
struct admitted {
    uint64_t count, times;
};

static void admit(struct admitted *to, uint64_t at) {
    to->count++;
    to->times += at;
}

static void take_until(const tollbar_queue *queue, uint64_t *clock, uint64_t until, struct admitted *to) {
    uint64_t at;
    void *item;
    while (tollbar_queue_next_departure_at(queue, *clock, &at) == TOLLBAR_YES && at <= until) {
        assert_int_equal(tollbar_queue_take_at(queue, at, &item), TOLLBAR_ALLOWED);
        admit(to, at);
        *clock = at;
    }
    *clock = until;
}

/* S19: requests that come too early are dropped, delayed, or kept in a queue. With the same
 * patience the last two admit the same ones at the same times, and without patience so does the
 * first. */
static void s19_drivers_admit_the_same(void **state) {
    static const uint64_t waiting[] = {0, 1, 3, 20};
    uint64_t before = 0, n, i;
    (void)state;
    for (i = 0; i < COUNT(waiting); i++) {
        tollbar_limiter *delays = limiter_of("10/s algo pacer"), *drops = limiter_of("10/s algo pacer");
        tollbar_queue *queue = waiting[i] == 0 ? NULL : queue_of("10/s algo pacer", waiting[i]);
        struct admitted delayed = {0, 0}, dropping = {0, 0}, queued = {0, 0};
        uint64_t now = 0, clock = 0;
        for (n = 0; n < 2000; n++) {
            tollbar_reservation booked;
            now += n * n * 7919 % (n / 50 % 2 == 0 ? 120 : 150) * MS;
            if (tollbar_limiter_reserve_at(delays, 1, waiting[i] * 100 * MS, now, &booked) == TOLLBAR_ALLOWED)
                admit(&delayed, booked.departs_ns);
            if (queue == NULL) {
                if (tollbar_limiter_check_at(drops, 1, now, NULL) == TOLLBAR_ALLOWED)
                    admit(&dropping, now);
                continue;
            }
            take_until(queue, &clock, now, &queued);
            (void)tollbar_queue_offer_at(queue, &items[0], now, NULL);
            take_until(queue, &clock, now, &queued);
        }
        if (queue != NULL)
            take_until(queue, &clock, now + HOUR, &queued);
        assert_memory_equal(&delayed, queue == NULL ? &dropping : &queued, sizeof delayed);
        assert_true(delayed.count > before);
        before = delayed.count;
        tollbar_queue_free(queue);
        tollbar_limiter_free(delays);
        tollbar_limiter_free(drops);
    }
}

static void arguments(void **state) {
    tollbar_queue *queue = queue_of("10/s", 5), *out = (tollbar_queue *)items;
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    tollbar_policy_spec spec = spec_of("10/s");
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_queue_ticket ticket = {0, 0, 0};
    uint64_t number;
    void *item;
    (void)state;
    assert_int_equal(tollbar_queue_new(NULL, 5, NULL, &out), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_new(&spec, 5, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_new(&spec, 0, NULL, &out), TOLLBAR_E_CAPACITY);
    assert_int_equal(tollbar_queue_new(&spec, UINT64_MAX, NULL, &out), TOLLBAR_E_CAPACITY);
    options.clock = 4;
    assert_int_equal(tollbar_queue_new(&spec, 5, &options, &out), TOLLBAR_E_OUT_OF_RANGE);
    options.clock = TOLLBAR_CLOCK_MONOTONIC;
    options.spare = UINT32_MAX;
    assert_int_equal(tollbar_queue_new(&spec, 5, &options, &out), TOLLBAR_E_CAPACITY);
    spec = spec_of("10/s algo sliding-log");
    assert_int_equal(tollbar_queue_new(&spec, 5, NULL, &out), TOLLBAR_E_NOT_ONE_WORD);
    assert_int_equal(tollbar_queue_from_text("10/x", 5, &out, &error), TOLLBAR_E_SYNTAX);
    assert_int_equal(error.column, 4);
    assert_int_equal(tollbar_queue_from_text("10/s algo sliding-log", 5, &out, &error), TOLLBAR_E_NOT_ONE_WORD);
    assert_int_equal(tollbar_queue_from_text("10/s ban 1h after 2", 5, &out, &error), TOLLBAR_E_OPTION_MISMATCH);
    assert_int_equal(tollbar_queue_from_text("10/s", 0, &out, &error), TOLLBAR_E_CAPACITY);
    assert_int_equal(tollbar_queue_from_text(NULL, 5, &out, &error), TOLLBAR_E_NULL);
    assert_ptr_equal(out, (tollbar_queue *)items);

    assert_int_equal(tollbar_queue_offer(NULL, items, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_offer(queue, items, (tollbar_queue_ticket *)(items + 1)), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_queue_take(queue, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_take_within(NULL, 0, &item), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_next_departure(queue, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_cancel(queue, NULL, &item), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_cancel(queue, &ticket, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_drain(NULL, &item), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_close(NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_length(queue, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_now(NULL, &number), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_run(queue, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_queue_stop(NULL), TOLLBAR_E_NULL);
    /* Tickets of items that no call has offered. */
    ticket.number = UINT64_MAX;
    assert_int_equal(tollbar_queue_cancel(queue, &ticket, &item), TOLLBAR_NO);
    assert_int_equal(tollbar_queue_next_departure(queue, &number), TOLLBAR_NO);
    tollbar_queue_free(queue);
    tollbar_queue_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s07_eleven_of_fifteen_leave_in_order),
        cmocka_unit_test(a_cancelled_item_makes_room_for_those_behind),
        cmocka_unit_test(the_spare_holds_what_overflows),
        cmocka_unit_test(s19_drivers_admit_the_same),
        cmocka_unit_test(a_closed_queue_gives_what_it_has),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(runs_end_with_the_queue),
        cmocka_unit_test(a_fork_copies_the_queue),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
