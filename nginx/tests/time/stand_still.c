/* For LD_PRELOAD: clocks that a test moves. The file CLOCK_FILE begins with the nanoseconds of the
 * monotonic clock, and perhaps has those of the wall clock behind them. While they are 0 the clock
 * runs by itself. nginx itself reads the real wall clock, by gettimeofday. The
 * time-stamp counter stands still: reading it raises a fault, whose handler writes 0 into the
 * registers. The library finds that the counter does not advance with time, and uses the system's
 * clock instead. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static const volatile int64_t *nanoseconds;

#ifdef __x86_64__
static void count_nothing(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *) context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *) registers[REG_RIP];

    (void) info;
    if (code[0] == 0x0f && code[1] == 0x31) {
        registers[REG_RIP] += 2;
        registers[REG_RAX] = 0;
        registers[REG_RDX] = 0;
    } else {
        (void) signal(number, SIG_DFL);
    }
}

static void stop_counter(void)
{
    struct sigaction action = { .sa_sigaction = count_nothing, .sa_flags = SA_SIGINFO };

    if (sigaction(SIGSEGV, &action, NULL) != 0 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) {
        abort();
    }
}
#else
static void stop_counter(void)
{
}
#endif

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CLOCK_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = fd >= 0 ? mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (memory == MAP_FAILED) {
        abort();
    }
    nanoseconds = memory;
    (void) close(fd);
    stop_counter();
}

/* A system call, because the vDSO reads the counter. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t now = nanoseconds[is_wall];

    if (now == 0) {
        return (int) syscall(SYS_clock_gettime, clock, time);
    }
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    return (int) syscall(SYS_gettimeofday, time, zone);
}
