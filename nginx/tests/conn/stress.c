/* Workers enter and leave as fast as they can, and are killed at any instruction. No worker may ever see more than the limit.
 *
 * stress processes WORKERS KILLS   workers are processes, stopped and then killed with SIGKILL
 * stress threads   WORKERS KILLS   workers are threads, which break off at some access to the shared memory: for a sanitizer
 *
 * The test also counts the open requests of each key in one word, a byte for each worker, so that one atomic addition returns the counts of all
 * workers at that instant. */

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <signal.h>

static void step(void);

#define NGX_TOLLBAR_CONN_STEP() step()
#include "../../common/ngx_tollbar_conn.c"

#define WORKERS_MOST 8
#define KEYS 5
#define HOLDS 4
#define TABLE_BYTES 65536

typedef struct {
    uint64_t inside[KEYS];
    uint64_t entered[WORKERS_MOST];
    uint64_t refused[WORKERS_MOST];
    uint64_t too_many;
    uint64_t full;
    uint64_t stop;
    /* For threads: the number of each one's life, from 1. */
    uint64_t life[WORKERS_MOST];
    _Alignas(64) unsigned char table[TABLE_BYTES];
} shared_t;

static shared_t *shared;
static int workers;
static uint64_t kills;
static __thread jmp_buf *death;
static __thread uint64_t steps_left;

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static uint64_t add(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST) + value;
}

static void step(void)
{
    if (death != NULL && --steps_left == 0) {
        longjmp(*death, 1);
    }
}

static int thread_gone(ngx_tollbar_conn_process_t process, int thorough)
{
    (void) thorough;
    return process.number <= WORKERS_MOST && load(&shared->life[process.number - 1]) != process.start;
}

static uint64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static uint32_t limit_of(uint64_t key)
{
    return (uint32_t) key % 3 + 1;
}

static uint64_t hash_of(uint64_t key)
{
    /* All keys have one window, and two of them differ in one bit. */
    return UINT64_C(0x0123456789abcdef) + key;
}

static unsigned bytes(uint64_t word)
{
    unsigned sum = 0;

    for (; word != 0; word >>= 8) {
        sum += (unsigned) (word & 0xff);
    }
    return sum;
}

static void work(int number, ngx_tollbar_conn_t *view)
{
    uint64_t one = UINT64_C(1) << 8 * number;
    uint64_t random = (uint64_t) number * 77 + milliseconds() + 1, key;
    struct { uint64_t key; ngx_tollbar_conn_slot_t slot; } held[HOLDS];
    int held_n = 0;

    while (!load(&shared->stop)) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (held_n == HOLDS || (held_n > 0 && random % 2)) {
            held_n--;
            add(&shared->inside[held[held_n].key], -one);
            ngx_tollbar_conn_leave(view, held[held_n].slot);
            continue;
        }
        key = random / 2 % KEYS;
        switch (ngx_tollbar_conn_enter(view, hash_of(key), limit_of(key), milliseconds(), &held[held_n].slot)) {
        case NGX_TOLLBAR_CONN_IN:
            if (bytes(add(&shared->inside[key], one)) > limit_of(key)) {
                add(&shared->too_many, 1);
            }
            add(&shared->entered[number], 1);
            held[held_n++].key = key;
            break;
        case NGX_TOLLBAR_CONN_BUSY:
            add(&shared->refused[number], 1);
            break;
        default:
            add(&shared->full, 1);
        }
    }
    while (held_n > 0) {
        held_n--;
        add(&shared->inside[held[held_n].key], -one);
        ngx_tollbar_conn_leave(view, held[held_n].slot);
    }
    ngx_tollbar_conn_part(view);
}

/* Subtracts a dead worker's requests from the test's word, before another worker can know of the death. */
static void bury(int number)
{
    uint64_t key;

    for (key = 0; key < KEYS; key++) {
        __atomic_fetch_and(&shared->inside[key], ~(UINT64_C(0xff) << 8 * number), __ATOMIC_SEQ_CST);
    }
}

static void begin_view(ngx_tollbar_conn_t *view, ngx_tollbar_conn_gone_pt gone, ngx_tollbar_conn_process_t self)
{
    memset(view, 0, sizeof(*view));
    view->memory = ngx_tollbar_conn_find(shared->table, TABLE_BYTES);
    view->gone = gone;
    if (ngx_tollbar_conn_join(view, self) != 0) {
        abort();
    }
}

