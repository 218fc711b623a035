/* Routes that never change, and arguments that are wrong. */
#include "test.h"

static const tollbar_node nodes[] = {{"a", 1, 1, 0}, {"b", 1, 2, 0}, {"c", 1, 3, 0}, {"10.0.0.4:8080", 13, 4, 0}};

static size_t route(const tollbar_node *to, size_t count, const void *key, size_t length) {
    size_t node = 99;
    assert_int_equal(tollbar_route(to, count, key, length, 42, &node), TOLLBAR_YES);
    return node;
}

/* The same routes as in Rust. */
static void routes_never_change(void **state) {
    static const char *const keys[] = {"alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"};
    static const size_t routes[] = {1, 3, 2, 3, 3, 2, 2, 2};
    size_t n;
    (void)state;
    for (n = 0; n < COUNT(keys); n++)
        assert_int_equal(route(nodes, 4, keys[n], strlen(keys[n])), routes[n]);
}

static void arguments(void **state) {
    tollbar_node bad = {NULL, 3, 1, 0};
    size_t node = 99;
    (void)state;
    assert_int_equal(tollbar_route(NULL, 1, "k", 1, 0, &node), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_route(nodes, 0, "k", 1, 0, &node), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_route(nodes, TOLLBAR_NODES_MOST + 1, "k", 1, 0, &node), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_route(nodes, 4, NULL, 1, 0, &node), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_route(nodes, 4, "k", 1, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_route(&bad, 1, "k", 1, 0, &node), TOLLBAR_E_NULL);
    bad.length = 0;
    bad.reserved = 1;
    assert_int_equal(tollbar_route(&bad, 1, "k", 1, 0, &node), TOLLBAR_E_RESERVED);
    bad.reserved = 0;
    bad.weight = 0;
    assert_int_equal(tollbar_route(&bad, 1, "k", 1, 0, &node), TOLLBAR_NO);
    assert_int_equal(node, 99);
    bad.weight = 1;
    assert_int_equal(tollbar_route(&bad, 1, NULL, 0, 0, &node), TOLLBAR_YES);
    assert_int_equal(node, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_never_change),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
