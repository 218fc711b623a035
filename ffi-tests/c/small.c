/* The smallest programs that limit: one limiter, or with -DTABLE one table. sh/artefacts.sh links
 * them to see how much of the archive a program takes. */
#include <stddef.h>
#include "tollbar.h"

int main(void) {
    int denied = 0;
#ifdef TABLE
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[] = {&policy};
    const tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000);
    tollbar_table *table = NULL;
    policy.limit = policy.burst = 3;
    policy.period_ns = 60000000000;
    if (tollbar_table_new(policies, 1, &options, &table) != 0)
        return 2;
    for (int i = 0; i < 5; i++)
        denied += tollbar_table_check(table, 0, "key", 3, 1, NULL) == TOLLBAR_DENIED;
    tollbar_table_close(table);
#else
    tollbar_limiter *limiter = NULL;
    if (tollbar_limiter_from_text("3/min", &limiter, NULL) != 0)
        return 2;
    for (int i = 0; i < 5; i++)
        denied += tollbar_limiter_check(limiter, 1, NULL) == TOLLBAR_DENIED;
    tollbar_limiter_free(limiter);
#endif
    return denied != 2;
}
