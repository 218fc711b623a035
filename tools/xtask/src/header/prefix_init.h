/* A prefix to be filled in. */
#define TOLLBAR_PREFIX_INIT { 0, { 0 } }

