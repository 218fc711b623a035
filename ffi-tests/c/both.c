/* libtollbar and libtollbar-redis in one program. Each has its own copy of the core and of the
 * clock (docs/internals/decisions/0029-two-libraries.md). The program must not notice. */
#include "tollbar_redis.h"

#include <stdio.h>
#include <string.h>

/* Both clocks follow CLOCK_MONOTONIC to within microseconds. The bound of a second finds a wrong
 * unit or a wrong zero. */
#define SECOND UINT64_C(1000000000)

static int fail(const char *what, int32_t code) {
    fprintf(stderr, "%s: %s\n", what, tollbar_errname(code));
    return 1;
}

int main(void) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies = &spec;
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(100);
    tollbar_lease_options shared = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = NULL;
    tollbar_lease *lease = NULL;
    uint64_t before = 0, here = 0, after = 0;
    int32_t code;
    int n;

    if (tollbar_version() != TOLLBAR_VERSION || tollbar_redis_version() != TOLLBAR_VERSION)
        return fail("versions", TOLLBAR_E_INTERNAL);
    code = tollbar_policy_spec_parse("100/s burst 200", 15, &spec, NULL);
    if (code == 0)
        code = tollbar_table_new(&policies, 1, &options, &table);
    if (code != 0)
        return fail("table", code);
    code = tollbar_lease_new("limit", 5, &spec, &shared, &lease);
    if (code != 0)
        return fail("lease", code);

    /* A machine that does not reach the store decides by a table of libtollbar-redis. libtollbar's
     * tables stay unchanged. */
    for (n = 0; n < 1000; n++)
        if (tollbar_lease_check(lease, "key", 3, 1, &decision) != TOLLBAR_ALLOWED)
            break;
    if (n == 0 || n == 1000 || decision.reason != TOLLBAR_REASON_STORE_DOWN)
        return fail("a machine on its own", TOLLBAR_E_INTERNAL);
    for (n = 0; n < 1000; n++)
        if (tollbar_table_check(table, 0, "key", 3, 1, NULL) != TOLLBAR_ALLOWED)
            break;
    if (n < 200 || n == 1000)
        return fail("a table", TOLLBAR_E_INTERNAL);

    for (n = 0; n < 1000; n++) {
        tollbar_table_now(table, &before);
        here = tollbar_lease_now(lease);
        tollbar_table_now(table, &after);
        if (before == 0 || here + SECOND < before || after + SECOND < here)
            return fail("clocks", TOLLBAR_E_INTERNAL);
    }
    tollbar_lease_close(lease);
    tollbar_table_close(table);
    puts("both agree");
    return 0;
}
