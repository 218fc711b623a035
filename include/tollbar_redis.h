/* tollbar_redis.h: limits that machines share through Redis or Valkey.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-redis-c/src; changes belong there.
 *
 * The calls are those of libtollbar-redis. Policies, decisions, results and the conventions [C1] to
 * [C8] are tollbar.h's, and results have their names and texts there (tollbar_errname,
 * tollbar_strerror): a program links both libraries (`pkg-config --libs tollbar-redis`).
 */

#ifndef TOLLBAR_REDIS_H
#define TOLLBAR_REDIS_H

#include "tollbar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------
 * 1. Version
 * -------------------------------------------------------------------------------------------- */

/* The ABI that tollbar_redis.h describes, as tollbar_abi_1 is that of tollbar.h. Always 1. */
extern const uint32_t tollbar_redis_abi_1;

/* Returns the version of the linked libtollbar-redis, `major << 16 | minor << 8 | patch`. Compare
 * it with TOLLBAR_VERSION: both libraries have the same version. */
uint32_t tollbar_redis_version(void);

/* --------------------------------------------------------------------------------------------
 * 2. Leases: one limit over many machines
 * -------------------------------------------------------------------------------------------- */

/* Machines that share a limit keep it in a store (Redis, Valkey). A machine takes some permits at a
 * time from the store, a lease, and spends them by itself for a short time. The store charges a lease
 * when it grants it. One client on each machine asks the store, from an event loop or from a thread
 * of its own. Only tollbar_lease_wait waits for the store.
 *
 *     const char *name = "logins", *url = "redis://127.0.0.1";
 *     tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
 *     tollbar_lease *lease;
 *     tollbar_lease_client *client;
 *     int error = tollbar_lease_new(name, strlen(name), &policy, &options, &lease);
 *     if (!error)
 *         error = tollbar_lease_client_new(lease, url, strlen(url), NULL, &client);
 *
 *     (one thread)
 *     tollbar_lease_client_run(client);          (until a thread calls tollbar_lease_client_stop)
 *
 *     (all others)
 *     if (tollbar_lease_check(lease, address, address_length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 *     (at the end, when that thread has returned)
 *     tollbar_lease_client_close(client, 1000);  (for at most 1,000 ms)
 *     tollbar_lease_close(lease);
 *
 * While the store answers, all machines together admit at most burst + rate * t in every window of
 * length t. docs/distributed.md has the proof, its assumptions, and the behaviour when the store or
 * the network fails.
 */

/* While the store does not answer, a node admits its share of the limit. The client charges those
 * permits when the store is back. */
#define TOLLBAR_FALLBACK_SHARE 0u

/* Without the store a node refuses what no lease covers. */
#define TOLLBAR_FALLBACK_DENY 1u

/* Without the store a node admits what no lease covers, and does not count it. */
#define TOLLBAR_FALLBACK_ALLOW 2u

/* The store grants the whole burst. The machines together may exceed the policy by the overdrafts
 * of all of them. */
#define TOLLBAR_LEASE_INEXACT 1u

/* The library uses the field `overdraft`. Without this flag it chooses the overdraft for the
 * policy. */
#define TOLLBAR_LEASE_HAS_OVERDRAFT 2u

/* After the store has lost data, every key's bucket counts as empty at the loss, and refills.
 * Without this flag a key that the store has lost has a full bucket, and may get one burst more
 * for each loss. */
#define TOLLBAR_LEASE_REFILL 4u

/* No client has reached the store yet. The node follows its fallback. */
#define TOLLBAR_CIRCUIT_UNKNOWN 0u

/* The store answers. */
#define TOLLBAR_CIRCUIT_CLOSED 1u

/* The node follows its fallback, for one of four causes: the store does not answer, the store's
 * clock stands still, the store grants nothing for longer than the limit explains, or no thread
 * drove the client for 250 ms. tollbar_lease_client_error names the first three. */
#define TOLLBAR_CIRCUIT_OPEN 2u

/* This machine's part of a limit: a node. Any number of threads may use one node at once, on both
 * sides of a fork, in every call but tollbar_lease_close. */
