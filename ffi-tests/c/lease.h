/* Common parts of the tests of leases on a real redis-server: the server, and helpers that make,
 * drive and inspect nodes. */
#ifndef TOLLBAR_TEST_LEASE_H
#define TOLLBAR_TEST_LEASE_H

#include "redis.h"
#include "test.h"
#include "tollbar_redis.h"

/* The server. It is empty when a test begins, and is stopped when the test ends. */
extern struct redis redis;
int with_redis(void **state);
int without_redis(void **state);
#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, with_redis, without_redis)

/* 1/s with a burst of 600: so slow that the counts of most tests are exact. */
#define SLOW "60/min burst 600"

/* tollbar_lease_new or tollbar_lease_new_shared. */
typedef int32_t maker(const char *, size_t, const tollbar_policy_spec *, const tollbar_lease_options *, tollbar_lease **);

/* This machine's node of the limit "limit", its client, and their close, which must return the
 * given result. */
tollbar_lease *lease_by(maker *make, const char *text, uint32_t nodes);
tollbar_lease_client *client_of(const tollbar_lease *lease);
void end(tollbar_lease *lease, tollbar_lease_client *client, uint32_t timeout, int32_t code);

/* Makes the call that is due; 1 if the store knows everything. */
int carry(tollbar_lease_calls *calls, uint32_t flags);

tollbar_lease_stats told_by(const tollbar_lease *lease);

/* One permit of a key: 1 or 0. */
uint64_t take(const tollbar_lease *lease, const char *key);

/* One round of the event loop of a program with other descriptors. At most four clients. */
void turn(tollbar_lease_client *const *clients, size_t count);
void turn_for(tollbar_lease_client *client, uint64_t time);
/* Turns until no request is in flight. Only then a client asks for a longer time between ticks. */
void settle(tollbar_lease_client *client);

/* Turns until the store answers and its first second is over, in which an empty store grants
 * nothing. */
void connect_to_store(tollbar_lease_client *client);

/* The store's charge of a key, in microseconds ahead of its time. It only grows while the bucket is
 * not full. */
int64_t charged(const char *key);

/* The number of permits that a node has had from the store, once it owes none. */
int64_t had(const tollbar_lease *lease);

/* Waits until the server counts so many connections, which it notices with a delay. */
void connections_become(int count);

#endif
