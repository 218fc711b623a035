/* No call of a library takes more stack than its header promises. A thread fills its stack with a
 * pattern, calls an exported function, and looks how deep the call has overwritten the pattern. It
 * does so for each function, with several kinds of limiters and tables. */
#include "stack.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "worlds.h"

/* What a thread may paint of its stack, and what stays unpainted between the frame of a case and
 * the paint. */
#define PAINTED (192 << 10)
#define UNPAINTED 256
#define COLOUR UINT64_C(0xa5a5a5a5a5a5a5a5)

char buffer[1 << 16];
static union memory room __attribute__((aligned(4096)));
union memory *memory = &room;

#define CALL(name) void case_##name(struct world *w);
#include "calls.h"
#undef CALL

#define CALL(name) {#name, case_##name, 0, 0},
static struct call {
    const char *name;
    void (*run)(struct world *);
    size_t deepest;
    int succeeded;
} calls[] = {
#include "calls.h"
};
#undef CALL

static struct call *current;
/* The lowest word that is painted, and the first above the paint. */
static volatile uint64_t *lowest, *end;

__attribute__((noinline)) void paint(void) {
    volatile uint64_t here = 0, *word;
    end = (volatile uint64_t *)((uintptr_t)&here - UNPAINTED);
    lowest = (volatile uint64_t *)((uintptr_t)&here - PAINTED);
    for (word = lowest; word < end; word++)
        *word = COLOUR;
}

__attribute__((noinline)) void measure(int32_t result) {
    volatile uint64_t *word = lowest;
    size_t depth;
    while (word < end && *word == COLOUR)
        word++;
    depth = (size_t)((uintptr_t)end - (uintptr_t)word) + UNPAINTED;
    if (depth > current->deepest)
        current->deepest = depth;
    if (result >= 0)
        current->succeeded = 1;
}

/* To see that the measure measures. */
static __attribute__((noinline)) int32_t known_depth(void) {
    volatile unsigned char bytes[5000];
    size_t n;
    for (n = 0; n < sizeof bytes; n++)
        bytes[n] = (unsigned char)n;
    return bytes[4999] != 0 ? 0 : -1;
}

static void *run_all(void *argument) {
    size_t world, n;
    (void)argument;
    for (world = 0; world < world_count; world++) {
        struct world *w = world_begin(world);
        for (n = 0; n < COUNT(calls); n++) {
            current = &calls[n];
            calls[n].run(w);
        }
        world_end(w);
    }
    return NULL;
}

static void *run_known(void *argument) {
    static struct call known = {"a function that takes 5,000 bytes", NULL, 0, 0};
    current = &known;
    RUN(known_depth());
    *(size_t *)argument = known.deepest;
    return NULL;
}

static void on_a_stack(void *(*run)(void *), void *argument) {
    size_t size = 512 << 10;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, size) != 0 ||
        pthread_create(&thread, &attributes, run, argument) != 0 || pthread_join(thread, NULL) != 0) {
        puts("Bail out! no thread");
        exit(1);
    }
}

/* TAP: a line for each function. */
int main(void) {
    size_t n, known = 0, deepest = 0;
    int bad = 0;
    const char *of = "";
    printf("1..%zu\n", COUNT(calls) + 1);
    on_a_stack(run_known, &known);
    bad += known < 5000 || known > 5600;
    printf("%sok 1 - a function that takes 5,000 bytes is measured as %zu\n", known < 5000 || known > 5600 ? "not " : "", known);
    on_a_stack(run_all, NULL);
    for (n = 0; n < COUNT(calls); n++) {
        size_t most = most_of(calls[n].name);
        int fits = calls[n].deepest > 0 && calls[n].deepest <= most && calls[n].succeeded;
        bad += !fits;
        printf("%sok %zu - %s: %zu bytes of stack, at most %zu%s\n", fits ? "" : "not ", n + 2, calls[n].name, calls[n].deepest, most,
               calls[n].succeeded ? "" : "; the call succeeded nowhere");
        if (calls[n].deepest > deepest) {
            deepest = calls[n].deepest;
            of = calls[n].name;
        }
    }
    fprintf(stderr, "deepest: %zu bytes, %s\n", deepest, of);
    return bad != 0;
}
