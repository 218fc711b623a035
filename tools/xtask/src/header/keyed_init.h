/* A request of a batch. */
#define TOLLBAR_REQUEST_INIT { NULL, 0, 1, 0, 0 }
