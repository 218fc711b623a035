/* Who is refused most? A table can record the keys that it refuses, in a sketch of 14 KiB in its memory:
 *
 *     tollbar_table_record_refusals(logins, 1);
 *     ...
 *     tollbar_table_refused top[20] = {TOLLBAR_TABLE_REFUSED_INIT};
 *     uint64_t now = 0;
 *     size_t count = 0;
 *     if (tollbar_table_now(logins, &now) == 0 && tollbar_table_top_refused(logins, now, top, 20, &count) == 0)
 *         for (size_t n = 0; n < count; n++)
 *             printf("%8llu %.*s\n", (unsigned long long)top[n].count, (int)top[n].length, (const char *)top[n].key);
 *
 * The bytes of a key are the client's. Escape them before they go to a terminal, a page or a log.
 * `tollbar top FILE` shows them, redrawn each second, for a table in a file.
 */

