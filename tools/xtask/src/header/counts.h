/* Each deciding call adds one to the count of the verdict that it returns, whatever its cost. So does each request of a batch. A
 * _take_up_to call counts as allowed if it took any permits, otherwise as denied. A table counts
 * under the policy that the caller named. A table also counts these decisions:
 *
 * - a request without a key: under the returned verdict, unless the table reports it as an error
 *   (TOLLBAR_MISSING_REPORT);
 * - a request of an exempt key: allowed;
 * - a new key that a full table refuses: denied. The statistics' `refused` counts it as well.
 *
 * Peeks and errors do not count. A caller that refuses a request because of a peek reports it by
 * tollbar_table_count_refusal. Limiters (tollbar_limiter_state) count by the same rules. A cell is
 * one word and has no room for counts.
 *
 * Each thread counts on cache lines that no other thread writes, so a count costs one plain
 * instruction. The sum over all lines is exact whenever no call is in progress. A table has 512
 * lines, one for each pair of a thread and a policy, and reuses the lines of dead processes. A
 * thread that finds no line counts by a locked addition. A thread looks for a line in its first
 * decision under a policy, and again after a fork. It then asks the system which
 * processes live. */

