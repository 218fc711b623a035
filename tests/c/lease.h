/* What the tests of leases on a real redis-server share: the server, and short ways to make, drive and look. */
#ifndef TOLLBAR_TEST_LEASE_H
#define TOLLBAR_TEST_LEASE_H

#include "redis.h"
#include "test.h"
#include "tollbar_redis.h"

/* The server, which has nothing in it when a test begins, and is gone when it ends. */
extern struct redis redis;
int with_redis(void **state);
int without_redis(void **state);
#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, with_redis, without_redis)

/* What most tests want to know is exact if a permit takes a second: 1/s, and 600 of them to begin with. */
#define SLOW "60/min burst 600"

/* tollbar_lease_new or tollbar_lease_new_shared. */
typedef int32_t maker(const char *, size_t, const tollbar_policy_spec *, const tollbar_lease_options *, tollbar_lease **);

/* This machine's part of the limit called "limit", its client, and their end with what closing is to return. */
tollbar_lease *lease_by(maker *make, const char *text, uint32_t nodes);
tollbar_lease_client *client_of(const tollbar_lease *lease);
void end(tollbar_lease *lease, tollbar_lease_client *client, uint32_t timeout, int32_t code);

tollbar_lease_stats told_by(const tollbar_lease *lease);

/* One permit of a key: 1 or 0. */
uint64_t take(const tollbar_lease *lease, const char *key);

/* One round of an event loop, as a program would have it that has other descriptors, too. Four clients at most. */
void turn(tollbar_lease_client *const *clients, size_t count);
void turn_for(tollbar_lease_client *client, uint64_t time);
/* Turns until nothing is on its way: only then a client wants to be called less often. */
void settle(tollbar_lease_client *client);

/* Turns until the store answers, and for its first second, in which a store that knows nothing gives nothing. */
void connect_to_store(tollbar_lease_client *client);

/* What the store has charged a key, in microseconds ahead of time: it only grows while the bucket is not full. */
int64_t charged(const char *key);

/* All that a node has had of the store, once it owes nothing. */
int64_t had(const tollbar_lease *lease);

/* Waits for the server to see connections come or go, for which it needs a moment. */
void connections_become(int count);

#endif
