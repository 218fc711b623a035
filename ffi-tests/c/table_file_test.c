/* Tables in files: processes make or open them by path, and a table stays after the last process
 * has closed it. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The path of this program, which starts itself again. */
static const char *program;

/* The started program calls this: it takes up to 100 permits of a key, and returns their number. */
static int take_in_another_program(const char *path, const char *key) {
    struct asked asked;
    tollbar_table *table = NULL;
    uint64_t taken = 0;
    usual(&asked);
    if (open_asked(path, &asked, &table) != 0)
        return 254;
    if (tollbar_table_take_up_to_at(table, 0, key, strlen(key), 100, SEC, &taken) < 0)
        return 253;
    tollbar_table_close(table);
    return (int)taken;
}

static int another_program_takes(const char *path, const char *key) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl(program, program, path, key, (char *)NULL);
        _exit(252);
    }
    return status_of(child);
}

static void programs_share_a_file(void **state) {
    tollbar_table *table;
    (void)state;
    /* This process makes the table, and another program opens it. */
    table = opened(in("first"));
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 4, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(another_program_takes(in("first"), "k"), 6);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(another_program_takes(in("first"), "new"), 10);
    assert_int_equal(tollbar_table_check_at(table, 0, "new", 3, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(stats_of(table).keys, 2);
    tollbar_table_close(table);
    /* Another program makes the table and ends. This process opens it. */
    assert_int_equal(another_program_takes(in("second"), "k"), 10);
    table = opened(in("second"));
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    assert_int_equal(another_program_takes(in("second"), "k"), 0);
}

static void permissions_are_as_asked(void **state) {
    static const mode_t masks[] = {0, 022, 077, 0777};
    static const uint32_t modes[] = {0, 0600, 0640, 0666};
    size_t i, j;
    (void)state;
    for (i = 0; i < COUNT(masks); i++)
        for (j = 0; j < COUNT(modes); j++) {
            struct asked asked;
            struct stat status;
            tollbar_table *table = NULL;
            mode_t before;
            usual(&asked);
            asked.options.mode = modes[j];
            before = umask(masks[i]);
            assert_int_equal(open_asked(in("table"), &asked, &table), 0);
            umask(before);
            assert_int_equal(stat(in("table"), &status), 0);
            assert_int_equal(status.st_mode & 07777, modes[j] ? modes[j] : 0600);
            assert_int_equal(status.st_size, stats_of(table).bytes);
            tollbar_table_close(table);
            assert_int_equal(empty(), 1);
        }
}

static void all_of_it_is_there_again(void **state) {
    enum { CROWD = 800 };
    const char *const path = in("table");
    tollbar_table *table = opened(path);
    tollbar_policy_spec daily = spec_of("50/day"), got = TOLLBAR_POLICY_SPEC_INIT;
    struct asked asked;
    uint64_t key, before = 0, after = 0, hash = 0, again = 0;
    uint32_t number = 0;
    (void)state;
    for (key = 0; key < CROWD; key++)
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, key % 10 + 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_exempt(table, 0, "exempt", 6), 0);
    assert_int_equal(tollbar_table_check(table, 1, "by the clock", 12, 2, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_hash(table, 0, "k", 1, &hash), 0);
    assert_int_equal(tollbar_table_now(table, &before), 0);
    tollbar_table_close(table);

    table = opened(path);
    for (key = 0; key < CROWD; key++) {
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 0, SEC, &decision), TOLLBAR_ALLOWED);
        assert_int_equal(decision.remaining, 9 - key % 10);
    }
    assert_int_equal(tollbar_table_check_at(table, 0, "exempt", 6, 100, SEC, NULL), TOLLBAR_ALLOWED);
    /* The table's clock goes on. At 2 a minute, even a slow machine gets here before the next
     * permit, half a minute later. */
    assert_int_equal(tollbar_table_check(table, 1, "by the clock", 12, 2, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_now(table, &after), 0);
    assert_in_range(after, before, before + MIN);
    assert_int_equal(tollbar_table_hash(table, 0, "k", 1, &again), 0);
    assert_true(hash == again);
    assert_int_equal(stats_of(table).inserted, CROWD + 1);

    /* A table must be opened with its present policies: one more, and one changed. */
    assert_int_equal(tollbar_table_add_policy(table, &daily, &number), 0);
    assert_int_equal(tollbar_table_set_policy(table, 0, &daily, TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(tollbar_table_sync(table), 0);
    tollbar_table_close(table);
    usual(&asked);
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    assert_int_equal(tollbar_table_open(path, NULL, 0, NULL, &table), 0);
    assert_int_equal(stats_of(table).policies, 3);
    assert_int_equal(tollbar_table_get_policy(table, 0, &got), 0);
    assert_memory_equal(&got, &daily, sizeof got);
    assert_int_equal(tollbar_table_get_policy(table, number, &got), 0);
    assert_memory_equal(&got, &daily, sizeof got);
    tollbar_table_close(table);
}

/* A process that has the table open can still use it, and another file can be made under the
 * name. */
static void a_file_that_is_removed(void **state) {
    tollbar_table *old = opened(in("table")), *new;
    (void)state;
    assert_int_equal(tollbar_table_check_at(old, 0, "k", 1, 10, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(unlink(in("table")), 0);
    new = opened(in("table"));
    assert_int_equal(tollbar_table_check_at(new, 0, "k", 1, 10, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(old, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_sync(old), 0);
    tollbar_table_close(old);
    tollbar_table_close(new);
    assert_int_equal(empty(), 1);
}

/* If there is not enough room, the call leaves no file, and no temporary file. */
static void without_room_nothing_is_left(void **state) {
    pid_t child = fork();
    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {65536, 65536};
        struct asked asked;
        tollbar_table *table = NULL;
        usual(&asked);
        errno = 0;
        _exit(setrlimit(RLIMIT_FSIZE, &limit) != 0 || open_asked(in("table"), &asked, &table) != TOLLBAR_E_NO_SPACE ||
              errno != EFBIG || table != NULL);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(empty(), 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(programs_share_a_file),
        IN_MEMORY(programs_share_a_file),
        IN_A_DIRECTORY(permissions_are_as_asked),
        IN_A_DIRECTORY(all_of_it_is_there_again),
        IN_MEMORY(all_of_it_is_there_again),
        IN_A_DIRECTORY(a_file_that_is_removed),
        IN_A_DIRECTORY(without_room_nothing_is_left),
    };
    program = arguments[0];
    if (count == 3)
        return take_in_another_program(arguments[1], arguments[2]);
    return cmocka_run_group_tests_name("tables in files", tests, NULL, NULL);
}
