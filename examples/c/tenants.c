/* Three tenants share 1000 requests a second. Each line is two seconds, in virtual time: # and the number are the requests a second that passed.
 *
 *     gcc -o tenants tenants.c -ltollbar && ./tenants
 */
#include <stdio.h>
#include <string.h>
#include <tollbar.h>

#define SEC UINT64_C(1000000000)
#define TENANTS 3

static const char *const names[TENANTS] = {"ann", "bob", "eve"};
static const char *const guaranteed[TENANTS] = {"600/s", "", ""};
static const char *const ceilings[TENANTS] = {"", "", "300/s"};
/* The requests that each tenant makes in a second, by turns of 6 seconds. */
static const unsigned asked[][TENANTS] = {{0, 2000, 0}, {0, 2000, 2000}, {2000, 2000, 2000}, {100, 2000, 2000}, {100, 50, 2000}};

int main(void) {
    tollbar_policy_spec nodes = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *const policies[] = {&nodes};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000);
    tollbar_table *table;
    tollbar_hierarchy *shop;
    uint32_t classes[TENANTS];
    size_t turn, tenant, line;
    uint64_t now = SEC;
    options.on_full = TOLLBAR_ON_FULL_DENY;
    if (tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, strlen(TOLLBAR_HIERARCHY_POLICY), &nodes, NULL) != 0 ||
        tollbar_table_new(policies, 1, &options, &table) != 0)
        return 1;
    if (tollbar_hierarchy_new("1000/s", SEC / 10, TENANTS + 1, 0, &shop) != 0)
        return 1;
    for (tenant = 0; tenant < TENANTS; tenant++) {
        if (tollbar_hierarchy_add(shop, TOLLBAR_HIERARCHY_ROOT, names[tenant], guaranteed[tenant], ceilings[tenant], 1, &classes[tenant]))
            return 1;
    }
    printf("          ann: 600/s guaranteed        bob                          eve: at most 300/s\n");
    for (turn = 0; turn < sizeof asked / sizeof *asked; turn++) {
        for (line = 0; line < 3; line++) {
            const uint64_t end = now + 2 * SEC;
            unsigned due[TENANTS] = {0}, passed[TENANTS] = {0};
            for (; now < end; now += SEC / 4000) {
                for (tenant = 0; tenant < TENANTS; tenant++) {
                    due[tenant] += asked[turn][tenant];
                    if (due[tenant] < 4000)
                        continue;
                    due[tenant] -= 4000;
                    passed[tenant] += tollbar_hierarchy_take_at(shop, table, classes[tenant], NULL, 0, 1, now, NULL) == TOLLBAR_ALLOWED;
                }
            }
            printf("%4u s", (unsigned)(turn * 6 + line * 2));
            for (tenant = 0; tenant < TENANTS; tenant++) {
                char bar[21] = "";
                memset(bar, '#', (passed[tenant] / 2 + 49) / 50);
                printf(tenant + 1 < TENANTS ? "  %4u %-20.20s  " : "  %4u %.20s", passed[tenant] / 2, bar);
            }
            printf("\n");
        }
    }
    tollbar_hierarchy_free(shop);
    tollbar_table_close(table);
    return 0;
}
