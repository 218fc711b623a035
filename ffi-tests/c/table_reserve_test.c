/* Reservations of a table's keys at the caller's time, and waiters on the real clock. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <pthread.h>
#include <time.h>

static tollbar_table *table_for_waiters(const char *policy, uint32_t waiters) {
    struct asked asked;
    ask(&asked, 1000, policy, NULL);
    asked.options.waiters = waiters;
    return table_asked(&asked);
}

static void reservations_of_a_key_depart_in_turn(void **state) {
    tollbar_table *table = table_of(1000, "10/s burst 2", NULL);
    tollbar_reservation booked = {77, 77, 77};
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t n;
    (void)state;
    for (n = 0; n < 12; n++) {
        uint64_t wait = n < 2 ? 0 : (n - 1) * 100 * MS;
        /* With one nanosecond less of patience the call books nothing. */
        if (wait != 0)
            assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 1, wait - 1, SEC, &booked), TOLLBAR_DENIED);
        assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 1, wait, SEC, &booked), TOLLBAR_ALLOWED);
        assert_int_equal(booked.wait_ns, wait);
        assert_int_equal(booked.departs_ns, SEC + wait);
        assert_int_equal(booked.cost, 1);
    }
    booked.cost = 77;
    assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 3, UINT64_MAX, SEC, &booked), TOLLBAR_NEVER);
    assert_int_equal(booked.cost, 77);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.retry_after_ns, 11 * 100 * MS);
    assert_int_equal(tollbar_table_reserve_at(table, 0, "other", 5, 2, 0, SEC, &booked), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

static void what_is_not_charged_is_reserved_without_a_cost(void **state) {
    tollbar_table *table = table_of(100, "1/h", NULL);
    tollbar_reservation booked = {77, 77, 77};
    int n;
    (void)state;
    assert_int_equal(tollbar_table_exempt(table, 0, "vip", 3), 0);
    for (n = 0; n < 3; n++) {
        assert_int_equal(tollbar_table_reserve_at(table, 0, "vip", 3, 1, 0, SEC, &booked), TOLLBAR_ALLOWED);
        assert_int_equal(booked.departs_ns, SEC);
        assert_int_equal(booked.wait_ns, 0);
        assert_int_equal(booked.cost, 0);
    }
    tollbar_table_close(table);
}

/* Cancels at `now`, and returns the number of permits that came back. */
static uint64_t cancel(const tollbar_table *table, const tollbar_reservation *reservation, uint64_t now) {
    uint64_t back = 77;
    assert_int_equal(tollbar_table_cancel_at(table, 0, "k", 1, reservation, now, &back), 0);
    return back;
}

static void what_is_cancelled_comes_back_where_that_is_safe(void **state) {
    tollbar_table *table = table_of(1000, "1/s burst 1", NULL);
    tollbar_reservation booked[4];
    uint64_t n, back = 77;
    (void)state;
    for (n = 0; n < 3; n++)
        assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 1, UINT64_MAX, SEC, &booked[n]), TOLLBAR_ALLOWED);
    /* The third departs at 3 s, so the next must not depart before 4 s. */
    assert_int_equal(cancel(table, &booked[1], SEC), 0);
    assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 1, UINT64_MAX, SEC, &booked[3]), TOLLBAR_ALLOWED);
    assert_int_equal(booked[3].departs_ns, 4 * SEC);
    /* All permits of the last booking come back, and its instant is free again. */
    assert_int_equal(cancel(table, &booked[3], SEC), 1);
    assert_int_equal(tollbar_table_reserve_at(table, 0, "k", 1, 1, UINT64_MAX, SEC, &booked[3]), TOLLBAR_ALLOWED);
    assert_int_equal(booked[3].departs_ns, 4 * SEC);
    /* Permits that time has brought back do not come back again. */
    assert_int_equal(cancel(table, &booked[3], 5 * SEC), 0);
    /* The output may be NULL. An unknown key gets no permits back. */
    assert_int_equal(tollbar_table_cancel(table, 0, "k", 1, &booked[3], NULL), 0);
    assert_int_equal(tollbar_table_cancel(table, 0, "unknown", 7, &booked[3], &back), 0);
    assert_int_equal(back, 0);
    tollbar_table_close(table);
}

static void a_limiter_takes_reservations_back_too(void **state) {
    tollbar_limiter *limiter = limiter_of("10/s burst 5");
    tollbar_reservation booked;
    uint64_t back = 77;
    (void)state;
    assert_int_equal(tollbar_limiter_reserve_at(limiter, 5, 0, HOUR, &booked), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_cancel_at(limiter, &booked, HOUR + 200 * MS, &back), 0);
    assert_int_equal(back, 3);
    assert_int_equal(tollbar_limiter_check_at(limiter, 5, HOUR + 200 * MS, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, HOUR + 200 * MS, NULL), TOLLBAR_DENIED);
    /* At the limiter's clock. */
    assert_int_equal(tollbar_limiter_reserve(limiter, 0, 0, &booked), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_cancel(limiter, &booked, NULL), 0);
    tollbar_limiter_free(limiter);
}

static void *wait_for_one(void *table) {
    static int32_t refused = 1;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    return tollbar_table_wait(table, 0, "k", 1, 1, MIN, &got) == TOLLBAR_ALLOWED && got.retry_after_ns == 0 ? NULL : &refused;
}

static void nap(uint64_t ns) {
    struct timespec time;
    time.tv_sec = (time_t)(ns / SEC);
    time.tv_nsec = (long)(ns % SEC);
    nanosleep(&time, NULL);
}

/* The table allows one sleeper, and one sleeps. Returns whether the table refused another caller
 * meanwhile. On a very slow machine the sleeper may have returned before. */
static int refused_beside_a_sleeper(void) {
    tollbar_table *narrow = table_for_waiters("1/300ms burst 1", 1);
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    pthread_t sleeper;
    void *refused;
    int32_t verdict;
    int asked;
    assert_int_equal(tollbar_table_check(narrow, 0, "k", 1, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check(narrow, 0, "m", 1, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(pthread_create(&sleeper, NULL, wait_for_one, narrow), 0);
    /* The sleeper has booked once the next caller would wait for two permits. */
    for (asked = 0; asked < 250 && got.retry_after_ns <= 300 * MS; asked++) {
        nap(MS);
        tollbar_table_peek(narrow, 0, "k", 1, 1, &got);
    }
    verdict = tollbar_table_wait(narrow, 0, "m", 1, 1, MIN, &got);
    assert_int_equal(pthread_join(sleeper, &refused), 0);
    assert_null(refused);
    tollbar_table_close(narrow);
    if (verdict == TOLLBAR_DENIED)
        assert_int_equal(got.reason, TOLLBAR_REASON_QUEUE_FULL);
    return verdict == TOLLBAR_DENIED;
}

static void sleepers_of_a_table_are_bounded(void **state) {
    const uint64_t begun = monotonic();
    (void)state;
    while (monotonic() - begun < MIN)
        if (refused_beside_a_sleeper())
            return;
    fail_msg("never refused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reservations_of_a_key_depart_in_turn),
        cmocka_unit_test(what_is_not_charged_is_reserved_without_a_cost),
        cmocka_unit_test(what_is_cancelled_comes_back_where_that_is_safe),
        cmocka_unit_test(a_limiter_takes_reservations_back_too),
        cmocka_unit_test(sleepers_of_a_table_are_bounded),
    };
    return cmocka_run_group_tests_name("reservations of keys", tests, NULL, NULL);
}
