/* Many threads at one frozen time get exactly as many permits together as one thread would. It uses
 * no test library, because ThreadSanitizer would not see that library's code, and prints TAP
 * itself. */
#define _XOPEN_SOURCE 600
#include "tollbar.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, TRIES = 4000, PERMITS = 1000 };

#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

/* The number of limits for requests with several. Half of them are limiters, half are keys of a
 * table. */
enum { LIMITS = 8 };

struct shared {
    tollbar_limiter *limiter;
    tollbar_policy *policy;
    tollbar_cell *cell;
    tollbar_table *table;
    tollbar_limiter *credited;
    tollbar_limiter *several[LIMITS / 2];
    tollbar_queue *queue;
    /* Atomic. */
    uint64_t producers_ended;
    struct worker *workers;
    /* The permits that were taken of each of the LIMITS. */
    uint64_t admitted[LIMITS];
    uint64_t now;
    /* The `most` of take_up_to, or 0 for checks of cost 1. */
    uint64_t most;
    pthread_barrier_t start;
};

struct worker {
    struct shared *shared;
    pthread_t thread;
    uint64_t taken;
    uint64_t admitted[LIMITS];
};

#ifdef PLANT_RACE
/* A planted race: two threads write this without an atomic, and the sanitizer must report it. */
static uint64_t planted;
#endif

static uint64_t take(struct shared *shared) {
    uint64_t taken = 0;
    if (shared->most != 0 && shared->limiter != NULL)
        tollbar_limiter_take_up_to_at(shared->limiter, shared->most, shared->now, &taken);
    else if (shared->most != 0)
        tollbar_cell_take_up_to_at(shared->cell, shared->policy, shared->most, shared->now, &taken);
    else if (shared->limiter != NULL)
        taken = tollbar_limiter_check_at(shared->limiter, 1, shared->now, NULL) == TOLLBAR_ALLOWED;
    else
        taken = tollbar_cell_check_at(shared->cell, shared->policy, 1, shared->now, NULL) == TOLLBAR_ALLOWED;
    return taken;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    int i;
    pthread_barrier_wait(&worker->shared->start);
    for (i = 0; i < TRIES; i++) {
        worker->taken += take(worker->shared);
#ifdef PLANT_RACE
        planted++;
#endif
    }
    return NULL;
}

/* Threads make, at the same time, every call whose results a running clock changes. */
static void *mix(void *argument) {
    struct worker *worker = argument;
    const tollbar_limiter *limiter = worker->shared->limiter;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_limiter_state state = TOLLBAR_LIMITER_STATE_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t results[3];
    uint64_t number = 0;
    int i;
    pthread_barrier_wait(&worker->shared->start);
    for (i = 0; i < TRIES / 20; i++) {
        worker->taken += tollbar_limiter_check(limiter, 1, &decision) < 0;
        worker->taken += tollbar_limiter_peek(limiter, 1, &decision) < 0;
        worker->taken += tollbar_limiter_take_up_to(limiter, 3, &number) < 0;
        worker->taken += tollbar_limiter_check_many(limiter, NULL, 3, results) < 0;
        worker->taken += tollbar_limiter_wait(limiter, 1, 1000, &decision) < 0;
        worker->taken += tollbar_limiter_get_state(limiter, &state) < 0;
        worker->taken += tollbar_limiter_get_policy(limiter, &spec) < 0;
        worker->taken += tollbar_cell_check(worker->shared->cell, worker->shared->policy, 1, &decision) < 0;
        if (i % 16 == 0) {
            worker->taken += tollbar_limiter_reset(limiter) < 0;
            worker->taken += tollbar_cell_reset(worker->shared->cell) < 0;
        }
    }
    return NULL;
}

enum { KEYS = 25, OF_EACH = 100 };

/* More requests than a table's keys have permits, single ones and batches. The sanitizer does not
 * see the swaps of slots, which are assembler, so it finds no races in slots and knows no order
 * that they make. It sees the rest of the table. For the slots the test checks that the sums are
 * exact. */
