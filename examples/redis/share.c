/* share URL [SECONDS]: one of several machines that share 100 requests a second through Redis. It
 * tries 500 times a second, and prints once a second how many it has admitted, how many of these
 * while Redis had not answered, and whether Redis answers. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tollbar_redis.h"

static void die(const char *what, int32_t code) {
    fprintf(stderr, "share: %s: %s\n", what, tollbar_strerror(code));
    exit(1);
}

static const char *answers(uint32_t circuit) {
    return circuit == TOLLBAR_CIRCUIT_CLOSED ? "redis answers" : "redis is away";
}

/* tollbar_lease_client_tick calls this when the circuit changes. */
static void on_change(void *last, uint32_t circuit) {
    *(uint32_t *)last = circuit;
}

/* Waits for the events that the client needs on its descriptor, `wait_ms` at most. */
static void wait_for(tollbar_lease_client *client, uint32_t wait_ms) {
    struct pollfd redis = {-1, 0, 0};
    uint32_t events = 0;
    redis.fd = tollbar_lease_client_fd(client, &events);
    if (events & TOLLBAR_EVENT_READ)
        redis.events |= POLLIN;
    if (events & TOLLBAR_EVENT_WRITE)
        redis.events |= POLLOUT;
    poll(&redis, 1, (int)wait_ms);
}

int main(int argc, char **argv) {
    static const char limit[] = "100/s burst 100";
    const char *name = "demo", *url = argc > 1 ? argv[1] : "redis://127.0.0.1";
    const long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    tollbar_lease *lease;
    tollbar_lease_client *client;
    uint32_t circuit = TOLLBAR_CIRCUIT_UNKNOWN, wait_ms = 0;
    uint64_t start, tried = 0, second = 0, admitted = 0, own = 0;
    int32_t code = tollbar_policy_spec_parse(limit, sizeof limit - 1, &policy, NULL);

    if (code == 0)
        code = tollbar_lease_new(name, strlen(name), &policy, &options, &lease);
    if (code != 0)
        die(limit, code);
    code = tollbar_lease_client_new(lease, url, strlen(url), NULL, &client);
    if (code != 0)
        die(url, code);
    tollbar_lease_client_on_change(client, on_change, &circuit);
    setvbuf(stdout, NULL, _IOLBF, 0);

    for (start = tollbar_lease_now(lease); seconds == 0 || (long)second < seconds;) {
        const uint64_t passed = tollbar_lease_now(lease) - start;
        /* The requests that are due since the last round: one every two milliseconds. */
        for (; tried < passed / 2000000; tried++)
            admitted += tollbar_lease_check(lease, NULL, 0, 1, NULL) == TOLLBAR_ALLOWED;
        if (passed / 1000000000 > second) {
            second++;
            tollbar_lease_get_stats(lease, &stats);
            printf("%2u s %4u admitted, %3u alone  %s\n", (unsigned)second, (unsigned)admitted,
                   (unsigned)(stats.fallback_permits - own), answers(circuit));
            own = stats.fallback_permits;
            admitted = 0;
        }
        tollbar_lease_client_tick(client, &wait_ms);
        wait_for(client, wait_ms < 2 ? wait_ms : 2);
    }

    code = tollbar_lease_client_close(client, 1000);
    if (code != 0)
        fprintf(stderr, "share: %s\n", tollbar_strerror(code));
    tollbar_lease_close(lease);
    return 0;
}
