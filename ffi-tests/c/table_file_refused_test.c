/* Files and paths that tollbar_table_open refuses. A refused file stays as it is, and errno has the
 * system's reason. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

static void another_table_is_refused_and_stays_as_it_is(void **state) {
    const char *const path = in("table");
    tollbar_table *table = opened(path);
    struct asked asked;
    unsigned char *content;
    size_t length = 0;
    (void)state;
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 4, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
    content = content_of(path, &length);
    usual(&asked);
    asked.options.capacity = 1001;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_CAPACITY);
    usual(&asked);
    asked.options.on_full = TOLLBAR_ON_FULL_INHERIT;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_OPTIONS);
    usual(&asked);
    asked.options.missing_key = TOLLBAR_MISSING_ALLOW;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_OPTIONS);
    usual(&asked);
    asked.options.clock = TOLLBAR_CLOCK_MONOTONIC;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_OPTIONS);
    usual(&asked);
    asked.count = 1;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    ask(&asked, 1000, "2/min", "10/h");
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    /* The call refuses an invalid policy before it opens the file. */
    usual(&asked);
    asked.specs[0].period_ns = 0;
    assert_refused(path, &asked, TOLLBAR_E_PERIOD_ZERO);
    assert_content(path, content, length);
    free(content);

    /* The options for pages and permissions may differ. */
    usual(&asked);
    asked.options.flags |= TOLLBAR_TABLE_SMALL_PAGES;
    asked.options.mode = 0644;
    assert_int_equal(open_asked(path, &asked, &table), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 7, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 6, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

/* A file with these `length` bytes is refused, with and without options, and stays unchanged. */
static void assert_damaged(const void *content, size_t length, int32_t want) {
    const char *const path = in("damaged");
    struct asked asked;
    usual(&asked);
    write_file(path, content, length);
    assert_refused(path, &asked, want);
    assert_refused(path, NULL, want);
    assert_content(path, content, length);
}

static void what_is_no_table_is_refused_and_stays_as_it_is(void **state) {
    unsigned char *content;
    size_t length = 0;
    (void)state;
    tollbar_table_close(opened(in("table")));
    content = content_of(in("table"), &length);
    assert_damaged("garbage", 7, TOLLBAR_E_NOT_A_TABLE);
    assert_damaged(content, length - 1, TOLLBAR_E_TRUNCATED);
    content[9] ^= 1;
    assert_damaged(content, length, TOLLBAR_E_TABLE_VERSION);
    content[9] ^= 1;
    content[16] ^= 1;
    assert_damaged(content, length, TOLLBAR_E_CORRUPT);
    free(content);
}

static void what_is_no_file_is_refused(void **state) {
    struct asked asked;
    struct stat status;
    (void)state;
    usual(&asked);
    tollbar_table_close(opened(in("table")));
    assert_int_equal(mkdir(in("directory"), 0700), 0);
    /* No process has the other end of the pipe open, and the call must not wait for one. */
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    assert_int_equal(symlink(in("table"), in("link")), 0);
    assert_int_equal(symlink(in("nothing"), in("dangling")), 0);
    assert_refused(in("directory"), &asked, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("pipe"), &asked, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("link"), &asked, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("dangling"), &asked, TOLLBAR_E_NOT_A_TABLE);
    assert_refused("/dev/null", &asked, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("directory"), NULL, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("pipe"), NULL, TOLLBAR_E_NOT_A_TABLE);
    assert_refused(in("link"), NULL, TOLLBAR_E_NOT_A_TABLE);
    /* The call has not made a file at the end of a link. */
    assert_int_equal(lstat(in("nothing"), &status), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(empty(), 5);
}

static void without_options_it_must_be_there(void **state) {
    tollbar_table *table = opened(in("table")), *view = NULL;
    tollbar_policy_spec got = TOLLBAR_POLICY_SPEC_INIT, want = spec_of("2/min");
    (void)state;
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, NULL, &view), 0);
    assert_int_equal(stats_of(view).capacity, 1000);
    assert_int_equal(stats_of(view).policies, 2);
    assert_int_equal(tollbar_table_get_policy(view, 1, &got), 0);
    assert_memory_equal(&got, &want, sizeof got);
    assert_int_equal(tollbar_table_check_at(view, 0, "k", 1, 10, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    tollbar_table_close(view);

    errno = 0;
    assert_refused(in("nothing"), NULL, TOLLBAR_E_OPEN);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(access(in("nothing"), F_OK), -1);
}

/* A file that its group may write opens only with a mode that says so. That holds for a call without
 * policies, too. */
static void without_policies_the_mode_lets_a_group_write(void **state) {
    tollbar_table_options any = TOLLBAR_TABLE_OPTIONS_INIT(0);
    tollbar_table *view = NULL;
    (void)state;
    tollbar_table_close(opened(in("table")));
    assert_int_equal(chmod(in("table"), 0660), 0);
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, NULL, &view), TOLLBAR_E_OWNER);
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, &any, &view), TOLLBAR_E_OWNER);
    any.mode = 0640;
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, &any, &view), TOLLBAR_E_OWNER);
    any.mode = 01660;
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, &any, &view), TOLLBAR_E_RESERVED);
    assert_null(view);
    any.mode = 0660;
    assert_int_equal(tollbar_table_open(in("table"), NULL, 0, &any, &view), 0);
    assert_int_equal(stats_of(view).capacity, 1000);
    tollbar_table_close(view);
    assert_int_equal(tollbar_table_open(in("nothing"), NULL, 0, &any, &view), TOLLBAR_E_OPEN);
}

