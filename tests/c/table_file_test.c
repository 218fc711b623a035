/* Tables in files: processes make or open them by path, a table with other options is refused, and a table stays after the last process
 * has closed it. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The path of this program, which starts itself again. */
static const char *program;

/* An empty directory for each test. */
static char directory[256];

/* A path in the directory. It is valid until the fourth next call. */
static const char *in(const char *name) {
    static char paths[4][300];
    static unsigned last;
    char *path = paths[last++ % 4];
    strcpy(path, directory);
    strcat(path, "/");
    return strncat(path, name, 40);
}

static int empty(void) {
    DIR *open = opendir(directory);
    struct dirent *entry;
    int files = 0;
    if (open == NULL)
        return -1;
    while ((entry = readdir(open)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            files++;
            if (unlink(in(entry->d_name)) != 0)
                rmdir(in(entry->d_name));
        }
    closedir(open);
    return files;
}

static int make_directory(const char *parent) {
    if (strlen(parent) > 200)
        return -1;
    strcpy(directory, parent);
    strcat(directory, "/tollbar-XXXXXX");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int set_up(void **state) {
    const char *chosen = getenv("TMPDIR");
    (void)state;
    return make_directory(chosen != NULL ? chosen : "/tmp");
}

/* A directory in memory, if there is /dev/shm: files there outlive processes but not the machine. */
static int set_up_in_memory(void **state) {
    return access("/dev/shm", W_OK) == 0 ? make_directory("/dev/shm") : set_up(state);
}

static int tear_down(void **state) {
    (void)state;
    empty();
    return rmdir(directory);
}

/* A child reports by its exit status, because a failed assertion in it would jump into the parent's code. */
static int status_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void usual(struct asked *asked) {
    ask(asked, 1000, "10/h", "2/min");
}

static int32_t open_asked(const char *path, const struct asked *asked, tollbar_table **out) {
    return tollbar_table_open(path, asked->policies, asked->count, &asked->options, out);
}

static tollbar_table *opened(const char *path) {
    struct asked asked;
    tollbar_table *table = NULL;
    usual(&asked);
    assert_int_equal(open_asked(path, &asked, &table), 0);
    return table;
}

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

/* The content of a file. */
static unsigned char *content_of(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    unsigned char *content;
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    content = malloc(*length + 1);
    assert_non_null(content);
    assert_int_equal(fread(content, 1, *length, file), *length);
    fclose(file);
    return content;
}

static void write_file(const char *path, const void *content, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const unsigned char *want, size_t length) {
    size_t now = 0;
    unsigned char *content = content_of(path, &now);
    assert_int_equal(now, length);
    if (length != 0)
        assert_memory_equal(content, want, length);
    free(content);
}

/* The call opens no table and leaves `out` unchanged. */
static void assert_refused(const char *path, const struct asked *asked, int32_t want) {
    tollbar_table *const untouched = (tollbar_table *)(void *)directory;
    tollbar_table *out = untouched;
    assert_int_equal(asked != NULL ? open_asked(path, asked, &out) : tollbar_table_open(path, NULL, 0, NULL, &out), want);
    assert_ptr_equal(out, untouched);
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

static void of_many_at_once_one_makes_it(void **state) {
    enum { PROCESSES = 4, ROUNDS = 8 };
    struct meeting {
        int ready;
        uint64_t taken;
    } *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int round, i;
    (void)state;
    assert_true(meeting != MAP_FAILED);
    for (round = 0; round < ROUNDS; round++) {
        pid_t children[PROCESSES];
        memset(meeting, 0, sizeof *meeting);
        for (i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            assert_true(children[i] >= 0);
            if (children[i] == 0) {
                struct asked asked;
                tollbar_table *table = NULL;
                int taken = 0, attempt;
                usual(&asked);
                __atomic_fetch_add(&meeting->ready, 1, __ATOMIC_SEQ_CST);
                while (__atomic_load_n(&meeting->ready, __ATOMIC_SEQ_CST) < PROCESSES)
                    sched_yield();
                if (open_asked(in("many"), &asked, &table) != 0)
                    _exit(1);
                for (attempt = 0; attempt < 20; attempt++)
                    taken += tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL) == TOLLBAR_ALLOWED;
                __atomic_fetch_add(&meeting->taken, (uint64_t)taken, __ATOMIC_SEQ_CST);
                tollbar_table_close(table);
                _exit(0);
            }
        }
        for (i = 0; i < PROCESSES; i++)
            assert_int_equal(status_of(children[i]), 0);
        assert_int_equal(meeting->taken, 10);
        assert_int_equal(empty(), 1);
    }
    munmap(meeting, sizeof *meeting);
}

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
    asked.options.capacity = 1000000;
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
    /* One policy fewer, one that differs, the two in the other order, one too many. */
    usual(&asked);
    asked.count = 1;
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    ask(&asked, 1000, "10/h", "3/min");
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    ask(&asked, 1000, "10/h burst 9", "2/min");
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    ask(&asked, 1000, "2/min", "10/h");
    assert_refused(path, &asked, TOLLBAR_E_OTHER_POLICIES);
    {
        const tollbar_policy_spec *three[3];
        tollbar_table *out = NULL;
        usual(&asked);
        three[0] = asked.policies[0];
        three[1] = three[2] = asked.policies[1];
        assert_int_equal(tollbar_table_open(path, three, 3, &asked.options, &out), TOLLBAR_E_OTHER_POLICIES);
        assert_null(out);
    }
    ask(&asked, 1000, "10/h algo sliding-log", NULL);
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
    static const char garbage[] = "#!/bin/sh\nexit 0\n";
    unsigned char *content;
    size_t length = 0, i;
    (void)state;
    tollbar_table_close(opened(in("table")));
    content = content_of(in("table"), &length);

    assert_damaged(garbage, 0, TOLLBAR_E_NOT_A_TABLE);
    assert_damaged(garbage, 7, TOLLBAR_E_NOT_A_TABLE);
    assert_damaged(garbage, sizeof garbage, TOLLBAR_E_NOT_A_TABLE);
    assert_damaged(content, 7, TOLLBAR_E_NOT_A_TABLE);
    /* The file is cut off. */
    assert_damaged(content, 8, TOLLBAR_E_TRUNCATED);
    assert_damaged(content, 95, TOLLBAR_E_TRUNCATED);
    assert_damaged(content, 4096, TOLLBAR_E_TRUNCATED);
    assert_damaged(content, length / 2, TOLLBAR_E_TRUNCATED);
    assert_damaged(content, length - 1, TOLLBAR_E_TRUNCATED);
    content = realloc(content, length + 4096);
    assert_non_null(content);
    memset(content + length, 0, 4096);
    assert_damaged(content, length + 1, TOLLBAR_E_TRUNCATED);
    assert_damaged(content, length + 4096, TOLLBAR_E_TRUNCATED);
    content[1] ^= 1;
    assert_damaged(content, length, TOLLBAR_E_NOT_A_TABLE);
    content[1] ^= 1;
    content[9] ^= 1;
    assert_damaged(content, length, TOLLBAR_E_TABLE_VERSION);
    content[9] ^= 1;
    for (i = 16; i < 96; i += 8) {
        content[i] ^= 1;
        assert_damaged(content, length, TOLLBAR_E_CORRUPT);
        content[i] ^= 1;
    }
    /* The complete file opens again. */
    write_file(in("damaged"), content, length);
    tollbar_table_close(opened(in("damaged")));
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
    /* The table's clock goes on. At 2 a minute, even a slow machine gets here before the next permit, half a minute later. */
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

/* A process that has the table open can still use it, and another file can be made under the name. */
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
        signal(SIGXFSZ, SIG_IGN);
        errno = 0;
        _exit(setrlimit(RLIMIT_FSIZE, &limit) != 0 || open_asked(in("table"), &asked, &table) != TOLLBAR_E_NO_SPACE ||
              errno != EFBIG || table != NULL);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(empty(), 0);
}

/* The maker is killed at any moment. Then there is a complete table or none. */
static void killed_while_making_it(void **state) {
    int round;
    (void)state;
    for (round = 0; round < 30; round++) {
        int ready[2];
        char byte;
        pid_t child;
        tollbar_table *table;
        assert_int_equal(pipe(ready), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct asked asked;
            usual(&asked);
            if (write(ready[1], "", 1) != 1)
                _exit(1);
            open_asked(in("table"), &asked, &table);
            _exit(0);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep((useconds_t)(round * 20));
        assert_int_equal(kill(child, SIGKILL), 0);
        status_of(child);
        close(ready[0]);
        close(ready[1]);
        table = opened(in("table"));
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 10, SEC, NULL), TOLLBAR_ALLOWED);
        tollbar_table_close(table);
        empty();
    }
}