typedef struct tollbar_lease tollbar_lease;

/* How machines share a limit. Start from TOLLBAR_LEASE_OPTIONS_INIT. The first machine of a limit
 * puts its policy and options into the store's record, and all machines follow the record.
 * tollbar_lease_client_error says what a machine's configuration has otherwise. `capacity` and
 * `fallback` are each machine's own. */
typedef struct tollbar_lease_options {
    /* sizeof(tollbar_lease_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Machines that share the limit, at most: 1 to 65,535. */
    uint32_t nodes;
    /* Keys that this machine tracks at one time. A key is tracked while it has a lease, while the
     * store does not know all its permits, and while it is refused. */
    uint64_t capacity;
    /* Nanoseconds for which a machine may spend a lease: 1 ms to 10 min. With 0 the library takes
     * a sixteenth of the time that the burst refills in, at most 4 s. */
    uint64_t life_ns;
    /* With TOLLBAR_LEASE_HAS_OVERDRAFT: the permits of one key that a machine may have admitted
     * and the store has not charged yet, at most 127. */
    uint64_t overdraft;
    /* How a machine decides while the store does not answer: one of the TOLLBAR_FALLBACK_
     * constants. */
    uint32_t fallback;
    /* TOLLBAR_LEASE_ flags. */
    uint32_t flags;
} tollbar_lease_options;

/* Counters of a node since it was made. Start from TOLLBAR_LEASE_STATS_INIT. */
typedef struct tollbar_lease_stats {
    /* sizeof(tollbar_lease_stats), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_CIRCUIT_ number: whether the store answers. */
    uint32_t circuit;
    /* Permits that the store granted. */
    uint64_t granted;
    /* Requests for permits that the machine sent to the store. */
    uint64_t asked;
    /* Permits that the machine admitted before it asked the store, while the store answered. */
    uint64_t overdrawn;
    /* Permits that the machine admitted from its own bucket while the store did not answer. */
    uint64_t fallback_permits;
    /* Permits that TOLLBAR_FALLBACK_ALLOW admitted without a count. */
    uint64_t uncounted;
    /* Requests that were TOLLBAR_DENIED. TOLLBAR_NEVER is not counted. */
    uint64_t denied;
    /* Messages to the client that the full queue dropped. The node refused their requests or got
     * their leases later. */
    uint64_t queue_full;
    /* How often the client opened the circuit (TOLLBAR_CIRCUIT_OPEN). */
    uint64_t opened;
    /* Permits that the node admitted without a lease and the store has not charged yet, as of the
     * client's last turn. */
    uint64_t owed;
    /* Requests that were TOLLBAR_DENIED because other keys used the node's places
     * (TOLLBAR_REASON_TABLE_FULL). */
    uint64_t full;
    /* Requests that were TOLLBAR_DENIED because the store had not answered yet
     * (TOLLBAR_REASON_PENDING). */
    uint64_t denied_pending;
    /* Requests that were TOLLBAR_DENIED because by the store's last answer the limit was used up
     * (TOLLBAR_REASON_STORE_DENIED). */
    uint64_t denied_by_store;
    /* Requests that were TOLLBAR_DENIED by the fallback (TOLLBAR_REASON_STORE_DOWN). */
    uint64_t denied_by_fallback;
} tollbar_lease_stats;

/* Computes the bytes of a node with this policy and these options. A node never grows. */
int32_t tollbar_lease_bytes(const tollbar_policy_spec *spec,
                            const tollbar_lease_options *options,
                            uint64_t *bytes);

/* Makes this process's node of the limit `name`: 1 to 64 visible ASCII characters without braces.
 * The policy is gcra without `borrow`, `ban`, `init`, `reserve` and a second rate. The caller ends
 * `*out` with tollbar_lease_close.
 *
 * A node asks the store through a client (tollbar_lease_client_new). Without a client the node
 * admits permits from its own bucket, some hundred to some thousand in all, because its queue of
 * reports is then full. A forked child has a copy of the unspent permits. If parent and child both
 * make decisions, use tollbar_lease_new_shared. */
