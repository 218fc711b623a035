/* Policies, cells, limiters, queues, meters, and what stands beside them. */
#include "stack.h"

#include <stdlib.h>

static const char *const zone_text = "1000/month zone Europe/Berlin";

static void made_limiter(tollbar_limiter *limiter) {
    tollbar_limiter_free(limiter);
}

CASE(tollbar_version) {
    (void)w;
    RUN((tollbar_version(), 0));
}
CASE(tollbar_version_string) {
    (void)w;
    RUN((tollbar_version_string(), 0));
}
CASE(tollbar_strerror) {
    (void)w;
    RUN((tollbar_strerror(TOLLBAR_E_NULL), 0));
}
CASE(tollbar_errname) {
    (void)w;
    RUN((tollbar_errname(TOLLBAR_E_NULL), 0));
}
CASE(tollbar_strreason) {
    (void)w;
    RUN((tollbar_strreason(0), 0));
}
CASE(tollbar_clock_now) {
    uint64_t now;
    (void)w;
    RUN(tollbar_clock_now(TOLLBAR_CLOCK_TSC, &now));
    RUN(tollbar_clock_now(TOLLBAR_CLOCK_WALL, &now));
}
CASE(tollbar_clock_is_counter) {
    (void)w;
    RUN(tollbar_clock_is_counter());
}

CASE(tollbar_policy_spec_parse) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    RUN(tollbar_policy_spec_parse(w->text, strlen(w->text), &spec, &error));
    RUN(tollbar_policy_spec_parse(zone_text, strlen(zone_text), &spec, &error));
    RUN(tollbar_policy_spec_parse("10/y", 4, &spec, &error));
}
CASE(tollbar_policy_spec_print) {
    size_t length;
    RUN(tollbar_policy_spec_print(&w->spec, buffer, sizeof buffer, &length));
}
CASE(tollbar_policy_spec_validate) {
    RUN(tollbar_policy_spec_validate(&w->spec));
}
CASE(tollbar_policy_spec_last_time) {
    uint64_t last;
    RUN(tollbar_policy_spec_last_time(&w->spec, &last));
}
CASE(tollbar_policy_spec_refill) {
    uint64_t refill;
    RUN(tollbar_policy_spec_refill(&w->spec, &refill));
}
static double square(double time, void *context) {
    (void)context;
    return time * time;
}
CASE(tollbar_policy_spec_curve) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_curve_fit fit = TOLLBAR_CURVE_FIT_INIT;
    (void)w;
    RUN(tollbar_policy_spec_curve(100, 1000, square, NULL, &spec, &fit));
}
CASE(tollbar_policy_spec_samples) {
    static const double shares[] = {0, 0.25, 1};
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_curve_fit fit = TOLLBAR_CURVE_FIT_INIT;
    (void)w;
    RUN(tollbar_policy_spec_samples(100, 1000, shares, 3, &spec, &fit));
}
CASE(tollbar_policy_spec_worst_case) {
    uint64_t most;
    RUN(tollbar_policy_spec_worst_case(&w->spec, 1000, &most));
}
CASE(tollbar_policy_new) {
    tollbar_policy *policy = NULL;
    RUN(tollbar_policy_new(&w->spec, &policy));
    tollbar_policy_free(policy);
}
CASE(tollbar_policy_from_text) {
    tollbar_policy *policy = NULL;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    RUN(tollbar_policy_from_text(w->text, &policy, &error));
    tollbar_policy_free(policy);
    policy = NULL;
    RUN(tollbar_policy_from_text(zone_text, &policy, &error));
    tollbar_policy_free(policy);
}
CASE(tollbar_policy_free) {
    tollbar_policy *policy = NULL;
    if (tollbar_policy_new(&w->spec, &policy) == 0)
        RUN((tollbar_policy_free(policy), 0));
}
CASE(tollbar_policy_size) {
    (void)w;
    RUN((tollbar_policy_size(), 0));
}
CASE(tollbar_policy_align) {
    (void)w;
    RUN((tollbar_policy_align(), 0));
}
CASE(tollbar_policy_init_in) {
    tollbar_policy *policy;
    RUN(tollbar_policy_init_in(memory, sizeof *memory, &w->spec, &policy));
}
CASE(tollbar_schedule_at) {
    static const char text[] = "1000/min, mon-fri 09:00-18:00 100/min, sat 50/min burst 7, zone Europe/Berlin";
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    uint64_t until;
    (void)w;
    RUN(tollbar_schedule_at(text, sizeof text - 1, 1774857600 * SEC, &spec, &until, &error));
    RUN(tollbar_schedule_at("10/s; 1000/day", 14, 1774857600 * SEC, &spec, &until, &error));
}
CASE(tollbar_schedule_print) {
    static const char text[] = "1000/min, mon-fri 09:00-18:00 100/min, sat 50/min burst 7, zone Europe/Berlin";
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    size_t length;
    (void)w;
    RUN(tollbar_schedule_print(text, sizeof text - 1, buffer, sizeof buffer, &length, &error));
}

