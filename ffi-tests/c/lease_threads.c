/* Threads take permits of a node while another thread drives its client, against a real
 * redis-server that stops meanwhile. It uses no test library, because ThreadSanitizer would not see
 * that library's code, and prints TAP itself. */
#define _XOPEN_SOURCE 600
#include "redis.h"
#include "tollbar_redis.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, BURST = 400, RATE = 2000 };

#define SEC UINT64_C(1000000000)

static struct redis redis;
static tollbar_lease *lease;
static tollbar_lease_client *client;
static int over;
static uint32_t told;

static uint64_t monotonic(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        abort();
    return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

static void rest(void) {
    const struct timespec time = {0, 100000};
    nanosleep(&time, NULL);
}

static void note(void *argument, uint32_t circuit) {
    __atomic_store_n((uint32_t *)argument, circuit, __ATOMIC_RELEASE);
}

static int becomes(uint32_t circuit) {
    const uint64_t start = monotonic();
    while (__atomic_load_n(&told, __ATOMIC_ACQUIRE) != circuit) {
        rest();
        /* It takes about 100 ms. The minute is for a busy machine. */
        if (monotonic() - start > 60 * SEC)
            return 0;
    }
    return 1;
}

static void *drive(void *argument) {
    (void)argument;
    if (tollbar_lease_client_run(client) != 0)
        abort();
    return NULL;
}

/* One thread takes permits of the limit for all, which it counts. The others also make calls that
 * are allowed at any time. */
static void *ask(void *counted) {
    uint64_t *admitted = counted;
    unsigned i;
    for (i = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
        const unsigned key = i % 50;
        if (tollbar_lease_check(lease, "", 0, 1, NULL) == TOLLBAR_ALLOWED)
            ++*admitted;
        if (tollbar_lease_check(lease, &key, sizeof key, 1, &decision) < 0 ||
            tollbar_lease_peek(lease, &key, sizeof key, 2, &decision) < 0 || tollbar_lease_get_stats(lease, &stats) != 0 ||
            tollbar_lease_client_circuit(client) > TOLLBAR_CIRCUIT_OPEN)
            abort();
        if (i % 8 == 0)
            rest();
    }
    return NULL;
}

static int number, failed;

static void expect(const char *name, int right) {
    failed |= !right;
    printf("%sok %d - %s\n", right ? "" : "not ", ++number, name);
}

int main(void) {
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(1);
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    pthread_t threads[THREADS], driver;
    uint64_t admitted[THREADS][8] = {{0}}, start, spent, sum = 0;
    int i;
    redis_start(&redis);
    if (tollbar_policy_spec_parse("2000/s burst 400", 16, &spec, NULL) != 0 ||
        tollbar_lease_new("threads", 7, &spec, &options, &lease) != 0 ||
        tollbar_lease_client_new(lease, redis.url, strlen(redis.url), NULL, &client) != 0 ||
        tollbar_lease_client_on_change(client, note, &told) != 0)
        abort();
    start = monotonic();
    if (pthread_create(&driver, NULL, drive, NULL) != 0)
        abort();
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, ask, admitted[i]) != 0)
            abort();
    expect("the store is there", becomes(TOLLBAR_CIRCUIT_CLOSED));
    while (monotonic() - start < 2 * SEC)
        rest();
    redis_kill(&redis);
    expect("it goes", becomes(TOLLBAR_CIRCUIT_OPEN));
    redis_start(&redis);
    expect("it comes back", becomes(TOLLBAR_CIRCUIT_CLOSED));
    while (monotonic() - start < 4 * SEC)
        rest();
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += admitted[i][0];
    }
    spent = monotonic() - start;
    expect("stop", tollbar_lease_client_stop(client) == 0 && pthread_join(driver, NULL) == 0);
    printf("# %lu admitted in %lu ms\n", (unsigned long)sum, (unsigned long)(spent / 1000000));
    expect("never more than the burst and the rate's", sum > 0 && sum <= BURST + spent / (SEC / RATE) + 1);
    expect("it was asked, and lost", tollbar_lease_get_stats(lease, &stats) == 0 && stats.asked > 1 && stats.opened > 0);
    expect("close", tollbar_lease_client_close(client, 60000) == 0);
    tollbar_lease_close(lease);
    redis_end(&redis);
    printf("1..%d\n", number);
    return failed;
}
