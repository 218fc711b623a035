/*
 * Each call that decides counts once, under the verdict that it returns: a check, each request of a batch,
 * a check by hot keys, whatever the cost. A call that takes what there is counts as allowed if it took
 * any, and as denied if not. In a table the count is under the policy that was asked for, and these are
 * decisions, too:
 *
 * - a request without a key, unless it is an error (TOLLBAR_MISSING_...): allowed or denied, as returned;
 * - an exempt key: allowed;
 * - a newcomer that is refused because the table is full: denied. The statistics' `refused` has it, too.
 *
 * A peek and an error do not count. A caller that refuses a request because of a peek tells the table by
 * tollbar_table_count_verdict. Limiters (tollbar_limiter_state) and striped limiters count by the same rules; a
 * cell is one word of the caller's and has no room for counts.
 *
 * A thread counts on lines that it alone writes, so a count costs one plain instruction, and the sum of
 * all lines is exact at any time at which no call is under way. A table has 512 lines, one for each pair
 * of a thread and a policy; those of dead processes are used again. Threads that find none count by a
 * locked addition, which takes some nanoseconds. In a child after a fork, and once for each thread and
 * policy, the first decision looks for a line and asks the system which processes live.
 */

