/* An answer's limits to be filled in. */
#define TOLLBAR_HTTP_SEEN_INIT { (uint32_t)sizeof(tollbar_http_seen), 0, 0, 0, 0, 0, 0 }

