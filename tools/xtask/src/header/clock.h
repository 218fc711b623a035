/* Calls without _at read a clock.
 *
 * Limiters and tables count nanoseconds of UTC since 2025-03-13 00:00:00 (TOLLBAR_TIME_ZERO), so
 * windows begin at full minutes, hours and days of UTC. tollbar_limiter_now and tollbar_table_now
 * return that time. A process asks the system for the date once. From then on the time never steps.
 * If the system's date is before 2025-03-13, or more than 40 years after it, windows are aligned to
 * the machine's start instead.
 *
 * Cells count from the machine's start, in every process of the machine (tollbar_clock_now). */

