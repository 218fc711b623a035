-- Written by `cargo xtask cdef` from include/tollbar_rules.h, which says what all of this means; changes belong there.
require("ffi").cdef [[
enum {
    TOLLBAR_RULES_SHARED = 1,
};
typedef struct tollbar_rules tollbar_rules;
typedef struct tollbar_rules_options {
    uint32_t struct_size;
    uint32_t flags;
    uint64_t keys;
    uint32_t room;
    uint32_t reserved;
} tollbar_rules_options;
typedef struct tollbar_rules_field {
    const char *name;
    size_t name_length;
    const char *value;
    size_t value_length;
} tollbar_rules_field;
typedef struct tollbar_rules_answer {
    uint32_t struct_size;
    uint32_t verdict;
    uint32_t reason;
    uint32_t status;
    uint64_t remaining;
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;
    uint64_t generation;
    char rule[64];
    char body[256];
    uint64_t limit;
    uint64_t period_ns;
    uint64_t burst;
    uint64_t taken_at_ns;
    uint64_t refused_shadows;
} tollbar_rules_answer;
typedef struct tollbar_rules_source {
    const char *name;
    size_t name_length;
    const tollbar_rules *rules;
} tollbar_rules_source;
int32_t tollbar_rules_open(const char *path,
                           const tollbar_rules_options *options,
                           tollbar_rules **out,
                           char *error,
                           size_t error_size);
int32_t tollbar_rules_check(const tollbar_rules *rules,
                            const tollbar_rules_field *fields,
                            size_t count,
                            tollbar_rules_answer *out);
int32_t tollbar_rules_check_at(const tollbar_rules *rules,
                               const tollbar_rules_field *fields,
                               size_t count,
                               uint64_t now_ns,
                               tollbar_rules_answer *out);
uint64_t tollbar_rules_now(const tollbar_rules *rules);
int32_t tollbar_rules_reload(const tollbar_rules *rules, char *error, size_t error_size);
int32_t tollbar_rules_reload_if_changed(const tollbar_rules *rules,
                                        char *error,
                                        size_t error_size);
int32_t tollbar_rules_reset(const tollbar_rules *rules,
                            const char *rule,
                            const char *key,
                            size_t key_length,
                            char *error,
                            size_t error_size);
int32_t tollbar_rules_adopt(const tollbar_rules *rules);
int32_t tollbar_rules_metrics(const tollbar_rules_source *sources,
                              size_t count,
                              uint32_t format,
                              char *buffer,
                              size_t capacity,
                              size_t *length);
void tollbar_rules_close(tollbar_rules *rules);
int32_t tollbar_rules_settle(const tollbar_rules *rules,
                             const tollbar_rules_field *fields,
                             size_t count,
                             const tollbar_rules_answer *answer);
int32_t tollbar_rules_settle_at(const tollbar_rules *rules,
                                const tollbar_rules_field *fields,
                                size_t count,
                                const tollbar_rules_answer *answer,
                                uint64_t now_ns);
int32_t tollbar_rules_word_of_answers(const tollbar_rules *rules,
                                      size_t number,
                                      char *word,
                                      size_t size);
]]

return {
}