static void errno_says_why_it_cannot_be_opened(void **state) {
    struct asked asked;
    char *longest = malloc(PATH_MAX + 2);
    struct row {
        const char *path;
        int why;
    } rows[] = {{NULL, ENOENT}, {NULL, ENOENT}, {NULL, ENOTDIR}, {NULL, ENAMETOOLONG}, {"", ENOENT}};
    size_t i;
    (void)state;
    assert_non_null(longest);
    memset(longest, 'x', PATH_MAX + 1);
    longest[PATH_MAX + 1] = '\0';
    usual(&asked);
    tollbar_table_close(opened(in("table")));
    rows[0].path = in("missing/table");
    rows[1].path = in("");
    rows[2].path = in("table/table");
    rows[3].path = longest;
    for (i = 0; i < COUNT(rows); i++) {
        errno = 0;
        assert_refused(rows[i].path, &asked, TOLLBAR_E_OPEN);
        assert_int_equal(errno, rows[i].why);
        errno = 0;
        assert_refused(rows[i].path, NULL, TOLLBAR_E_OPEN);
        assert_int_equal(errno, rows[i].why);
    }
    free(longest);
    assert_int_equal(empty(), 1);
}

/* Runs as an ordinary user. Returns 0, or the number of the step that failed. */
static int without_permission(const struct asked *asked) {
    static char forbidden[300];
    tollbar_table *table = NULL;
    strcpy(forbidden, in("forbidden"));
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0))
        return 1;
    errno = 0;
    if (open_asked(in("table"), asked, &table) != TOLLBAR_E_OPEN || errno != EACCES)
        return 2;
    errno = 0;
    if (tollbar_table_open(in("table"), NULL, 0, NULL, &table) != TOLLBAR_E_OPEN || errno != EACCES)
        return 3;
    /* A read-only file is refused, because processes write to a table. */
    if (open_asked(in("read-only"), asked, &table) != TOLLBAR_E_OPEN || errno != EACCES)
        return 4;
    errno = 0;
    if (open_asked(strcat(forbidden, "/table"), asked, &table) != TOLLBAR_E_OPEN || errno != EACCES)
        return 5;
    if (table != NULL)
        return 6;
    /* The user can use its own file. */
    if (open_asked(in("own"), asked, &table) != 0 ||
        tollbar_table_check_at(table, 0, "k", 1, 10, SEC, NULL) != TOLLBAR_ALLOWED)
        return 7;
    tollbar_table_close(table);
    return 0;
}

static void without_permission_errno_says_so(void **state) {
    struct asked asked;
    tollbar_table *table;
    pid_t child;
    (void)state;
    usual(&asked);
    tollbar_table_close(opened(in("table")));
    tollbar_table_close(opened(in("read-only")));
    assert_int_equal(chmod(in("table"), 0), 0);
    assert_int_equal(chmod(in("read-only"), 0444), 0);
    assert_int_equal(mkdir(in("forbidden"), 0500), 0);
    assert_int_equal(chmod(directory, 01777), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(without_permission(&asked));
    assert_int_equal(status_of(child), 0);
    /* For root the file belongs to another user. */
    if (geteuid() == 0)
        assert_refused(in("own"), &asked, TOLLBAR_E_OWNER);
    asked.options.flags |= TOLLBAR_TABLE_TRUST_ANYONE;
    assert_int_equal(open_asked(in("own"), &asked, &table), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    assert_int_equal(empty(), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(another_table_is_refused_and_stays_as_it_is),
        IN_A_DIRECTORY(what_is_no_table_is_refused_and_stays_as_it_is),
        IN_A_DIRECTORY(what_is_no_file_is_refused),
        IN_A_DIRECTORY(without_options_it_must_be_there),
        IN_A_DIRECTORY(without_policies_the_mode_lets_a_group_write),
        IN_A_DIRECTORY(errno_says_why_it_cannot_be_opened),
        IN_A_DIRECTORY(without_permission_errno_says_so),
    };
    return cmocka_run_group_tests_name("refused files", tests, NULL, NULL);
}
