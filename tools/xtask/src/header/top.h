/* tollbar.h: exact, lock-free rate limiting.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-c/src; changes belong there.
 *
 * A limiter decides whether a request may pass. The shortest complete program:
 *
 *     #include <stdio.h>
 *     #include <tollbar.h>
 *
 *     int main(void) {
 *         tollbar_limiter *limiter;
 *         if (tollbar_limiter_from_text("100/s burst 20", &limiter, NULL) != 0)
 *             return 1;
 *         puts(tollbar_limiter_check(limiter, 1, NULL) == TOLLBAR_ALLOWED ? "passes" : "too many requests");
 *         tollbar_limiter_free(limiter);
 *         return 0;
 *     }
 *
 * Which layer to take. Each works without the others.
 *
 *     limiter    if you limit one thing in one process. It has any algorithm, a clock, waiting and counts.
 *     table      if you limit many keys, or if several processes share a limit. It is one block of memory that never grows.
 *     cell       if each of your structs has room for its own 64-bit state word.
 *     lease      if machines share a limit through Redis or Valkey (tollbar_redis.h, libtollbar-redis).
 *
 * Which call to take. A call for a key begins with tollbar_table_, the one for a limiter with
 * tollbar_limiter_.
 *
 *     may this request pass?                              tollbar_limiter_check, tollbar_table_check
 *     would it pass? (charges nothing)                    tollbar_limiter_peek, tollbar_table_peek
 *     many requests at once                               tollbar_limiter_check_many, tollbar_table_check_many
 *     several limits for one request, charged all or none tollbar_take_many
 *     wait until it may pass                              tollbar_limiter_wait, tollbar_table_wait
 *     when may it pass? (books; the caller waits)         tollbar_limiter_reserve, tollbar_table_reserve
 *     charge after the work                               tollbar_limiter_charge, tollbar_table_charge
 *     charge an estimate now, the real cost later         tollbar_table_take, tollbar_table_settle
 *     how many are open at one time                       tollbar_in_flight_acquire, tollbar_in_flight_release
 *     change a limit while it is in use                   tollbar_limiter_set_policy, tollbar_table_set_policy
 *     header fields and metrics                           tollbar_http_fields, tollbar_metrics
 *
 * Read sections 1 to 3 first: policies, clocks, and decisions in full, which every layer uses. Then
 * read limiters or tables. Each section after those is for one task. A banner says "Advanced" or
 * "Experimental" where a section is that. The last two sections are the version, and all results
 * and errors.
 *
 * Conventions
 *
 * [C1] 0 means go. A decision returns TOLLBAR_ALLOWED (0), TOLLBAR_DENIED (1), TOLLBAR_NEVER (2) or a negative error,
 *      so `if (tollbar_..._check(...)) refuse();` fails closed. "check" charges, "peek" and "validate" do not. A call
 *      that answers a question returns TOLLBAR_YES (1), TOLLBAR_NO (0) or a negative error. Every other int32_t call
 *      returns 0 or an error.
 * [C2] A call writes its outputs only if it succeeds. A decision succeeds with any verdict. An output may be NULL
 *      where the call says so. Four outputs are also written on failure:
 *        - the tollbar_policy_error of a text,
 *        - the column of tollbar_lease_client_new,
 *        - the length of a text, on TOLLBAR_E_BUFFER_TOO_SMALL,
 *        - the health from tollbar_table_validate and tollbar_table_repair, on TOLLBAR_E_SLOTS_INVALID.
 * [C3] Times are nanoseconds of one clock, counted from that clock's zero. A call that ends in _at uses the caller's
 *      time, and the others read a clock. If the time goes back between calls or threads, the limit admits no more
 *      than before. Durations are nanoseconds too, except those whose names end in _ms. Each policy has a last time,
 *      2^61 - 2 ns (73 years) for all but the fastest policies (tollbar_policy_spec_last_time). At later times,
 *      UINT64_MAX among them, every call refuses every cost above 0. All bounds hold in the times that the calls use.
 *      Windows and logs count a call whose time is before their newest admission at the time of that admission: after
 *      a step back a strict sliding window or a sliding log holds its bound in these times. If the times lag behind
 *      true time by up to s (TOLLBAR_CLOCK_COARSE: 1 to 10 ms), a window of true time may see rate * s permits more.
 * [C4] A NULL, misaligned or out-of-range argument is an error, never a crash. A pointer to memory that is not what
 *      the call expects is undefined behaviour.
 * [C5] Threads, processes and the kernel.
 *      Any number of threads may call at once with one object, on both sides of a fork. The exceptions:
 *        - No other call may use the object of _free, _close, _init_in, tollbar_table_repair, tollbar_table_set_hot_keys or
 *          tollbar_hierarchy_add.
 *        - One tollbar_lease_client belongs to one thread at a time. tollbar_lease_client_circuit and _stop are for all threads.
 *        - A tollbar_pacing serves one call at a time.
 *      No call locks. No decision allocates, sleeps or enters the kernel. The exceptions:
 *        - Every call reads the system's clock in a process's first millisecond. The first reading of a process, and of a child after a
 *          fork, asks for its time namespace.
 *        - A process allocates once for each of the first 4,096 policies that it meets in a table.
 *        - A thread's first decision under a policy of a table asks the system which of up to 32 processes live. A child's first
 *          decision after a fork asks for its process number and PID namespace.
 *        - tollbar_in_flight_acquire asks the system which owners live, as its section says.
 *      These calls may allocate, sleep or enter the kernel: those that make or end objects, tollbar_limiter_set_policy,
 *      tollbar_limiter_wait, tollbar_table_wait, tollbar_table_sync, tollbar_table_bytes, tollbar_table_top_refused, the
 *      tollbar_queue_ calls as their section says, the tollbar_lease_client_ and tollbar_schedule_ calls, and those that read a
 *      text with the name of a time zone.
 *      No call takes more than 16 KiB of stack, so threads with small stacks may make any of them.
 * [C6] A struct that starts with `struct_size` may grow. Initialise it with its _INIT macro. A library of another
 *      version reads and writes only the fields that both versions know. It refuses with TOLLBAR_E_RESERVED a field
 *      that it would have to ignore.
 * [C7] No call unwinds, aborts or prints. The numbers of results never change their meaning.
 * [C8] Arguments come in one order: self, policy, key, length, cost, now, output. A call that ends in _at is the
 *      plain call with `now_ns` before its output.
 *
 * Every name exists since 0.1.0, unless its text names another version. A name that will be removed
 * is marked deprecated in its text for at least one minor version, and only a major version removes
 * it. Experimental sections are not part of that promise: a program sees their names only if it
 * defines TOLLBAR_EXPERIMENTAL before it includes this header, and a minor version may change or
 * remove them.
 *
 * Costs: instructions of one call at the caller's time, unless a clock is named. Keys have 8 bytes,
 * and half of the table's slots are taken. Counted by callgrind with @RUSTC@.
 *
@COSTS@ */

#ifndef TOLLBAR_H
#define TOLLBAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define TOLLBAR_VERSION_MAJOR @MAJOR@
#define TOLLBAR_VERSION_MINOR @MINOR@
#define TOLLBAR_VERSION_PATCH @PATCH@
#define TOLLBAR_VERSION_STRING "@MAJOR@.@MINOR@.@PATCH@"
#define TOLLBAR_VERSION                                                                              \
    ((TOLLBAR_VERSION_MAJOR << 16) | (TOLLBAR_VERSION_MINOR << 8) | TOLLBAR_VERSION_PATCH)

