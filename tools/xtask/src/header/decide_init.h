/* A state to be filled in. */
#define TOLLBAR_LIMITER_STATE_INIT { (uint32_t)sizeof(tollbar_limiter_state), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

