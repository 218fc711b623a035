/* A8, E1, E2, E3: two processes share an object, and one of them cannot read what names its PID
 * namespace, its boot or its clock, or reads a namespace's own. The matrix tries each object
 * (tables, in-flight tables, nodes, and a queue's copy) in each such situation. A holder takes one
 * of 3 permits. A process in the situation opens or inherits the object and takes what it gets, and
 * then the holder takes the rest. * Each pair of a situation and an object is a check that prints
 * TAP. The expected answer is either that the object is shared, and then both get exactly 3, or one
 * named error, and then the holder gets all 3. No permit that is held is ever free. The program
 * must be root to make namespaces. Otherwise it runs the first situation alone, and says so. */
#define _GNU_SOURCE
#include "tollbar_redis.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { PERMITS = 3, MEMORY = 1 << 22 };
#define POLICY "3/day"

/* What a process in a situation can read, and whether that is the same as in the holder. */
enum {
    NO_BOOT = 1,    /* boot_id cannot be read */
    OTHER_BOOT = 2, /* boot_id is another one */
    NO_INODE = 4,   /* the kernel does not name inodes */
    NO_PID = 8,     /* its PID namespace cannot be found out */
    OTHER_PID = 16, /* it is in another PID namespace */
    NO_TIME = 32    /* how far its clock is ahead cannot be found out */
};

/* How a situation is made. */
enum {
    PROC_SUBSET = 1,
    PROC_HIDDEN = 2,
    PROC_NONE = 4,
    PROC_OWN = 8,
    CHROOT = 16,
    NEW_PID = 32,
    NEW_TIME = 64,
    OLD_KERNEL = 128,
    FILTERED = 256,
    FALSE_BOOT = 512,
    BROKEN_BOOT = 1024,
    SECRET_BOOT = 2048,
    NOBODY = 4096,
    NEW_MOUNT = 8192
};

struct situation {
    const char *name;
    unsigned how, knows;
};

static const struct situation situations[] = {
    {"a process like the holder", 0, 0},
    {"systemd's ProcSubset=pid", PROC_SUBSET, NO_BOOT},
    {"ProcSubset=pid and a filter that refuses to name inodes", PROC_SUBSET | FILTERED, NO_BOOT | NO_INODE},
    {"a filter that refuses to name inodes", FILTERED, NO_INODE},
    {"hidepid=2, another user", PROC_HIDDEN | NOBODY, 0},
    {"a mount namespace with its own /tmp", NEW_MOUNT, 0},
    {"no /proc", PROC_NONE, NO_BOOT},
    {"no /proc, a kernel before 6.11", PROC_NONE | OLD_KERNEL, NO_BOOT | NO_PID | NO_TIME},
    {"a chroot without /proc", CHROOT, NO_BOOT},
    {"a chroot without /proc, a kernel before 6.11", CHROOT | OLD_KERNEL, NO_BOOT | NO_PID | NO_TIME},
    {"boot_id: EIO", BROKEN_BOOT, NO_BOOT},
    {"boot_id: EACCES", SECRET_BOOT | NOBODY, NO_BOOT},
    {"a boot_id of its own", FALSE_BOOT, OTHER_BOOT},
    {"a PID namespace", NEW_PID | PROC_OWN, OTHER_PID},
    {"a PID namespace with the host's /proc", NEW_PID, OTHER_PID},
    {"a container: PID namespace and boot_id of its own", NEW_PID | PROC_OWN | FALSE_BOOT, OTHER_PID | OTHER_BOOT},
    {"a time namespace a day ahead", NEW_TIME, 0},
    {"a time namespace without /proc", NEW_TIME | PROC_NONE, NO_BOOT | NO_TIME},
    {"a container: time and PID namespace", NEW_TIME | NEW_PID | PROC_OWN, OTHER_PID},
    {"a container: all of its own", NEW_TIME | NEW_PID | PROC_OWN | FALSE_BOOT, OTHER_PID | OTHER_BOOT},
};

