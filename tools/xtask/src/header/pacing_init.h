/* Cubic, from 0.5/s up to 10^6/s, bursts of 1, pauses of at most 5 minutes. */
#define TOLLBAR_PACING_OPTIONS_INIT                                                                                    \
    { (uint32_t)sizeof(tollbar_pacing_options), TOLLBAR_PACING_CUBIC, 500000, 1000000000000, 0, 300000000000, 1, 0 }

/* A state to be filled in. */
#define TOLLBAR_PACING_STATE_INIT { (uint32_t)sizeof(tollbar_pacing_state), 0, 0, 0, 0, 0 }

