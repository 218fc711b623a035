/* The defaults: room for 100,000 keys, in this process's own memory. */
#define TOLLBAR_RULES_OPTIONS_INIT                                                                   \
    { (uint32_t)sizeof(tollbar_rules_options), 0, 100000, 0, 0 }

/* An answer to be filled in. */
#define TOLLBAR_RULES_ANSWER_INIT                                                                    \
    { (uint32_t)sizeof(tollbar_rules_answer), 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0 }