enum kind { TABLE, IN_FLIGHT, NODE, QUEUE };
/* Files in tmpfs and on a disk, memory that was made before the fork, and memory of the caller. */
enum place { TMPFS, DISK, INHERITED, ATTACHED };

struct object {
    const char *name;
    enum kind kind;
    enum place place;
    uint32_t clock;
};

static const struct object objects[] = {
    {"table in tmpfs, TSC", TABLE, TMPFS, TOLLBAR_CLOCK_TSC},
    {"table in tmpfs, MONOTONIC", TABLE, TMPFS, TOLLBAR_CLOCK_MONOTONIC},
    {"table in tmpfs, COARSE", TABLE, TMPFS, TOLLBAR_CLOCK_COARSE},
    {"table in tmpfs, WALL", TABLE, TMPFS, TOLLBAR_CLOCK_WALL},
    {"table on a disk", TABLE, DISK, TOLLBAR_CLOCK_TSC},
    {"table on a disk, WALL", TABLE, DISK, TOLLBAR_CLOCK_WALL},
    {"table, inherited, TSC", TABLE, INHERITED, TOLLBAR_CLOCK_TSC},
    {"table, inherited, MONOTONIC", TABLE, INHERITED, TOLLBAR_CLOCK_MONOTONIC},
    {"table, inherited, COARSE", TABLE, INHERITED, TOLLBAR_CLOCK_COARSE},
    {"table in the caller's memory", TABLE, ATTACHED, TOLLBAR_CLOCK_MONOTONIC},
    {"in flight in tmpfs", IN_FLIGHT, TMPFS, 0},
    {"in flight on a disk", IN_FLIGHT, DISK, 0},
    {"in flight, inherited", IN_FLIGHT, INHERITED, 0},
    {"in flight in the caller's memory", IN_FLIGHT, ATTACHED, 0},
    {"node, inherited", NODE, INHERITED, 0},
    {"node in the caller's memory", NODE, ATTACHED, 0},
    {"queue, inherited", QUEUE, INHERITED, 0},
};

/* A process's view of an object. */
struct view {
    tollbar_table *table;
    tollbar_in_flight *in_flight;
    tollbar_lease *lease;
    tollbar_queue *queue;
    tollbar_ticket tickets[PERMITS + 1];
};

/* What the process in the situation reports. */
struct report {
    int32_t code;
    int taken;
};

static void *memory;
static char in_memory[64], on_disk[64];

static int32_t open_object(const struct object *object, const char *path, int makes, struct view *view) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *specs = &spec;
    tollbar_table_options table = TOLLBAR_TABLE_OPTIONS_INIT(100);
    tollbar_in_flight_options in_flight = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_lease_options lease;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    if (tollbar_policy_spec_parse(POLICY, strlen(POLICY), &spec, &error) != 0)
        return TOLLBAR_E_SYNTAX;
    table.clock = object->clock;
    table.mode = in_flight.mode = 0666;
    table.flags = TOLLBAR_TABLE_TRUST_ANYONE;
    in_flight.flags = TOLLBAR_IN_FLIGHT_TRUST_ANYONE;
    in_flight.capacity = 100;
    memset(&lease, 0, sizeof lease);
    lease.struct_size = (uint32_t)sizeof lease;
    lease.nodes = 1;
    lease.capacity = 100;
    /* Its own bucket has the whole burst: no store answers here. */
    lease.overdraft = PERMITS;
    lease.flags = TOLLBAR_LEASE_INEXACT | TOLLBAR_LEASE_HAS_OVERDRAFT;
    switch (object->kind) {
    case TABLE:
        if (object->place == INHERITED)
            return tollbar_table_new_shared(&specs, 1, &table, &view->table);
        if (object->place == ATTACHED)
            return makes ? tollbar_table_init_in(memory, MEMORY, &specs, 1, &table, &view->table)
                         : tollbar_table_attach(memory, MEMORY, &view->table);
        return tollbar_table_open(path, &specs, 1, &table, &view->table);
    case IN_FLIGHT:
        if (object->place == INHERITED)
            return tollbar_in_flight_new_shared(&in_flight, &view->in_flight);
        if (object->place == ATTACHED)
            return makes ? tollbar_in_flight_init_in(memory, MEMORY, &in_flight, &view->in_flight)
                         : tollbar_in_flight_attach(memory, MEMORY, &view->in_flight);
        return tollbar_in_flight_open(path, &in_flight, &view->in_flight);
    case NODE:
        if (object->place == INHERITED)
            return tollbar_lease_new_shared("limit", 5, &spec, &lease, &view->lease);
        return makes ? tollbar_lease_init_in(memory, MEMORY, "limit", 5, &spec, &lease, &view->lease)
                     : tollbar_lease_attach(memory, MEMORY, &view->lease);
    default:
        return tollbar_queue_new(&spec, 100, NULL, &view->queue);
    }
}