int32_t tollbar_lease_new(const char *name,
                          size_t name_length,
                          const tollbar_policy_spec *spec,
                          const tollbar_lease_options *options,
                          tollbar_lease **out);

/* tollbar_lease_new in memory that this process shares with the children that it forks later. The
 * processes together are one machine of the limit, and one of them drives the client. */
int32_t tollbar_lease_new_shared(const char *name,
                                 size_t name_length,
                                 const tollbar_policy_spec *spec,
                                 const tollbar_lease_options *options,
                                 tollbar_lease **out);

/* tollbar_lease_new in the caller's memory, which must be aligned to 64 bytes and outlive `*out`.
 * The call overwrites as many of the `size` bytes as tollbar_lease_bytes computes, and the node
 * keeps its leases there. */
int32_t tollbar_lease_init_in(void *memory,
                              size_t size,
                              const char *name,
                              size_t name_length,
                              const tollbar_policy_spec *spec,
                              const tollbar_lease_options *options,
                              tollbar_lease **out);

/* Opens the node that tollbar_lease_init_in made in this memory, in this process or in another
 * one. */
int32_t tollbar_lease_attach(void *memory, size_t size, tollbar_lease **out);

/* Ends this process's use of a node that no call and no client is using. NULL is allowed and does
 * nothing. */
void tollbar_lease_close(tollbar_lease *lease);

/* Takes `cost` permits of the key now. `length` 0 means the one limit that all requests share. The
 * call decides from the permits that the store has granted to this machine, or from the machine's
 * overdraft, and never waits for the store. TOLLBAR_REASON_PENDING says that only the store can
 * tell: tollbar_lease_wait asks it.
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER (the cost is more than a lease can have),
 * or an error. `out` may be NULL. Otherwise the call writes the full decision: `remaining` counts
 * this machine's permits, `retry_after_ns` is an estimate, and `reset_after_ns` is 0. */
int32_t tollbar_lease_check(const tollbar_lease *lease,
                            const void *key,
                            size_t length,
                            uint64_t cost,
                            tollbar_decision *out);

/* tollbar_lease_check at the caller's time, on the scale of tollbar_lease_now. */
int32_t tollbar_lease_check_at(const tollbar_lease *lease,
                               const void *key,
                               size_t length,
                               uint64_t cost,
                               uint64_t now_ns,
                               tollbar_decision *out);

/* Says how tollbar_lease_check would decide, and takes nothing. The call counts the permits that
 * this machine has leased and its overdraft. It requests no lease from the store. */
int32_t tollbar_lease_peek(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           tollbar_decision *out);

/* Reads the node's clock: nanoseconds of UTC since TOLLBAR_TIME_ZERO, on the scale of
 * tollbar_table_now. All processes of a node read the same clock. Returns 0 for NULL. */
uint64_t tollbar_lease_now(const tollbar_lease *lease);

/* Writes the node's counters to `out`. */
int32_t tollbar_lease_get_stats(const tollbar_lease *lease, tollbar_lease_stats *out);

/* Options for a limit that `machines` share, with the defaults for everything else. */
#define TOLLBAR_LEASE_OPTIONS_INIT(machines)                                                         \
    { (uint32_t)sizeof(tollbar_lease_options), (machines), 4096, 0, 0, 0, 0 }

/* Statistics to be filled in. */
#define TOLLBAR_LEASE_STATS_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_lease_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* --------------------------------------------------------------------------------------------
 * 3. Requests that wait for the store
 * -------------------------------------------------------------------------------------------- */

/* tollbar_lease_poll: the request waits for the store. */
#define TOLLBAR_LEASE_WAITS 3u

/* A request that waits for the store (tollbar_lease_poll). Start from TOLLBAR_LEASE_REQUEST_INIT.
 * It is plain data: to give up, forget it. */
typedef struct tollbar_lease_request {
    /* sizeof(tollbar_lease_request), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The library's. 0 in a new request. */
    uint32_t progress;
    /* The permits that the request takes. */
    uint64_t cost;
    /* When the request gives up, on the scale of tollbar_lease_now. */
    uint64_t until_ns;
} tollbar_lease_request;

