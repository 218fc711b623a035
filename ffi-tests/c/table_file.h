/* Common parts of the tests of tables in files: a directory for each test, and calls on paths in
 * it. The includer defines _DEFAULT_SOURCE and _XOPEN_SOURCE 700. */
#ifndef TOLLBAR_TABLE_FILE_TEST_H
#define TOLLBAR_TABLE_FILE_TEST_H

#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* An empty directory for each test. */
static char directory[256];

/* A path in the directory. It is valid until the fourth next call. */
static inline const char *in(const char *name) {
    static char paths[4][300];
    static unsigned last;
    char *path = paths[last++ % 4];
    snprintf(path, sizeof paths[0], "%s/%.40s", directory, name);
    return path;
}

static inline int empty(void) {
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

static inline int make_directory(const char *parent) {
    if (strlen(parent) > 200)
        return -1;
    strcpy(directory, parent);
    strcat(directory, "/tollbar-XXXXXX");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static inline int set_up(void **state) {
    const char *chosen = getenv("TMPDIR");
    (void)state;
    return make_directory(chosen != NULL ? chosen : "/tmp");
}

/* A directory in memory, if there is /dev/shm: files there outlive processes but not the
 * machine. */
static inline int set_up_in_memory(void **state) {
    return access("/dev/shm", W_OK) == 0 ? make_directory("/dev/shm") : set_up(state);
}

static inline int tear_down(void **state) {
    (void)state;
    empty();
    return rmdir(directory);
}

/* A child reports by its exit status, because a failed assertion in it would jump into the parent's
 * code. */
static inline int status_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static inline void usual(struct asked *asked) {
    ask(asked, 1000, "10/h", "2/min");
}

static inline int32_t open_asked(const char *path, const struct asked *asked, tollbar_table **out) {
    return tollbar_table_open(path, asked->policies, asked->count, &asked->options, out);
}

static inline tollbar_table *opened(const char *path) {
    struct asked asked;
    tollbar_table *table = NULL;
    usual(&asked);
    assert_int_equal(open_asked(path, &asked, &table), 0);
    return table;
}

/* The content of a file. */
static inline unsigned char *content_of(const char *path, size_t *length) {
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

static inline void write_file(const char *path, const void *content, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_content(const char *path, const unsigned char *want, size_t length) {
    size_t now = 0;
    unsigned char *content = content_of(path, &now);
    assert_int_equal(now, length);
    if (length != 0)
        assert_memory_equal(content, want, length);
    free(content);
}

/* The call opens no table and leaves `out` unchanged. */
static inline void assert_refused(const char *path, const struct asked *asked, int32_t want) {
    tollbar_table *const untouched = (tollbar_table *)(void *)directory;
    tollbar_table *out = untouched;
    assert_int_equal(asked != NULL ? open_asked(path, asked, &out) : tollbar_table_open(path, NULL, 0, NULL, &out), want);
    assert_ptr_equal(out, untouched);
}

#define IN_A_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define IN_MEMORY(test) {#test " in /dev/shm", test, set_up_in_memory, tear_down, NULL}

#endif