static pid_t spawn(int number)
{
    static ngx_tollbar_conn_t view;
    pid_t pid = fork();

    if (pid == 0) {
        begin_view(&view, ngx_tollbar_conn_gone, ngx_tollbar_conn_self());
        work(number, &view);
        _exit(0);
    }
    return pid;
}

static void run_processes(void)
{
    pid_t pids[WORKERS_MOST];
    uint64_t n;
    int status, worker;

    for (worker = 0; worker < workers; worker++) {
        pids[worker] = spawn(worker);
    }
    for (n = 0; n < kills; n++) {
        usleep((useconds_t) (rand() % 4000));
        worker = rand() % workers;
        kill(pids[worker], SIGSTOP);
        waitpid(pids[worker], &status, WUNTRACED);
        bury(worker);
        kill(pids[worker], SIGKILL);
        waitpid(pids[worker], &status, 0);
        pids[worker] = spawn(worker);
    }
    __atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
    for (worker = 0; worker < workers; worker++) {
        waitpid(pids[worker], &status, 0);
    }
}

static void *run_thread(void *argument)
{
    int number = (int) (size_t) argument;
    /* The next life does not inherit the view of this one. */
    ngx_tollbar_conn_t *volatile view = malloc(sizeof(*view));
    ngx_tollbar_conn_process_t self = { (uint32_t) number + 1, 0 };
    unsigned seed = (unsigned) number;
    jmp_buf here;

    if (setjmp(here) != 0) {
        death = NULL;
        bury(number);
        add(&shared->life[number], 1);
    }
    self.start = (uint32_t) load(&shared->life[number]);
    begin_view(view, thread_gone, self);
    if (self.start < kills) {
        steps_left = (uint64_t) rand_r(&seed) % 200000 + 1;
        death = &here;
    }
    work(number, view);
    free(view);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[WORKERS_MOST];
    int n;

    for (n = 0; n < workers; n++) {
        shared->life[n] = 1;
        pthread_create(&threads[n], NULL, run_thread, (void *) (size_t) n);
    }
    for (n = 0; n < workers; n++) {
        while (load(&shared->life[n]) < kills) {
            usleep(1000);
        }
    }
    __atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
    for (n = 0; n < workers; n++) {
        pthread_join(threads[n], NULL);
    }
}

int main(int count, char **arguments)
{
    static const uint64_t seed[2] = { 1, 2 };
    static ngx_tollbar_conn_t after;
    ngx_tollbar_conn_process_t self = { 1000000, 1 };
    uint64_t key, n, entered = 0, refused = 0, lost = 0, wrong = 0;
    ngx_tollbar_conn_slot_t slot;
    int threads;

    if (count != 4) {
        return 2;
    }
    threads = strcmp(arguments[1], "threads") == 0;
    workers = atoi(arguments[2]);
    kills = (uint64_t) atoi(arguments[3]);
    if (workers < 1 || workers > WORKERS_MOST) {
        return 2;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || ngx_tollbar_conn_make(shared->table, TABLE_BYTES, WORKERS_MOST, seed) == NULL) {
        return 2;
    }
    if (threads) {
        run_threads();
    } else {
        run_processes();
    }
    begin_view(&after, threads ? thread_gone : ngx_tollbar_conn_gone, self);
    for (n = 0; n < after.memory->slots_n; n++) {
        lost += after.memory->slots[n] != 0;
    }
    for (key = 0; key < KEYS; key++) {
        for (n = 0; ngx_tollbar_conn_enter(&after, hash_of(key), limit_of(key), milliseconds(), &slot) == NGX_TOLLBAR_CONN_IN; n++) {
        }
        wrong += n != limit_of(key);
    }
    for (n = 0; n < WORKERS_MOST; n++) {
        entered += shared->entered[n];
        refused += shared->refused[n];
    }
    printf("%llu entered, %llu refused, %llu above the limit, %llu found no place; afterwards %llu slots lost, %llu keys wrong\n",
           (unsigned long long) entered, (unsigned long long) refused, (unsigned long long) shared->too_many,
           (unsigned long long) shared->full, (unsigned long long) lost, (unsigned long long) wrong);
    return entered == 0 || shared->too_many || shared->full || lost || wrong;
}
