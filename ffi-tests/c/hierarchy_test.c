/* Hierarchies: classes with guaranteed rates and ceilings, that borrow what is idle. */
#include "test.h"

/* A table of nodes under policy 1, and a hierarchy of 1000/s with a burst of 100 ms. */
struct shop {
    tollbar_table *table;
    tollbar_hierarchy *tree;
};

static struct shop a_shop(void) {
    tollbar_policy_spec policies[2] = {TOLLBAR_POLICY_SPEC_INIT, TOLLBAR_POLICY_SPEC_INIT};
    const tollbar_policy_spec *const both[2] = {&policies[0], &policies[1]};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(2000);
    struct shop shop = {NULL, NULL};
    options.on_full = TOLLBAR_ON_FULL_DENY;
    assert_int_equal(tollbar_policy_spec_parse("10/s", 4, &policies[0], NULL), 0);
    assert_int_equal(
        tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, strlen(TOLLBAR_HIERARCHY_POLICY), &policies[1], NULL), 0);
    assert_int_equal(tollbar_table_new(both, 2, &options, &shop.table), 0);
    assert_int_equal(tollbar_hierarchy_new("1000/s", 100 * MS, 8, 1, &shop.tree), 0);
    return shop;
}

static void close_shop(struct shop shop) {
    tollbar_hierarchy_free(shop.tree);
    tollbar_table_close(shop.table);
}

static uint32_t added(struct shop shop, uint32_t parent, const char *name, const char *guaranteed, const char *ceiling, uint32_t keys) {
    uint32_t number = 99;
    assert_int_equal(tollbar_hierarchy_add(shop.tree, parent, name, guaranteed, ceiling, keys, &number), 0);
    return number;
}

/* 50/s for 100 ms and one more, each 20 ms. Another key has its own, and the root charges both. */
static void a_leaf_has_its_ceiling(void **state) {
    const struct shop shop = a_shop();
    const uint32_t acme = added(shop, TOLLBAR_HIERARCHY_ROOT, "acme", "400/s", "", 1);
    const uint32_t users = added(shop, acme, "users", "1/s", "50/s", 100);
    tollbar_share share = TOLLBAR_SHARE_INIT;
    uint64_t left;
    (void)state;
    for (left = 6; left-- > 0;) {
        assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "ann", 3, 1, HOUR, &share), TOLLBAR_ALLOWED);
        assert_int_equal(share.verdict, TOLLBAR_ALLOWED);
        assert_int_equal(share.remaining, left);
        assert_int_equal(share.interval_ns, 20 * MS);
        assert_int_equal(share.bound, users);
    }
    assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "ann", 3, 1, HOUR, &share), TOLLBAR_DENIED);
    assert_int_equal(share.retry_after_ns, 20 * MS);
    assert_int_equal(share.reason, TOLLBAR_REASON_RATE);
    assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "ann", 3, 1, HOUR + 20 * MS - 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "ann", 3, 1, HOUR + 20 * MS, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "bob", 3, 1, HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_hierarchy_take(shop.tree, shop.table, users, NULL, 0, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_hierarchy_take_at(shop.tree, shop.table, users, "eve", 3, 1000000000, HOUR, &share), TOLLBAR_NEVER);
    assert_int_equal(share.retry_after_ns, TOLLBAR_NO_TIME);
    close_shop(shop);
}

/* In virtual time three leaves ask for so many requests a second, for eight seconds. In the last one
 * each passes the requests of `fair`, within a hundredth of the shop's 1000. */
static void shares(const uint64_t asked[3], const uint64_t fair[3]) {
    const struct shop shop = a_shop();
    const uint32_t leaves[3] = {added(shop, 0, "ann", "600/s", "", 1), added(shop, 0, "bob", "", "", 1),
                                added(shop, 0, "eve", "", "300/s", 1)};
    uint64_t passed[3] = {0, 0, 0}, ms, n;
    int leaf;
    for (ms = 0; ms < 8000; ms++)
        for (leaf = 0; leaf < 3; leaf++)
            for (n = ms * asked[leaf] / 1000; n < (ms + 1) * asked[leaf] / 1000; n++)
                if (tollbar_hierarchy_take_at(shop.tree, shop.table, leaves[leaf], NULL, 0, 1, HOUR + ms * MS, NULL) == TOLLBAR_ALLOWED)
                    passed[leaf] += ms >= 7000;
    for (leaf = 0; leaf < 3; leaf++)
        assert_in_range(passed[leaf] + 10, fair[leaf], fair[leaf] + 20);
    close_shop(shop);
}

