/* Default options. */
#define TOLLBAR_LIMITER_OPTIONS_INIT { (uint32_t)sizeof(tollbar_limiter_options), 0, 0, 0 }

/* A state to be filled in. */
#define TOLLBAR_LIMITER_STATE_INIT { (uint32_t)sizeof(tollbar_limiter_state), 0, 0, 0, 0, 0, 0 }