/* tollbar_lease_check that waits for the store's answer, for at most `timeout_ns`. While the store
 * answers, the call denies only what the store denies. The wait is about one round trip if a
 * thread runs tollbar_lease_client_run; with tollbar_lease_client_tick it lasts until a later
 * tick.
 *
 * While the store does not answer, the call decides at once as tollbar_lease_check does. It denies
 * as TOLLBAR_REASON_PENDING if no answer came in time; the store may still charge such a request.
 * The thread that drives the client must not make this call. */
int32_t tollbar_lease_wait(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           uint64_t timeout_ns,
                           tollbar_decision *out);

/* tollbar_lease_wait for an event loop. Returns TOLLBAR_LEASE_WAITS and leaves `out` alone as long
 * as the request waits for the store. Call it again with the same key and `request` after each
 * tollbar_lease_client_tick of this process, or each millisecond if another process drives the
 * client, and at `until_ns`. Any other result is final. */
int32_t tollbar_lease_poll(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           tollbar_lease_request *request,
                           tollbar_decision *out);

/* A request for `permits` that waits for the store until `time_ns`. */
#define TOLLBAR_LEASE_REQUEST_INIT(permits, time_ns)                                                 \
    { (uint32_t)sizeof(tollbar_lease_request), 0, (permits), (time_ns) }
/* --------------------------------------------------------------------------------------------
 * 4. Clients: they ask the store for leases
 * -------------------------------------------------------------------------------------------- */

/* tollbar_tls.wants: TLS is made, and bytes pass. */
#define TOLLBAR_TLS_OPEN 0

/* tollbar_tls.wants: the handshake goes on. */
#define TOLLBAR_TLS_HANDSHAKE 1

/* tollbar_tls.wants, and the calls that move bytes: TLS has failed. */
#define TOLLBAR_TLS_FAULT (-1)

/* Watch the descriptor of tollbar_lease_client_fd for data to read. */
#define TOLLBAR_EVENT_READ 1u

/* Watch the descriptor of tollbar_lease_client_fd for room to write. */
#define TOLLBAR_EVENT_WRITE 2u

/* A client asks one store for the permits of up to 128 nodes, each of another limit, over one
 * connection. One thread at a time may use it. Any thread may call tollbar_lease_client_circuit
 * and tollbar_lease_client_stop, also while tollbar_lease_client_run runs. */
typedef struct tollbar_lease_client tollbar_lease_client;

/* A TLS library, as functions that move bytes between memory and memory. None of them may wait,
 * and none touches a socket. tollbar_openssl.h has a table for OpenSSL. The thread that drives the
 * client makes all calls.
 *
 * The calls that move bytes return how many, 0 for none now, or TOLLBAR_TLS_FAULT. */
typedef struct tollbar_tls {
    /* sizeof(tollbar_tls), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* 0. */
    uint32_t flags;
    /* The first argument of `start`. */
    void *context;
    /* Begins TLS as a client of the server with this name or address, and returns the connection;
     * NULL if it cannot. The certificate must be for `host`. */
    void *(*start)(void *context, const char *host);
    /* Takes bytes that the server has sent. */
    int64_t (*cipher_in)(void *connection, const void *bytes, size_t length);
    /* Gives bytes for the server. */
    int64_t (*cipher_out)(void *connection, void *bytes, size_t length);
    /* Takes bytes to encrypt. */
    int64_t (*plain_in)(void *connection, const void *bytes, size_t length);
    /* Gives decrypted bytes. */
    int64_t (*plain_out)(void *connection, void *bytes, size_t length);
    /* Goes on with the handshake. Returns a TOLLBAR_TLS_ number. */
    int32_t (*wants)(void *connection);
    /* Why TLS has failed, as text; NULL if the library does not say. */
    const char *(*fault)(void *connection);
    /* Frees the connection. It sends nothing. */
    void (*end)(void *connection);
} tollbar_tls;

