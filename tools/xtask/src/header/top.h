/* tollbar.h: rate limiting in nanoseconds, exact and lock-free.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-c/src; changes belong there.
 *
 * A limiter decides whether a request may pass:
 *
 *     tollbar_limiter *limiter;
 *     tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
 *     if (tollbar_limiter_from_text("100/s burst 20", &limiter, &error) != 0)
 *         die("column %u: expected %s", (unsigned)error.column, error.expected);
 *
 *     if (tollbar_limiter_check(limiter, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *
 * Three layers are here, and each may be used without the others:
 *
 *     cell      one 64-bit word that the caller owns (in a struct of its own, in shared memory),
 *               stepped with a compiled policy. Algorithms whose state is one word.
 *     limiter   opaque, any algorithm, with a clock, waiting, and counters.
 *     table     a state for each of millions of keys, in memory that processes share.
 *
 * Conventions
 *
 * [C1] 0 means go. Decision calls return TOLLBAR_ALLOWED (0), TOLLBAR_DENIED (1), TOLLBAR_NEVER (2)
 *      or a negative error, so `if (tollbar_..._check(...)) refuse();` fails closed.
 * [C2] Outputs are written only where a call succeeds (a decision of any verdict is a success).
 *      NULL for an output that is not wanted is allowed where the call says so.
 * [C3] Times are nanoseconds of any one clock, from its zero on. Each policy has a last time, 2^61 - 2
 *      (73 years) for all but the fastest ones (tollbar_policy_spec_last_time); at all later times,
 *      UINT64_MAX among them, every call refuses every cost above 0. A call that ends in _at takes the
 *      caller's time, the others read a clock. Time may go back between calls or threads: that never
 *      admits more. All bounds are in the times that the calls are given or read. Where these lag
 *      behind true time by up to s (TOLLBAR_CLOCK_COARSE: 1 to 10 ms; a time that an event loop keeps),
 *      a window of true time may see the permits of s more: rate * s. Credit taken in advance (striped,
 *      hot keys) adds nothing to that: it is part of the burst.
 * [C4] A NULL, misaligned or out-of-range argument is an error, never a crash. A pointer to memory
 *      that is not what the call says is undefined, as everywhere in C.
 * [C5] Any number of threads may call at once, but for _free, _close, _init_in and _new's own output.
 *      No call locks; none but _wait and those that make or end things allocates, blocks or enters
 *      the kernel, but for these: reading the system's clock, which all calls do in a process's first
 *      millisecond; a process allocates for a policy that it meets in a table for the first time, up to
 *      4,096 times a table; the first decision of a thread under a policy of a table asks the system whether up
 *      to 32 other processes live; and the first decision in a child after a fork asks for the child's
 *      number and PID namespace. All may be used on both sides of a fork.
 * [C6] Structs that start with `struct_size` may grow. Initialise them with their _INIT macro; a
 *      library of another version reads and writes only what both know, and refuses with
 *      TOLLBAR_E_RESERVED what it would have to ignore.
 * [C7] No call unwinds, aborts or prints. Numbers of results never change their meaning.
 */

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

