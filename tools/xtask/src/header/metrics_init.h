/* tollbar_times_begin and tollbar_times_end in the caller's code: a call that is not measured adds
 * 1 to the counter and calls nothing. `times` is not NULL, and both macros evaluate it several
 * times. TOLLBAR_TIMES_END evaluates `begin_ns` twice. */
#if defined(__GNUC__) && UINTPTR_MAX == UINT64_MAX
#define TOLLBAR_TIMES_BEGIN(times)                                                                   \
    ((__atomic_load_n(&(times)->calls, __ATOMIC_RELAXED) & (TOLLBAR_TIMES_EVERY - 1u)) != 0          \
         ? (__atomic_store_n(&(times)->calls,                                                        \
                __atomic_load_n(&(times)->calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED),           \
            UINT64_C(0))                                                                             \
         : tollbar_times_begin(times))
#else
#define TOLLBAR_TIMES_BEGIN(times) tollbar_times_begin(times)
#endif
#define TOLLBAR_TIMES_END(times, begin_ns)                                                           \
    ((begin_ns) != 0 ? tollbar_times_end((times), (begin_ns)) : (void)0)

