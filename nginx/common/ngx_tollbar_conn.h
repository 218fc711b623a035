/* Counts how many requests or connections each key has open, by processes that share memory. No process waits for another. The counts of a
 * killed process stop counting.
 *
 * This file and ngx_tollbar_conn.c do not use nginx, so that tests can run the protocol without it.
 *
 * The memory holds records of owners, and slots. An owner is one process for its whole life. A slot is one word:
 *
 *       63                        27 26      17  16  15            0
 *      +----------------------------+----------+----+---------------+
 *      |  tag: part of key's hash   |  owner   | d  |     count     |      0: the slot is free
 *      +----------------------------+----------+----+---------------+
 *
 * `count` is the number of requests that this owner has of this key. If `d` is set, the last of them is undecided: it may still be refused. A key's
 * number of open requests is the sum over its slots, one for each owner that has requests of the key. When a slot's count falls to 0, the slot is free, so
 * no process needs to reclaim slots. All slots of a key are in its window, a run of slots whose start the hash determines.
 *
 * Writers of a slot:
 *   [S1] Any process may take a free slot, by swapping 0 for the complete word.
 *   [S2] Only its owner writes a taken slot, until the owner is dead. Tag and owner do not change before the slot is free again.
 *   [S3] Only the process that has taken over a dead owner's record frees the owner's slots, and only afterwards.
 * There are no other swaps of slots. So a delayed process cannot mistake a slot's word for an older equal one (ABA): it swaps only
 * from 0, and all free slots are equivalent.
 *
 * A record of an owner is one word, too: 0 if it is free, or the identity of a process (its number and its start time) and a
 * state.
 *
 *      free  -> live(p)        p joins                                      by p
 *      live(p) -> dead(p)      p is gone, or is about to go                 by whoever notices, or p
 *      live(p), dead(p), cleaning(p) -> cleaning(q)    p is gone            by q, which then frees p's slots
 *      cleaning(q) -> free     they are free                                by q
 *
 * All transitions but the last are swaps from the exact word. If the system reports start times, two processes with one number differ in
 * their start, so a word with a dead process occurs only once. If q is killed while it cleans, its record shows it, and another process
 * cleans again.
 *
 * To enter, a process first counts its request, marked as undecided, and then adds up the counts of all live owners.
 *
 *   [E1] Never more requests than the limit. Suppose that at some instant more than `limit` requests have been admitted and have not left. Take
 *        of these the one that was counted last. All the others had been counted before its process began to add up, and had
 *        not left when it finished: in the single order of all sequentially consistent operations their words precede its reads.
 *        Each is in a slot that does not move ([S2]), of a live owner, so the sum had all of them and the request itself, which is more
 *        than `limit`. So the request was refused: a contradiction.
 *   [E2] A request is refused only if `limit` requests were counted, or if others were undecided in each of its attempts.
 *        Requests that meet take their counts back and try again, after pauses that usually differ.
 *
 * A reader can count one request twice, in the slot that it left and in a slot that was taken meanwhile. Then it counts one too many, and may refuse
 * if the limit was reached and left in the same instant. It cannot count one too few.
 */

#ifndef NGX_TOLLBAR_CONN_H
#define NGX_TOLLBAR_CONN_H

#include <stddef.h>
#include <stdint.h>

/* The most owners, a power of two. Tests that try every interleaving define a small number. */
#ifndef NGX_TOLLBAR_CONN_OWNERS
#define NGX_TOLLBAR_CONN_OWNERS 1024
#endif

/* The highest limit. */
#define NGX_TOLLBAR_CONN_MOST 65535

/* Results of ngx_tollbar_conn_enter: admitted, refused by the limit, no free slot. */
#define NGX_TOLLBAR_CONN_IN 0
#define NGX_TOLLBAR_CONN_BUSY 1
#define NGX_TOLLBAR_CONN_FULL 2

typedef struct ngx_tollbar_conn_memory_s ngx_tollbar_conn_memory_t;

/* A process. Its number is not 0. `start` distinguishes processes with the same number; 0 if it is unknown. */
typedef struct {
    uint32_t number;
    uint32_t start;
} ngx_tollbar_conn_process_t;

/* Whether the process has ended. 0 if that is unknown. `thorough` allows a check that is too expensive for every call. */
typedef int (*ngx_tollbar_conn_gone_pt)(ngx_tollbar_conn_process_t process, int thorough);

/* One process's view. Before it joins, all fields but `memory` and `gone` are 0. */
typedef struct {
    ngx_tollbar_conn_memory_t *memory;
    ngx_tollbar_conn_gone_pt gone;
    /* The index of this process's record, and the record's word. The word is 0 if the process has no record. */
    uint32_t owner;
    uint64_t record;
    /* When this process last checked whether each owner lives: at most once a millisecond. */
    uint64_t asked[NGX_TOLLBAR_CONN_OWNERS];
} ngx_tollbar_conn_t;

/* The slot of an admitted request, for ngx_tollbar_conn_leave. */
typedef uint64_t ngx_tollbar_conn_slot_t;

/* Makes a table in `size` bytes that are aligned to 64, for up to `processes` processes that have the same key at one time. Overwrites
 * the memory. NULL if it is too small. */
ngx_tollbar_conn_memory_t *ngx_tollbar_conn_make(void *memory, size_t size, size_t processes, const uint64_t seed[2]);

/* The smallest size of such a table. */
size_t ngx_tollbar_conn_least(size_t processes);

/* Finds a table in the memory. NULL if there is none. */
ngx_tollbar_conn_memory_t *ngx_tollbar_conn_find(void *memory, size_t size);

/* Makes this process an owner, and frees the slots of ended processes. -1: no record is free. */
int ngx_tollbar_conn_join(ngx_tollbar_conn_t *view, ngx_tollbar_conn_process_t self);

/* Ends this process's ownership. Its requests that have not left stop counting. */
void ngx_tollbar_conn_part(ngx_tollbar_conn_t *view);

/* Admits a request, unless `limit` (1 to NGX_TOLLBAR_CONN_MOST) are open. `now` is a monotonic time in milliseconds. After
 * NGX_TOLLBAR_CONN_IN the caller passes `*slot` to ngx_tollbar_conn_leave. FULL: the key's window has no free slot. */
int ngx_tollbar_conn_enter(ngx_tollbar_conn_t *view, uint64_t hash, uint32_t limit, uint64_t now, ngx_tollbar_conn_slot_t *slot);

void ngx_tollbar_conn_leave(ngx_tollbar_conn_t *view, ngx_tollbar_conn_slot_t slot);

/* The number of the key's open requests. */
uint32_t ngx_tollbar_conn_count(ngx_tollbar_conn_t *view, uint64_t hash);

/* Frees the slots of ended processes, as ngx_tollbar_conn_join does. */
void ngx_tollbar_conn_clean(ngx_tollbar_conn_t *view, ngx_tollbar_conn_process_t self);

/* A key's hash, which stands for the key: SipHash-2-4 with the table's seed. A client that does not know the seed cannot choose
 * keys that collide. */
uint64_t ngx_tollbar_conn_hash(const ngx_tollbar_conn_t *view, const void *key, size_t length);
uint64_t ngx_tollbar_conn_siphash(const uint64_t seed[2], const void *key, size_t length);

/* This process, and whether another one has ended, by system calls. */
ngx_tollbar_conn_process_t ngx_tollbar_conn_self(void);
int ngx_tollbar_conn_gone(ngx_tollbar_conn_process_t process, int thorough);

#endif