/* Makes a client that asks the store at `url` for the leases of `lease`, which must outlive the
 * client. tollbar_lease_client_add gives it the leases of further limits. The URL is
 * `redis://[user[:password]@]host[:port][,host[:port]...][/db]`, the same with `valkey://`, or
 * `unix:/path`. Options may follow: `?db=N&user=...&password=...`, `password_file=` with a path,
 * `timeout=` with a time such as 500ms. Several hosts are tried in turn. The first line of the file
 * is the password, and each connection reads it again.
 *
 * The call does not connect. tollbar_lease_client_run in a thread, or tollbar_lease_client_tick
 * from an event loop, connects later. For each new connection the client looks up a host's name by
 * the system's resolver (getaddrinfo), on a thread that ends with the lookup. A client has at most
 * one such thread, and a process at most 16. If the URL cannot be read, the call returns
 * TOLLBAR_E_URL and `*column`, unless `column` is NULL, gets the column of the fault, from 1. A
 * URL with TLS needs tollbar_lease_client_new_tls.
 *
 * With a glibc before 2.34 a program must have libpthread (`-pthread`) for that thread. Without
 * it, tollbar_lease_client_tick waits for the resolver.
 *
 * If several processes share a node (tollbar_lease_new_shared, tollbar_lease_init_in), each may
 * have a client. One client asks the store. When its process ends, in any way, another client
 * takes over within a second. */
int32_t tollbar_lease_client_new(const tollbar_lease *lease,
                                 const char *url,
                                 size_t url_length,
                                 size_t *column,
                                 tollbar_lease_client **out);

/* tollbar_lease_client_new for a URL with or without TLS (`rediss://` or `valkeys://`). `*tls` has
 * the program's TLS library, and is copied; its functions and its context must outlive the client. */
int32_t tollbar_lease_client_new_tls(const tollbar_lease *lease,
                                     const char *url,
                                     size_t url_length,
                                     const tollbar_tls *tls,
                                     size_t *column,
                                     tollbar_lease_client **out);

/* Makes the client ask for the leases of `lease`, too, which must outlive the client. A process
 * needs one client for all limits of a store: one connection, one heartbeat, and one call for the
 * questions of all limits. A fault of one limit leaves the others alone.
 * tollbar_lease_client_remove ends this.
 *
 * Returns TOLLBAR_E_CLIENT_LEASES if the client has 128 leases, or one of this limit. While
 * tollbar_lease_client_run runs, the call returns TOLLBAR_E_RUNNING. */
int32_t tollbar_lease_client_add(tollbar_lease_client *client, const tollbar_lease *lease);

/* Reports to the store the admissions of `lease` that the store does not know yet, for at most
 * `timeout_ms`. The client asks for its other leases meanwhile. The call returns
 * TOLLBAR_E_UNREPORTED if the time was too short; with 0 it begins no connection. It returns
 * TOLLBAR_E_CLIENT_LEASES if the client does not have this lease, and TOLLBAR_E_RUNNING while
 * tollbar_lease_client_run runs. */
int32_t tollbar_lease_client_report(tollbar_lease_client *client,
                                    const tollbar_lease *lease,
                                    uint32_t timeout_ms);

/* tollbar_lease_client_report, which then makes the client forget the lease, also if it returns
 * TOLLBAR_E_UNREPORTED. */
int32_t tollbar_lease_client_remove(tollbar_lease_client *client,
                                    const tollbar_lease *lease,
                                    uint32_t timeout_ms);

/* Makes tollbar_lease_client_tick and tollbar_lease_client_run call `listener` with `argument` and
 * tollbar_lease_client_circuit whenever this or the circuit of one of the client's leases changes.
 * A NULL `listener` ends the calls. */
int32_t tollbar_lease_client_on_change(tollbar_lease_client *client,
                                       void (*listener)(void *argument, uint32_t circuit),
                                       void *argument);

/* Drives the client until tollbar_lease_client_stop. The call blocks, so give it a thread of its
 * own, which sleeps most of the time. */
int32_t tollbar_lease_client_run(tollbar_lease_client *client);

/* Makes tollbar_lease_client_run return within some 10 ms, or at once if that call comes later.
 * Any thread and any signal handler may call it. */
int32_t tollbar_lease_client_stop(const tollbar_lease_client *client);

