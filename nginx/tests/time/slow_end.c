/* For LD_PRELOAD: the started process takes half a second to end, and its children do not. So the
 * process that starts a daemon still lives when the daemon already serves, which otherwise happens
 * only on a busy machine. */

#define _GNU_SOURCE

#include <unistd.h>

static pid_t first;

__attribute__((constructor)) static void begin(void)
{
    first = getpid();
}

__attribute__((destructor)) static void end(void)
{
    if (getpid() == first) {
        (void) usleep(500000);
    }
}
