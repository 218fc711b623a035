/* A schedule says which policy is in force at which time of the week:
 *
 *     POLICY { ", " [ DAYS ] [ HH:MM-HH:MM ] POLICY } [ ", zone" ZONE ]
 *
 *     1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin
 *     100/s, 22:00-06:00 500/s, sat sun 06:00-22:00 200/s
 *
 * The first policy is in force whenever no entry is. There are up to 16 entries.
 *
 *   - An entry is in force while local clocks show one of its days and a time from its begin to just before its end.
 *     Without days it holds every day, without a time the whole day.
 *   - An entry whose end is before its begin goes on over midnight, and belongs to the day on which it begins.
 *   - Two entries that overlap are an error, and so is an entry that ends at its begin.
 *   - If local clocks jump over the begin of an entry, it begins at the jump. If they show an hour twice, each entry
 *     of that hour is in force twice.
 *   - The zone is that of a calendar (section 1), UTC if not given. It is the zone of the days and times: a policy
 *     that is a calendar names its own.
 *
 * A limiter or a table follows a schedule if one thread of each process sets the policy in force
 * once a second:
 *
 *     tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
 *     uint64_t now = 0;
 *     if (tollbar_clock_now(TOLLBAR_CLOCK_WALL, &now) == 0
 *         && tollbar_schedule_at(text, strlen(text), now, &policy, NULL, NULL) == 0)
 *         tollbar_table_set_policy(table, 0, &policy, TOLLBAR_KEEP_COUNT);
 *
 * tollbar_table_set_policy changes nothing if the policy is in force already, so all processes of a
 * table may do this. They agree, because the policy depends on the text and the instant alone. If a
 * process sets the policy of a moment ago too late, or the system's clock was set, the next call of
 * any process corrects it within a second.
 *
 * At a switch the permits left stay left, up to the new burst, and a full bucket stays full. In any
 * interval a key is admitted at most the sum of the bounds of the policies that were in force in
 * it, each as often as it came into force.
 *
 * Policies that count in windows of one length, such as 1000/month and 10/month, or 500/forever and
 * 10/forever, keep the permits used instead. A count above the smaller limit becomes that limit. So
 * with "1000/month, sun 10/month" a key may take 990 permits after each Sunday. If a limit must
 * hold over the switches, make it a policy of its own, and charge both with tollbar_take_many.
 *
 * Each call reads the text, and a zone's name in it from the system's zone data.
 * tollbar_schedule_print replaces the
 * name by its rule. */
