/* Calls without _at read a clock.
 *
 * Limiters and tables count UTC: nanoseconds since 2025-03-13 00:00:00 (TOLLBAR_TIME_ZERO), so windows begin at full minutes, hours
 * and days of UTC (tollbar_limiter_now, tollbar_table_now). A process asks the system for the date once; from then on this time never
 * steps. Where the system's date is before 2025-03-13, or 40 years after it, windows are aligned to the machine's start.
 *
 * Cells count from the machine's start, in every process of it (tollbar_clock_now). */
