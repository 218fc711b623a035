/* One call writes the counters of a process's limiters and tables for Prometheus:
 *
 *     const tollbar_metrics_source sources[] = {{"api", 3, limiter, NULL, 0}, {"logins", 6, NULL, logins, 0}};
 *     char text[16384];
 *     size_t length;
 *     if (tollbar_metrics(sources, 2, TOLLBAR_METRICS_PROMETHEUS, text, sizeof text, &length) == 0)
 *         answer("text/plain; version=0.0.4", text, length);
 *
 * These are the metrics. The label `limit` of each is the source's name:
 *
 *     tollbar_decisions_total{policy,verdict}         decisions by the policy's number, verdict allowed, denied or never
 *     tollbar_reasons_total{reason}                   decisions for the reason banned, reserve or queue_full; in a table
 *                                                     also for missing_key or exempt
 *     tollbar_policy_info{policy,text}                1; the policy's text
 *     tollbar_clock_backward_total                    requests whose time is earlier than a previous request's
 *     tollbar_waiting                                 callers that sleep (limiters)
 *     tollbar_table_slots, tollbar_table_used_slots   slots, and those that hold a key
 *     tollbar_table_size_bytes, tollbar_table_overrides
 *     tollbar_table_inserts_total, _evictions_total, _refused_keys_total, _inherited_keys_total, _untracked_keys_total, _resets_total,
 *     _retries_total
 *
 * No key is ever a label. The call takes no permits. It reads counters that each decision writes
 * with or without metrics, so metrics add nothing to the cost of a decision. examples/metrics has
 * alerts and a dashboard.
 *
 * A program that wants to know how long its decisions take puts them between two calls:
 *
 *     static tollbar_times times;                                 // empty
 *     uint64_t begin = TOLLBAR_TIMES_BEGIN(&times);
 *     int32_t verdict = tollbar_table_check(logins, 0, key, length, 1, NULL);
 *     TOLLBAR_TIMES_END(&times, begin);
 *
 * One of TOLLBAR_TIMES_EVERY calls is measured, and tollbar_times_metrics writes the histogram
 * tollbar_decision_nanoseconds{le}. Decisions without these calls cost what they did.
 */