#define IN_A_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define IN_MEMORY(test) {#test " in /dev/shm", test, set_up_in_memory, tear_down, NULL}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(programs_share_a_file),
        IN_MEMORY(programs_share_a_file),
        IN_A_DIRECTORY(of_many_at_once_one_makes_it),
        IN_MEMORY(of_many_at_once_one_makes_it),
        IN_A_DIRECTORY(another_table_is_refused_and_stays_as_it_is),
        IN_A_DIRECTORY(what_is_no_table_is_refused_and_stays_as_it_is),
        IN_A_DIRECTORY(what_is_no_file_is_refused),
        IN_A_DIRECTORY(without_options_it_must_be_there),
        IN_A_DIRECTORY(errno_says_why_it_cannot_be_opened),
        IN_A_DIRECTORY(without_permission_errno_says_so),
        IN_A_DIRECTORY(permissions_are_as_asked),
        IN_A_DIRECTORY(all_of_it_is_there_again),
        IN_MEMORY(all_of_it_is_there_again),
        IN_A_DIRECTORY(a_file_that_is_removed),
        IN_A_DIRECTORY(without_room_nothing_is_left),
        IN_MEMORY(killed_while_making_it),
    };
    program = arguments[0];
    if (count == 3)
        return take_in_another_program(arguments[1], arguments[2]);
    return cmocka_run_group_tests_name("tables in files", tests, NULL, NULL);
}
