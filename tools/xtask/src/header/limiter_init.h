/* Default options. */
#define TOLLBAR_LIMITER_OPTIONS_INIT { (uint32_t)sizeof(tollbar_limiter_options), 0, 0, 0 }

