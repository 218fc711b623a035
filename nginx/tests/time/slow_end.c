/* For LD_PRELOAD: the process that is started takes half a second to end, and those that it forks do not. The process that starts a
 * daemon is then still there when the daemon serves already, which otherwise happens on a busy machine only. */

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
