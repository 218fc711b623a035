-- Written by `cargo xtask cdef` from include/tollbar_redis.h, which says what all of this means; changes belong there.
require("ffi").cdef [[
enum {
    TOLLBAR_RESCUE_SHARE = 0,
    TOLLBAR_RESCUE_DENY = 1,
    TOLLBAR_RESCUE_ALLOW = 2,
    TOLLBAR_LEASE_INEXACT = 1,
    TOLLBAR_LEASE_OVERDRAFT = 2,
    TOLLBAR_CIRCUIT_UNKNOWN = 0,
    TOLLBAR_CIRCUIT_CLOSED = 1,
    TOLLBAR_CIRCUIT_OPEN = 2,
    TOLLBAR_EVENT_READ = 1,
    TOLLBAR_EVENT_WRITE = 2,
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
    uint32_t rescue;
    uint32_t flags;
} tollbar_lease_options;
typedef struct tollbar_lease_stats {
    uint32_t struct_size;
    uint32_t circuit;
    uint64_t granted;
    uint64_t asked;
    uint64_t overdrawn;
    uint64_t rescued;
    uint64_t uncounted;
    uint64_t denied;
    uint64_t crowded;
    uint64_t opened;
    uint64_t owed;
} tollbar_lease_stats;
int32_t tollbar_lease_bytes(const tollbar_policy_spec *spec,
                            const tollbar_lease_options *options,
                            uint64_t *bytes);
int32_t tollbar_lease_new(const char *name,
                          size_t name_length,
                          const tollbar_policy_spec *spec,
                          const tollbar_lease_options *options,
                          tollbar_lease **out);
int32_t tollbar_lease_shared(const char *name,
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
int32_t tollbar_lease_attach(void *memory,
                             size_t size,
                             tollbar_lease **out);
void tollbar_lease_free(tollbar_lease *lease);
int32_t tollbar_lease_check(const tollbar_lease *lease,
                            const void *key,
                            size_t length,
                            uint64_t cost,
                            tollbar_decision *out);
int32_t tollbar_lease_check_at(const tollbar_lease *lease,
                               const void *key,
                               size_t length,
                               uint64_t now_ns,
                               uint64_t cost,
                               tollbar_decision *out);
int32_t tollbar_lease_peek(const tollbar_lease *lease,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           tollbar_decision *out);
uint64_t tollbar_lease_now(const tollbar_lease *lease);
int32_t tollbar_lease_get_stats(const tollbar_lease *lease, tollbar_lease_stats *out);
typedef struct tollbar_client tollbar_client;
int32_t tollbar_client_new(const tollbar_lease *lease,
                           const char *url,
                           size_t url_length,
                           size_t *column,
                           tollbar_client **out);
int32_t tollbar_client_on_change(tollbar_client *client,
                                 void (*listener)(void *argument, uint32_t circuit),
                                 void *argument);
int32_t tollbar_client_run(tollbar_client *client);
int32_t tollbar_client_stop(const tollbar_client *client);
int32_t tollbar_client_tick(tollbar_client *client,
                            uint32_t *wait_ms);
int32_t tollbar_client_fd(tollbar_client *client,
                          uint32_t *events);
uint32_t tollbar_client_circuit(const tollbar_client *client);
const char *tollbar_client_error(tollbar_client *client);
int32_t tollbar_client_close(tollbar_client *client,
                             uint32_t timeout_ms);
]]

return {
}