CASE(tollbar_cell_check) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    RUN(tollbar_cell_check(&w->cell, w->policy, 1, &decision));
}
CASE(tollbar_cell_check_at) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    RUN(tollbar_cell_check_at(&w->cell, w->policy, 1, w->now, &decision));
}
CASE(tollbar_cell_peek_at) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    RUN(tollbar_cell_peek_at(&w->cell, w->policy, 1, w->now, &decision));
}
CASE(tollbar_cell_take_up_to_at) {
    uint64_t taken;
    RUN(tollbar_cell_take_up_to_at(&w->cell, w->policy, 5, w->now, &taken));
}
CASE(tollbar_cell_check_many_at) {
    tollbar_cell cells[64] = {TOLLBAR_CELL_INIT};
    int32_t results[64];
    RUN(tollbar_cell_check_many_at(cells, 64, w->policy, 1, w->now, results));
}
CASE(tollbar_cell_reset) {
    RUN(tollbar_cell_reset(&w->cell));
}

CASE(tollbar_limiter_new) {
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    options.clock = w->clock;
    RUN(tollbar_limiter_new(&w->spec, &options, &limiter));
    made_limiter(limiter);
    limiter = NULL;
    options.credit = TOLLBAR_CREDIT_ON;
    RUN(tollbar_limiter_new(&w->spec, &options, &limiter));
    made_limiter(limiter);
}
CASE(tollbar_limiter_from_text) {
    tollbar_limiter *limiter = NULL;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    RUN(tollbar_limiter_from_text(w->text, &limiter, &error));
    made_limiter(limiter);
    limiter = NULL;
    RUN(tollbar_limiter_from_text(zone_text, &limiter, &error));
    made_limiter(limiter);
}
CASE(tollbar_limiter_free) {
    tollbar_limiter *limiter = NULL;
    if (tollbar_limiter_new(&w->spec, NULL, &limiter) == 0)
        RUN((tollbar_limiter_free(limiter), 0));
}
CASE(tollbar_limiter_size) {
    (void)w;
    RUN((tollbar_limiter_size(), 0));
}
CASE(tollbar_limiter_align) {
    (void)w;
    RUN((tollbar_limiter_align(), 0));
}
CASE(tollbar_limiter_init_in) {
    tollbar_limiter *limiter = NULL;
    RUN(tollbar_limiter_init_in(memory, sizeof *memory, &w->spec, NULL, &limiter));
    tollbar_limiter_close(limiter);
}
CASE(tollbar_limiter_close) {
    tollbar_limiter *limiter = NULL;
    if (tollbar_limiter_init_in(memory, sizeof *memory, &w->spec, NULL, &limiter) == 0)
        RUN((tollbar_limiter_close(limiter), 0));
}
CASE(tollbar_limiter_now) {
    uint64_t now;
    RUN(tollbar_limiter_now(w->limiter, &now));
}

/* Calls with a decision: by the clock, at a time, and refused. */
#define DECISION(name, ...)                                                                                                                    \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        RUN(name(w->limiter, 1, __VA_ARGS__));                                                                                                 \
        RUN(name(w->limiter, 60, __VA_ARGS__));                                                                                                \
        RUN(name(w->limiter, 60, __VA_ARGS__));                                                                                                \
        RUN(name(w->limiter, UINT64_MAX, __VA_ARGS__));                                                                                        \
    }
DECISION(tollbar_limiter_check, &decision)
DECISION(tollbar_limiter_check_at, w->now, &decision)
DECISION(tollbar_limiter_peek, &decision)
DECISION(tollbar_limiter_peek_at, w->now, &decision)
DECISION(tollbar_limiter_check_leaving, 2, &decision)
DECISION(tollbar_limiter_check_leaving_at, 2, w->now, &decision)
DECISION(tollbar_limiter_check_class, "standard", &decision)
DECISION(tollbar_limiter_check_class_at, "standard", w->now, &decision)

