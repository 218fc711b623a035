/* A cell takes 8 bytes and needs no set-up. Put it into your own struct.
 *
 *     struct user { ...; tollbar_cell logins; };            // calloc'd: fresh
 *
 *     tollbar_policy *per_user;                             // once, for all users
 *     tollbar_policy_from_text("5/min burst 3", &per_user, NULL);
 *
 *     if (tollbar_cell_check(&user->logins, per_user, 1, NULL) != TOLLBAR_ALLOWED)
 *         return TRY_LATER;
 */

