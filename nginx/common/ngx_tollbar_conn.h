/* How many of something that has a beginning and an end (requests, connections) each key has, counted by processes that
 * share memory. Nobody waits for anybody, and what a process that was killed had counted does not count any more.
 *
 * There is no nginx in this file and in ngx_tollbar_conn.c, so that the protocol can be tested without it.
 *
 * The memory holds records of owners and slots. An owner is one process for its whole life. A slot is one word:
 *
 *       63                        27 26      17  16  15            0
 *      +----------------------------+----------+----+---------------+
 *      |  tag: part of key's hash   |  owner   | d  |     count     |      0: the slot is free
 *      +----------------------------+----------+----+---------------+
 *
 * It says how many this one owner has of this key; the last of them, if `d` is set, is still being decided on. A key has no
 * entry of its own: what it has is the sum over its slots, one for each owner that has any, and with the last one they are gone.
 * So there is nothing to be reclaimed. A key's slots are all in its window, a run of slots that begins where its hash says.
 *
 * Who may write a slot:
 *   [S1] A free slot is taken by anybody, by swapping 0 for a word that is right at once.
 *   [S2] A slot that is not free is written by its owner alone, until the owner is dead; what it is about does not change
 *        until it is free again.
 *   [S3] The slots of a dead owner are freed by the one process that has taken over the owner's record, and not before.
 * Nothing else is swapped for anything, so that a slow process that goes on late finds its word, or does not, and cannot
 * mistake a word for an older one that looked the same: two words that are 0 are worth the same.
 *
 * A record of an owner is one word, too: 0 if it is free, or the identity of a process (its number and the time of its
 * start) and a state.
 *
 *      free  -> live(p)        p joins                                      by p
 *      live(p) -> dead(p)      p is gone, or is about to go                 by whoever notices, or p
 *      live(p), dead(p), cleaning(p) -> cleaning(q)    p is gone            by q, which then frees p's slots
 *      cleaning(q) -> free     they are free                                by q
 *
 * Swaps from the exact word, all but the last: where the system tells when a process began, no two lives of a number look the
 * same, so a word that has a dead process in it comes only once. If q is killed while it cleans, its record says so and another
 * does all of it again.
 *
 * To enter, a process first counts itself, marked as undecided, and then adds up what the live owners have.
 *
 *   [E1] Never more than the limit. Suppose that at some instant more than `limit` have been let in and have not left. Take
 *        of these the one that counted itself last. All the others had counted themselves before it began to add up, and had
 *        not left when it was done: in the one order of all sequentially consistent operations their words precede its reads.
 *        Each stands in a slot that does not move ([S2]), of an owner that is not gone, so it saw them all and itself, more
 *        than `limit`: it was not let in.
 *   [E2] Nobody is refused unless so many were counted, or others were being decided on each of the many times that it tried.
 *        Those who meet take themselves back and try again, after pauses that are seldom the same.
 *
 * A reader can meet the same request twice, in the slot that it left and in one that was taken meanwhile: then it counts one too
 * many and may refuse where the limit was reached and left in the same instant. It cannot count one too few.
 */

#ifndef NGX_TOLLBAR_CONN_H
#define NGX_TOLLBAR_CONN_H

#include <stddef.h>
#include <stdint.h>

/* A power of two up to this. Tests that try every order of events make do with a few. */
#ifndef NGX_TOLLBAR_CONN_OWNERS
#define NGX_TOLLBAR_CONN_OWNERS 1024
#endif

/* As high as a limit can be. */
#define NGX_TOLLBAR_CONN_MOST 65535

/* What came of entering. */
#define NGX_TOLLBAR_CONN_IN 0
#define NGX_TOLLBAR_CONN_BUSY 1
#define NGX_TOLLBAR_CONN_FULL 2

typedef struct ngx_tollbar_conn_memory_s ngx_tollbar_conn_memory_t;

/* A process: its number is not 0. `start` tells apart processes that had the same number; 0 if it is not known. */
typedef struct {
    uint32_t number;
    uint32_t start;
} ngx_tollbar_conn_process_t;

/* Whether that process does not run any more; 0 where that is not known. `thorough` is set now and then, for a test that is
 * too dear to be made every time. */
typedef int (*ngx_tollbar_conn_gone_pt)(ngx_tollbar_conn_process_t process, int thorough);

/* One process's view; zeroes but for `memory` and `gone` before it joins. */
typedef struct {
    ngx_tollbar_conn_memory_t *memory;
    ngx_tollbar_conn_gone_pt gone;
    /* The record that is this process's, and the word in it; 0 if it has none. */
    uint32_t owner;
    uint64_t record;
    /* When each of the others was last asked after: they are asked after once a millisecond at most. */
    uint64_t asked[NGX_TOLLBAR_CONN_OWNERS];
} ngx_tollbar_conn_t;

/* A place among those who are in, to leave by. */
typedef uint64_t ngx_tollbar_conn_slot_t;

/* Makes a table in `size` bytes that are aligned to 64, for up to so many processes at one time that have the same key. What is
 * in the memory is lost. NULL if it is too small. */
ngx_tollbar_conn_memory_t *ngx_tollbar_conn_make(void *memory, size_t size, size_t processes, const uint64_t seed[2]);

/* The least bytes for such a table. */
size_t ngx_tollbar_conn_least(size_t processes);

/* The table that is there already; NULL if there is none. */
ngx_tollbar_conn_memory_t *ngx_tollbar_conn_find(void *memory, size_t size);

/* Makes this process an owner, and frees the slots of those that are gone. 0, or -1 if there is no record for it. */
int ngx_tollbar_conn_join(ngx_tollbar_conn_t *view, ngx_tollbar_conn_process_t self);

/* Says that this process will not use the view any more; what it has not left does not count from now on. */
void ngx_tollbar_conn_part(ngx_tollbar_conn_t *view);

/* Enters, unless `limit` (1 to NGX_TOLLBAR_CONN_MOST) are in. `now` is a time in milliseconds that never goes back. With
 * NGX_TOLLBAR_CONN_IN, `*slot` is to be given to ngx_tollbar_conn_leave. FULL: the key's window has no free slot. */
int ngx_tollbar_conn_enter(ngx_tollbar_conn_t *view, uint64_t hash, uint32_t limit, uint64_t now, ngx_tollbar_conn_slot_t *slot);

void ngx_tollbar_conn_leave(ngx_tollbar_conn_t *view, ngx_tollbar_conn_slot_t slot);

/* How many of the key are in. */
uint32_t ngx_tollbar_conn_count(ngx_tollbar_conn_t *view, uint64_t hash);

/* Frees the slots of processes that are gone, as joining does. */
void ngx_tollbar_conn_clean(ngx_tollbar_conn_t *view, ngx_tollbar_conn_process_t self);

/* A key's hash, by which it is known: SipHash-2-4, with the seed of the table. Who does not know the seed cannot choose
 * keys that meet. */
uint64_t ngx_tollbar_conn_hash(const ngx_tollbar_conn_t *view, const void *key, size_t length);
uint64_t ngx_tollbar_conn_siphash(const uint64_t seed[2], const void *key, size_t length);

/* This process, and whether another one is gone, as the system tells it. */
ngx_tollbar_conn_process_t ngx_tollbar_conn_self(void);
int ngx_tollbar_conn_gone(ngx_tollbar_conn_process_t process, int thorough);

#endif