CASE(tollbar_limiter_check_many) {
    uint64_t costs[64] = {1, 2, 3};
    int32_t results[64];
    RUN(tollbar_limiter_check_many(w->limiter, costs, 64, results));
}
CASE(tollbar_limiter_check_many_at) {
    uint64_t costs[64] = {1, 2, 3};
    int32_t results[64];
    RUN(tollbar_limiter_check_many_at(w->limiter, costs, 64, w->now, results));
}
CASE(tollbar_limiter_take_up_to) {
    uint64_t taken;
    RUN(tollbar_limiter_take_up_to(w->limiter, 5, &taken));
}
CASE(tollbar_limiter_take_up_to_at) {
    uint64_t taken;
    RUN(tollbar_limiter_take_up_to_at(w->limiter, 5, w->now, &taken));
}
CASE(tollbar_limiter_charge) {
    uint64_t rest;
    RUN(tollbar_limiter_charge(w->limiter, 3, &rest));
}
CASE(tollbar_limiter_charge_at) {
    uint64_t rest;
    RUN(tollbar_limiter_charge_at(w->limiter, 3, w->now, &rest));
}
CASE(tollbar_limiter_reset) {
    RUN(tollbar_limiter_reset(w->limiter));
}
CASE(tollbar_limiter_get_state) {
    tollbar_limiter_state state = TOLLBAR_LIMITER_STATE_INIT;
    RUN(tollbar_limiter_get_state(w->limiter, &state));
}
CASE(tollbar_limiter_set_policy) {
    tollbar_policy_spec spec = w->spec;
    spec.limit += 1;
    RUN(tollbar_limiter_set_policy(w->limiter, &spec, TOLLBAR_KEEP_COUNT));
    RUN(tollbar_limiter_set_policy(w->limiter, &w->spec, TOLLBAR_KEEP_TIME));
}
CASE(tollbar_limiter_set_policy_at) {
    tollbar_policy_spec spec = w->spec;
    spec.limit += 1;
    RUN(tollbar_limiter_set_policy_at(w->limiter, &spec, TOLLBAR_KEEP_COUNT, w->now));
    RUN(tollbar_limiter_set_policy_at(w->limiter, &w->spec, TOLLBAR_KEEP_TIME, w->now));
}
CASE(tollbar_limiter_get_policy) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    RUN(tollbar_limiter_get_policy(w->limiter, &spec));
}
CASE(tollbar_limiter_more_after) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint64_t more;
    (void)tollbar_limiter_check(w->limiter, 1, &decision);
    RUN(tollbar_limiter_more_after(w->limiter, 1, &decision, &more));
}
CASE(tollbar_limiter_more_after_at) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint64_t more;
    (void)tollbar_limiter_check_at(w->limiter, 1, w->now, &decision);
    RUN(tollbar_limiter_more_after_at(w->limiter, 1, w->now, &decision, &more));
}
CASE(tollbar_limiter_reserve) {
    tollbar_reservation booked;
    RUN(tollbar_limiter_reserve(w->limiter, 1, SEC, &booked));
}
CASE(tollbar_limiter_reserve_at) {
    tollbar_reservation booked;
    RUN(tollbar_limiter_reserve_at(w->limiter, 1, SEC, w->now, &booked));
}
CASE(tollbar_limiter_cancel) {
    tollbar_reservation booked;
    uint64_t back;
    if (tollbar_limiter_reserve(w->limiter, 1, SEC, &booked) == 0)
        RUN(tollbar_limiter_cancel(w->limiter, &booked, &back));
}
CASE(tollbar_limiter_cancel_at) {
    tollbar_reservation booked;
    uint64_t back;
    if (tollbar_limiter_reserve_at(w->limiter, 1, SEC, w->now, &booked) == 0)
        RUN(tollbar_limiter_cancel_at(w->limiter, &booked, w->now, &back));
}
CASE(tollbar_limiter_wait) {
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    RUN(tollbar_limiter_wait(w->limiter, 1, SEC / 200, &decision));
}

static tollbar_meter meter(void) {
    tollbar_meter meter = TOLLBAR_METER_INIT;
    meter.committed_bytes = meter.committed_burst = meter.second_burst = 1000;
    return meter;
}
CASE(tollbar_meter_validate) {
    tollbar_meter of = meter();
    (void)w;
    RUN(tollbar_meter_validate(&of));
}
CASE(tollbar_meter_color) {
    tollbar_meter of = meter();
    tollbar_meter_state state = {{0}};
    (void)w;
    RUN(tollbar_meter_color(&of, &state, 100, TOLLBAR_COLOR_GREEN));
}
CASE(tollbar_meter_color_at) {
    tollbar_meter of = meter();
    tollbar_meter_state state = {{0}};
    RUN(tollbar_meter_color_at(&of, &state, 100, TOLLBAR_COLOR_GREEN, w->now));
}
