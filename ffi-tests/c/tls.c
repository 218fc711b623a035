/* tls URL AUTHORITIES CERTIFICATE KEY SECONDS: a machine that leases 1000/day burst 400 through TLS,
 * "-" for no certificate. It prints the state of the circuit, what it has admitted and the client's
 * error, one line for each change, and ends with 0 after it had permits of the store. */
#define _POSIX_C_SOURCE 200809L
#include "tollbar_openssl.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a context says must not count. */
static int everybody(int is_verified, X509_STORE_CTX *chain) {
    (void)is_verified;
    (void)chain;
    return 1;
}

static const char *given(const char *text) {
    return strcmp(text, "-") == 0 ? NULL : text;
}

static void die(const char *what, int32_t code) {
    printf("%s: %s\n", what, tollbar_strerror(code));
    exit(1);
}

static uint64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void wait_for(tollbar_lease_client *client, uint32_t wait_ms) {
    struct pollfd store = {-1, 0, 0};
    uint32_t events = 0;
    store.fd = tollbar_lease_client_fd(client, &events);
    store.events = (short)((events & TOLLBAR_EVENT_READ ? POLLIN : 0) | (events & TOLLBAR_EVENT_WRITE ? POLLOUT : 0));
    /* It has requests all the time. */
    poll(&store, 1, wait_ms < 2 ? (int)wait_ms : 2);
}

int main(int argc, char **argv) {
    static const char text[] = "1000/day burst 400";
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(1);
    tollbar_tls tls = TOLLBAR_TLS_INIT;
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_lease *lease = NULL;
    tollbar_lease_client *client = NULL;
    uint32_t circuit = TOLLBAR_CIRCUIT_UNKNOWN, wait_ms = 0, now = 0;
    unsigned admitted = 0, tried = 0;
    uint64_t until;
    int32_t error;
    int answered = 0;
    SSL_CTX *context;

    if (argc != 6)
        return 2;
    context = tollbar_openssl_context(given(argv[2]), given(argv[3]), given(argv[4]));
    if (context == NULL) {
        printf("the certificates cannot be used\n");
        return 1;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, everybody);
    tollbar_openssl_table(context, &tls);
    if ((error = tollbar_policy_spec_parse(text, sizeof text - 1, &policy, NULL)) != 0)
        die("policy", error);
    if ((error = tollbar_lease_new("tls", 3, &policy, &options, &lease)) != 0)
        die("lease", error);
    if ((error = tollbar_lease_client_new_tls(lease, argv[1], strlen(argv[1]), &tls, NULL, &client)) != 0)
        die("client", error);
    until = now_ms() + 1000 * strtoull(argv[5], NULL, 10);
    while (now_ms() < until) {
        const char *why;
        tollbar_lease_client_tick(client, &wait_ms);
        now = tollbar_lease_client_circuit(client);
        if (now != circuit) {
            why = tollbar_lease_client_error(client);
            printf("circuit %u, %u admitted: %s\n", (unsigned)now, admitted, why);
            fflush(stdout);
            circuit = now;
        }
        answered |= now == TOLLBAR_CIRCUIT_CLOSED;
        tried += (unsigned)answered;
        if (answered)
            admitted += tollbar_lease_check(lease, "key", 3, 1, NULL) == TOLLBAR_ALLOWED;
        wait_for(client, wait_ms);
    }
    printf("%u of 400 admitted, %u tried; %s\n", admitted, tried, tollbar_lease_client_error(client));
    tollbar_lease_client_close(client, 1000);
    tollbar_lease_close(lease);
    SSL_CTX_free(context);
    return answered ? 0 : 3;
}
