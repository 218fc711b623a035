/* Trust in files, memory that is sealed against truncation, and what is flushed to the disk. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library calls these functions, because the linker finds the program's definitions first. */
static unsigned flushed_files, flushed_maps;

int fsync(int fd) {
    flushed_files++;
    return (int)syscall(SYS_fsync, fd);
}

int msync(void *start, size_t length, int flags) {
    flushed_maps += flags == MS_SYNC;
    return (int)syscall(SYS_msync, start, length, flags);
}

static char directory[64], path[80];

static int set_up(void **state) {
    (void)state;
    strcpy(directory, "/tmp/tollbar-trust-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    return snprintf(path, sizeof path, "%s/table", directory) > 0 ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static int32_t open_with(uint32_t flags, uint32_t mode, tollbar_table **out) {
    struct asked asked;
    ask(&asked, 1000, "10/h", NULL);
    asked.options.flags |= flags;
    asked.options.mode = mode;
    return tollbar_table_open(path, asked.policies, asked.count, &asked.options, out);
}

static int32_t open_any(uint32_t flags, tollbar_table **out) {
    tollbar_table_options any = TOLLBAR_TABLE_OPTIONS_INIT(0);
    any.flags = flags;
    return tollbar_table_open(path, NULL, 0, &any, out);
}

static void assert_strange(void) {
    tollbar_table *table = NULL;
    errno = 0;
    assert_int_equal(open_with(0, 0, &table), TOLLBAR_E_OWNER);
    assert_int_equal(open_any(0, &table), TOLLBAR_E_OWNER);
    assert_int_equal(tollbar_table_open(path, NULL, 0, NULL, &table), TOLLBAR_E_OWNER);
    assert_null(table);
    assert_int_equal(open_with(TOLLBAR_TABLE_TRUST_ANYONE, 0, &table), 0);
    tollbar_table_close(table);
    assert_int_equal(open_any(TOLLBAR_TABLE_TRUST_ANYONE, &table), 0);
    tollbar_table_close(table);
}

static void a_strangers_file_is_refused(void **state) {
    tollbar_table *table;
    (void)state;
    assert_int_equal(open_with(0, 0, &table), 0);
    tollbar_table_close(table);
    assert_int_equal(open_any(0, &table), 0);
    tollbar_table_close(table);
    assert_int_equal(chmod(path, 0666), 0);
    assert_strange();
    assert_int_equal(open_with(0, 0666, &table), 0);
    tollbar_table_close(table);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_strange();
    assert_int_equal(chmod(directory, 01777), 0);
    assert_int_equal(open_with(0, 0, &table), 0);
    tollbar_table_close(table);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_strange();
    }
}

static void whatever_is_there_has_no_other_options(void **state) {
    tollbar_table_options any = TOLLBAR_TABLE_OPTIONS_INIT(0);
    tollbar_table *table;
    (void)state;
    assert_int_equal(open_with(0, 0, &table), 0);
    tollbar_table_close(table);
    any.on_full = TOLLBAR_ON_FULL_DENY;
    assert_int_equal(tollbar_table_open(path, NULL, 0, &any, &table), TOLLBAR_E_POLICY_COUNT);
    any.on_full = 0;
    any.flags = 8;
    assert_int_equal(tollbar_table_open(path, NULL, 0, &any, &table), TOLLBAR_E_RESERVED);
}

static void sealed_memory_is_shared_by_its_descriptor(void **state) {
    struct asked asked;
    tollbar_table *table = NULL, *other = NULL;
    int fd = -1, status;
    pid_t child;
    (void)state;
    ask(&asked, 1000, "10/h", NULL);
    assert_int_equal(tollbar_table_new_sealed(asked.policies, 1, NULL, &fd, &table), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_new_sealed(asked.policies, 1, &asked.options, NULL, &table), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_new_sealed(asked.policies, 1, &asked.options, &fd, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_new_sealed(asked.policies, 1, &asked.options, &fd, &table), 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t taken = 0;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(1);
        /* Either call would kill the parent at its next access. */
        if (ftruncate(fd, 0) == 0 || fallocate(fd, 0, 0, 1 << 30) == 0)
            _exit(2);
        if (tollbar_table_open_fd(fd, &other) != 0)
            _exit(3);
        _exit(tollbar_table_take_up_to_at(other, 0, "k", 1, 9, SEC, &taken) == 0 && taken == 9 ? 0 : 4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tollbar_table_open_fd(fd, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_open_fd(fd, &other), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(other, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_sync(other), 0);
    tollbar_table_close(table);
    tollbar_table_close(other);

    assert_int_equal(open_with(0, 0, &table), 0);
    tollbar_table_close(table);
    fd = open(path, O_RDWR);
    assert_int_equal(tollbar_table_open_fd(fd, &other), TOLLBAR_E_UNSEALED);
    close(fd);
    errno = 0;
    assert_int_equal(tollbar_table_open_fd(-1, &other), TOLLBAR_E_READ);
    assert_int_equal(errno, EBADF);
}

static void what_is_to_outlast_the_machine_is_on_its_disk(void **state) {
    tollbar_table *table;
    unsigned before = flushed_files;
    (void)state;
    assert_int_equal(open_with(0, 0, &table), 0);
    /* The file is flushed before it has its name. Otherwise the name could lead to an incomplete
     * table after a power failure. */
    assert_int_equal(flushed_files, before + 1);
    before = flushed_maps;
    assert_int_equal(tollbar_table_sync(table), 0);
    assert_int_equal(flushed_maps, before + 1);
    tollbar_table_close(table);
    before = flushed_files;
    assert_int_equal(open_with(0, 0, &table), 0);
    assert_int_equal(flushed_files, before);
    tollbar_table_close(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_strangers_file_is_refused),
        TEST(whatever_is_there_has_no_other_options),
        TEST(sealed_memory_is_shared_by_its_descriptor),
        TEST(what_is_to_outlast_the_machine_is_on_its_disk),
    };
    return cmocka_run_group_tests_name("whose tables", tests, NULL, NULL);
}
