/* What it costs to measure how long decisions take: tools/instructions.sh counts the instructions of
 * this program with and without it. times_cost CALLS [measured] */

#include <stdlib.h>
#include <tollbar.h>

int main(int argc, char **argv) {
    static tollbar_times times;
    static const char key[] = "203.0.113.7";
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *const policies[] = {&policy};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000);
    tollbar_table *table;
    int32_t refused = 0;
    uint64_t begin, now = UINT64_C(1000000000000);
    long calls = argc > 1 ? atol(argv[1]) : 0;

    if (tollbar_policy_spec_parse("1000000/s", 9, &policy, NULL) != 0)
        return 2;
    if (tollbar_table_new(policies, 1, &options, &table) != 0)
        return 2;
    for (; calls > 0; calls--) {
        now += 1000;
        if (argc > 2) {
            begin = TOLLBAR_TIMES_BEGIN(&times);
            refused |= tollbar_table_check_at(table, 0, key, sizeof key - 1, 1, now, NULL);
            TOLLBAR_TIMES_END(&times, begin);
        } else {
            refused |= tollbar_table_check_at(table, 0, key, sizeof key - 1, 1, now, NULL);
        }
    }
    tollbar_table_close(table);
    return (int)refused;
}
