/* The identity of this process, and whether another process has ended. */

#include "ngx_tollbar_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The largest start time that fits into a record. */
#define START_MOST UINT32_C(0x3fffffff)

static uint32_t start_of(uint32_t number, char *state);

ngx_tollbar_conn_process_t ngx_tollbar_conn_self(void)
{
    ngx_tollbar_conn_process_t self;
    char state;

    self.number = (uint32_t) getpid();
    self.start = start_of(self.number, &state);
    return self;
}

int ngx_tollbar_conn_gone(ngx_tollbar_conn_process_t process, int thorough)
{
    uint32_t start;
    char state;

    if (kill((pid_t) process.number, 0) != 0 && errno == ESRCH) {
        return 1;
    }
    /* The number is in use. It may belong to a zombie, or to a later process. */
    if (!thorough || process.start == 0) {
        return 0;
    }
    start = start_of(process.number, &state);
    return start != 0 && (start != process.start || state == 'Z' || state == 'X');
}

/* The process's start in clock ticks since boot. 0 if it is unknown: without /proc only numbers identify processes. */
static uint32_t start_of(uint32_t number, char *state)
{
    char text[1024];
    char path[32];
    ssize_t length = -1;
    char *field;
    int fd, n;
    uint32_t start;

    (void) snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned) number);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, text, sizeof(text) - 1);
        (void) close(fd);
    }
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    /* The name in brackets may contain any byte, so the fields are counted from the last bracket: the state is field 3, the
     * start is field 22. */
    field = strrchr(text, ')');
    if (field == NULL || field[1] != ' ') {
        return 0;
    }
    field += 2;
    *state = *field;
    for (n = 3; n < 22; n++) {
        field = strchr(field, ' ');
        if (field == NULL) {
            return 0;
        }
        field++;
    }
    start = (uint32_t) strtoull(field, NULL, 10) & START_MOST;
    return start != 0 ? start : 1;
}
