/* Preloaded into redis-server: its wall clock plus the microseconds that are the first eight bytes
   of the file which SHIFT_FILE names. The test changes them while the server runs. Redis reads the
   wall clock by gettimeofday (ustime in server.c), Valkey by either. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void open_shift(void)
{
    const char *path = getenv("SHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        abort(); /* a server with the true clock would pass every test */
    shift = memory;
    close(file);
}

static int64_t shifted_us(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + *shift;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    int64_t now = shifted_us();
    out->tv_sec = (time_t)(now / 1000000);
    out->tv_usec = (suseconds_t)(now % 1000000);
    return 0;
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    if (which != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, which, out);
    int64_t now = shifted_us();
    out->tv_sec = (time_t)(now / 1000000);
    out->tv_nsec = (long)(now % 1000000) * 1000;
    return 0;
}
