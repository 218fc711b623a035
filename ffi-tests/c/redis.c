#define _DEFAULT_SOURCE
#include "redis.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
    fprintf(stderr, "redis-server: %s (errno %d, %s)\n", what, errno, strerror(errno));
    exit(1);
}

static void pause_ms(long ms) {
    struct timespec time;
    time.tv_sec = ms / 1000;
    time.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&time, NULL);
}

/* Opens a connection of the test to the server; -1 if it fails. */
static int dial(const struct redis *redis) {
    struct sockaddr_un address;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/redis.sock", redis->directory);
    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The complete answer, which is one line or one string. NULL if there is no server. */
static char *ask(const struct redis *redis, const char *command) {
    static char reply[16384];
    size_t length = 0;
    const int fd = dial(redis);
    if (fd < 0)
        return NULL;
    if (write(fd, command, strlen(command)) < 0 || write(fd, "\r\n", 2) < 0)
        goto lost;
    for (;;) {
        const ssize_t n = read(fd, reply + length, sizeof reply - 1 - length);
        char *line;
        if (n <= 0)
            goto lost;
        length += (size_t)n;
        reply[length] = '\0';
        line = strstr(reply, "\r\n");
        if (line == NULL)
            continue;
        if (reply[0] == '$' && reply[1] != '-') {
            const size_t text = strtoul(reply + 1, NULL, 10);
            if (length < (size_t)(line + 2 - reply) + text + 2)
                continue;
            line[2 + text] = '\0';
            close(fd);
            return line + 2;
        }
        *line = '\0';
        close(fd);
        return reply;
    }
lost:
    close(fd);
    return NULL;
}

/* The servers that run. The program ends them when it ends. */
static struct redis *running[8];

static void end_all(void) {
    size_t i;
    for (i = 0; i < sizeof running / sizeof *running; i++)
        if (running[i] != NULL)
            redis_end(running[i]);
}

static void remember(struct redis *redis, struct redis *instead) {
    static int registered;
    size_t i;
    if (!registered && atexit(end_all) == 0)
        registered = 1;
    for (i = 0; i < sizeof running / sizeof *running; i++)
        if (running[i] == redis) {
            running[i] = instead;
            return;
        }
    die("too many of them");
}

void redis_start(struct redis *redis) {
    int tries;
    if (redis->directory[0] == '\0') {
        snprintf(redis->directory, sizeof redis->directory, "/tmp/tollbar-redis-XXXXXX");
        if (mkdtemp(redis->directory) == NULL)
            die("no directory for it");
        snprintf(redis->url, sizeof redis->url, "unix:%s/redis.sock", redis->directory);
        remember(NULL, redis);
    }
    redis->pid = fork();
    if (redis->pid < 0)
        die("fork");
    if (redis->pid == 0) {
        char socket[96];
        snprintf(socket, sizeof socket, "%s/redis.sock", redis->directory);
        /* The kernel kills the server when the test dies. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket, "--dir", redis->directory, "--save", "",
               "--appendonly", "no", "--daemonize", "no", "--logfile", "log", (char *)NULL);
        _exit(127);
    }
    /* The server answers after about 10 ms. The half minute is for a busy machine. */
    for (tries = 0; tries < 6000; tries++) {
        const char *reply = ask(redis, "PING");
        int status = 0;
        if (reply != NULL && strcmp(reply, "+PONG") == 0)
            return;
        if (waitpid(redis->pid, &status, WNOHANG) == redis->pid) {
            redis->pid = 0;
            die(WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "not there: as root, apt-get install redis-server" : "it ended");
        }
        pause_ms(5);
    }
    die("it does not answer");
}

void redis_kill(struct redis *redis) {
    char socket[96];
    if (redis->pid == 0)
        return;
    kill(redis->pid, SIGKILL);
    waitpid(redis->pid, NULL, 0);
    redis->pid = 0;
    snprintf(socket, sizeof socket, "%s/redis.sock", redis->directory);
    unlink(socket);
}

void redis_end(struct redis *redis) {
    char log[96];
    redis_kill(redis);
    snprintf(log, sizeof log, "%s/log", redis->directory);
    unlink(log);
    rmdir(redis->directory);
    redis->directory[0] = '\0';
    remember(redis, NULL);
}

const char *redis_ask(const struct redis *redis, const char *command) {
    const char *reply = ask(redis, command);
    if (reply == NULL || reply[0] == '-')
        die(reply == NULL ? command : reply);
    return reply;
}

int64_t redis_number(const struct redis *redis, const char *command) {
    const char *reply = redis_ask(redis, command);
    return (int64_t)strtoll(reply[0] == ':' ? reply + 1 : reply, NULL, 10);
}

long redis_eval(const struct redis *redis, const char *script, const void *const *strings, const size_t *lengths, size_t count,
                size_t keys, char *reply, size_t room) {
    size_t i, had = 0;
    const int fd = dial(redis);
    FILE *to = fd < 0 ? NULL : fdopen(dup(fd), "w");
    char head[16];
    if (to == NULL)
        die("no connection");
    snprintf(head, sizeof head, "%lu", (unsigned long)keys);
    fprintf(to, "*%lu\r\n$4\r\nEVAL\r\n$%lu\r\n%s\r\n$%lu\r\n%s\r\n", (unsigned long)(count + 3),
            (unsigned long)strlen(script), script, (unsigned long)strlen(head), head);
    for (i = 0; i < count; i++) {
        fprintf(to, "$%lu\r\n", (unsigned long)lengths[i]);
        fwrite(strings[i], 1, lengths[i], to);
        fputs("\r\n", to);
    }
    if (fclose(to) != 0)
        die("no call");
    for (;;) {
        const ssize_t n = read(fd, reply + had, room - 1 - had);
        char *line;
        if (n <= 0)
            die("no reply to a call");
        had += (size_t)n;
        reply[had] = '\0';
        line = strstr(reply, "\r\n");
        if (line != NULL && reply[0] == '-') {
            const size_t length = (size_t)(line - reply) - 1;
            memmove(reply, reply + 1, length);
            close(fd);
            return -1 - (long)length;
        }
        /* "*1", a line with the string's length, and the string. */
        if (line != NULL && line[2] == '$' && strstr(line + 2, "\r\n") != NULL) {
            const size_t length = strtoul(line + 3, NULL, 10);
            const char *const text = strstr(line + 2, "\r\n") + 2;
            if (had < (size_t)(text - reply) + length + 2)
                continue;
            memmove(reply, text, length);
            close(fd);
            return (long)length;
        }
    }
}

size_t redis_eval_numbers(const struct redis *redis, const char *script, const void *key, size_t length, const uint64_t *args,
                          size_t count, int64_t *numbers, size_t most) {
    const int fd = dial(redis);
    FILE *to = fd < 0 ? NULL : fdopen(dup(fd), "w"), *from;
    char line[64];
    size_t i, found;
    if (to == NULL)
        die("no connection");
    fprintf(to, "*%lu\r\n$4\r\nEVAL\r\n$%lu\r\n%s\r\n$1\r\n1\r\n$%lu\r\n", (unsigned long)(count + 4),
            (unsigned long)strlen(script), script, (unsigned long)length);
    fwrite(key, 1, length, to);
    fputs("\r\n", to);
    for (i = 0; i < count; i++) {
        const int digits = snprintf(line, sizeof line, "%llu", (unsigned long long)args[i]);
        fprintf(to, "$%d\r\n%s\r\n", digits, line);
    }
    if (fclose(to) != 0)
        die("no call");
    from = fdopen(fd, "r");
    if (from == NULL || fgets(line, sizeof line, from) == NULL || line[0] != '*')
        die("no numbers");
    found = strtoul(line + 1, NULL, 10);
    for (i = 0; i < found && i < most; i++) {
        if (fgets(line, sizeof line, from) == NULL || line[0] != ':')
            die("no number");
        numbers[i] = strtoll(line + 1, NULL, 10);
    }
    fclose(from);
    return i;
}

int redis_clients(const struct redis *redis) {
    const char *at = redis_ask(redis, "CLIENT LIST TYPE normal");
    int clients = 0;
    /* Only clients of leases use eval. The test's own connections do not, and may still be open. */
    while ((at = strstr(at, " cmd=eval")) != NULL) {
        clients++;
        at++;
    }
    return clients;
}