static void *ask_keys(void *argument) {
    struct worker *worker = argument;
    const tollbar_table *table = worker->shared->table;
    tollbar_request requests[KEYS];
    uint64_t keys[KEYS];
    int32_t results[KEYS];
    int round, i;
    for (i = 0; i < KEYS; i++) {
        const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
        requests[i] = fresh;
        keys[i] = (uint64_t)i;
        requests[i].key = &keys[i];
        requests[i].length = sizeof keys[i];
    }
    pthread_barrier_wait(&worker->shared->start);
    for (round = 0; round < OF_EACH; round++) {
        if (round % 2) {
            if (tollbar_table_check_many_at(table, requests, KEYS, worker->shared->now, results) != 0)
                abort();
            for (i = 0; i < KEYS; i++)
                worker->taken += results[i] == TOLLBAR_ALLOWED;
        } else {
            for (i = 0; i < KEYS; i++)
                worker->taken += tollbar_table_check_at(table, 0, &keys[i], sizeof keys[i], 1, worker->shared->now,
                                                        NULL) == TOLLBAR_ALLOWED;
        }
    }
    return NULL;
}

/* Every call of a table, for keys that are inserted, expire and are replaced. */
static void *mix_keys(void *argument) {
    struct worker *worker = argument;
    const tollbar_table *table = worker->shared->table;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_request request = TOLLBAR_REQUEST_INIT;
    uint64_t number = 0;
    int32_t result = 0;
    int i;
    if (tollbar_table_get_policy(table, 0, &spec) != 0)
        abort();
    pthread_barrier_wait(&worker->shared->start);
    for (i = 0; i < TRIES / 20; i++) {
        const uint64_t key = (uint64_t)(i * 7 % 40), now = SEC + (uint64_t)i * SEC / 50;
        request.key = &key;
        request.length = sizeof key;
        worker->taken += tollbar_table_check(table, 0, &key, sizeof key, 1, &decision) < 0;
        worker->taken += tollbar_table_peek(table, 0, &key, sizeof key, 1, &decision) < 0;
        worker->taken += tollbar_table_check_at(table, 0, &key, sizeof key, 1, now, NULL) < 0;
        worker->taken += tollbar_table_take_up_to_at(table, 0, &key, sizeof key, 3, now, &number) < 0;
        worker->taken += tollbar_table_check_many(table, &request, 1, &result) < 0 || result < 0;
        worker->taken += tollbar_table_get_stats(table, &stats) < 0;
        worker->taken += tollbar_table_next(table, (uint64_t)i, now, &entry) < 0;
        worker->taken += tollbar_table_hash(table, 0, &key, sizeof key, &number) < 0;
        if (i % 16 == 0) {
            worker->taken += tollbar_table_reset_at(table, 0, &key, sizeof key, now) < 0;
            worker->taken += tollbar_table_exempt(table, 0, &key, sizeof key) < 0;
            worker->taken += tollbar_table_unexempt(table, 0, &key, sizeof key) < 0;
            worker->taken += tollbar_table_sweep(table, 0, UINT64_MAX, now, &swept) < 0;
            spec.unit = (uint32_t)i / 16 % 2;
            worker->taken += tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT) < 0;
            worker->taken += tollbar_table_get_policy(table, 0, &spec) < 0;
        }
    }
    return NULL;
}

static uint64_t run(struct shared *shared, void *(*body)(void *)) {
    struct worker workers[THREADS];
    uint64_t taken = 0;
    int i, n;
    shared->workers = workers;
    if (pthread_barrier_init(&shared->start, NULL, THREADS) != 0)
        abort();
    for (i = 0; i < THREADS; i++) {
        workers[i].shared = shared;
        workers[i].taken = 0;
        memset(workers[i].admitted, 0, sizeof workers[i].admitted);
        if (pthread_create(&workers[i].thread, NULL, body, &workers[i]) != 0)
            abort();
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        taken += workers[i].taken;
        for (n = 0; n < LIMITS; n++)
            shared->admitted[n] += workers[i].admitted[n];
    }
    pthread_barrier_destroy(&shared->start);
    return taken;
}

/* Each thread takes permits of a limiter with credit until it is refused, with peeks and full
 * decisions in between. */
static void *ask_with_credit(void *argument) {
    struct worker *worker = argument;
    const tollbar_limiter *limiter = worker->shared->credited;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    pthread_barrier_wait(&worker->shared->start);
    while (tollbar_limiter_check_at(limiter, 1, worker->shared->now, worker->taken % 16 ? NULL : &decision) ==
           TOLLBAR_ALLOWED) {
        worker->taken++;
        if (tollbar_limiter_peek_at(limiter, 0, worker->shared->now, &decision) != 0)
            abort();
    }
    return NULL;
}

