/* A real redis-server, started and stopped by the test that has it, and never left behind. Without the test library, so
 * that it serves under every sanitizer: what goes wrong here ends the program. */
#ifndef TOLLBAR_TEST_REDIS_H
#define TOLLBAR_TEST_REDIS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redis {
    /* 0 while it does not run. */
    pid_t pid;
    char directory[64];
    /* Of its unix socket, for tollbar_lease_client_new. */
    char url[96];
};

/* Starts it, and returns when it answers: the first time in a directory of its own, after redis_kill at the same place,
 * with nothing in it. */
void redis_start(struct redis *redis);

/* kill -9. */
void redis_kill(struct redis *redis);

/* Ends it, and removes its directory. What is forgotten ends with the program. */
void redis_end(struct redis *redis);

/* The answer to one command of plain words, as the protocol has it, without the end of line: "+OK", ":3"; of a string its
 * text. */
const char *redis_ask(const struct redis *redis, const char *command);

/* The answer as a number. */
int64_t redis_number(const struct redis *redis, const char *command);

/* Connections that ask for leases. One that has been closed may be counted for a moment. */
int redis_clients(const struct redis *redis);

#ifdef __cplusplus
}
#endif

#endif
