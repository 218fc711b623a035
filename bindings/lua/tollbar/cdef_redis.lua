-- Written by `cargo xtask cdef` from include/tollbar_redis.h, which says what all of this means; changes belong there.
require("ffi").cdef [[
enum {
    TOLLBAR_FALLBACK_SHARE = 0,
    TOLLBAR_FALLBACK_DENY = 1,
    TOLLBAR_FALLBACK_ALLOW = 2,
    TOLLBAR_LEASE_INEXACT = 1,
    TOLLBAR_LEASE_HAS_OVERDRAFT = 2,
    TOLLBAR_LEASE_REFILL = 4,
    TOLLBAR_CIRCUIT_UNKNOWN = 0,
    TOLLBAR_CIRCUIT_CLOSED = 1,
    TOLLBAR_CIRCUIT_OPEN = 2,
    TOLLBAR_LEASE_WAITS = 3,
    TOLLBAR_TLS_OPEN = 0,
    TOLLBAR_TLS_HANDSHAKE = 1,
    TOLLBAR_TLS_FAULT = (-1),
    TOLLBAR_EVENT_READ = 1,
    TOLLBAR_EVENT_WRITE = 2,
    TOLLBAR_LEASE_CLOSING = 1,
    TOLLBAR_STORE_CHECK = 0,
    TOLLBAR_STORE_PEEK = 1,
    TOLLBAR_STORE_UP_TO = 2,
    TOLLBAR_STORE_RESET = 3,
    TOLLBAR_STORE_KEY_MAX = 512,
};
extern const uint32_t tollbar_redis_abi_1;
uint32_t tollbar_redis_version(void);
typedef struct tollbar_lease tollbar_lease;
typedef struct tollbar_lease_options {
    uint32_t struct_size;
    uint32_t nodes;
    uint64_t capacity;
    uint64_t life_ns;
    uint64_t overdraft;
    uint32_t fallback;
    uint32_t flags;
} tollbar_lease_options;
typedef struct tollbar_lease_stats {
    uint32_t struct_size;
    uint32_t circuit;
    uint64_t granted;
    uint64_t asked;
    uint64_t overdrawn;
    uint64_t fallback_permits;
    uint64_t uncounted;
    uint64_t denied;
    uint64_t queue_full;
    uint64_t opened;
    uint64_t owed;
    uint64_t full;
    uint64_t denied_pending;
    uint64_t denied_by_store;
    uint64_t denied_by_fallback;
} tollbar_lease_stats;
int32_t tollbar_lease_bytes(const tollbar_policy_spec *spec,
                            const tollbar_lease_options *options,
                            uint64_t *bytes);
int32_t tollbar_lease_new(const char *name,
                          size_t name_length,
                          const tollbar_policy_spec *spec,
                          const tollbar_lease_options *options,
                          tollbar_lease **out);
int32_t tollbar_lease_new_shared(const char *name,
                                 size_t name_length,
                                 const tollbar_policy_spec *spec,
                                 const tollbar_lease_options *options,
                                 tollbar_lease **out);
int32_t tollbar_lease_init_in(void *memory,
                              size_t size,
                              const char *name,
                              size_t name_length,
                              const tollbar_policy_spec *spec,
                              const tollbar_lease_options *options,
                              tollbar_lease **out);
int32_t tollbar_lease_attach(void *memory, size_t size, tollbar_lease **out);
void tollbar_lease_close(tollbar_lease *lease);
int32_t tollbar_lease_check(const tollbar_lease *lease,
                            const void *key,
                            size_t length,
                            uint64_t cost,
                            tollbar_decision *out);
int32_t tollbar_lease_check_at(const tollbar_lease *lease,
                               const void *key,
                               size_t length,
                               uint64_t cost,
                               uint64_t now_ns,
                               tollbar_decision *out);
int32_t tollbar_lease_peek(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           tollbar_decision *out);
uint64_t tollbar_lease_now(const tollbar_lease *lease);
int32_t tollbar_lease_get_stats(const tollbar_lease *lease, tollbar_lease_stats *out);
typedef struct tollbar_lease_request {
    uint32_t struct_size;
    uint32_t progress;
    uint64_t cost;
    uint64_t until_ns;
} tollbar_lease_request;
int32_t tollbar_lease_wait(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           uint64_t timeout_ns,
                           tollbar_decision *out);
int32_t tollbar_lease_poll(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           tollbar_lease_request *request,
                           tollbar_decision *out);
typedef struct tollbar_lease_client tollbar_lease_client;
typedef struct tollbar_tls {
    uint32_t struct_size;
    uint32_t flags;
    void *context;
    void *(*start)(void *context, const char *host);
    int64_t (*cipher_in)(void *connection, const void *bytes, size_t length);
    int64_t (*cipher_out)(void *connection, void *bytes, size_t length);
    int64_t (*plain_in)(void *connection, const void *bytes, size_t length);
    int64_t (*plain_out)(void *connection, void *bytes, size_t length);
    int32_t (*wants)(void *connection);
    const char *(*fault)(void *connection);
    void (*end)(void *connection);
} tollbar_tls;
int32_t tollbar_lease_client_new(const tollbar_lease *lease,
                                 const char *url,
                                 size_t url_length,
                                 size_t *column,
                                 tollbar_lease_client **out);
int32_t tollbar_lease_client_new_tls(const tollbar_lease *lease,
                                     const char *url,
                                     size_t url_length,
                                     const tollbar_tls *tls,
                                     size_t *column,
                                     tollbar_lease_client **out);
int32_t tollbar_lease_client_add(tollbar_lease_client *client, const tollbar_lease *lease);
int32_t tollbar_lease_client_report(tollbar_lease_client *client,
                                    const tollbar_lease *lease,
                                    uint32_t timeout_ms);
int32_t tollbar_lease_client_remove(tollbar_lease_client *client,
                                    const tollbar_lease *lease,
                                    uint32_t timeout_ms);
int32_t tollbar_lease_client_on_change(tollbar_lease_client *client,
                                       void (*listener)(void *argument, uint32_t circuit),
                                       void *argument);
int32_t tollbar_lease_client_run(tollbar_lease_client *client);
int32_t tollbar_lease_client_stop(const tollbar_lease_client *client);
int32_t tollbar_lease_client_tick(tollbar_lease_client *client, uint32_t *wait_ms);
int32_t tollbar_lease_client_fd(tollbar_lease_client *client, uint32_t *events);
uint32_t tollbar_lease_client_circuit(const tollbar_lease_client *client);
const char *tollbar_lease_client_error(tollbar_lease_client *client);
const char *tollbar_lease_client_lease_error(tollbar_lease_client *client,
                                             const tollbar_lease *lease);
int32_t tollbar_lease_client_close(tollbar_lease_client *client, uint32_t timeout_ms);
typedef struct tollbar_lease_calls tollbar_lease_calls;
typedef struct tollbar_lease_part {
    const void *bytes;
    size_t length;
} tollbar_lease_part;
typedef struct tollbar_lease_call {
    uint32_t struct_size;
    uint32_t wait_ms;
    const tollbar_lease_part *parts;
    size_t count;
    size_t keys;
} tollbar_lease_call;
int32_t tollbar_lease_calls_new(const tollbar_lease *lease, tollbar_lease_calls **out);
int32_t tollbar_lease_calls_add(tollbar_lease_calls *calls, const tollbar_lease *lease);
const char *tollbar_lease_calls_script(void);
int32_t tollbar_lease_calls_turn(tollbar_lease_calls *calls,
                                 uint32_t flags,
                                 tollbar_lease_call *call);
int32_t tollbar_lease_calls_answered(tollbar_lease_calls *calls,
                                     const void *reply,
                                     size_t length);
int32_t tollbar_lease_calls_refused(tollbar_lease_calls *calls,
                                    const char *error,
                                    size_t length);
int32_t tollbar_lease_calls_lost(tollbar_lease_calls *calls, const char *why, size_t length);
int32_t tollbar_lease_calls_wait(tollbar_lease_calls *calls, uint32_t wait_ms);
const char *tollbar_lease_calls_error(tollbar_lease_calls *calls);
int32_t tollbar_lease_calls_close(tollbar_lease_calls *calls);
typedef struct tollbar_store_limit tollbar_store_limit;
typedef struct tollbar_store_question {
    uint32_t struct_size;
    uint32_t ask;
    uint64_t cost;
    const char *script;
    uint64_t args[7];
    uint32_t arg_count;
    uint32_t key_length;
    uint8_t key[592];
} tollbar_store_question;
int32_t tollbar_store_limit_new(const char *name,
                                size_t length,
                                const tollbar_policy_spec *spec,
                                tollbar_store_limit **out);
void tollbar_store_limit_free(tollbar_store_limit *limit);
int32_t tollbar_store_ask(const tollbar_store_limit *limit,
                          uint32_t ask,
                          const void *key,
                          size_t length,
                          uint64_t cost,
                          tollbar_store_question *question);
int32_t tollbar_store_answer(const tollbar_store_limit *limit,
                             const tollbar_store_question *question,
                             const int64_t *reply,
                             size_t count,
                             tollbar_decision *out,
                             uint64_t *taken);
]]

return {
}
