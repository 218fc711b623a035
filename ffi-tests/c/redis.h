/* A real redis-server, which the test starts and stops, and which ends with the test. It uses no
 * test library, so that it works under every sanitizer. An error ends the program. */
#ifndef TOLLBAR_TEST_REDIS_H
#define TOLLBAR_TEST_REDIS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redis {
    /* The server's process, or 0 while it does not run. */
    pid_t pid;
    char directory[64];
    /* The URL of its unix socket, for tollbar_lease_client_new. */
    char url[96];
};

/* Starts the server, and returns when it answers. The first start makes a directory. A start after
 * redis_kill uses the same directory, and the server is empty. */
void redis_start(struct redis *redis);

/* kill -9. */
void redis_kill(struct redis *redis);

/* Stops the server and removes its directory. The end of the program does the same. */
void redis_end(struct redis *redis);

/* The answer to one command of plain words: a line of the protocol without its end ("+OK", ":3"),
 * or the text of a string. */
const char *redis_ask(const struct redis *redis, const char *command);

/* The same, as a number. */
int64_t redis_number(const struct redis *redis, const char *command);

/* Runs a script with `count` strings, of which the first `keys` are keys. Writes the string in the
 * array that it returns, or the error without its `-`, to `reply`. Returns its length, or -1 minus
 * the length of an error. */
long redis_eval(const struct redis *redis, const char *script, const void *const *strings, const size_t *lengths, size_t count,
                size_t keys, char *reply, size_t room);

/* Runs a script of one key, whose arguments are numbers. Writes the whole numbers that it returns, at
 * most `most`, and returns how many they are. */
size_t redis_eval_numbers(const struct redis *redis, const char *script, const void *key, size_t length, const uint64_t *args,
                          size_t count, int64_t *numbers, size_t most);

/* The number of connections that ask for leases. It may include one that has just been closed. */
int redis_clients(const struct redis *redis);

#ifdef __cplusplus
}
#endif

#endif