/* Every call of a limiter with credit, while time advances, credit expires and stripes get other
 * owners. */
static void *mix_with_credit(void *argument) {
    struct worker *worker = argument;
    const tollbar_limiter *limiter = worker->shared->credited;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_reservation booked;
    uint64_t number = 0;
    int i;
    pthread_barrier_wait(&worker->shared->start);
    for (i = 0; i < TRIES / 20; i++) {
        const uint64_t now = HOUR + (uint64_t)i * SEC / 3;
        worker->taken += tollbar_limiter_check_at(limiter, 1, now, NULL) < 0;
        worker->taken += tollbar_limiter_check_at(limiter, 1, now, NULL) < 0;
        worker->taken += tollbar_limiter_check_at(limiter, 2, now, &decision) < 0;
        worker->taken += tollbar_limiter_peek(limiter, 1, &decision) < 0;
        worker->taken += tollbar_limiter_take_up_to_at(limiter, 3, now, &number) < 0;
        worker->taken += tollbar_limiter_reserve_at(limiter, 2, SEC, now, &booked) < 0;
        if (i % 16 == 0)
            worker->taken += tollbar_limiter_reset(limiter) < 0;
    }
    return NULL;
}

static tollbar_limit limit_of(const struct shared *shared, int n, uint64_t cost) {
    static const char names[] = "abcdefgh";
    const tollbar_limit key = TOLLBAR_LIMIT_OF_KEY(shared->table, 0, &names[n], 1, cost);
    const tollbar_limit limiter = TOLLBAR_LIMIT_OF_LIMITER(shared->several[n / 2], cost);
    return n % 2 ? key : limiter;
}

/* Requests with some of the limits, in both orders, at costs of 1 to 3. */
static void *take_several(void *argument) {
    struct worker *worker = argument;
    tollbar_limit limits[LIMITS];
    tollbar_decision each[LIMITS];
    tollbar_taken taken = TOLLBAR_TAKEN_INIT;
    int which[LIMITS], i, n;
    uint32_t random = (uint32_t)(uintptr_t)worker;
    each[0].struct_size = (uint32_t)sizeof each[0];
    pthread_barrier_wait(&worker->shared->start);
    for (i = 0; i < TRIES; i++) {
        size_t count = 0, j;
        random = random * 1664525u + 1013904223u;
        for (n = 0; n < LIMITS; n++) {
            const int of = i % 2 ? n : LIMITS - 1 - n;
            if (random >> (8 + of) & 1u) {
                which[count] = of;
                limits[count++] = limit_of(worker->shared, of, 1 + (random >> 20) % 3);
            }
        }
        if (count == 0)
            continue;
        if (tollbar_take_many_at(limits, count, worker->shared->now, i % 3 ? NULL : each, i % 5 ? NULL : &taken) != TOLLBAR_ALLOWED)
            continue;
        for (j = 0; j < count; j++)
            worker->admitted[which[j]] += limits[j].cost;
    }
    return NULL;
}

/* Half of the threads offer numbers in order, and the last of them to end closes the queue. The
 * others take until it is closed and empty, so that no taker gives up on a machine that stands
 * still for a while. Time advances and brings permits. */
static void *offer_or_take(void *argument) {
    struct worker *worker = argument;
    struct shared *shared = worker->shared;
    const uint64_t mine = (uint64_t)(worker - shared->workers);
    uint64_t n, last[THREADS] = {0};
    tollbar_queue_ticket ticket = {0, 0, 0};
    void *item = NULL;
    pthread_barrier_wait(&shared->start);
    if (mine % 2 == 0) {
        for (n = 1; n <= TRIES; n++) {
            item = (void *)(uintptr_t)(mine << 32 | n);
            while (tollbar_queue_offer_within(shared->queue, item, HOUR, &ticket) != TOLLBAR_ALLOWED)
                abort();
            /* Some items are cancelled and offered again. */
            if (n % 16 == 0 && tollbar_queue_cancel(shared->queue, &ticket, &item) == TOLLBAR_YES &&
                tollbar_queue_offer_within(shared->queue, item, HOUR, NULL) != TOLLBAR_ALLOWED)
                abort();
        }
        if (__atomic_add_fetch(&shared->producers_ended, 1, __ATOMIC_ACQ_REL) == THREADS / 2 && tollbar_queue_close(shared->queue) != 0)
            abort();
        return NULL;
    }
    for (;;) {
        const int32_t got = tollbar_queue_take_within(shared->queue, HOUR, &item);
        if (got == TOLLBAR_E_CLOSED)
            return NULL;
        if (got != TOLLBAR_ALLOWED)
            abort();
        n = (uint64_t)(uintptr_t)item;
        if (n >> 32 >= THREADS || (n & UINT32_MAX) <= last[n >> 32])
            abort();
        last[n >> 32] = n & UINT32_MAX;
        worker->taken++;
    }
}