/* Takes up to `most` permits. Returns the last answer, and adds to `*taken`. */
static int32_t take(const struct object *object, struct view *view, int most, int *taken) {
    int32_t code = TOLLBAR_ALLOWED;
    void *item;
    while (code == TOLLBAR_ALLOWED && most-- > 0) {
        switch (object->kind) {
        case TABLE: code = tollbar_table_check(view->table, 0, "k", 1, 1, NULL); break;
        case IN_FLIGHT: code = tollbar_in_flight_acquire(view->in_flight, "k", 1, PERMITS, &view->tickets[*taken]); break;
        case NODE: code = tollbar_lease_check(view->lease, "k", 1, 1, NULL); break;
        default: code = tollbar_queue_take(view->queue, &item); break;
        }
        *taken += code == TOLLBAR_ALLOWED;
    }
    return code;
}

/* The answer that the documents promise. */
static int32_t promised(const struct object *object, unsigned knows) {
    const int is_file = object->place == TMPFS || object->place == DISK;
    const int has_inode = object->place == TMPFS && !(knows & NO_INODE);
    if (object->kind == TABLE && object->clock == TOLLBAR_CLOCK_WALL)
        return TOLLBAR_ALLOWED;
    if (object->kind == TABLE || object->kind == NODE) {
        if (object->place != INHERITED && knows & NO_TIME)
            return TOLLBAR_E_TIME_NAMESPACE;
        return is_file && !has_inode && knows & NO_BOOT ? TOLLBAR_E_BOOT_ID : TOLLBAR_ALLOWED;
    }
    if (object->kind == QUEUE)
        return TOLLBAR_ALLOWED;
    if (is_file && !has_inode && knows & NO_BOOT)
        return TOLLBAR_E_BOOT_ID;
    if (knows & (NO_PID | OTHER_PID))
        return TOLLBAR_E_PID_NAMESPACE;
    return is_file && !has_inode && knows & OTHER_BOOT ? TOLLBAR_E_OTHER_BOOT : TOLLBAR_ALLOWED;
}

/* Ends the process with a line that says which step of a situation failed. */
static void must(int done, const char *step) {
    if (!done) {
        fprintf(stderr, "%s: %s\n", step, strerror(errno));
        _exit(9);
    }
}

/* The system calls that an older kernel or a filter does not have fail with `error`. */
static void without(const long *calls, unsigned short count, int error) {
    struct sock_filter filter[16];
    struct sock_fprog program;
    unsigned short n = 0, i;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (i = 0; i < count; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = n;
    program.filter = filter;
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

static void put(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CREAT, 0644);
    must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0, path);
}

/* Brings this process into a situation, in two steps, between which namespaces take effect by a
 * fork. The directory is `at` afterwards. */
