/* visit TABLE ADDRESS...: takes a permit of each address, and prints "passes", "refused" or "no
 * address". */
#include <stdio.h>
#include <string.h>
#include <tollbar.h>

int main(int count, char **arguments) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[] = {&spec};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(10000);
    tollbar_table *table;
    int i, code;
    if (tollbar_policy_spec_parse("1/day", 5, &spec, NULL) != 0 || (code = tollbar_table_open(arguments[1], policies, 1, &options, &table)) != 0)
        return 1;
    for (i = 2; i < count; i++) {
        tollbar_prefix client;
        if (tollbar_prefix_parse(arguments[i], strlen(arguments[i]), 32, 64, &client) != 0)
            puts("no address");
        else
            puts(tollbar_table_check(table, 0, client.bytes, client.length, 1, NULL) == 0 ? "passes" : "refused");
    }
    tollbar_table_close(table);
    return 0;
}
