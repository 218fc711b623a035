#include "ngx_tollbar_conn.h"

/* A hook for tests in front of every access to the shared memory. */
#ifndef NGX_TOLLBAR_CONN_STEP
#define NGX_TOLLBAR_CONN_STEP()
#endif

#define MAGIC UINT64_C(0x31636e6f636c6f74)

/* Windows begin at cache lines, which have 8 words. */
#define LINE 8
#define LEAST_WINDOW 32

/* The fields of a slot's word. */
#define COUNT UINT64_C(0xffff)
#define DECIDING UINT64_C(0x10000)
#define OWNER_AT 17
#define TAG_AT 27

/* The states in the lowest bits of a record's word. The process's start and number are above. */
#define STATE UINT64_C(3)
#define LIVE UINT64_C(1)
#define CLEANING UINT64_C(2)
#define DEAD UINT64_C(3)

/* The attempts of a request that meets undecided ones. */
#ifndef NGX_TOLLBAR_CONN_ATTEMPTS
#define NGX_TOLLBAR_CONN_ATTEMPTS 24
#endif

#define NOWHERE UINT64_MAX

struct ngx_tollbar_conn_memory_s {
    uint64_t magic;
    uint64_t size;
    uint64_t seed[2];
    uint64_t slots_n;
    uint64_t window;
    uint64_t unused[2];
    uint64_t records[NGX_TOLLBAR_CONN_OWNERS];
    uint64_t slots[];
};

typedef ngx_tollbar_conn_t view_t;
typedef ngx_tollbar_conn_memory_t memory_t;
typedef ngx_tollbar_conn_process_t process_t;

/* The sums of a scan of a key's window. */
typedef struct {
    uint64_t held;     /* decided requests of other owners */
    uint64_t deciding; /* undecided requests of other owners */
    uint64_t own;      /* this process's slot, or NOWHERE */
    uint64_t own_word; /* its word, 0 if there is none */
    uint64_t free;     /* the first free slot, or NOWHERE */
} seen_t;

static void scan(const view_t *view, uint64_t hash, seen_t *seen);
static void add_up(const view_t *view, uint64_t at, uint64_t word, seen_t *seen);
static int mark_dead(view_t *view, uint64_t hash, uint64_t now);
static void pause_between(uint32_t owner, int attempt);
static uint64_t window_of(size_t processes);
static uint64_t first_of(const memory_t *memory, uint64_t hash);
static uint64_t record_of(process_t process, uint64_t state);
static process_t process_of(uint64_t record);

/* Sequentially consistent, except for put_relaxed: [E1] needs a single order of all processes that count their requests and then add up.
 * With a weaker order two processes could add up before either sees the other's count. */