static void m13_shares_are_fair(void **state) {
    static const uint64_t cases[][2][3] = {
        {{0, 2000, 0}, {0, 1000, 0}},          /* bob borrows all that is idle */
        {{0, 0, 2000}, {0, 0, 300}},           /* eve has a ceiling */
        {{0, 2000, 2000}, {0, 700, 300}},      /* both */
        {{2000, 2000, 2000}, {600, 200, 200}}, /* ann has a guarantee */
        {{100, 2000, 2000}, {100, 600, 300}},  /* and what she leaves is lent */
    };
    size_t n;
    (void)state;
    for (n = 0; n < COUNT(cases); n++)
        shares(cases[n][0], cases[n][1]);
}

static void wrong_arguments(void **state) {
    const struct shop shop = a_shop();
    const uint32_t acme = added(shop, TOLLBAR_HIERARCHY_ROOT, "acme", "400/s", "", 1);
    const uint32_t users = added(shop, acme, "users", "", "", 2);
    tollbar_hierarchy *out = NULL;
    tollbar_share share = TOLLBAR_SHARE_INIT;
    uint32_t number = 0;
    (void)state;
    assert_int_equal(tollbar_hierarchy_new(NULL, SEC, 8, 0, &out), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_new("10/s", 2 * SEC, 8, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_new("10/s burst 3", 2 * SEC, 8, 0, &out), TOLLBAR_E_CLASS_RATE);
    assert_int_equal(tollbar_hierarchy_new("10\xff/s", 2 * SEC, 8, 0, &out), TOLLBAR_E_CLASS_RATE);
    assert_int_equal(tollbar_hierarchy_new("10/s", SEC, 8, 0, &out), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_hierarchy_new("10/s", 2 * SEC, 65537, 0, &out), TOLLBAR_E_CAPACITY);
    assert_null(out);
    tollbar_hierarchy_free(NULL);
    assert_int_equal(tollbar_hierarchy_add(NULL, 0, "b", "", "", 1, &number), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, NULL, "", "", 1, &number), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", NULL, "", 1, &number), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", "", NULL, 1, &number), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", "", "", 1, NULL), TOLLBAR_E_NULL);
    /* E9 */
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", "", "", 0, &number), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", "601/s", "", 1, &number), TOLLBAR_E_GUARANTEE);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "b", "", "1/h", 1, &number), TOLLBAR_E_CLASS_RATE);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 0, "acme", "", "", 1, &number), TOLLBAR_E_CLASS_TREE);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, users, "b", "", "", 1, &number), TOLLBAR_E_CLASS_TREE);
    assert_int_equal(tollbar_hierarchy_add(shop.tree, 3, "b", "", "", 1, &number), TOLLBAR_E_CLASS_NUMBER);
    assert_int_equal(number, 0);
    assert_int_equal(tollbar_hierarchy_take(NULL, shop.table, users, NULL, 0, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_take(shop.tree, NULL, users, NULL, 0, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_take_at(NULL, shop.table, users, NULL, 0, 1, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_take(shop.tree, shop.table, users, NULL, 1, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_hierarchy_take(shop.tree, shop.table, acme, NULL, 0, 1, NULL), TOLLBAR_E_CLASS_NUMBER);
    assert_int_equal(tollbar_hierarchy_take(shop.tree, shop.table, 3, NULL, 0, 1, NULL), TOLLBAR_E_CLASS_NUMBER);
    share.struct_size = 4;
    assert_int_equal(tollbar_hierarchy_take(shop.tree, shop.table, users, NULL, 0, 1, &share), TOLLBAR_E_STRUCT_SIZE);
    /* Policy 0 is 10/s, and there is no policy 7. */
    assert_int_equal(tollbar_hierarchy_new("10/s", 2 * SEC, 8, 0, &out), 0);
    assert_int_equal(tollbar_hierarchy_take(out, shop.table, 0, NULL, 0, 1, NULL), TOLLBAR_E_OTHER_POLICIES);
    tollbar_hierarchy_free(out);
    assert_int_equal(tollbar_hierarchy_new("10/s", 2 * SEC, 8, 7, &out), 0);
    assert_int_equal(tollbar_hierarchy_take(out, shop.table, 0, NULL, 0, 1, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    tollbar_hierarchy_free(out);
    close_shop(shop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_has_its_ceiling),
        cmocka_unit_test(m13_shares_are_fair),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests_name("hierarchies", tests, NULL, NULL);
}
