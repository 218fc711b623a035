/* Gradient2 with windows of 100 ms. The limit begins at 20, and stays between 1 and 1000. */
#define TOLLBAR_ADAPTIVE_OPTIONS_INIT                                                                \
    { (uint32_t)sizeof(tollbar_adaptive_options), TOLLBAR_ADAPTIVE_GRADIENT2, 20, 1, 1000, 0, 0, 100000000 }

/* A state to be filled in. */
#define TOLLBAR_ADAPTIVE_STATE_INIT { (uint32_t)sizeof(tollbar_adaptive_state), 0, 0, 0 }

