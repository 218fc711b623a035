/* A client without a connection: it says which call of a script to make, and the program makes the
 * call with the Redis client that it has. So a limit works wherever that client does: with
 * Sentinel, in a cluster, with tokens that end.
 *
 *     tollbar_lease_calls_new(lease, &calls);
 *
 *     (one thread)
 *     while (!ends) {
 *         tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;
 *         tollbar_lease_calls_turn(calls, 0, &call);
 *         if (call.count == 0)
 *             tollbar_lease_calls_wait(calls, call.wait_ms);
 *         else if (!evalsha(redis, &call, &reply))
 *             tollbar_lease_calls_lost(calls, redis->error, strlen(redis->error));
 *         else if (reply.is_error)
 *             tollbar_lease_calls_refused(calls, reply.text, reply.length);
 *         else
 *             tollbar_lease_calls_answered(calls, reply.text, reply.length);
 *     }
 *
 * Here `evalsha` stands for the program's client. Each call is about one limit, so all its keys are
 * in one slot of a cluster.
 */

