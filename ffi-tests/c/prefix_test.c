/* Keys from network addresses. */
#include "test.h"

struct row {
    const char *text;
    uint32_t ipv4_bits, ipv6_bits;
    /* The key, which ends with the address's first bits, or the error. */
    uint32_t length;
    unsigned char bytes[20];
    int32_t code;
};

static const struct row rows[] = {
    {"192.0.2.1", 32, 64, 6, {4, 32, 192, 0, 2, 1}, 0},
    {"192.0.2.255", 25, 0, 6, {4, 25, 192, 0, 2, 128}, 0},
    {"192.0.2.255", 0, 0, 2, {4, 0}, 0},
    {"2001:db8::1", 32, 128, 18, {6, 128, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0},
    {"2001:db8:1:2:3::", 32, 64, 10, {6, 64, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2}, 0},
    {"fe80::1%eth0", 32, 64, 10, {6, 64, 0xfe, 0x80}, 0},
    /* The same host, in IPv6's notation. */
    {"::ffff:192.0.2.1", 32, 64, 6, {4, 32, 192, 0, 2, 1}, 0},
    {"", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"192.0.2", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"192.0.2.256", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    /* With what servers and proxies add. */
    {" 192.0.2.1:4711 ", 32, 64, 6, {4, 32, 192, 0, 2, 1}, 0},
    {"[::ffff:192.0.2.1]:80", 32, 64, 6, {4, 32, 192, 0, 2, 1}, 0},
    {"64:ff9b::192.0.2.1", 32, 64, 6, {4, 32, 192, 0, 2, 1}, 0},
    {"[2001:db8:1:2::]:80", 32, 64, 10, {6, 64, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2}, 0},
    {"192.0.2.1:", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"192.0.2.1:65536", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"[2001:db8::1", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"localhost", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"1::2::3", 32, 64, 0, {0}, TOLLBAR_E_ADDRESS},
    {"192.0.2.1", 33, 64, 0, {0}, TOLLBAR_E_OUT_OF_RANGE},
    {"192.0.2.1", 32, 129, 0, {0}, TOLLBAR_E_OUT_OF_RANGE},
    {"2001:db8::1", 32, UINT32_MAX, 0, {0}, TOLLBAR_E_OUT_OF_RANGE},
};

static void assert_key(const tollbar_prefix *got, const struct row *row) {
    assert_int_equal(got->length, row->length);
    assert_memory_equal(got->bytes, row->bytes, sizeof got->bytes);
}

static void addresses_as_text(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        tollbar_prefix got = TOLLBAR_PREFIX_INIT;
        /* The call does not read behind the text. */
        char text[40];
        memset(text, '9', sizeof text);
        memcpy(text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(tollbar_prefix_parse(text, strlen(rows[i].text), rows[i].ipv4_bits, rows[i].ipv6_bits, &got),
                         rows[i].code);
        assert_key(&got, &rows[i]);
    }
}

static void addresses_as_bytes(void **state) {
    static const unsigned char four[] = {192, 0, 2, 1}, six[16] = {0x20, 1, 0xd, 0xb8, [15] = 1},
                               mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
    tollbar_prefix got = TOLLBAR_PREFIX_INIT, fresh = got;
    size_t length;
    (void)state;
    for (length = 0; length <= 17; length++)
        if (length != 4 && length != 16)
            assert_int_equal(tollbar_prefix_from_address(rows, length, 32, 64, &got), TOLLBAR_E_ADDRESS);
    assert_int_equal(tollbar_prefix_from_address(four, 4, 33, 64, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_prefix_from_address(six, 16, 32, 129, &got), TOLLBAR_E_OUT_OF_RANGE);
    /* E9: the bits of the other family, too, as tollbar_prefix_parse does. */
    assert_int_equal(tollbar_prefix_from_address(four, 4, 32, 129, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_prefix_from_address(six, 16, 33, 64, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_prefix_parse("192.0.2.1", 9, 32, 129, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_prefix_parse("2001:db8::1", 11, 33, 64, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_memory_equal(&got, &fresh, sizeof got);
    assert_int_equal(tollbar_prefix_from_address(four, 4, 32, 64, &got), 0);
    assert_key(&got, &rows[0]);
    assert_int_equal(tollbar_prefix_from_address(six, 16, 32, 128, &got), 0);
    assert_key(&got, &rows[3]);
    assert_int_equal(tollbar_prefix_from_address(mapped, 16, 32, 64, &got), 0);
    assert_key(&got, &rows[6]);
}

static void c4_arguments(void **state) {
    static union {
        uint64_t words[8];
        unsigned char bytes[64];
    } room;
    tollbar_prefix got = TOLLBAR_PREFIX_INIT, *const odd = (tollbar_prefix *)(void *)(room.bytes + 1);
    size_t i;
    (void)state;
    assert_int_equal(tollbar_prefix_parse(NULL, 3, 32, 64, &got), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_parse(NULL, 0, 32, 64, &got), TOLLBAR_E_ADDRESS);
    assert_int_equal(tollbar_prefix_parse("::1", 3, 32, 64, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_parse("::1", 3, 32, 64, odd), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_prefix_parse("::1", SIZE_MAX, 32, 64, &got), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_prefix_from_address(NULL, 4, 32, 64, &got), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_from_address(room.bytes, 4, 32, 64, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_from_address(room.bytes, 4, 32, 64, odd), TOLLBAR_E_MISALIGNED);
    assert_int_equal(got.length, 0);
    for (i = 0; i < sizeof room.bytes; i++)
        assert_int_equal(room.bytes[i], 0);
}

/* The client is the right-most hop that is no trusted proxy's. The rows of the walk itself are in
 * src/address/tests.rs. */
static void clients_behind_proxies(void **state) {
    static const struct {
        const char *peer, *forwarded;
        int32_t code;
        unsigned char last;
    } asked[] = {
        {"192.0.2.1", "198.51.100.7", 0, 1},
        {"10.0.0.1:80", "1.1.1.1, 192.0.2.2:4711, 10.0.0.3", 0, 2},
        {"10.0.0.1", "", 0, 1},
        {"unix:", "1.1.1.1, 192.0.2.3", 0, 3},
        {"", "", TOLLBAR_E_ADDRESS, 0},
        {"localhost", "192.0.2.3", TOLLBAR_E_ADDRESS, 0},
    };
    static const char *const wrong[] = {"", "unix", "10.0.0.1/8", "10.0.0.0/33", "2001:db8::/129", "192.0.2.1:80", "10.0.0.0/"};
    tollbar_prefix proxies[3], got, fresh = TOLLBAR_PREFIX_INIT;
    size_t i;
    (void)state;
    assert_int_equal(tollbar_network_parse("10.0.0.0/8", 10, &proxies[0]), 0);
    assert_int_equal(tollbar_network_parse("unix:", 5, &proxies[1]), 0);
    assert_int_equal(tollbar_network_parse("2001:db8::1", 11, &proxies[2]), 0);
    for (i = 0; i < COUNT(wrong); i++) {
        got = fresh;
        assert_int_equal(tollbar_network_parse(wrong[i], strlen(wrong[i]), &got), TOLLBAR_E_ADDRESS);
        assert_memory_equal(&got, &fresh, sizeof got);
    }
    for (i = 0; i < COUNT(asked); i++) {
        got = fresh;
        assert_int_equal(tollbar_prefix_of_client(asked[i].peer, strlen(asked[i].peer), asked[i].forwarded,
                                                  strlen(asked[i].forwarded), proxies, COUNT(proxies), 32, 64, &got),
                         asked[i].code);
        assert_int_equal(got.length, asked[i].code == 0 ? 6 : 0);
        if (asked[i].code == 0)
            assert_int_equal(got.bytes[5], asked[i].last);
    }
    assert_int_equal(tollbar_prefix_of_client("2001:db8::1", 11, "192.0.2.9", 9, proxies, 3, 32, 64, &got), 0);
    assert_int_equal(got.bytes[5], 9);
    assert_int_equal(tollbar_prefix_of_client("2001:db8::2", 11, "192.0.2.9", 9, proxies, 3, 32, 48, &got), 0);
    assert_int_equal(got.length, 8);
    /* Without proxies, the header does not count. */
    assert_int_equal(tollbar_prefix_of_client("192.0.2.1", 9, "192.0.2.9", 9, NULL, 0, 32, 64, &got), 0);
    assert_int_equal(got.bytes[5], 1);
    got = fresh;
    assert_int_equal(tollbar_prefix_of_client(NULL, 1, "", 0, proxies, 3, 32, 64, &got), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, NULL, 1, proxies, 3, 32, 64, &got), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, NULL, 3, 32, 64, &got), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, proxies, SIZE_MAX, 32, 64, &got), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, proxies, 3, 33, 64, &got), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, proxies, 3, 32, 64, NULL), TOLLBAR_E_NULL);
    /* A network that tollbar_network_parse has not made. */
    proxies[1].bytes[0] = 7;
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, proxies, 3, 32, 64, &got), TOLLBAR_E_ADDRESS);
    memset(&proxies[1], 0, sizeof proxies[1]);
    assert_int_equal(tollbar_prefix_of_client("::1", 3, "", 0, proxies, 3, 32, 64, &got), TOLLBAR_E_ADDRESS);
    assert_memory_equal(&got, &fresh, sizeof got);
}

/* Hosts of one /64 are one key of a table. */
static void a_prefix_is_a_key(void **state) {
    static const char *const texts[] = {"2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"};
    static const int32_t want[] = {TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_ALLOWED};
    tollbar_table *table = table_of(100, "1/min", NULL);
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(texts); i++) {
        tollbar_prefix client = TOLLBAR_PREFIX_INIT;
        assert_int_equal(tollbar_prefix_parse(texts[i], strlen(texts[i]), 32, 64, &client), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, client.bytes, client.length, 1, SEC, NULL), want[i]);
    }
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_as_text),
        cmocka_unit_test(addresses_as_bytes),
        cmocka_unit_test(clients_behind_proxies),
        cmocka_unit_test(c4_arguments),
        cmocka_unit_test(a_prefix_is_a_key),
    };
    return cmocka_run_group_tests_name("prefixes", tests, NULL, NULL);
}