static int number, failed;

static void expect(const char *name, const char *text, uint64_t got, uint64_t want) {
    int wrong = got != want;
    failed |= wrong;
    printf("%sok %d - %s \"%s\" %llu of %llu\n", wrong ? "not " : "", ++number, name, text,
           (unsigned long long)got, (unsigned long long)want);
}

struct row {
    const char *text;
    uint64_t want;
    /* 1: take one permit at 1 s first, so that the limiter has stored its idle time's permits at
     * the frozen time. */
    int earlier;
    int one_word;
};

static const struct row rows[] = {
    {"1000/s", PERMITS, 0, 1},
    {"10/s burst 1000 init 400", 400, 0, 1},
    {"1000/s algo interval", PERMITS, 0, 1},
    {"1000/s algo interval anchor first", PERMITS, 0, 1},
    {"1000/s algo fixed-window", PERMITS, 0, 1},
    {"1000/s algo fixed-window anchor first", PERMITS, 0, 1},
    {"1000/s algo weighted-window", PERMITS, 0, 1},
    {"1000/s algo sliding-window", PERMITS, 0, 0},
    {"1000/s algo sliding-window mode strict", PERMITS, 0, 0},
    {"1000/s algo sliding-window mode interpolated", PERMITS, 0, 0},
    {"1000/s algo sliding-log", PERMITS, 0, 0},
    {"1000/s algo pacer", 1, 0, 1},
    {"1000/s algo pacer slack 999", PERMITS, 1, 1},
    {"1000/s algo warm-up warm 1s", 1, 0, 1},
    {"0/s", 0, 0, 1},
};

static void exactly(const struct row *row, uint64_t most) {
    struct shared shared;
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    memset(&shared, 0, sizeof shared);
    shared.now = HOUR;
    shared.most = most;
    if (tollbar_limiter_from_text(row->text, &shared.limiter, NULL) != 0)
        abort();
    if (row->earlier)
        tollbar_limiter_check_at(shared.limiter, 1, SEC, NULL);
    expect(most ? "limiter, up to 7," : "limiter", row->text, run(&shared, work), row->want);
    tollbar_limiter_free(shared.limiter);
    if (!row->one_word)
        return;
    shared.limiter = NULL;
    shared.cell = &cell;
    if (tollbar_policy_from_text(row->text, &shared.policy, NULL) != 0)
        abort();
    if (row->earlier)
        tollbar_cell_check_at(&cell, shared.policy, 1, SEC, NULL);
    expect(most ? "cell, up to 7," : "cell", row->text, run(&shared, work), row->want);
    tollbar_policy_free(shared.policy);
}

static void no_errors(const struct row *row) {
    struct shared shared;
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    memset(&shared, 0, sizeof shared);
    shared.cell = &cell;
    if (tollbar_limiter_from_text(row->text, &shared.limiter, NULL) != 0 ||
        tollbar_policy_from_text("1000/s", &shared.policy, NULL) != 0)
        abort();
    expect("every call at once, errors of", row->text, run(&shared, mix), 0);
    tollbar_limiter_free(shared.limiter);
    tollbar_policy_free(shared.policy);
}

/* A small table with KEYS keys of OF_EACH permits, under a policy of each kind of state. */
static void of_a_table(const char *text, int changes) {
    const tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(KEYS);
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[1];
    struct shared shared;
    policies[0] = &spec;
    memset(&shared, 0, sizeof shared);
    shared.now = HOUR;
    if (tollbar_policy_spec_parse(text, strlen(text), &spec, NULL) != 0 ||
        tollbar_table_new(policies, 1, &options, &shared.table) != 0)
        abort();
    expect("table", text, run(&shared, ask_keys), KEYS * OF_EACH);
    if (changes)
        expect("every call of a table at once, errors of", text, run(&shared, mix_keys), 0);
    tollbar_table_close(shared.table);
}