static void before_the_fork(unsigned how) {
    if (how & NEW_TIME) {
        must(unshare(CLONE_NEWTIME) == 0, "a time namespace");
        put("/proc/self/timens_offsets", "monotonic 86400 5\nboottime 86400 5\n");
    }
    if (how & NEW_PID)
        must(unshare(CLONE_NEWPID) == 0, "a PID namespace");
    if (how & ~(unsigned)(NEW_TIME | NEW_PID | OLD_KERNEL | FILTERED | NOBODY)) {
        must(unshare(CLONE_NEWNS) == 0, "a mount namespace");
        must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "a private mount namespace");
    }
}

static void after_the_fork(unsigned how, const char *directory, char *at, size_t size) {
    static const long older[] = {SYS_pidfd_open}, refused[] = {SYS_name_to_handle_at};
    const char *boot_id = "/proc/sys/kernel/random/boot_id";
    char path[128];
    snprintf(at, size, "%s", directory);
    if (how & NEW_MOUNT)
        must(strncmp(directory, "/tmp/", 5) == 0 || mount("none", "/tmp", "tmpfs", 0, NULL) == 0, "a /tmp");
    if (how & PROC_OWN)
        must(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
    if (how & PROC_SUBSET)
        must(mount("proc", "/proc", "proc", 0, "subset=pid") == 0, "/proc with subset=pid");
    if (how & PROC_HIDDEN)
        must(mount("proc", "/proc", "proc", 0, "hidepid=2") == 0, "/proc with hidepid=2");
    if (how & (FALSE_BOOT | SECRET_BOOT)) {
        snprintf(path, sizeof path, "%s/boot_id", in_memory);
        put(path, "22222222-2222-4222-8222-222222222222\n");
        must(chmod(path, how & SECRET_BOOT ? 0 : 0644) == 0 && mount(path, boot_id, NULL, MS_BIND, NULL) == 0, "a boot_id");
    }
    /* Reading the memory at address 0 is an input error. */
    if (how & BROKEN_BOOT)
        must(mount("/proc/self/mem", boot_id, NULL, MS_BIND, NULL) == 0, "a boot_id that cannot be read");
    if (how & CHROOT) {
        snprintf(path, sizeof path, "%s/root", in_memory);
        must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
        strcat(path, "/d");
        must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
        must(mount(directory, path, NULL, MS_BIND, NULL) == 0, "the directory");
        path[strlen(path) - 2] = 0;
        must(chroot(path) == 0 && chdir("/") == 0, "chroot");
        snprintf(at, size, "/d");
    }
    if (how & PROC_NONE)
        must(mount("none", "/proc", "tmpfs", 0, NULL) == 0, "no /proc");
    if (how & NOBODY)
        must(setgid(65534) == 0 && setuid(65534) == 0, "nobody");
    if (how & OLD_KERNEL)
        without(older, 1, ENOSYS);
    if (how & FILTERED)
        without(refused, 1, EPERM);
}

static int read_report(int fd, struct report *report) {
    struct pollfd poll_for = {fd, POLLIN, 0};
    return poll(&poll_for, 1, 60000) == 1 && read(fd, report, sizeof *report) == (ssize_t)sizeof *report;
}

/* The process in the situation. It reports, and keeps what it has until the holder has asked. */
static void visit(const struct situation *situation, const struct object *object, struct view *inherited, const int *report_to, int hold) {
    const char *directory = object->place == DISK ? on_disk : in_memory;
    struct view view = *inherited;
    struct report report = {TOLLBAR_ALLOWED, 0};
    char at[80], path[96], byte;
    pid_t inner;
    int status;
    before_the_fork(situation->how);
    inner = fork();
    must(inner >= 0, "fork");
    if (inner > 0) {
        waitpid(inner, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
    }
    alarm(600);
    after_the_fork(situation->how, directory, at, sizeof at);
    snprintf(path, sizeof path, "%s/f", at);
    if (object->place != INHERITED)
        report.code = open_object(object, path, 0, &view);
    if (report.code == TOLLBAR_ALLOWED)
        report.code = take(object, &view, PERMITS + 1, &report.taken);
    must(write(report_to[1], &report, sizeof report) == (ssize_t)sizeof report, "report");
    must(read(hold, &byte, 1) >= 0, "wait");
    _exit(0);
}

/* One check. Returns whether it passed, and explains in `text` why not. */
static int check(const struct situation *situation, const struct object *object, char *text, size_t size) {
    const char *directory = object->place == DISK ? on_disk : in_memory;
    const int32_t want = promised(object, situation->knows);
    struct view view;
    struct report report = {TOLLBAR_E_INTERNAL, 0};
    int to_holder[2], to_visitor[2], mine = 0, rest = 0, status = 0, reported, good, n;
    int32_t code;
    char path[96];
    pid_t visitor;
    memset(&view, 0, sizeof view);
    snprintf(path, sizeof path, "%s/f", directory);
    unlink(path);
    code = open_object(object, path, 1, &view);
    for (n = 0; object->kind == QUEUE && n < 2 * PERMITS; n++)
        tollbar_queue_offer(view.queue, &view, NULL);
    if (code == TOLLBAR_ALLOWED)
        code = take(object, &view, 1, &mine);
    if (code != TOLLBAR_ALLOWED) {
        snprintf(text, size, "the holder: %s", tollbar_errname(code));
        return 0;
    }
    must(pipe(to_holder) == 0 && pipe(to_visitor) == 0, "pipe");
    fflush(stdout);
    visitor = fork();
    must(visitor >= 0, "fork");
    if (visitor == 0) {
        close(to_visitor[1]);
        visit(situation, object, &view, to_holder, to_visitor[0]);
    }
    close(to_holder[1]);
    close(to_visitor[0]);
    reported = read_report(to_holder[0], &report);
    /* A queue's child has a copy, so the holder has the rest of its own. */
    code = take(object, &view, PERMITS + 1, &rest);
    good = reported && code == TOLLBAR_DENIED;
    if (want == TOLLBAR_ALLOWED)
        good = good && report.code == TOLLBAR_DENIED && report.taken == PERMITS - 1 && rest == (object->kind == QUEUE ? PERMITS - 1 : 0);
    else
        good = good && report.code == want && report.taken == 0 && rest == PERMITS - 1;
    snprintf(text, size, "%s, took %d; then the holder took %d: %s; expected %s", reported ? tollbar_errname(report.code) : "no report",
             report.taken, rest, tollbar_errname(code), want == TOLLBAR_ALLOWED ? "all 3 shared" : tollbar_errname(want));
    /* Its permit has been its own all the time. */
    if (object->kind == IN_FLIGHT && tollbar_in_flight_release(view.in_flight, view.tickets[0]) != TOLLBAR_ALLOWED) {
        snprintf(text, size, "the holder's permit is void");
        good = 0;
    }
    close(to_visitor[1]);
    close(to_holder[0]);
    waitpid(visitor, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        good = 0;
    tollbar_table_close(view.table);
    tollbar_in_flight_close(view.in_flight);
    tollbar_lease_close(view.lease);
    tollbar_queue_close(view.queue);
    unlink(path);
    return good;
}

/* Without descriptors to spare, an open fails with an error or shares the file. It frees
 * nothing. */
static int without_descriptors(const struct object *object, int spare, char *text, size_t size) {
    struct view view;
    char path[96];
    int mine = 0, rest = 0, status, pipes[2], good;
    struct report report = {TOLLBAR_ALLOWED, 0};
    int32_t code;
    pid_t child;
    memset(&view, 0, sizeof view);
    snprintf(path, sizeof path, "%s/f", object->place == DISK ? on_disk : in_memory);
    unlink(path);
    if (open_object(object, path, 1, &view) != 0 || take(object, &view, 1, &mine) != TOLLBAR_ALLOWED || pipe(pipes) != 0)
        return 0;
    fflush(stdout);
    child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        struct view own;
        struct rlimit limit;
        memset(&own, 0, sizeof own);
        limit.rlim_cur = limit.rlim_max = (rlim_t)(pipes[1] + 1 + spare);
        must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
        report.code = open_object(object, path, 0, &own);
        if (report.code == TOLLBAR_ALLOWED)
            report.code = take(object, &own, PERMITS + 1, &report.taken);
        must(write(pipes[1], &report, sizeof report) == (ssize_t)sizeof report, "report");
        pause();
    }
    good = read_report(pipes[0], &report);
    code = take(object, &view, PERMITS + 1, &rest);
    good = good && code == TOLLBAR_DENIED && report.taken + rest == PERMITS - 1 &&
           (report.taken == PERMITS - 1 ? report.code == TOLLBAR_DENIED : report.taken == 0 && report.code < 0);
    snprintf(text, size, "%s, took %d; then the holder took %d: %s", tollbar_errname(report.code), report.taken, rest, tollbar_errname(code));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(pipes[0]);
    close(pipes[1]);
    tollbar_table_close(view.table);
    tollbar_in_flight_close(view.in_flight);
    unlink(path);
    return good;
}

static int number, failures;

static void result(int good, const char *situation, const char *object, const char *text) {
    printf("%sok %d - %s: %s", good ? "" : "not ", ++number, situation, object);
    printf(good ? "\n" : ": %s\n", text);
    failures += !good;
}

int main(void) {
    const char *chosen = getenv("TMPDIR");
    size_t s, o, count = geteuid() == 0 ? sizeof situations / sizeof *situations : 1;
    struct statfs filesystem;
    char text[256];
    int spare, disk;
    snprintf(in_memory, sizeof in_memory, "/dev/shm/tollbar-XXXXXX");
    snprintf(on_disk, sizeof on_disk, "%.40s/tollbar-XXXXXX", chosen != NULL ? chosen : "/tmp");
    must(mkdtemp(in_memory) != NULL && mkdtemp(on_disk) != NULL, "a directory");
    must(chmod(in_memory, 0777) == 0 && chmod(on_disk, 0777) == 0, "chmod");
    /* 0x01021994 is tmpfs, and 0x794c7630 is overlayfs, which keeps no lock with a mapping. */
    disk = statfs(on_disk, &filesystem) == 0 && filesystem.f_type != 0x01021994 && filesystem.f_type != 0x794c7630;
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "memory");
    if (count == 1)
        printf("# skipped: %d situations of identity.c, which make namespaces and mounts; to run them: run as root\n",
               (int)(sizeof situations / sizeof *situations) - 1);
    if (!disk)
        printf("# skipped: files on a disk of identity.c; to run them: set TMPDIR to a directory on a disk\n");
    for (s = 0; s < count; s++)
        for (o = 0; o < sizeof objects / sizeof *objects; o++) {
            if (objects[o].place == DISK && !disk)
                continue;
            /* A child keeps its parent's distance from the machine's clock if it cannot read its
             * own: the one exception of docs/table.md. */
            if (objects[o].place == INHERITED && objects[o].kind != IN_FLIGHT && situations[s].how & NEW_TIME && situations[s].knows & NO_TIME)
                continue;
            result(check(&situations[s], &objects[o], text, sizeof text), situations[s].name, objects[o].name, text);
        }
    for (o = 0; o < sizeof objects / sizeof *objects; o++)
        for (spare = 0; spare < 6 && (objects[o].place == TMPFS || (objects[o].place == DISK && disk)); spare++)
            result(without_descriptors(&objects[o], spare, text, sizeof text), "few descriptors", objects[o].name, text);
    printf("1..%d\n", number);
    snprintf(text, sizeof text, "rm -rf %s %s", in_memory, on_disk);
    return system(text) != 0 || failures != 0;
}
