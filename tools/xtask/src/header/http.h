/* A server that refuses a request should tell the client when to come back, and a client that is told should wait. tollbar_http_fields writes what
 * the server says, from the decisions that it has anyway:
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
 *     RateLimit-Policy: "per-minute";q=100;w=60       a hundred in sixty seconds
 *     RateLimit: "per-minute";r=19;t=1                nineteen are left now, and there are more in a second
 *
 * Times are whole seconds, rounded up, so no client comes too early. `t` is never later than Retry-After. A period that is no whole number of
 * seconds is written as a pair of the same rate. Drafts 00 to 07 and the X-RateLimit- fields have room for one limit: they describe the limit
 * that binds, which is of those that refuse the one with the longest wait, and if none refuses, the one with the fewest permits left.
 */

