/* The default options. */
#define TOLLBAR_QUEUE_OPTIONS_INIT { (uint32_t)sizeof(tollbar_queue_options), 0, 0, 0 }

