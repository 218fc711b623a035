/* A decision to be filled in. */
#define TOLLBAR_DECISION_INIT { (uint32_t)sizeof(tollbar_decision), 0, 0, 0, 0, 0, 0 }

