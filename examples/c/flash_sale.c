/* A flash sale: a shop's API limits each customer by a token bucket. For the sale it becomes a sliding window that
 * lets a customer make many requests at once, and afterwards the bucket again. No customer's state is lost, and the
 * table runs all the time. Each line has the requests of one second, in virtual time, and how many of them passed.
 *
 *     cc flash_sale.c $(pkg-config --cflags --libs tollbar) -o flash_sale && ./flash_sale
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tollbar.h>

#define SEC UINT64_C(1000000000)

static tollbar_table *table;

static void second(unsigned n, const char *customer, uint64_t asked) {
    uint64_t passed = 0;
    tollbar_table_take_up_to_at(table, 0, customer, strlen(customer), asked, (1000 + n) * SEC, &passed);
    printf("second %2u: %s asks %u, %u pass\n", n, customer, (unsigned)asked, (unsigned)passed);
}

static int policy(const char *text, tollbar_policy_spec *spec) {
    return tollbar_policy_spec_parse(text, strlen(text), spec, NULL);
}

int main(void) {
    tollbar_policy_spec usual = TOLLBAR_POLICY_SPEC_INIT, sale = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *const policies[] = {&usual};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(100000);

    /* Room for windows of up to 10 segments, so that the policy can become the sale's. */
    options.room = 10;
    if (policy("5/s burst 10", &usual) != 0 || policy("120/10s algo sliding-window segments 10", &sale) != 0 ||
        tollbar_table_new(policies, 1, &options, &table) != 0)
        return 1;
    second(0, "ann", 20); /* the burst */
    second(1, "ann", 20); /* the refill */
    if (tollbar_table_set_policy(table, 0, &sale, TOLLBAR_KEEP_COUNT) != 0)
        return 1;
    second(1, "ann", 20);  /* she had none left, and the sale gives her none of those back */
    second(1, "bob", 200); /* he comes with the sale */
    second(11, "ann", 60); /* her permits come back with the window */
    second(12, "ann", 90);
    if (tollbar_table_set_policy(table, 0, &usual, TOLLBAR_KEEP_COUNT) != 0)
        return 1;
    second(12, "ann", 20); /* the sale is over, and she has used all of its permits */
    second(13, "ann", 20);
    second(13, "eve", 20);
    tollbar_table_close(table);
    return 0;
}