/* Does the client's pending work, and never waits for the network or the system's resolver.
 * `*wait_ms`, unless NULL, gets a number of milliseconds. The caller must call again after that
 * time, or earlier if the descriptor becomes ready. */
int32_t tollbar_lease_client_tick(tollbar_lease_client *client, uint32_t *wait_ms);

/* The descriptor to watch until the next tollbar_lease_client_tick, or -1 if there is none. A tick
 * may replace the descriptor, and the new descriptor has another number. `*events`, unless NULL,
 * gets the TOLLBAR_EVENT_ flags to watch for. */
int32_t tollbar_lease_client_fd(tollbar_lease_client *client, uint32_t *events);

/* Returns whether the store answers, as a TOLLBAR_CIRCUIT_ number: open if the circuit of any of
 * the client's leases is open, closed if all are closed. The call returns what the last
 * tollbar_lease_client_tick, or the last turn of tollbar_lease_client_run, has found.
 * tollbar_lease_get_stats has each lease's. Returns TOLLBAR_CIRCUIT_UNKNOWN for NULL. */
uint32_t tollbar_lease_client_circuit(const tollbar_lease_client *client);

/* The fault, as text: why the store does not answer, why it grants nothing, or what the store's
 * record of a limit has otherwise than the machine's configuration. If the store refuses a
 * command, the text has the command, the key that it was about, and the store's own words. A text
 * about one of several limits begins with the limit's name. The text is empty if there is no
 * fault, and never NULL. The client owns it until the next call. While tollbar_lease_client_run
 * runs, only its listener gets the text, and other callers get an empty one. */
const char *tollbar_lease_client_error(tollbar_lease_client *client);

/* tollbar_lease_client_error, only as far as it is about one of the client's leases. */
const char *tollbar_lease_client_lease_error(tollbar_lease_client *client,
                                             const tollbar_lease *lease);

/* Reports to the store all admissions that the store does not know yet, for at most `timeout_ms`,
 * and frees the client. If the time was too short, the call frees the client and returns
 * TOLLBAR_E_UNREPORTED. With 0 the call begins no connection. While tollbar_lease_client_run runs,
 * the call returns TOLLBAR_E_RUNNING and does nothing. NULL is a no-op. */
int32_t tollbar_lease_client_close(tollbar_lease_client *client, uint32_t timeout_ms);

