/* Where tables live, what is in their slots, and the sizes of their structs. */
#define _POSIX_C_SOURCE 200809L
#include "table.h"

/* Memory with the alignment of a table. */
static void *aligned(size_t size) {
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, size), 0);
    return memory;
}

static void stats_count_what_happened(void **state) {
    tollbar_table *table = table_of(4096, "1/s", "1/h");
    tollbar_table_stats stats;
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    uint64_t key, bytes = 0;
    struct asked asked;
    (void)state;
    ask(&asked, 4096, "1/s", "1/h");
    assert_int_equal(tollbar_table_bytes(asked.policies, asked.count, &asked.options, &bytes), 0);
    stats = stats_of(table);
    assert_int_equal(stats.struct_size, sizeof stats);
    assert_int_equal(stats.policies, 2);
    assert_int_equal(stats.capacity, 4096);
    assert_int_equal(stats.slots, LEAST);
    assert_int_equal(stats.bytes, bytes);
    assert_true(bytes >= LEAST * 16);
    assert_true(stats.keys == 0 && stats.inserted == 0 && stats.reclaimed == 0 && stats.vacated == 0 && stats.resets == 0 &&
                stats.refused == 0 && stats.inherited == 0 && stats.untracked == 0 && stats.evicted == 0 &&
                stats.retries == 0 && stats.backward_steps == 0);
    for (key = 0; key < 100; key++)
        assert_int_equal(take(table, 0, key, 10 * SEC, 1), TOLLBAR_ALLOWED);
    for (key = 0; key < 50; key++)
        assert_int_equal(take(table, 1, key, 10 * SEC, 1), TOLLBAR_ALLOWED);
    for (key = 0; key < 7; key++)
        assert_int_equal(tollbar_table_reset_at(table, 1, &key, sizeof key, 10 * SEC), TOLLBAR_YES);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 12 * SEC, &swept), 0);
    stats = stats_of(table);
    assert_int_equal(stats.keys, 43);
    assert_int_equal(stats.inserted, 150);
    assert_int_equal(stats.resets, 7);
    assert_int_equal(stats.vacated, 107);
    /* Far more keys than slots, a thousand every two seconds: they take the slots of expired
     * keys. */
    for (key = 0; key < 20000; key++)
        assert_int_equal(take(table, 0, 1000 + key, (20 + key / 1000 * 2) * SEC, 1), TOLLBAR_ALLOWED);
    stats = stats_of(table);
    assert_true(stats.reclaimed > 10000);
    assert_int_equal(stats.inserted + stats.reclaimed, 150 + 20000);
    assert_int_equal(stats.keys, stats.inserted - stats.vacated);
    assert_int_equal(stats.backward_steps, 0);
    assert_int_equal(stats.retries, 0);
    /* Times before that of an earlier request. */
    assert_int_equal(take(table, 0, 20999, 56 * SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(take(table, 0, 20999, 57 * SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(stats_of(table).backward_steps, 2);
    tollbar_table_close(table);
}

struct seen {
    uint32_t policy;
    uint64_t hash;
};

static int by_hash(const void *a, const void *b) {
    const struct seen *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void next_finds_each_key_exactly_once(void **state) {
    enum { KEYS = 3000 };
    tollbar_table *table = table_of(4000, "4/s", "1/min");
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    struct seen *want = calloc(KEYS, sizeof *want), *got = calloc(KEYS + 1, sizeof *got);
    uint64_t key, last = 0;
    size_t found = 0, i;
    (void)state;
    assert_non_null(want);
    assert_non_null(got);
    for (key = 0; key < KEYS; key++) {
        want[key].policy = key % 3 == 0;
        assert_int_equal(take(table, want[key].policy, key, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_hash(table, want[key].policy, &key, sizeof key, &want[key].hash), 0);
    }
    while (tollbar_table_next(table, entry.next, SEC, &entry) == TOLLBAR_YES) {
        assert_int_equal(entry.struct_size, sizeof entry);
        assert_true(entry.next > last && entry.next <= LEAST);
        last = entry.next;
        assert_true(found < KEYS);
        got[found].policy = entry.policy;
        got[found++].hash = entry.hash;
        assert_int_equal(entry.remaining, entry.policy == 0 ? 3 : 0);
        /* A state counts in steps of some nanoseconds, and the time is never too short. */
        assert_in_range(entry.reset_after_ns, entry.policy == 0 ? SEC / 4 : MIN, (entry.policy == 0 ? SEC / 4 : MIN) + 8);
    }
    assert_int_equal(found, KEYS);
    /* At the end of the table the call writes no entry. */
    assert_int_equal(entry.next, last);
    assert_int_equal(tollbar_table_next(table, UINT64_MAX, SEC, &entry), TOLLBAR_NO);
    qsort(want, KEYS, sizeof *want, by_hash);
    qsort(got, KEYS, sizeof *got, by_hash);
    for (i = 0; i < KEYS; i++) {
        assert_true(got[i].hash == want[i].hash);
        assert_int_equal(got[i].policy, want[i].policy);
    }
    /* Later, the same entries have expired. */
    entry.next = 0;
    for (found = 0; tollbar_table_next(table, entry.next, 62 * SEC, &entry) == TOLLBAR_YES; found++) {
        assert_int_equal(entry.reset_after_ns, 0);
        assert_int_equal(entry.remaining, entry.policy == 0 ? 4 : 1);
    }
    assert_int_equal(found, KEYS);
    free(want);
    free(got);
    tollbar_table_close(table);
}

static void sweeping_leaves_those_with_a_debt(void **state) {
    tollbar_table *table = table_of(1000, "1/s", "1/min");
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    uint64_t key, live = 0, vacated = 0, calls = 0;
    (void)state;
    for (key = 0; key < 100; key++)
        assert_int_equal(take(table, key % 4 == 0, key, SEC, 1), TOLLBAR_ALLOWED);
    /* The sweep of one piece after the other. A `from` beyond the end is the end. */
    do {
        assert_int_equal(tollbar_table_sweep(table, swept.next, 1000, 3 * SEC, &swept), 0);
        live += swept.live;
        vacated += swept.vacated;
        calls++;
        assert_int_equal(swept.next, swept.done ? 0 : calls * 1000);
    } while (!swept.done);
    assert_int_equal(calls, LEAST / 1000 + 1);
    assert_int_equal(live, 25);
    assert_int_equal(vacated, 75);
    assert_int_equal(stats_of(table).keys, 25);
    assert_int_equal(tollbar_table_sweep(table, 0, 0, 62 * SEC, &swept), 0);
    assert_true(swept.done == 0 && swept.next == 0 && swept.live == 0 && swept.vacated == 0);
    assert_int_equal(tollbar_table_sweep(table, UINT64_MAX, UINT64_MAX, 62 * SEC, &swept), 0);
    assert_true(swept.done == 1 && swept.next == 0 && swept.live == 0 && swept.vacated == 0);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 62 * SEC, &swept), 0);
    assert_true(swept.done == 1 && swept.next == 0 && swept.live == 0 && swept.vacated == 25);
    assert_int_equal(stats_of(table).keys, 0);
    tollbar_table_close(table);
}

/* Tables of every way of making give the same answers. */
static void each_way_of_making_one(void **state) {
    struct asked asked;
    tollbar_table *tables[3] = {NULL, NULL, NULL};
    uint64_t bytes = 0, key;
    void *memory;
    size_t i;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    memory = aligned((size_t)bytes);
    /* init_in overwrites the memory's former content. */
    memset(memory, 0x5a, (size_t)bytes);
    assert_int_equal(tollbar_table_new(asked.policies, 2, &asked.options, &tables[0]), 0);
    assert_int_equal(tollbar_table_new_shared(asked.policies, 2, &asked.options, &tables[1]), 0);
    assert_int_equal(tollbar_table_init_in(memory, (size_t)bytes, asked.policies, 2, &asked.options, &tables[2]), 0);
    for (i = 0; i < COUNT(tables); i++) {
        for (key = 0; key < 300; key++) {
            assert_int_equal(take(tables[i], 0, key, SEC, 2), TOLLBAR_ALLOWED);
            assert_int_equal(take(tables[i], 1, key, SEC, 1), TOLLBAR_ALLOWED);
        }
        assert_int_equal(stats_of(tables[i]).bytes, bytes);
        assert_same_content(tables[0], tables[i], SEC);
    }
    for (i = 0; i < COUNT(tables); i++)
        tollbar_table_close(tables[i]);
    free(memory);
}

static void tables_live_in_the_callers_memory(void **state) {
    enum { BEYOND = 64 };
    struct asked asked;
    tollbar_table *table = NULL, *view = NULL, *moved = NULL, *const untouched = (tollbar_table *)&asked;
    tollbar_table *none = untouched;
    uint64_t bytes = 0;
    size_t size, i;
    unsigned char *memory, *copy;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    size = (size_t)bytes;
    memory = aligned(size + BEYOND);
    copy = aligned(size + BEYOND);
    memset(memory, 0x5a, size + BEYOND);
    memset(copy, 0x5a, size + BEYOND);

    assert_int_equal(tollbar_table_init_in(memory, size - 1, asked.policies, 2, &asked.options, &none), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_init_in(memory, 0, asked.policies, 2, &asked.options, &none), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_table_init_in(memory + 32, size, asked.policies, 2, &asked.options, &none), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_table_attach(memory, size, &none), TOLLBAR_E_NOT_A_TABLE);
    for (i = 0; i < size + BEYOND; i++)
        assert_int_equal(memory[i], 0x5a);

    assert_int_equal(tollbar_table_init_in(memory, size + BEYOND, asked.policies, 2, &asked.options, &table), 0);
    assert_int_equal(take(table, 0, 7, SEC, 2), TOLLBAR_ALLOWED);
    /* Two views show one table. */
    assert_int_equal(tollbar_table_attach(memory, size, &view), 0);
    assert_true(view != table);
    assert_int_equal(take(view, 0, 7, SEC, 2), TOLLBAR_DENIED);
    assert_int_equal(take(view, 0, 7, SEC, 1), TOLLBAR_ALLOWED);
    assert_int_equal(take(table, 0, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_exempt(table, 0, "e", 1), 0);
    assert_int_equal(tollbar_table_check_at(view, 0, "e", 1, 99, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_set_policy(view, 1, &asked.specs[0], TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(take(table, 1, 7, SEC, 3), TOLLBAR_ALLOWED);
    tollbar_table_close(view);
    /* The table's content does not depend on its address. */
    memcpy(copy, memory, size);
    tollbar_table_close(table);
    assert_int_equal(tollbar_table_attach(copy, size + BEYOND, &moved), 0);
    assert_int_equal(take(moved, 0, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(take(moved, 1, 7, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(moved, 0, "e", 1, 99, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(moved).keys, 2);
    tollbar_table_close(moved);
    for (i = size; i < size + BEYOND; i++) {
        assert_int_equal(memory[i], 0x5a);
        assert_int_equal(copy[i], 0x5a);
    }

    /* Memory that is not a table is refused. */
    assert_int_equal(tollbar_table_attach(copy, size - 1, &none), TOLLBAR_E_TRUNCATED);
    assert_int_equal(tollbar_table_attach(copy, 0, &none), TOLLBAR_E_TRUNCATED);
    memmove(copy + 32, copy, size);
    assert_int_equal(tollbar_table_attach(copy + 32, size, &none), TOLLBAR_E_MISALIGNED);
    memcpy(copy, memory, size);
    copy[0] ^= 1;
    assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_NOT_A_TABLE);
    copy[0] ^= 1;
    copy[8] ^= 1;
    assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_TABLE_VERSION);
    copy[8] ^= 1;
    /* A change of any byte of the fixed parameters or of their checksum is noticed. */
    for (i = 16; i < 96; i++) {
        copy[i] ^= 0x10;
        assert_int_equal(tollbar_table_attach(copy, size, &none), TOLLBAR_E_CORRUPT);
        copy[i] ^= 0x10;
    }
    assert_ptr_equal(none, untouched);
    assert_int_equal(tollbar_table_attach(copy, size, &moved), 0);
    tollbar_table_close(moved);
    free(memory);
    free(copy);
}

/* The counts of validate, which must return `want`. */
static tollbar_table_health health_of(const tollbar_table *table, uint64_t now, int32_t want) {
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    assert_int_equal(tollbar_table_validate(table, now, &health), want);
    assert_int_equal(health.struct_size, sizeof health);
    assert_int_equal(health.claimed, 0);
    assert_int_equal(health.vacant + health.waiting + health.expired + health.live + health.unknown + health.duplicate, LEAST);
    return health;
}

static void a_damaged_table_is_told_and_repaired(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    uint64_t bytes = 0, key, *slots;
    unsigned char *memory;
    size_t n, empty = 0, full = 0;
    (void)state;
    ask(&asked, 1000, "3/min", "1/s");
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), 0);
    memory = aligned((size_t)bytes);
    assert_int_equal(tollbar_table_init_in(memory, (size_t)bytes, asked.policies, 2, &asked.options, &table), 0);
    for (key = 0; key < 40; key++)
        assert_int_equal(take(table, key < 10, key, SEC, 1), TOLLBAR_ALLOWED);
    for (key = 10; key < 15; key++)
        assert_int_equal(tollbar_table_reset_at(table, 0, &key, sizeof key, SEC), TOLLBAR_YES);
    health = health_of(table, 3 * SEC, 0);
    assert_int_equal(health.expired, 10);
    assert_int_equal(health.live, 25);
    assert_int_equal(health.waiting, 5);
    /* The repair of a sound table changes nothing. */
    assert_int_equal(tollbar_table_repair(table, 3 * SEC, &health), 0);
    assert_int_equal(health.live, 25);
    assert_int_equal(health_of(table, 3 * SEC, 0).expired, 10);
    assert_int_equal(take(table, 0, 39, SEC, 3), TOLLBAR_DENIED);

    /* Behind the first 219 KiB are the slots, pairs of a key word and a state word, four in a line.
     * The test puts a key of an unknown version into one slot, and a second copy of a key with a
     * debt into another. */
    slots = (uint64_t *)(void *)(memory + 219 * 1024);
    for (n = 0; n < LEAST && (empty == 0 || full == 0); n++) {
        const uint64_t *line = slots + n / 4 * 8;
        int lonely = line[0] != 0 && line[2] == 0 && line[3] == 0;
        if (n % 4 == 0 && lonely && full == 0 && line[0] >> 56 == 1)
            full = n;
        else if (n > 100 && slots[2 * n] == 0 && slots[2 * n + 1] == 0 && n / 4 != full / 4)
            empty = n;
    }
    assert_true(empty != 0 && full != 0);
    slots[2 * empty] = UINT64_C(0xfa00000000000123);
    slots[2 * empty + 1] = 1;
    slots[2 * full + 2] = slots[2 * full];
    slots[2 * full + 3] = slots[2 * full + 1];
    health = health_of(table, 3 * SEC, TOLLBAR_E_SLOTS_INVALID);
    assert_int_equal(health.unknown, 1);
    assert_int_equal(health.duplicate, 1);
    /* repair returns the counts of before. After it there is nothing to repair, and all debts
     * stay. */
    assert_int_equal(tollbar_table_repair(table, 3 * SEC, &health), TOLLBAR_E_SLOTS_INVALID);
    assert_int_equal(health.unknown, 1);
    assert_int_equal(health.duplicate, 1);
    health = health_of(table, 3 * SEC, 0);
    assert_int_equal(health.expired, 10);
    assert_int_equal(health.live, 25);
    for (key = 15; key < 40; key++)
        assert_int_equal(take(table, 0, key, SEC, 3), TOLLBAR_DENIED);
    tollbar_table_close(table);
    free(memory);
}

static void a_seed_is_kept_and_without_one_tables_differ(void **state) {
    struct asked asked;
    tollbar_table *tables[4];
    uint64_t hashes[4];
    size_t i;
    (void)state;
    ask(&asked, 1000, "1/s", NULL);
    for (i = 0; i < COUNT(tables); i++) {
        asked.options.flags = i < 2 ? TOLLBAR_TABLE_HAS_SEED : i == 2 ? TOLLBAR_TABLE_SMALL_PAGES : 0;
        asked.options.seed = i < 2 ? 42 : 0;
        tables[i] = table_asked(&asked);
        assert_int_equal(tollbar_table_hash(tables[i], 0, "k", 1, &hashes[i]), 0);
        tollbar_table_close(tables[i]);
    }
    assert_true(hashes[0] == hashes[1]);
    /* Two random seeds give equal hashes once in 2^64. */
    assert_true(hashes[1] != hashes[2]);
    assert_true(hashes[2] != hashes[3]);
}

#define GARBAGE(type) {0, (uint32_t)sizeof(type) - 1, 4097, UINT32_MAX}

/* Structs of a newer caller, and sizes that no version has. */
static void c6_struct_sizes(void **state) {
    static const uint32_t of_stats[] = GARBAGE(tollbar_table_stats), of_entry[] = GARBAGE(tollbar_table_entry),
                          of_sweep[] = GARBAGE(tollbar_table_sweep_result), of_options[] = GARBAGE(tollbar_table_options);
    struct {
        tollbar_table_stats known;
        uint64_t later;
    } stats;
    struct {
        tollbar_table_entry known;
        uint64_t later;
    } entry;
    struct {
        tollbar_table_sweep_result known;
        uint64_t later;
    } swept;
    struct {
        tollbar_table_options known;
        uint64_t later;
    } options;
    struct asked asked;
    tollbar_table *table = table_of(1000, "1/s", NULL), *other = NULL;
    const uint64_t untouched = UINT64_C(0x5555555555555555);
    size_t i;
    (void)state;
    memset(&stats, 0x55, sizeof stats);
    memset(&entry, 0x55, sizeof entry);
    memset(&swept, 0x55, sizeof swept);
    ask(&asked, 1000, "1/s", NULL);
    options.known = asked.options;
    options.later = 0;
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_ALLOWED);
    for (i = 0; i < COUNT(of_stats); i++) {
        stats.known.struct_size = of_stats[i];
        entry.known.struct_size = of_entry[i];
        swept.known.struct_size = of_sweep[i];
        options.known.struct_size = of_options[i];
        assert_int_equal(tollbar_table_get_stats(table, &stats.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_next(table, 0, SEC, &entry.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, 5 * SEC, &swept.known), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), TOLLBAR_E_STRUCT_SIZE);
        assert_true(stats.known.keys == untouched && entry.known.hash == untouched && swept.known.live == untouched);
    }
    assert_null(other);
    /* The refused sweep has swept nothing. */
    assert_int_equal(stats_of(table).keys, 1);

    stats.known.struct_size = (uint32_t)sizeof stats;
    entry.known.struct_size = (uint32_t)sizeof entry;
    swept.known.struct_size = (uint32_t)sizeof swept;
    options.known.struct_size = (uint32_t)sizeof options;
    assert_int_equal(tollbar_table_get_stats(table, &stats.known), 0);
    assert_int_equal(tollbar_table_next(table, 0, SEC, &entry.known), TOLLBAR_YES);
    assert_int_equal(tollbar_table_sweep(table, 0, UINT64_MAX, SEC, &swept.known), 0);
    assert_int_equal(stats.known.keys, 1);
    assert_in_range(entry.known.reset_after_ns, SEC, SEC + 8);
    assert_int_equal(swept.known.live, 1);
    assert_true(stats.later == 0 && entry.later == 0 && swept.later == 0);
    assert_int_equal(stats.known.struct_size, sizeof stats);
    options.later = 1;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), TOLLBAR_E_RESERVED);
    assert_null(other);
    options.later = 0;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &options.known, &other), 0);
    tollbar_table_close(other);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_count_what_happened),
        cmocka_unit_test(next_finds_each_key_exactly_once),
        cmocka_unit_test(sweeping_leaves_those_with_a_debt),
        cmocka_unit_test(each_way_of_making_one),
        cmocka_unit_test(tables_live_in_the_callers_memory),
        cmocka_unit_test(a_damaged_table_is_told_and_repaired),
        cmocka_unit_test(a_seed_is_kept_and_without_one_tables_differ),
        cmocka_unit_test(c6_struct_sizes),
    };
    return cmocka_run_group_tests_name("memory of tables", tests, NULL, NULL);
}
