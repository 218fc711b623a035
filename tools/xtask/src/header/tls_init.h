/* A table to be filled in. */
#define TOLLBAR_TLS_INIT                                                                             \
    { (uint32_t)sizeof(tollbar_tls), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