/* A table to be filled in. */
#define TOLLBAR_TLS_INIT                                                                             \
    { (uint32_t)sizeof(tollbar_tls), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
/* --------------------------------------------------------------------------------------------
 * 5. Calls: the program's own Redis client asks the store
 * -------------------------------------------------------------------------------------------- */

/* A client without a connection: it says which call of a script to make, and the program makes the
 * call with the Redis client that it has. So a limit works wherever that client does: with
 * Sentinel, in a cluster, with tokens that end.
 *
 *     tollbar_lease_calls_new(lease, &calls);
 *
 *     (one thread)
 *     while (!ends) {
 *         tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;
 *         tollbar_lease_calls_turn(calls, 0, &call);
 *         if (call.count == 0)
 *             tollbar_lease_calls_wait(calls, call.wait_ms);
 *         else if (!evalsha(redis, &call, &reply))
 *             tollbar_lease_calls_lost(calls, redis->error, strlen(redis->error));
 *         else if (reply.is_error)
 *             tollbar_lease_calls_refused(calls, reply.text, reply.length);
 *         else
 *             tollbar_lease_calls_answered(calls, reply.text, reply.length);
 *     }
 *
 * Here `evalsha` stands for the program's client. Each call is about one limit, so all its keys are
 * in one slot of a cluster.
 */

/* tollbar_lease_calls_turn: the calls tell the store at once what it does not know yet. */
#define TOLLBAR_LEASE_CLOSING 1u

/* The calls of a program's Redis client for up to 128 nodes, each of another limit. One thread at
 * a time may use it. A node whose call takes longer than half a lease's life, or 250 ms, follows
 * its fallback meanwhile. */
typedef struct tollbar_lease_calls tollbar_lease_calls;

/* A key or an argument of a call. It may have any bytes. */
typedef struct tollbar_lease_part {
    /* Its bytes. */
    const void *bytes;
    /* How many. */
    size_t length;
} tollbar_lease_part;

/* A call of the script. Start from TOLLBAR_LEASE_CALL_INIT. */
typedef struct tollbar_lease_call {
    /* sizeof(tollbar_lease_call), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Without a call, the milliseconds until the next tollbar_lease_calls_turn. */
    uint32_t wait_ms;
    /* The keys and then the arguments. They are valid until the next tollbar_lease_calls_turn. */
    const tollbar_lease_part *parts;
    /* The number of parts; 0 if there is no call to make now. */
    size_t count;
    /* How many of them are keys. */
    size_t keys;
} tollbar_lease_call;

/* Makes the calls for the leases of `lease`, which must outlive `*out`. The caller ends `*out`
 * with tollbar_lease_calls_close.
 *
 * If several processes share a node (tollbar_lease_new_shared, tollbar_lease_init_in), each may
 * have calls or a client for it. One of them asks the store. */
int32_t tollbar_lease_calls_new(const tollbar_lease *lease, tollbar_lease_calls **out);

/* Makes calls for the leases of `lease`, too, with the results of tollbar_lease_client_add. */
int32_t tollbar_lease_calls_add(tollbar_lease_calls *calls, const tollbar_lease *lease);

/* The script of all calls, in Lua. It returns an array of one string. */
const char *tollbar_lease_calls_script(void);

/* Writes the call to make now to `*call`, or the milliseconds to wait. `flags` is 0 or
 * TOLLBAR_LEASE_CLOSING; with the flag, no call and a wait of 0 say that the store knows all
 * admissions. The program makes the call at once, by EVALSHA and, if the store does not
 * know the script, by EVAL. It must not repeat a call that may have reached the store. A call of
 * which the program has said nothing by the next turn counts as lost. */
int32_t tollbar_lease_calls_turn(tollbar_lease_calls *calls,
                                 uint32_t flags,
                                 tollbar_lease_call *call);

/* Takes the call's reply: the string in the array that the script returned. */
int32_t tollbar_lease_calls_answered(tollbar_lease_calls *calls,
                                     const void *reply,
                                     size_t length);

/* Takes the store's error in place of a reply, such as `OOM command not allowed`. The store has
 * not run the script. */
int32_t tollbar_lease_calls_refused(tollbar_lease_calls *calls,
                                    const char *error,
                                    size_t length);

/* Says that the call has no reply, and why. The store may have run the script. */
int32_t tollbar_lease_calls_lost(tollbar_lease_calls *calls, const char *why, size_t length);

/* Waits for `wait_ms` milliseconds, or until a request cannot wait for the next turn. */
int32_t tollbar_lease_calls_wait(tollbar_lease_calls *calls, uint32_t wait_ms);

/* What is wrong, as tollbar_lease_client_error says it. The caller owns the text until its next
 * call. */
const char *tollbar_lease_calls_error(tollbar_lease_calls *calls);

/* Ends the calls. Turns with TOLLBAR_LEASE_CLOSING before it tell the store all admissions.
 * Returns TOLLBAR_E_UNREPORTED if the store does not know them all. NULL is a no-op. */
int32_t tollbar_lease_calls_close(tollbar_lease_calls *calls);

/* A call to be filled in. */
#define TOLLBAR_LEASE_CALL_INIT                                                                      \
    { (uint32_t)sizeof(tollbar_lease_call), 0, NULL, 0, 0 }
/* --------------------------------------------------------------------------------------------
 * 6. Decisions that the store makes
 * -------------------------------------------------------------------------------------------- */

/* A limit that the store decides: each decision is one call of a script, which the program makes with
 * the Redis client that it has. The store's clock and state are the only ones, so any number of
 * machines admit exactly what one limiter would, at the price of a round trip for each decision.
 *
 *     tollbar_store_limit_new("logins", 6, &spec, &logins);
 *
 *     (any thread)
 *     tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
 *     tollbar_store_ask(logins, TOLLBAR_STORE_CHECK, address, length, 1, &question);
 *     count = evalsha(redis, &question, numbers);
 *     verdict = tollbar_store_answer(logins, &question, numbers, count, NULL, NULL);
 *
 * Here `evalsha` stands for the program's client. A request whose call fails has no decision: the
 * program chooses whether it passes.
 */
/* tollbar_store_ask: takes `cost` permits, or none. */
#define TOLLBAR_STORE_CHECK 0

/* The decision of TOLLBAR_STORE_CHECK, which takes nothing. */
#define TOLLBAR_STORE_PEEK 1

/* Takes as many permits as are left, up to `cost`. TOLLBAR_ALLOWED if it took any, otherwise
 * TOLLBAR_DENIED. */
#define TOLLBAR_STORE_UP_TO 2

/* Forgets the key. */
#define TOLLBAR_STORE_RESET 3

/* The longest key, in bytes. */
#define TOLLBAR_STORE_KEY_MAX 512

/* A limit that a store decides. Any number of threads may use it at once, in all calls but
 * tollbar_store_limit_free. */
typedef struct tollbar_store_limit tollbar_store_limit;

/* A call of a script, about one key. It may be copied. Start from TOLLBAR_STORE_QUESTION_INIT. */
typedef struct tollbar_store_question {
    /* sizeof(tollbar_store_question), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_STORE_ number. */
    uint32_t ask;
    /* The permits that are asked for. */
    uint64_t cost;
    /* The script, in Lua. It returns an array of whole numbers. NULL: no call is needed, and the
     * reply is empty. */
    const char *script;
    /* Its arguments, in decimal at most 2^53 each. */
    uint64_t args[7];
    /* The number of arguments. */
    uint32_t arg_count;
    /* The bytes of the key. */
    uint32_t key_length;
    /* The only key of the script. It is not NUL-terminated, and may have any bytes. */
    uint8_t key[592];
} tollbar_store_question;

/* Compiles a policy for a store: gcra, interval, fixed-window, weighted-window, sliding-log or an
 * aligned sliding-window, without `borrow`, `ban`, `init`, `reserve` and a second rate. `name`
 * tells limits apart: 1 to 64 visible ASCII characters without braces (TOLLBAR_E_LEASE_NAME). The
 * caller frees `*out` with tollbar_store_limit_free. */
int32_t tollbar_store_limit_new(const char *name,
                                size_t length,
                                const tollbar_policy_spec *spec,
                                tollbar_store_limit **out);

/* Frees a limit that no call is using. With NULL the call does nothing. */
void tollbar_store_limit_free(tollbar_store_limit *limit);

/* Writes what to ask the store about `cost` permits of a key to `*question`. `ask` is a
 * TOLLBAR_STORE_ number, and the key has 1 to TOLLBAR_STORE_KEY_MAX bytes (TOLLBAR_E_STORE_KEY).
 * The program makes the call by EVALSHA and, if the store does not know the script, by EVAL. A
 * call that may have reached the store may have charged the key. */
int32_t tollbar_store_ask(const tollbar_store_limit *limit,
                          uint32_t ask,
                          const void *key,
                          size_t length,
                          uint64_t cost,
                          tollbar_store_question *question);

/* Reads the `count` numbers that the script returned to `question`, which is of this limit. The
 * result and `out`, which may be NULL, are those of tollbar_table_check; the times are whole
 * microseconds, rounded up. Unless NULL, `*taken` gets the permits that the store has charged.
 *
 * TOLLBAR_E_STORE_VALUE: the key has another algorithm's or another program's value, and nothing
 * was charged. Give a limit another name with another algorithm. TOLLBAR_E_STORE_REPLY: the
 * numbers are not a script's, which returns six at most. */
int32_t tollbar_store_answer(const tollbar_store_limit *limit,
                             const tollbar_store_question *question,
                             const int64_t *reply,
                             size_t count,
                             tollbar_decision *out,
                             uint64_t *taken);

/* A question to be filled in. */
#define TOLLBAR_STORE_QUESTION_INIT                                                                  \
    { (uint32_t)sizeof(tollbar_store_question), 0, 0, NULL, {0}, 0, 0, {0} }
#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_REDIS_H */