/* Each limit's charge equals the permits that were admitted, because a call that loses a race gives
 * its charges back. */
static void of_several_limits(void) {
    const char *const texts[LIMITS / 2] = {"2000/h", "1800/min", "1600/day", "1500/s"};
    const tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(LIMITS);
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[1];
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    struct shared shared;
    int n;
    policies[0] = &spec;
    memset(&shared, 0, sizeof shared);
    shared.now = HOUR;
    if (tollbar_policy_spec_parse("1700/h", 6, &spec, NULL) != 0 ||
        tollbar_table_new(policies, 1, &options, &shared.table) != 0)
        abort();
    for (n = 0; n < LIMITS / 2; n++)
        if (tollbar_limiter_from_text(texts[n], &shared.several[n], NULL) != 0)
            abort();
    run(&shared, take_several);
    for (n = 0; n < LIMITS; n++) {
        const tollbar_limit limit = limit_of(&shared, n, 0);
        uint64_t burst = 1700;
        if (limit.limiter != NULL) {
            tollbar_limiter_get_policy(limit.limiter, &spec);
            burst = spec.burst;
            tollbar_limiter_peek_at(limit.limiter, 0, HOUR, &decision);
        } else {
            tollbar_table_peek_at(limit.table, 0, limit.key, limit.length, 0, HOUR, &decision);
        }
        expect("several limits, charged", limit.limiter != NULL ? texts[n / 2] : "1700/h", burst - decision.remaining,
               shared.admitted[n]);
    }
    for (n = 0; n < LIMITS / 2; n++)
        tollbar_limiter_free(shared.several[n]);
    tollbar_table_close(shared.table);
}

/* No item is lost or taken twice, and each taker gets a producer's items in their order. */
static void of_a_queue(const char *text, uint64_t capacity, uint32_t spare) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    struct shared shared;
    memset(&shared, 0, sizeof shared);
    options.spare = spare;
    if (tollbar_policy_spec_parse(text, strlen(text), &spec, NULL) != 0 ||
        tollbar_queue_new(&spec, capacity, &options, &shared.queue) != 0)
        abort();
    expect("a queue", text, run(&shared, offer_or_take), THREADS / 2 * TRIES);
    tollbar_queue_free(shared.queue);
}

static void of_a_limiter_with_credit(const char *text) {
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    struct shared shared;
    memset(&shared, 0, sizeof shared);
    shared.now = HOUR;
    options.credit = TOLLBAR_CREDIT_ON;
    if (tollbar_policy_spec_parse(text, strlen(text), &spec, NULL) != 0 ||
        tollbar_limiter_new(&spec, &options, &shared.credited) != 0 ||
        tollbar_limiter_peek_at(shared.credited, 0, HOUR, &decision) != 0)
        abort();
    expect("with credit", text, run(&shared, ask_with_credit), decision.remaining);
    expect("every call of a limiter with credit at once, errors of", text, run(&shared, mix_with_credit), 0);
    tollbar_limiter_free(shared.credited);
}

int main(void) {
    /* A thread that sleeps for ever must fail the test, and not keep it running. */
    alarm(3600);
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        exactly(&rows[i], 0);
        exactly(&rows[i], 7);
        no_errors(&rows[i]);
    }
    of_a_table("100/h", 1);
    of_a_table("100/h algo interval", 1);
    of_a_table("100/h algo fixed-window", 1);
    of_a_table("100/h algo weighted-window", 1);
    of_a_table("100/h algo sliding-window", 0);
    of_a_table("100/h algo sliding-window mode strict", 0);
    of_a_table("100/h algo sliding-log", 0);
    of_a_limiter_with_credit("10000/s burst 100");
    of_a_limiter_with_credit("100000/s burst 20000");
    of_several_limits();
    of_a_queue("1000000/s burst 4", 16, 0);
    of_a_queue("1000000/s burst 4", 4, 4);
    of_a_queue("1000000/s algo pacer slack 8", 16, 0);
    printf("1..%d\n", number);
    return failed;
}
