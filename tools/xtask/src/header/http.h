/* A server that refuses a request should tell the client when to try again. tollbar_http_fields writes the header fields that say so, from the
 * decisions about the request:
 *
 *     uint64_t more = TOLLBAR_NO_TIME;
 *     tollbar_table_more_after(table, PER_MINUTE, user, user_length, 1, &decision, &more);
 *     const tollbar_http_limit limit = {"per-minute", 10, &policy, &decision, more, NULL, 0};
 *     char lines[512];
 *     if (tollbar_http_fields(&limit, 1, TOLLBAR_HTTP_RETRY_AFTER | TOLLBAR_HTTP_DRAFT_11, 0, lines, sizeof lines, NULL) == 0)
 *         write_header(response, lines);
 *
 * For a request that "100/min burst 20" admits, this writes
 *
 *     RateLimit-Policy: "per-minute";q=100;w=60       100 permits in 60 seconds
 *     RateLimit: "per-minute";r=19;t=1                19 permits are left now, and more in a second
 *
 * Times are whole seconds, rounded up, so a client that waits so long does not come too early. `t`
 * is at most Retry-After. A period that is not a whole number of seconds is rounded up to one, and
 * the permits are scaled to the same rate, rounded down. Drafts 00 to 07 and the X-RateLimit-
 * fields have room for one limit, the one that binds: if limits refuse, the one of them with the
 * longest wait, and otherwise the one with the fewest permits left.
 */