static uint64_t get(const uint64_t *word)
{
    NGX_TOLLBAR_CONN_STEP();
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void put(uint64_t *word, uint64_t value)
{
    NGX_TOLLBAR_CONN_STEP();
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* For stores that lower a count or clear its mark. A process that sees such a store late counts one too many for a moment, and reads nothing else
 * that depends on it. */
static void put_relaxed(uint64_t *word, uint64_t value)
{
    NGX_TOLLBAR_CONN_STEP();
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static int swap(uint64_t *word, uint64_t from, uint64_t to)
{
    NGX_TOLLBAR_CONN_STEP();
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

size_t ngx_tollbar_conn_least(size_t processes)
{
    return sizeof(memory_t) + window_of(processes) * sizeof(uint64_t);
}

memory_t *ngx_tollbar_conn_make(void *memory, size_t size, size_t processes, const uint64_t seed[2])
{
    memory_t *made = memory;
    uint64_t n;

    if (size < ngx_tollbar_conn_least(processes)) {
        return NULL;
    }
    made->magic = MAGIC;
    made->size = size;
    made->seed[0] = seed[0];
    made->seed[1] = seed[1];
    made->slots_n = (size - sizeof(memory_t)) / sizeof(uint64_t) / LINE * LINE;
    made->window = window_of(processes);
    for (n = 0; n < NGX_TOLLBAR_CONN_OWNERS; n++) {
        made->records[n] = 0;
    }
    for (n = 0; n < made->slots_n; n++) {
        made->slots[n] = 0;
    }
    return made;
}

memory_t *ngx_tollbar_conn_find(void *memory, size_t size)
{
    memory_t *found = memory;

    return size >= sizeof(memory_t) && found->magic == MAGIC && found->size <= size ? found : NULL;
}

int ngx_tollbar_conn_join(view_t *view, process_t self)
{
    uint64_t record = record_of(self, LIVE);
    uint32_t n;

    ngx_tollbar_conn_clean(view, self);
    for (n = 0; n < NGX_TOLLBAR_CONN_OWNERS; n++) {
        if (get(&view->memory->records[n]) == 0 && swap(&view->memory->records[n], 0, record)) {
            view->owner = n;
            view->record = record;
            return 0;
        }
    }
    return -1;
}

void ngx_tollbar_conn_part(view_t *view)
{
    if (view->record != 0) {
        (void) swap(&view->memory->records[view->owner], view->record, (view->record & ~STATE) | DEAD);
        view->record = 0;
    }
}

void ngx_tollbar_conn_clean(view_t *view, process_t self)
{
    memory_t *memory = view->memory;
    unsigned char taken[NGX_TOLLBAR_CONN_OWNERS] = { 0 };
    int any = 0;
    process_t process;
    uint64_t n, record, word;

    for (n = 0; n < NGX_TOLLBAR_CONN_OWNERS; n++) {
        record = get(&memory->records[n]);
        if (record == 0 || (view->record != 0 && n == view->owner)) {
            continue;
        }
        process = process_of(record);
        /* A record with this process's number is of an ended process, because this process has no record except the one passed over. */
        if ((record & STATE) == DEAD || process.number == self.number || view->gone(process, 1)) {
            taken[n] = (unsigned char) swap(&memory->records[n], record, record_of(self, CLEANING));
            any |= taken[n];
        }
    }
    if (!any) {
        return;
    }
    for (n = 0; n < memory->slots_n; n++) {
        word = get(&memory->slots[n]);
        if (word != 0 && taken[(word >> OWNER_AT) % NGX_TOLLBAR_CONN_OWNERS]) {
            put_relaxed(&memory->slots[n], 0);
        }
    }
    /* The records are freed after the slots, so that the next owner of a record finds no slots of the former one. */
    for (n = 0; n < NGX_TOLLBAR_CONN_OWNERS; n++) {
        if (taken[n]) {
            put(&memory->records[n], 0);
        }
    }
}

int ngx_tollbar_conn_enter(view_t *view, uint64_t hash, uint32_t limit, uint64_t now, ngx_tollbar_conn_slot_t *slot)
{
    uint64_t *slots = view->memory->slots;
    uint64_t word, mine;
    int attempt = 0;
    seen_t seen;

    for (;;) {
        scan(view, hash, &seen);
        mine = seen.own_word & COUNT;
        if (seen.held + seen.deciding + mine < limit) {
            if (seen.own != NOWHERE) {
                word = (seen.own_word + 1) | DECIDING;
                put(&slots[seen.own], word);
            } else {
                if (seen.free == NOWHERE) {
                    return NGX_TOLLBAR_CONN_FULL;
                }
                seen.own = seen.free;
                word = (hash << TAG_AT) | (uint64_t) view->owner << OWNER_AT | DECIDING | 1;
                if (!swap(&slots[seen.own], 0, word)) {
                    continue;
                }
            }
            *slot = seen.own;
            scan(view, hash, &seen);
            if (seen.held + seen.deciding + mine + 1 <= limit) {
                put_relaxed(&slots[*slot], word & ~DECIDING);
                return NGX_TOLLBAR_CONN_IN;
            }
            put_relaxed(&slots[*slot], mine != 0 ? (word & ~DECIDING) - 1 : 0);
        }
        if (mark_dead(view, hash, now)) {
            continue;
        }
        if (seen.held + mine >= limit || ++attempt == NGX_TOLLBAR_CONN_ATTEMPTS) {
            return NGX_TOLLBAR_CONN_BUSY;
        }
        pause_between(view->owner, attempt);
    }
}

void ngx_tollbar_conn_leave(view_t *view, ngx_tollbar_conn_slot_t slot)
{
    uint64_t word;

    /* After ngx_tollbar_conn_part the slot no longer belongs to this process. */
    if (view->record == 0) {
        return;
    }
    /* Only this process writes its slot ([S2]), so a plain store suffices. */
    word = get(&view->memory->slots[slot]);
    put_relaxed(&view->memory->slots[slot], (word & COUNT) > 1 ? word - 1 : 0);
}

uint32_t ngx_tollbar_conn_count(view_t *view, uint64_t hash)
{
    seen_t seen;

    scan(view, hash, &seen);
    return (uint32_t) (seen.held + (seen.own_word & COUNT));
}

uint64_t ngx_tollbar_conn_hash(const view_t *view, const void *key, size_t length)
{
    return ngx_tollbar_conn_siphash(view->memory->seed, key, length);
}

/* Scans the key's whole window, because taken slots may follow free ones. */
static void scan(const view_t *view, uint64_t hash, seen_t *seen)
{
    const memory_t *memory = view->memory;
    const uint64_t *slots = memory->slots;
    uint64_t tag = hash << TAG_AT;
    uint64_t at = first_of(memory, hash), end = at + memory->window;
    uint64_t vacant = NOWHERE;
    uint64_t word;

    seen->held = 0;
    seen->deciding = 0;
    seen->own = NOWHERE;
    seen->own_word = 0;
    for (; at < end; at++) {
        word = get(&slots[at]);
        if (word == 0) {
            vacant = vacant < at ? vacant : at;
        } else if (((word ^ tag) >> TAG_AT) == 0) {
            add_up(view, at, word, seen);
        }
    }
    seen->free = vacant;
}

static void add_up(const view_t *view, uint64_t at, uint64_t word, seen_t *seen)
{
    uint64_t owner = (word >> OWNER_AT) % NGX_TOLLBAR_CONN_OWNERS;

    if (view->record != 0 && owner == view->owner) {
        seen->own = at;
        seen->own_word = word;
    } else if ((get(&view->memory->records[owner]) & STATE) == LIVE) {
        /* Read the record after the slot: a process becomes live before it takes a slot, so the owner of a taken slot never looks
         * as if it had not joined yet. */
        seen->held += (word & COUNT) - ((word & DECIDING) != 0);
        seen->deciding += (word & DECIDING) != 0;
    }
}

/* Checks whether the owners of the key's slots live, and marks ended ones as dead. Returns whether it marked one. */
static int mark_dead(view_t *view, uint64_t hash, uint64_t now)
{
    memory_t *memory = view->memory;
    uint64_t at = first_of(memory, hash), end = at + memory->window;
    uint64_t word, owner, record, asked;
    int any = 0;

    for (; at < end; at++) {
        word = get(&memory->slots[at]);
        owner = (word >> OWNER_AT) % NGX_TOLLBAR_CONN_OWNERS;
        if (word == 0 || ((word ^ hash << TAG_AT) >> TAG_AT) != 0 || owner == view->owner) {
            continue;
        }
        asked = view->asked[owner];
        record = get(&memory->records[owner]);
        if ((record & STATE) != LIVE || asked == now + 1) {
            continue;
        }
        /* Plus 1, because `now` may be 0. */
        view->asked[owner] = now + 1;
        if (view->gone(process_of(record), asked / 256 != (now + 1) / 256)) {
            any |= swap(&memory->records[owner], record, (record & ~STATE) | DEAD);
        }
    }
    return any;
}

static void pause_between(uint32_t owner, int attempt)
{
    uint32_t left = (owner % 16 + 1) * 8 * (uint32_t) attempt;

    while (left-- > 0) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        __asm__ __volatile__("" ::: "memory");
#endif
    }
}

/* A key of all processes needs a slot for each, and other keys need slots in the same window. After a reload there are twice as
 * many processes for a while. So the window has at least four slots for each process. */
static uint64_t window_of(size_t processes)
{
    uint64_t window = LEAST_WINDOW;

    while (window < 4 * processes && window < 4 * NGX_TOLLBAR_CONN_OWNERS) {
        window *= 2;
    }
    return window;
}

/* The start of a key's window: the bits of the hash that are not in the tag choose a cache line. The last window ends at the last slot. */
static uint64_t first_of(const memory_t *memory, uint64_t hash)
{
    uint64_t lines = (memory->slots_n - memory->window) / LINE + 1;

    return ((hash >> (64 - TAG_AT)) * lines >> TAG_AT) * LINE;
}

static uint64_t record_of(process_t process, uint64_t state)
{
    return (uint64_t) process.number << 32 | (uint64_t) process.start << 2 | state;
}

static process_t process_of(uint64_t record)
{
    process_t process = { (uint32_t) (record >> 32), (uint32_t) record >> 2 };

    return process;
}
