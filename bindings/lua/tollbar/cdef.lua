-- Written by `cargo xtask cdef` from include/tollbar.h, which says what all of this means; changes belong there.
require("ffi").cdef [[
enum {
    TOLLBAR_VERSION_MAJOR = 0,
    TOLLBAR_VERSION_MINOR = 1,
    TOLLBAR_VERSION_PATCH = 0,
    TOLLBAR_VERSION = ((TOLLBAR_VERSION_MAJOR << 16) | (TOLLBAR_VERSION_MINOR << 8) | TOLLBAR_VERSION_PATCH),
    TOLLBAR_POLICY_TEXT_MAX = 1024,
    TOLLBAR_ALGORITHM_GCRA = 0,
    TOLLBAR_ALGORITHM_INTERVAL = 1,
    TOLLBAR_ALGORITHM_FIXED_WINDOW = 2,
    TOLLBAR_ALGORITHM_WEIGHTED_WINDOW = 3,
    TOLLBAR_ALGORITHM_SLIDING_WINDOW = 4,
    TOLLBAR_ALGORITHM_SLIDING_LOG = 5,
    TOLLBAR_ALGORITHM_PACER = 6,
    TOLLBAR_ALGORITHM_WARM_UP = 7,
    TOLLBAR_ALGORITHM_QUOTA = 8,
    TOLLBAR_ALGORITHM_CURVE = 9,
    TOLLBAR_ALGORITHM_LEVEL_REFILL = 10,
    TOLLBAR_ALGORITHM_CALENDAR = 11,
    TOLLBAR_ALGORITHMS_LENDING = 192,
    TOLLBAR_ANCHOR_EPOCH = 0,
    TOLLBAR_ANCHOR_FIRST = 1,
    TOLLBAR_MODE_N = 0,
    TOLLBAR_MODE_STRICT = 1,
    TOLLBAR_MODE_INTERPOLATED = 2,
    TOLLBAR_UNIT_PERMITS = 0,
    TOLLBAR_UNIT_BYTES = 1,
    TOLLBAR_POLICY_BORROW = 1,
    TOLLBAR_POLICY_COUNT_REJECTED = 2,
    TOLLBAR_POLICY_HAS_INIT = 4,
    TOLLBAR_KEEP_COUNT = 0,
    TOLLBAR_KEEP_TIME = 1,
    TOLLBAR_KEEP_RESET = 2,
    TOLLBAR_CLASSES_MOST = 4,
    TOLLBAR_CLASS_NAME_SIZE = 16,
    TOLLBAR_CURVE_TIMES = 40001,
    TOLLBAR_CLOCK_TSC = 0,
    TOLLBAR_CLOCK_MONOTONIC = 1,
    TOLLBAR_CLOCK_COARSE = 2,
    TOLLBAR_CLOCK_WALL = 3,
    TOLLBAR_REASON_ADMITTED = 0,
    TOLLBAR_REASON_RATE = 1,
    TOLLBAR_REASON_BURST = 2,
    TOLLBAR_REASON_TABLE_FULL = 3,
    TOLLBAR_REASON_INHERITED_DEBT = 4,
    TOLLBAR_REASON_MISSING_KEY = 5,
    TOLLBAR_REASON_EXEMPT = 6,
    TOLLBAR_REASON_QUEUE_FULL = 7,
    TOLLBAR_REASON_FAULT = 8,
    TOLLBAR_REASON_PENDING = 9,
    TOLLBAR_REASON_STORE_DENIED = 10,
    TOLLBAR_REASON_STORE_DOWN = 11,
    TOLLBAR_REASON_BANNED = 12,
    TOLLBAR_REASON_IN_FLIGHT = 13,
    TOLLBAR_REASON_RESERVE = 14,
    TOLLBAR_CREDIT_OFF = 0,
    TOLLBAR_CREDIT_ON = 1,
    TOLLBAR_ON_FULL_EVICT_NEAREST = 0,
    TOLLBAR_ON_FULL_INHERIT = 1,
    TOLLBAR_ON_FULL_ALLOW = 2,
    TOLLBAR_ON_FULL_DENY = 3,
    TOLLBAR_MISSING_DENY = 0,
    TOLLBAR_MISSING_ALLOW = 1,
    TOLLBAR_MISSING_REPORT = 2,
    TOLLBAR_TABLE_HAS_SEED = 1,
    TOLLBAR_TABLE_SMALL_PAGES = 2,
    TOLLBAR_TABLE_TRUST_ANYONE = 4,
    TOLLBAR_IN_FLIGHT_TRUST_ANYONE = 1,
    TOLLBAR_LIMITS_MOST = 16,
    TOLLBAR_HIERARCHY_ROOT = 0,
    TOLLBAR_COLOR_GREEN = 0,
    TOLLBAR_COLOR_YELLOW = 1,
    TOLLBAR_COLOR_RED = 2,
    TOLLBAR_SCHEDULE_TEXT_MAX = 19296,
    TOLLBAR_ADAPTIVE_GRADIENT2 = 0,
    TOLLBAR_ADAPTIVE_AIMD = 1,
    TOLLBAR_OUTCOME_ANSWERED = 0,
    TOLLBAR_OUTCOME_DROPPED = 1,
    TOLLBAR_OUTCOME_IGNORED = 2,
    TOLLBAR_PACING_CUBIC = 0,
    TOLLBAR_PACING_AIMD = 1,
    TOLLBAR_NODES_MOST = 1024,
    TOLLBAR_HTTP_RETRY_AFTER = 1,
    TOLLBAR_HTTP_LEGACY = 2,
    TOLLBAR_HTTP_LEGACY_EPOCH = 4,
    TOLLBAR_HTTP_DRAFT_06 = 8,
    TOLLBAR_HTTP_DRAFT_07 = 16,
    TOLLBAR_HTTP_DRAFT_11 = 32,
    TOLLBAR_HTTP_LIMITS_MOST = 64,
    TOLLBAR_METRICS_PROMETHEUS = 0,
    TOLLBAR_METRICS_OPENMETRICS = 1,
    TOLLBAR_METRICS_MOST = 1024,
    TOLLBAR_METRICS_RATES_ONLY = 1,
    TOLLBAR_METRICS_WITHOUT_FIRST = 2,
    TOLLBAR_TIMES_EVERY = 1024,
    TOLLBAR_REFUSED_KEY = 48,
    TOLLBAR_REFUSED_MOST = 224,
    TOLLBAR_ALLOWED = 0,
    TOLLBAR_DENIED = 1,
    TOLLBAR_NEVER = 2,
    TOLLBAR_NO = 0,
    TOLLBAR_YES = 1,
    TOLLBAR_E_NULL = (-1),
    TOLLBAR_E_MISALIGNED = (-2),
    TOLLBAR_E_STRUCT_SIZE = (-3),
    TOLLBAR_E_RESERVED = (-4),
    TOLLBAR_E_OUT_OF_RANGE = (-5),
    TOLLBAR_E_LIMITS = (-6),
    TOLLBAR_E_CLOSED = (-7),
    TOLLBAR_E_SYNTAX = (-10),
    TOLLBAR_E_NUMBER_TOO_LARGE = (-11),
    TOLLBAR_E_ALGORITHM = (-12),
    TOLLBAR_E_DUPLICATE_OPTION = (-13),
    TOLLBAR_E_PERIOD_ZERO = (-20),
    TOLLBAR_E_BURST_ZERO = (-21),
    TOLLBAR_E_RATE_TOO_HIGH = (-22),
    TOLLBAR_E_BURST_TOO_LARGE = (-23),
    TOLLBAR_E_INIT_ABOVE_BURST = (-24),
    TOLLBAR_E_OPTION_MISMATCH = (-25),
    TOLLBAR_E_SEGMENTS = (-26),
    TOLLBAR_E_WARM_UP = (-27),
    TOLLBAR_E_LOG_TOO_LARGE = (-28),
    TOLLBAR_E_NOT_ONE_WORD = (-29),
    TOLLBAR_E_BAN = (-30),
    TOLLBAR_E_LIST = (-31),
    TOLLBAR_E_QUOTA = (-32),
    TOLLBAR_E_CLASSES = (-33),
    TOLLBAR_E_NO_SUCH_CLASS = (-34),
    TOLLBAR_E_KNOTS = (-35),
    TOLLBAR_E_CALENDAR = (-36),
    TOLLBAR_E_WALL_CLOCK = (-37),
    TOLLBAR_E_NO_MEMORY = (-40),
    TOLLBAR_E_BUFFER_TOO_SMALL = (-41),
    TOLLBAR_E_POLICY_CHANGES = (-42),
    TOLLBAR_E_CLASS_NUMBER = (-44),
    TOLLBAR_E_CLASS_RATE = (-45),
    TOLLBAR_E_GUARANTEE = (-46),
    TOLLBAR_E_CLASS_TREE = (-47),
    TOLLBAR_E_CAPACITY = (-50),
    TOLLBAR_E_POLICY_COUNT = (-51),
    TOLLBAR_E_NO_SUCH_POLICY = (-52),
    TOLLBAR_E_MIXED_POLICIES = (-53),
    TOLLBAR_E_POLICY_VERSIONS = (-54),
    TOLLBAR_E_EXEMPTIONS_FULL = (-55),
    TOLLBAR_E_MISSING_KEY = (-56),
    TOLLBAR_E_UNSUPPORTED = (-57),
    TOLLBAR_E_ADDRESS = (-58),
    TOLLBAR_E_RECEIPT = (-59),
    TOLLBAR_E_NOT_A_TABLE = (-60),
    TOLLBAR_E_TABLE_VERSION = (-61),
    TOLLBAR_E_TRUNCATED = (-62),
    TOLLBAR_E_CORRUPT = (-63),
    TOLLBAR_E_OTHER_CAPACITY = (-64),
    TOLLBAR_E_OTHER_POLICIES = (-65),
    TOLLBAR_E_OTHER_OPTIONS = (-66),
    TOLLBAR_E_BOOT_ID = (-67),
    TOLLBAR_E_SLOTS_INVALID = (-68),
    TOLLBAR_E_OVERRIDES_FULL = (-69),
    TOLLBAR_E_OWNER = (-78),
    TOLLBAR_E_UNSEALED = (-79),
    TOLLBAR_E_OPEN = (-70),
    TOLLBAR_E_READ = (-71),
    TOLLBAR_E_NO_SPACE = (-72),
    TOLLBAR_E_MAP = (-73),
    TOLLBAR_E_LINK = (-74),
    TOLLBAR_E_LOCK = (-75),
    TOLLBAR_E_RANDOM = (-76),
    TOLLBAR_E_SYNC = (-77),
    TOLLBAR_E_LEASE_ALGORITHM = (-80),
    TOLLBAR_E_LEASE_NODES = (-81),
    TOLLBAR_E_LEASE_LIFE = (-82),
    TOLLBAR_E_LEASE_BURST = (-83),
    TOLLBAR_E_LEASE_TOO_LARGE = (-84),
    TOLLBAR_E_LEASE_NAME = (-85),
    TOLLBAR_E_NOT_A_LEASE = (-86),
    TOLLBAR_E_URL = (-87),
    TOLLBAR_E_RUNNING = (-88),
    TOLLBAR_E_UNREPORTED = (-89),
    TOLLBAR_E_CLIENT_LEASES = (-91),
    TOLLBAR_E_STORE_ALGORITHM = (-92),
    TOLLBAR_E_STORE_NUMBERS = (-93),
    TOLLBAR_E_STORE_VALUE = (-94),
    TOLLBAR_E_STORE_REPLY = (-95),
    TOLLBAR_E_STORE_KEY = (-96),
    TOLLBAR_E_TICKET = (-100),
    TOLLBAR_E_IN_FLIGHT_FULL = (-101),
    TOLLBAR_E_OWNERS_FULL = (-102),
    TOLLBAR_E_PID_NAMESPACE = (-103),
    TOLLBAR_E_TIME_NAMESPACE = (-104),
    TOLLBAR_E_OTHER_BOOT = (-105),
    TOLLBAR_E_SLOT_ROOM = (-106),
    TOLLBAR_E_INTERNAL = (-90),
};
typedef struct tollbar_policy tollbar_policy;
typedef struct tollbar_class {
    char name[16];
    uint64_t reserve;
} tollbar_class;
typedef struct tollbar_policy_spec {
    uint32_t struct_size;
    uint32_t algorithm;
    uint64_t limit;
    uint64_t period_ns;
    uint64_t burst;
    uint64_t init;
    uint64_t slack;
    uint64_t warm_up_ns;
    uint32_t cold;
    uint32_t segments;
    uint32_t mode;
    uint32_t anchor;
    uint32_t unit;
    uint32_t flags;
    uint64_t ban_ns;
    uint32_t ban_after;
    uint32_t from;
    uint64_t second_limit;
    uint64_t second_period_ns;
    uint64_t second_burst;
    tollbar_class classes[4];
    uint16_t knots[128];
    uint64_t zone[5];
} tollbar_policy_spec;
typedef struct tollbar_policy_error {
    uint32_t struct_size;
    int32_t code;
    uint64_t column;
    const char *expected;
} tollbar_policy_error;
typedef struct tollbar_curve_fit {
    uint32_t struct_size;
    int32_t code;
    double error;
    double time;
    double value;
    const char *expected;
} tollbar_curve_fit;
int32_t tollbar_policy_spec_parse(const char *text,
                                  size_t len,
                                  tollbar_policy_spec *out,
                                  tollbar_policy_error *error);
int32_t tollbar_policy_spec_print(const tollbar_policy_spec *spec,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *length);
int32_t tollbar_policy_spec_validate(const tollbar_policy_spec *spec);
int32_t tollbar_policy_spec_last_time(const tollbar_policy_spec *spec, uint64_t *last_ns);
int32_t tollbar_policy_spec_refill(const tollbar_policy_spec *spec, uint64_t *refill_ns);
int32_t tollbar_policy_spec_worst_case(const tollbar_policy_spec *spec,
                                       uint64_t window_ns,
                                       uint64_t *most);
int32_t tollbar_policy_new(const tollbar_policy_spec *spec, tollbar_policy **out);
int32_t tollbar_policy_from_text(const char *text,
                                 tollbar_policy **out,
                                 tollbar_policy_error *error);
void tollbar_policy_free(tollbar_policy *policy);
size_t tollbar_policy_size(void);
size_t tollbar_policy_align(void);
int32_t tollbar_policy_init_in(void *memory,
                               size_t size,
                               const tollbar_policy_spec *spec,
                               tollbar_policy **out);
int32_t tollbar_policy_spec_curve(uint64_t limit,
                                  uint64_t period_ns,
                                  double (*share)(double time, void *context),
                                  void *context,
                                  tollbar_policy_spec *out,
                                  tollbar_curve_fit *fit);
int32_t tollbar_policy_spec_samples(uint64_t limit,
                                    uint64_t period_ns,
                                    const double *shares,
                                    size_t count,
                                    tollbar_policy_spec *out,
                                    tollbar_curve_fit *fit);
int32_t tollbar_clock_now(uint32_t clock, uint64_t *now_ns);
int32_t tollbar_clock_is_counter(void);
typedef struct tollbar_decision {
    uint32_t struct_size;
    uint32_t verdict;
    uint64_t remaining;
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;
    uint32_t reason;
    uint32_t bound;
} tollbar_decision;
const char *tollbar_strreason(uint32_t reason);
typedef struct tollbar_limiter tollbar_limiter;
typedef struct tollbar_limiter_options {
    uint32_t struct_size;
    uint32_t clock;
    uint32_t waiters;
    uint32_t credit;
} tollbar_limiter_options;
int32_t tollbar_limiter_new(const tollbar_policy_spec *spec,
                            const tollbar_limiter_options *options,
                            tollbar_limiter **out);
int32_t tollbar_limiter_from_text(const char *text,
                                  tollbar_limiter **out,
                                  tollbar_policy_error *error);
void tollbar_limiter_free(tollbar_limiter *limiter);
size_t tollbar_limiter_size(void);
size_t tollbar_limiter_align(void);
int32_t tollbar_limiter_init_in(void *memory,
                                size_t size,
                                const tollbar_policy_spec *spec,
                                const tollbar_limiter_options *options,
                                tollbar_limiter **out);
void tollbar_limiter_close(tollbar_limiter *limiter);
int32_t tollbar_limiter_now(const tollbar_limiter *limiter, uint64_t *now_ns);
typedef struct tollbar_limiter_state {
    uint32_t struct_size;
    uint32_t waiting;
    uint64_t now_ns;
    uint64_t remaining;
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;
    uint64_t backward_steps;
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
} tollbar_limiter_state;
int32_t tollbar_limiter_check(const tollbar_limiter *limiter, uint64_t cost, tollbar_decision *out);
int32_t tollbar_limiter_check_at(const tollbar_limiter *limiter,
                                 uint64_t cost,
                                 uint64_t now_ns,
                                 tollbar_decision *out);
int32_t tollbar_limiter_peek(const tollbar_limiter *limiter, uint64_t cost, tollbar_decision *out);
int32_t tollbar_limiter_peek_at(const tollbar_limiter *limiter,
                                uint64_t cost,
                                uint64_t now_ns,
                                tollbar_decision *out);
int32_t tollbar_limiter_check_many(const tollbar_limiter *limiter,
                                   const uint64_t *costs,
                                   size_t count,
                                   int32_t *results);
int32_t tollbar_limiter_check_many_at(const tollbar_limiter *limiter,
                                      const uint64_t *costs,
                                      size_t count,
                                      uint64_t now_ns,
                                      int32_t *results);
int32_t tollbar_limiter_take_up_to(const tollbar_limiter *limiter, uint64_t most, uint64_t *taken);
int32_t tollbar_limiter_take_up_to_at(const tollbar_limiter *limiter,
                                      uint64_t most,
                                      uint64_t now_ns,
                                      uint64_t *taken);
int32_t tollbar_limiter_reset(const tollbar_limiter *limiter);
int32_t tollbar_limiter_get_state(const tollbar_limiter *limiter,
                                  tollbar_limiter_state *out);
int32_t tollbar_limiter_set_policy(const tollbar_limiter *limiter,
                                   const tollbar_policy_spec *spec,
                                   uint32_t keep);
int32_t tollbar_limiter_set_policy_at(const tollbar_limiter *limiter,
                                      const tollbar_policy_spec *spec,
                                      uint32_t keep,
                                      uint64_t now_ns);
int32_t tollbar_limiter_get_policy(const tollbar_limiter *limiter, tollbar_policy_spec *out);
typedef struct tollbar_table tollbar_table;
typedef struct tollbar_table_options {
    uint32_t struct_size;
    uint32_t on_full;
    uint64_t capacity;
    uint64_t seed;
    uint32_t missing_key;
    uint32_t clock;
    uint32_t mode;
    uint32_t flags;
    uint32_t waiters;
    uint32_t hot_keys;
    uint32_t overrides;
    uint32_t room;
} tollbar_table_options;
int32_t tollbar_table_bytes(const tollbar_policy_spec *const *policies,
                            size_t count,
                            const tollbar_table_options *options,
                            uint64_t *bytes);
int32_t tollbar_table_new(const tollbar_policy_spec *const *policies,
                          size_t count,
                          const tollbar_table_options *options,
                          tollbar_table **out);
int32_t tollbar_table_new_shared(const tollbar_policy_spec *const *policies,
                                 size_t count,
                                 const tollbar_table_options *options,
                                 tollbar_table **out);
int32_t tollbar_table_open(const char *path,
                           const tollbar_policy_spec *const *policies,
                           size_t count,
                           const tollbar_table_options *options,
                           tollbar_table **out);
int32_t tollbar_table_new_sealed(const tollbar_policy_spec *const *policies,
                                 size_t count,
                                 const tollbar_table_options *options,
                                 int *fd,
                                 tollbar_table **out);
int32_t tollbar_table_open_fd(int fd, tollbar_table **out);
int32_t tollbar_table_init_in(void *memory,
                              size_t size,
                              const tollbar_policy_spec *const *policies,
                              size_t count,
                              const tollbar_table_options *options,
                              tollbar_table **out);
int32_t tollbar_table_attach(void *memory, size_t size, tollbar_table **out);
int32_t tollbar_table_set_hot_keys(tollbar_table *table, uint32_t keys);
void tollbar_table_close(tollbar_table *table);
int32_t tollbar_table_check(const tollbar_table *table,
                            uint32_t policy,
                            const void *key,
                            size_t length,
                            uint64_t cost,
                            tollbar_decision *out);
int32_t tollbar_table_check_at(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length,
                               uint64_t cost,
                               uint64_t now_ns,
                               tollbar_decision *out);
int32_t tollbar_table_peek(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           tollbar_decision *out);
int32_t tollbar_table_peek_at(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t cost,
                              uint64_t now_ns,
                              tollbar_decision *out);
typedef struct tollbar_request {
    const void *key;
    size_t length;
    uint64_t cost;
    uint32_t policy;
    uint32_t class_number;
} tollbar_request;
int32_t tollbar_table_check_many(const tollbar_table *table,
                                 const tollbar_request *requests,
                                 size_t count,
                                 int32_t *results);
int32_t tollbar_table_check_many_at(const tollbar_table *table,
                                    const tollbar_request *requests,
                                    size_t count,
                                    uint64_t now_ns,
                                    int32_t *results);
int32_t tollbar_table_take_up_to(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t most,
                                 uint64_t *taken);
int32_t tollbar_table_take_up_to_at(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t most,
                                    uint64_t now_ns,
                                    uint64_t *taken);
int32_t tollbar_table_reset(const tollbar_table *table,
                            uint32_t policy,
                            const void *key,
                            size_t length);
int32_t tollbar_table_reset_at(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length,
                               uint64_t now_ns);
int32_t tollbar_table_exempt(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length);
int32_t tollbar_table_unexempt(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length);
int32_t tollbar_table_hash(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t *hash);
int32_t tollbar_table_now(const tollbar_table *table, uint64_t *now_ns);
typedef struct tollbar_in_flight tollbar_in_flight;
typedef struct tollbar_in_flight_options {
    uint32_t struct_size;
    uint32_t processes;
    uint64_t capacity;
    uint32_t mode;
    uint32_t flags;
} tollbar_in_flight_options;
typedef uint64_t tollbar_ticket;
typedef struct tollbar_send_window {
    uint64_t word;
} tollbar_send_window;
typedef struct tollbar_send_window_state {
    uint32_t struct_size;
    uint32_t limit;
    uint32_t sent;
    uint32_t acknowledged;
    uint32_t in_flight;
    uint32_t usable;
} tollbar_send_window_state;
int32_t tollbar_in_flight_bytes(const tollbar_in_flight_options *options, uint64_t *bytes);
int32_t tollbar_in_flight_new(const tollbar_in_flight_options *options,
                              tollbar_in_flight **out);
int32_t tollbar_in_flight_new_shared(const tollbar_in_flight_options *options,
                                     tollbar_in_flight **out);
int32_t tollbar_in_flight_open(const char *path,
                               const tollbar_in_flight_options *options,
                               tollbar_in_flight **out);
int32_t tollbar_in_flight_init_in(void *memory,
                                  size_t size,
                                  const tollbar_in_flight_options *options,
                                  tollbar_in_flight **out);
int32_t tollbar_in_flight_attach(void *memory, size_t size, tollbar_in_flight **out);
int32_t tollbar_in_flight_join(const tollbar_in_flight *table);
int32_t tollbar_in_flight_acquire(const tollbar_in_flight *table,
                                  const void *key,
                                  size_t length,
                                  uint32_t limit,
                                  tollbar_ticket *ticket);
int32_t tollbar_in_flight_release(const tollbar_in_flight *table, tollbar_ticket ticket);
int32_t tollbar_in_flight_count(const tollbar_in_flight *table,
                                const void *key,
                                size_t length,
                                uint64_t *count);
void tollbar_in_flight_close(tollbar_in_flight *table);
int32_t tollbar_send_window_acquire(tollbar_send_window *window,
                                    uint32_t permits,
                                    uint32_t *last);
int32_t tollbar_send_window_release(tollbar_send_window *window, uint32_t permits);
int32_t tollbar_send_window_acknowledge(tollbar_send_window *window, uint32_t last);
int32_t tollbar_send_window_resize(tollbar_send_window *window, uint32_t limit);
int32_t tollbar_send_window_read(const tollbar_send_window *window,
                                 tollbar_send_window_state *out);
typedef struct tollbar_limit {
    const tollbar_limiter *limiter;
    const tollbar_table *table;
    const void *key;
    size_t length;
    uint64_t cost;
    uint32_t policy;
    uint32_t most;
    const tollbar_in_flight *in_flight;
    tollbar_ticket *ticket;
    const char *class_name;
} tollbar_limit;
typedef struct tollbar_taken {
    uint32_t struct_size;
    uint32_t verdict;
    uint64_t remaining;
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;
    uint32_t reason;
    uint32_t bound;
} tollbar_taken;
int32_t tollbar_take_many(const tollbar_limit *limits,
                          size_t count,
                          tollbar_decision *decisions,
                          tollbar_taken *out);
int32_t tollbar_take_many_at(const tollbar_limit *limits,
                             size_t count,
                             uint64_t now_ns,
                             tollbar_decision *decisions,
                             tollbar_taken *out);
typedef struct tollbar_reservation {
    uint64_t departs_ns;
    uint64_t wait_ns;
    uint64_t cost;
} tollbar_reservation;
int32_t tollbar_limiter_reserve(const tollbar_limiter *limiter,
                                uint64_t cost,
                                uint64_t max_wait_ns,
                                tollbar_reservation *out);
int32_t tollbar_limiter_reserve_at(const tollbar_limiter *limiter,
                                   uint64_t cost,
                                   uint64_t max_wait_ns,
                                   uint64_t now_ns,
                                   tollbar_reservation *out);
int32_t tollbar_limiter_wait(const tollbar_limiter *limiter,
                             uint64_t cost,
                             uint64_t max_wait_ns,
                             tollbar_decision *out);
int32_t tollbar_table_reserve(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t cost,
                              uint64_t max_wait_ns,
                              tollbar_reservation *out);
int32_t tollbar_table_reserve_at(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t cost,
                                 uint64_t max_wait_ns,
                                 uint64_t now_ns,
                                 tollbar_reservation *out);
int32_t tollbar_table_wait(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           uint64_t max_wait_ns,
                           tollbar_decision *out);
int32_t tollbar_limiter_cancel(const tollbar_limiter *limiter,
                               const tollbar_reservation *reservation,
                               uint64_t *back);
int32_t tollbar_limiter_cancel_at(const tollbar_limiter *limiter,
                                  const tollbar_reservation *reservation,
                                  uint64_t now_ns,
                                  uint64_t *back);
int32_t tollbar_table_cancel(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length,
                             const tollbar_reservation *reservation,
                             uint64_t *back);
int32_t tollbar_table_cancel_at(const tollbar_table *table,
                                uint32_t policy,
                                const void *key,
                                size_t length,
                                const tollbar_reservation *reservation,
                                uint64_t now_ns,
                                uint64_t *back);
typedef struct tollbar_receipt {
    uint64_t words[4];
} tollbar_receipt;
typedef struct tollbar_settled {
    uint32_t struct_size;
    uint32_t first;
    uint64_t given_back;
    uint64_t rest;
} tollbar_settled;
int32_t tollbar_table_take(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t estimate,
                           tollbar_receipt *receipt,
                           tollbar_decision *out);
int32_t tollbar_table_take_at(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t estimate,
                              uint64_t now_ns,
                              tollbar_receipt *receipt,
                              tollbar_decision *out);
int32_t tollbar_table_settle(const tollbar_table *table,
                             const tollbar_receipt *receipt,
                             uint64_t cost,
                             tollbar_settled *out);
int32_t tollbar_table_settle_at(const tollbar_table *table,
                                const tollbar_receipt *receipt,
                                uint64_t cost,
                                uint64_t now_ns,
                                tollbar_settled *out);
int32_t tollbar_table_settle_in_full(const tollbar_table *table,
                                     const tollbar_receipt *receipt,
                                     uint64_t cost,
                                     tollbar_settled *out);
int32_t tollbar_table_charge(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length,
                             uint64_t cost,
                             uint64_t *rest);
int32_t tollbar_table_charge_at(const tollbar_table *table,
                                uint32_t policy,
                                const void *key,
                                size_t length,
                                uint64_t cost,
                                uint64_t now_ns,
                                uint64_t *rest);
int32_t tollbar_limiter_charge(const tollbar_limiter *limiter, uint64_t cost, uint64_t *rest);
int32_t tollbar_limiter_charge_at(const tollbar_limiter *limiter,
                                  uint64_t cost,
                                  uint64_t now_ns,
                                  uint64_t *rest);
int32_t tollbar_limiter_check_leaving(const tollbar_limiter *limiter,
                                      uint64_t cost,
                                      uint64_t reserve,
                                      tollbar_decision *out);
int32_t tollbar_limiter_check_leaving_at(const tollbar_limiter *limiter,
                                         uint64_t cost,
                                         uint64_t reserve,
                                         uint64_t now_ns,
                                         tollbar_decision *out);
int32_t tollbar_table_check_leaving(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t cost,
                                    uint64_t reserve,
                                    tollbar_decision *out);
int32_t tollbar_table_check_leaving_at(const tollbar_table *table,
                                       uint32_t policy,
                                       const void *key,
                                       size_t length,
                                       uint64_t cost,
                                       uint64_t reserve,
                                       uint64_t now_ns,
                                       tollbar_decision *out);
int32_t tollbar_limiter_check_class(const tollbar_limiter *limiter,
                                    uint64_t cost,
                                    const char *class_name,
                                    tollbar_decision *out);
int32_t tollbar_limiter_check_class_at(const tollbar_limiter *limiter,
                                       uint64_t cost,
                                       const char *class_name,
                                       uint64_t now_ns,
                                       tollbar_decision *out);
int32_t tollbar_table_check_class(const tollbar_table *table,
                                  uint32_t policy,
                                  const void *key,
                                  size_t length,
                                  uint64_t cost,
                                  const char *class_name,
                                  tollbar_decision *out);
int32_t tollbar_table_check_class_at(const tollbar_table *table,
                                     uint32_t policy,
                                     const void *key,
                                     size_t length,
                                     uint64_t cost,
                                     const char *class_name,
                                     uint64_t now_ns,
                                     tollbar_decision *out);
typedef struct tollbar_hierarchy tollbar_hierarchy;
typedef struct tollbar_share {
    uint32_t struct_size;
    uint32_t verdict;
    uint64_t remaining;
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;
    uint64_t interval_ns;
    uint32_t reason;
    uint32_t bound;
} tollbar_share;
int32_t tollbar_hierarchy_new(const char *rate,
                              uint64_t burst_ns,
                              uint32_t classes,
                              uint32_t policy,
                              tollbar_hierarchy **out);
void tollbar_hierarchy_free(tollbar_hierarchy *hierarchy);
int32_t tollbar_hierarchy_add(tollbar_hierarchy *hierarchy,
                              uint32_t parent,
                              const char *name,
                              const char *guaranteed,
                              const char *ceiling,
                              uint32_t keys,
                              uint32_t *out);
int32_t tollbar_hierarchy_take(const tollbar_hierarchy *hierarchy,
                               const tollbar_table *table,
                               uint32_t leaf,
                               const void *key,
                               size_t key_length,
                               uint64_t cost,
                               tollbar_share *out);
int32_t tollbar_hierarchy_take_at(const tollbar_hierarchy *hierarchy,
                                  const tollbar_table *table,
                                  uint32_t leaf,
                                  const void *key,
                                  size_t key_length,
                                  uint64_t cost,
                                  uint64_t now_ns,
                                  tollbar_share *out);
typedef struct tollbar_meter {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t committed_bytes;
    uint64_t period_ns;
    uint64_t committed_burst;
    uint64_t peak_bytes;
    uint64_t second_burst;
} tollbar_meter;
typedef struct tollbar_meter_state {
    uint64_t words[3];
} tollbar_meter_state;
int32_t tollbar_meter_validate(const tollbar_meter *meter);
int32_t tollbar_meter_color(const tollbar_meter *meter,
                            tollbar_meter_state *state,
                            uint64_t bytes,
                            uint32_t before);
int32_t tollbar_meter_color_at(const tollbar_meter *meter,
                               tollbar_meter_state *state,
                               uint64_t bytes,
                               uint32_t before,
                               uint64_t now_ns);
typedef struct tollbar_queue tollbar_queue;
typedef struct tollbar_queue_options {
    uint32_t struct_size;
    uint32_t clock;
    uint32_t waiters;
    uint32_t spare;
} tollbar_queue_options;
typedef struct tollbar_queue_ticket {
    uint64_t number;
    uint64_t ahead;
    uint64_t spare;
} tollbar_queue_ticket;
typedef void (*tollbar_queue_work)(void *context, void *item);
int32_t tollbar_queue_new(const tollbar_policy_spec *spec,
                          uint64_t capacity,
                          const tollbar_queue_options *options,
                          tollbar_queue **out);
int32_t tollbar_queue_from_text(const char *text,
                                uint64_t capacity,
                                tollbar_queue **out,
                                tollbar_policy_error *error);
void tollbar_queue_free(tollbar_queue *queue);
int32_t tollbar_queue_offer(const tollbar_queue *queue,
                            void *item,
                            tollbar_queue_ticket *ticket);
int32_t tollbar_queue_offer_at(const tollbar_queue *queue,
                               void *item,
                               uint64_t now_ns,
                               tollbar_queue_ticket *ticket);
int32_t tollbar_queue_offer_within(const tollbar_queue *queue,
                                   void *item,
                                   uint64_t max_wait_ns,
                                   tollbar_queue_ticket *ticket);
int32_t tollbar_queue_take(const tollbar_queue *queue, void **item);
int32_t tollbar_queue_take_at(const tollbar_queue *queue, uint64_t now_ns, void **item);
int32_t tollbar_queue_take_within(const tollbar_queue *queue,
                                  uint64_t max_wait_ns,
                                  void **item);
int32_t tollbar_queue_next_departure(const tollbar_queue *queue, uint64_t *at_ns);
int32_t tollbar_queue_next_departure_at(const tollbar_queue *queue,
                                        uint64_t now_ns,
                                        uint64_t *at_ns);
int32_t tollbar_queue_cancel(const tollbar_queue *queue,
                             const tollbar_queue_ticket *ticket,
                             void **item);
int32_t tollbar_queue_drain(const tollbar_queue *queue, void **item);
int32_t tollbar_queue_close(const tollbar_queue *queue);
int32_t tollbar_queue_length(const tollbar_queue *queue, uint64_t *items);
int32_t tollbar_queue_now(const tollbar_queue *queue, uint64_t *now_ns);
int32_t tollbar_queue_run(const tollbar_queue *queue,
                          tollbar_queue_work work,
                          void *context);
int32_t tollbar_queue_stop(const tollbar_queue *queue);
int32_t tollbar_schedule_at(const char *text,
                            size_t len,
                            uint64_t unix_ns,
                            tollbar_policy_spec *policy,
                            uint64_t *until_ns,
                            tollbar_policy_error *error);
int32_t tollbar_schedule_print(const char *text,
                               size_t len,
                               char *buffer,
                               size_t capacity,
                               size_t *length,
                               tollbar_policy_error *error);
typedef struct tollbar_adaptive {
    uint64_t words[16];
} tollbar_adaptive;
typedef struct tollbar_adaptive_options {
    uint32_t struct_size;
    uint32_t algorithm;
    uint32_t initial;
    uint32_t least;
    uint32_t most;
    uint32_t reserved;
    uint64_t timeout_ns;
    uint64_t window_ns;
} tollbar_adaptive_options;
typedef struct tollbar_adaptive_state {
    uint32_t struct_size;
    uint32_t limit;
    uint64_t in_flight;
    uint64_t latency_ns;
} tollbar_adaptive_state;
int32_t tollbar_adaptive_init(tollbar_adaptive *limit,
                              const tollbar_adaptive_options *options);
int32_t tollbar_adaptive_acquire(tollbar_adaptive *limit, tollbar_ticket *ticket);
int32_t tollbar_adaptive_release(tollbar_adaptive *limit,
                                 tollbar_ticket ticket,
                                 uint32_t outcome,
                                 uint64_t latency_ns);
int32_t tollbar_adaptive_release_at(tollbar_adaptive *limit,
                                    tollbar_ticket ticket,
                                    uint32_t outcome,
                                    uint64_t latency_ns,
                                    uint64_t now_ns);
int32_t tollbar_adaptive_acquire_key(tollbar_adaptive *limit,
                                     const tollbar_in_flight *table,
                                     const void *key,
                                     size_t length,
                                     tollbar_ticket *ticket);
int32_t tollbar_adaptive_release_key(tollbar_adaptive *limit,
                                     const tollbar_in_flight *table,
                                     const void *key,
                                     size_t length,
                                     tollbar_ticket ticket,
                                     uint32_t outcome,
                                     uint64_t latency_ns);
uint32_t tollbar_adaptive_limit(const tollbar_adaptive *limit);
int32_t tollbar_adaptive_read(const tollbar_adaptive *limit,
                              tollbar_adaptive_state *out);
typedef struct tollbar_pacing tollbar_pacing;
typedef struct tollbar_pacing_options {
    uint32_t struct_size;
    uint32_t algorithm;
    uint64_t least;
    uint64_t most;
    uint64_t increase;
    uint64_t pause_most_ns;
    uint32_t burst;
    uint32_t reserved;
} tollbar_pacing_options;
typedef struct tollbar_pacing_ticket {
    uint64_t host;
    uint64_t turn;
} tollbar_pacing_ticket;
typedef struct tollbar_pacing_state {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t rate;
    uint64_t measured;
    uint64_t waiting;
    uint64_t paused_ns;
} tollbar_pacing_state;
int32_t tollbar_pacing_new(const tollbar_pacing_options *options,
                           size_t hosts,
                           tollbar_pacing **out);
void tollbar_pacing_free(tollbar_pacing *pacing);
int32_t tollbar_pacing_acquire_at(tollbar_pacing *pacing,
                                  const char *host,
                                  size_t length,
                                  uint64_t now_ns,
                                  tollbar_pacing_ticket *ticket);
int32_t tollbar_pacing_wait_at(tollbar_pacing *pacing,
                               const tollbar_pacing_ticket *ticket,
                               uint64_t now_ns,
                               uint64_t *wait_ns);
int32_t tollbar_pacing_respond_at(tollbar_pacing *pacing,
                                  const tollbar_pacing_ticket *ticket,
                                  uint32_t status,
                                  const char *header,
                                  size_t length,
                                  uint64_t utc_ns,
                                  uint64_t now_ns);
int32_t tollbar_pacing_leave_at(tollbar_pacing *pacing,
                                const tollbar_pacing_ticket *ticket,
                                uint64_t now_ns);
int32_t tollbar_pacing_read_at(tollbar_pacing *pacing,
                               const char *host,
                               size_t length,
                               uint64_t now_ns,
                               tollbar_pacing_state *out);
typedef struct tollbar_table_override {
    uint32_t struct_size;
    uint32_t policy;
    uint64_t hash;
    uint64_t next;
} tollbar_table_override;
int32_t tollbar_table_set_override(const tollbar_table *table,
                                   uint32_t policy,
                                   const void *key,
                                   size_t length,
                                   const tollbar_policy_spec *spec,
                                   uint32_t keep);
int32_t tollbar_table_clear_override(const tollbar_table *table,
                                     uint32_t policy,
                                     const void *key,
                                     size_t length);
int32_t tollbar_table_get_override(const tollbar_table *table,
                                   uint32_t policy,
                                   const void *key,
                                   size_t length,
                                   tollbar_policy_spec *out);
int32_t tollbar_table_next_override(const tollbar_table *table,
                                    uint64_t from,
                                    tollbar_table_override *out,
                                    tollbar_policy_spec *spec);
typedef struct tollbar_prefix {
    uint32_t length;
    uint8_t bytes[20];
} tollbar_prefix;
int32_t tollbar_prefix_from_address(const void *address,
                                    size_t length,
                                    uint32_t ipv4_bits,
                                    uint32_t ipv6_bits,
                                    tollbar_prefix *out);
int32_t tollbar_prefix_parse(const char *text,
                             size_t length,
                             uint32_t ipv4_bits,
                             uint32_t ipv6_bits,
                             tollbar_prefix *out);
int32_t tollbar_network_parse(const char *text, size_t length, tollbar_prefix *out);
int32_t tollbar_prefix_of_client(const char *peer,
                                 size_t peer_length,
                                 const char *forwarded,
                                 size_t forwarded_length,
                                 const tollbar_prefix *proxies,
                                 size_t count,
                                 uint32_t ipv4_bits,
                                 uint32_t ipv6_bits,
                                 tollbar_prefix *out);
typedef struct tollbar_node {
    const void *name;
    size_t length;
    uint32_t weight;
    uint32_t reserved;
} tollbar_node;
int32_t tollbar_route(const tollbar_node *nodes,
                      size_t count,
                      const void *key,
                      size_t length,
                      uint64_t seed,
                      size_t *node);
typedef struct tollbar_http_limit {
    const char *name;
    size_t name_length;
    const tollbar_policy_spec *policy;
    const tollbar_decision *decision;
    uint64_t more_after_ns;
    const void *partition;
    size_t partition_length;
} tollbar_http_limit;
typedef struct tollbar_http_seen {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t limit;
    uint64_t window_ns;
    uint64_t remaining;
    uint64_t more_after_ns;
    uint64_t retry_after_ns;
} tollbar_http_seen;
int32_t tollbar_http_fields(const tollbar_http_limit *limits,
                            size_t count,
                            uint32_t fields,
                            uint64_t utc_ns,
                            char *buffer,
                            size_t capacity,
                            size_t *length);
int32_t tollbar_http_problem(const tollbar_http_limit *limits,
                             size_t count,
                             uint32_t status,
                             char *buffer,
                             size_t capacity,
                             size_t *length);
int32_t tollbar_http_read(const char *text,
                          size_t length,
                          uint64_t utc_ns,
                          tollbar_http_seen *out);
int32_t tollbar_table_more_after(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t cost,
                                 const tollbar_decision *decision,
                                 uint64_t *more_ns);
int32_t tollbar_table_more_after_at(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t cost,
                                    uint64_t now_ns,
                                    const tollbar_decision *decision,
                                    uint64_t *more_ns);
int32_t tollbar_limiter_more_after(const tollbar_limiter *limiter,
                                   uint64_t cost,
                                   const tollbar_decision *decision,
                                   uint64_t *more_ns);
int32_t tollbar_limiter_more_after_at(const tollbar_limiter *limiter,
                                      uint64_t cost,
                                      uint64_t now_ns,
                                      const tollbar_decision *decision,
                                      uint64_t *more_ns);
typedef struct tollbar_metrics_source {
    const char *name;
    size_t name_length;
    const tollbar_limiter *limiter;
    const tollbar_table *table;
    uint64_t flags;
} tollbar_metrics_source;
typedef struct tollbar_times {
    uint64_t calls;
    uint64_t sum_ns;
    uint64_t counts[18];
} tollbar_times;
typedef struct tollbar_times_source {
    const char *name;
    size_t name_length;
    const tollbar_times *times;
} tollbar_times_source;
int32_t tollbar_metrics(const tollbar_metrics_source *sources,
                        size_t count,
                        uint32_t format,
                        char *buffer,
                        size_t capacity,
                        size_t *length);
uint64_t tollbar_times_begin(tollbar_times *times);
void tollbar_times_end(tollbar_times *times, uint64_t begin_ns);
int32_t tollbar_times_metrics(const tollbar_times_source *sources,
                              size_t count,
                              char *buffer,
                              size_t capacity,
                              size_t *length);
typedef struct tollbar_table_refused {
    uint32_t struct_size;
    uint32_t policy;
    uint64_t count;
    uint32_t length;
    uint32_t is_cut;
    uint8_t key[TOLLBAR_REFUSED_KEY];
} tollbar_table_refused;
int32_t tollbar_table_record_refusals(const tollbar_table *table, uint32_t on);
int32_t tollbar_table_records_refusals(const tollbar_table *table);
int32_t tollbar_table_top_refused(const tollbar_table *table,
                                  uint64_t now,
                                  tollbar_table_refused *refused,
                                  size_t most,
                                  size_t *count);
typedef struct tollbar_cell {
    uint64_t word;
} tollbar_cell;
int32_t tollbar_cell_check(tollbar_cell *cell,
                           const tollbar_policy *policy,
                           uint64_t cost,
                           tollbar_decision *out);
int32_t tollbar_cell_check_at(tollbar_cell *cell,
                              const tollbar_policy *policy,
                              uint64_t cost,
                              uint64_t now_ns,
                              tollbar_decision *out);
int32_t tollbar_cell_peek_at(const tollbar_cell *cell,
                             const tollbar_policy *policy,
                             uint64_t cost,
                             uint64_t now_ns,
                             tollbar_decision *out);
int32_t tollbar_cell_take_up_to_at(tollbar_cell *cell,
                                   const tollbar_policy *policy,
                                   uint64_t most,
                                   uint64_t now_ns,
                                   uint64_t *taken);
int32_t tollbar_cell_check_many_at(tollbar_cell *cells,
                                   size_t count,
                                   const tollbar_policy *policy,
                                   uint64_t cost,
                                   uint64_t now_ns,
                                   int32_t *results);
int32_t tollbar_cell_reset(tollbar_cell *cell);
typedef struct tollbar_counts {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
} tollbar_counts;
int32_t tollbar_table_get_counts(const tollbar_table *table,
                                 uint32_t policy,
                                 tollbar_counts *out);
int32_t tollbar_table_count_verdict(const tollbar_table *table,
                                    uint32_t policy,
                                    int32_t verdict,
                                    uint32_t reason);
int32_t tollbar_table_count_refusal(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    int32_t verdict,
                                    uint32_t reason);
typedef struct tollbar_table_entry {
    uint32_t struct_size;
    uint32_t policy;
    uint64_t hash;
    uint64_t state;
    uint64_t remaining;
    uint64_t reset_after_ns;
    uint64_t next;
} tollbar_table_entry;
typedef struct tollbar_table_sweep_result {
    uint32_t struct_size;
    uint32_t done;
    uint64_t next;
    uint64_t live;
    uint64_t vacated;
} tollbar_table_sweep_result;
typedef struct tollbar_table_stats {
    uint32_t struct_size;
    uint32_t policies;
    uint64_t capacity;
    uint64_t slots;
    uint64_t bytes;
    uint64_t keys;
    uint64_t inserted;
    uint64_t reclaimed;
    uint64_t vacated;
    uint64_t resets;
    uint64_t refused;
    uint64_t inherited;
    uint64_t untracked;
    uint64_t evicted;
    uint64_t retries;
    uint64_t backward_steps;
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
    uint64_t overrides;
    uint64_t room;
} tollbar_table_stats;
typedef struct tollbar_table_health {
    uint32_t struct_size;
    uint32_t claimed;
    uint64_t vacant;
    uint64_t waiting;
    uint64_t expired;
    uint64_t live;
    uint64_t unknown;
    uint64_t duplicate;
} tollbar_table_health;
int32_t tollbar_table_next(const tollbar_table *table,
                           uint64_t from,
                           uint64_t now_ns,
                           tollbar_table_entry *out);
int32_t tollbar_table_sweep(const tollbar_table *table,
                            uint64_t from,
                            uint64_t most,
                            uint64_t now_ns,
                            tollbar_table_sweep_result *out);
int32_t tollbar_table_add_policy(const tollbar_table *table,
                                 const tollbar_policy_spec *spec,
                                 uint32_t *number);
int32_t tollbar_table_find_or_add_policy(const tollbar_table *table,
                                         const tollbar_policy_spec *spec,
                                         uint32_t *number);
int32_t tollbar_table_set_policy(const tollbar_table *table,
                                 uint32_t number,
                                 const tollbar_policy_spec *spec,
                                 uint32_t keep);
int32_t tollbar_table_get_policy(const tollbar_table *table,
                                 uint32_t number,
                                 tollbar_policy_spec *out);
int32_t tollbar_table_get_stats(const tollbar_table *table, tollbar_table_stats *out);
int32_t tollbar_table_sync(const tollbar_table *table);
int32_t tollbar_table_validate(const tollbar_table *table,
                               uint64_t now_ns,
                               tollbar_table_health *out);
int32_t tollbar_table_repair(const tollbar_table *table,
                             uint64_t now_ns,
                             tollbar_table_health *out);
typedef struct tollbar_table_copy_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t copied;
    uint64_t lost;
} tollbar_table_copy_result;
int32_t tollbar_table_copy(const tollbar_table *table,
                           const tollbar_table *from,
                           uint64_t now_ns,
                           tollbar_table_copy_result *out);
extern const uint32_t tollbar_abi_1;
uint32_t tollbar_version(void);
const char *tollbar_version_string(void);
const char *tollbar_strerror(int32_t code);
const char *tollbar_errname(int32_t code);
]]

return {
    VERSION_STRING = "0.1.0",
    FOREVER = 0xffffffffffffffffULL,
    DAY = 86400000000000ULL,
    WEEK = 604800000000000ULL,
    MONTH = 2629746000000000ULL,
    YEAR = 31556952000000000ULL,
    TIME_ZERO = 1741824000000000000ULL,
    HIERARCHY_POLICY = "1000000000/s burst 1099511627776",
    NO_TIME = 0xffffffffffffffffULL,
}
