/* tollbar/table.hpp: millions of keys in memory that processes share. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_TABLE_HPP
#define TOLLBAR_TABLE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"
#include "table_types.hpp"

namespace tollbar {

/// A state for each of millions of keys, in one block of memory that never grows and that processes
/// share.
///
///     auto logins = tollbar::table::open("/run/logins/table", 1'000'000, {"5/min burst 3"});
///     if (!logins.check(address))
///         return try_later();
///
/// Calls that change a table's content are const, because the content belongs to all processes that
/// share the table.
class table {
public:
    /// Makes a table in this process's own memory. Throws policy_error for a policy's text, and
    /// error otherwise.
    table(const table_options &options, const policy_list &policies) : table(try_make(options, policies).value()) {}
    static result<table> try_make(const table_options &options, const policy_list &policies) noexcept {
        return made(options, policies, tollbar_table_new);
    }

    /// Makes a table in memory that this process shares with the processes that it forks later.
    static table shared(const table_options &options, const policy_list &policies) {
        return try_shared(options, policies).value();
    }
    static result<table> try_shared(const table_options &options, const policy_list &policies) noexcept {
        return made(options, policies, tollbar_table_new_shared);
    }

    /// Opens the table in the file at `path` (NUL-terminated), or makes the file if there is none.
    /// If the file has another table, the call fails with an error that says why, and the file
    /// stays as it is.
    static table open(const char *path, const table_options &options, const policy_list &policies) {
        return try_open(path, options, policies).value();
    }
    static result<table> try_open(const char *path, const table_options &options,
                                  const policy_list &policies) noexcept {
        return made(options, policies, [path](auto... with) { return tollbar_table_open(path, with...); });
    }
    /// Opens any table that is in the file. It makes no file. A file that more users may write than
    /// the permissions `mode` let is refused; 0 means 0600.
    static table open(const char *path, trust whose = trust::owner, std::uint32_t mode = 0) {
        return try_open(path, whose, mode).value();
    }
    static result<table> try_open(const char *path, trust whose = trust::owner, std::uint32_t mode = 0) noexcept {
        auto raw = detail::blank<tollbar_table_options>();
        raw.flags = whose == trust::anyone ? TOLLBAR_TABLE_TRUST_ANYONE : 0;
        raw.mode = mode;
        return detail::made<table, tollbar_table>(
            [&](auto **out) { return tollbar_table_open(path, nullptr, 0, &raw, out); });
    }

    /// Makes a table in memory that every process with the descriptor `fd` can open, and that no
    /// process can truncate. Use it between processes that do not fully trust each other. The
    /// caller closes `fd`.
    static table sealed(const table_options &options, const policy_list &policies, int &fd) {
        return try_sealed(options, policies, fd).value();
    }
    static result<table> try_sealed(const table_options &options, const policy_list &policies, int &fd) noexcept {
        return made(options, policies, [&fd](auto of, auto count, const auto *how, auto **out) {
            return tollbar_table_new_sealed(of, count, how, &fd, out);
        });
    }
    /// Opens the table behind a descriptor of sealed(), of this process or another. The descriptor
    /// stays the caller's.
    static table open_fd(int fd) { return try_open_fd(fd).value(); }
    static result<table> try_open_fd(int fd) noexcept {
        return detail::made<table, tollbar_table>([fd](auto **out) { return tollbar_table_open_fd(fd, out); });
    }

    /// Makes a table in the caller's memory and overwrites it. The memory must be aligned to 64
    /// bytes, have at least bytes(options, policies), and outlive the table.
    static table init_in(void *memory, std::size_t size, const table_options &options, const policy_list &policies) {
        return try_init_in(memory, size, options, policies).value();
    }
    static result<table> try_init_in(void *memory, std::size_t size, const table_options &options,
                                     const policy_list &policies) noexcept {
        return made(options, policies,
                    [memory, size](auto... with) { return tollbar_table_init_in(memory, size, with...); });
    }
    /// Opens the table that init_in has made in the caller's memory, in this process or another.
    static table attach(void *memory, std::size_t size) { return try_attach(memory, size).value(); }
    static result<table> try_attach(void *memory, std::size_t size) noexcept {
        return detail::made<table, tollbar_table>(
            [memory, size](auto **out) { return tollbar_table_attach(memory, size, out); });
    }

    /// Sets table_options::hot_keys of a view that came without options. No other call may use this
    /// object meanwhile.
    void set_hot_keys(std::uint32_t keys) { try_set_hot_keys(keys).value(); }
    result<void> try_set_hot_keys(std::uint32_t keys) noexcept {
        return detail::done(tollbar_table_set_hot_keys(get(), keys));
    }

    /// The size of a table in bytes. It never changes.
    static std::uint64_t bytes(const table_options &options, const policy_list &policies) {
        return try_bytes(options, policies).value();
    }
    static result<std::uint64_t> try_bytes(const table_options &options, const policy_list &policies) noexcept {
        const tollbar_table_options raw = for_c(options);
        std::uint64_t count = 0;
        const std::int32_t code = tollbar_table_bytes(policies.get(), policies.size(), &raw, &count);
        return detail::done(code, count);
    }

    /// Takes `cost` permits of the key now. A cost of 0 asks without charging.
    decision check(const key &of, std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_table_check(get(), number(of), of.data(), of.size(), cost, out); });
    }
    /// The same at the caller's time: on the scale of now(), or another that all callers of this
    /// table share.
    decision check_at(instant now, const key &of, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_check_at(get(), number(of), of.data(), of.size(), cost, now.get(), out);
        });
    }
    /// check that returns the verdict alone, which is faster.
    verdict admit(const key &of, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_table_check(get(), number(of), of.data(), of.size(), cost, nullptr));
    }
    verdict admit_at(instant now, const key &of, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_table_check_at(get(), number(of), of.data(), of.size(), cost, now.get(), nullptr));
    }
    /// check for a request of a class of the policy, given as for limiter::check_class.
    decision check_class(const key &of, const char *class_name, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_check_class(get(), number(of), of.data(), of.size(), cost, class_name, out);
        });
    }
    decision check_class_at(instant now, const key &of, const char *class_name, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_check_class_at(get(), number(of), of.data(), of.size(), cost, class_name, now.get(), out);
        });
    }
    /// check for a request of a lower class: it passes only if the key has at least `reserve`
    /// permits left after it.
    decision check_leaving(const key &of, std::uint64_t reserve, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_check_leaving(get(), number(of), of.data(), of.size(), cost, reserve, out);
        });
    }
    decision check_leaving_at(instant now, const key &of, std::uint64_t reserve,
        std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_check_leaving_at(get(), number(of), of.data(), of.size(), cost, reserve, now.get(), out);
        });
    }

    /// Returns what check would return. It takes no permits and stores no key.
    decision peek(const key &of, std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_table_peek(get(), number(of), of.data(), of.size(), cost, out); });
    }
    decision peek_at(instant now, const key &of, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_peek_at(get(), number(of), of.data(), of.size(), cost, now.get(), out);
        });
    }

    /// Decides on the requests in turn with one reading of the clock. results[i] is the verdict of
    /// the i-th request. It is much faster than one call for each request, because it prefetches
    /// the memory of all keys first. With fewer results than requests the call charges nothing and
    /// returns errc::buffer_too_small.
    result<void> admit_many(span<const request> requests, span<verdict> results) const noexcept {
        if (results.size() < requests.size())
            return failure{errc::buffer_too_small};
        return detail::done(
            tollbar_table_check_many(get(), for_c(requests), requests.size(), detail::codes(results)));
    }
    result<void> admit_many_at(instant now, span<const request> requests, span<verdict> results) const noexcept {
        if (results.size() < requests.size())
            return failure{errc::buffer_too_small};
        return detail::done(tollbar_table_check_many_at(get(), for_c(requests), requests.size(), now.get(),
                                                        detail::codes(results)));
    }

    /// Takes all permits that are left, `most` at the most.
    taken take_up_to(const key &of, std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(
            tollbar_table_take_up_to(get(), number(of), of.data(), of.size(), most, &got.permits));
        return got;
    }
    taken take_up_to_at(instant now, const key &of, std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(
            tollbar_table_take_up_to_at(get(), number(of), of.data(), of.size(), most, now.get(), &got.permits));
        return got;
    }

    /// Takes `cost` permits of a key ahead of time. If they are granted, the caller must act `wait`
    /// from now, not earlier. Denied if the wait would be longer than `patience`, or if the
    /// algorithm cannot book ahead.
    ///
    ///     if (const auto mail = mails.reserve(tenant, 10s))
    ///         timers.run_after(mail.wait, send);
    template <class Rep, class Period>
    reservation reserve(const key &of, const std::chrono::duration<Rep, Period> &patience,
                        std::uint64_t cost = 1) const noexcept {
        return reservation::of([&](auto *out) {
            return tollbar_table_reserve(get(), number(of), of.data(), of.size(), cost, detail::saturated(patience), out);
        });
    }
    /// The same at the caller's time: the wait counts from `now`.
    template <class Rep, class Period>
    reservation reserve_at(instant now, const key &of, const std::chrono::duration<Rep, Period> &patience,
                           std::uint64_t cost = 1) const noexcept {
        return reservation::of([&](auto *out) {
            return tollbar_table_reserve_at(get(), number(of), of.data(), of.size(), cost, detail::saturated(patience),
                                            now.get(), out);
        });
    }
    /// Gives back the permits of a reservation that the caller does not use, and returns how many
    /// came back. The key's latest reservation comes back whole, and an earlier one usually gives
    /// back nothing, because the later callers keep their departures. Cancel once.
    std::uint64_t cancel(const key &of, const reservation &booked) const { return try_cancel(of, booked).value(); }
    result<std::uint64_t> try_cancel(const key &of, const reservation &booked) const noexcept {
        const tollbar_reservation raw = booked.get();
        std::uint64_t back = 0;
        const auto code = tollbar_table_cancel(get(), number(of), of.data(), of.size(), &raw, &back);
        return detail::done(code, back);
    }
    std::uint64_t cancel_at(instant now, const key &of, const reservation &booked) const {
        return try_cancel_at(now, of, booked).value();
    }
    result<std::uint64_t> try_cancel_at(instant now, const key &of, const reservation &booked) const noexcept {
        const tollbar_reservation raw = booked.get();
        std::uint64_t back = 0;
        const auto code = tollbar_table_cancel_at(get(), number(of), of.data(), of.size(), &raw, now.get(), &back);
        return detail::done(code, back);
    }
    /// Takes `cost` permits of a key, sleeping up to `patience` for them. If they would come later,
    /// the call refuses at once and charges nothing. The callers of a key get their permits in the
    /// order in which they came; those of several processes take turns.
    template <class Rep, class Period>
    decision wait(const key &of, const std::chrono::duration<Rep, Period> &patience, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_table_wait(get(), number(of), of.data(), of.size(), cost, detail::saturated(patience), out);
        });
    }

    /// Charges `cost` permits of the key without a decision, after the work, when its cost or
    /// failure is known. The table refuses the key's later requests until the debt is paid.
    /// tollbar.h ("Charges afterwards, and bans") says how far each algorithm goes into debt.
    ///
    ///     if (!logins.peek(address))
    ///         return too_many_requests();
    ///     if (!password_is_right(request))
    ///         (void)logins.charge(address);
    charged charge(const key &of, std::uint64_t cost = 1) const noexcept {
        charged done;
        done.answer = verdict(tollbar_table_charge(get(), number(of), of.data(), of.size(), cost, &done.rest));
        return done;
    }
    charged charge_at(instant now, const key &of, std::uint64_t cost = 1) const noexcept {
        charged done;
        done.answer = verdict(
            tollbar_table_charge_at(get(), number(of), of.data(), of.size(), cost, now.get(), &done.rest));
        return done;
    }

    /// Takes an estimate of what a request will cost, and returns the receipt by which settle()
    /// settles the real cost.
    ///
    ///     const auto tokens = table.take(user, 2000);
    ///     if (!tokens)
    ///         return try_later(tokens.answer.retry_after());
    ///     (void)table.settle(tokens.receipt, answer(request).tokens);
    estimated take(const key &of, std::uint64_t estimate) const noexcept {
        receipt made = {};
        const auto answer = decision::of([&](auto *out) {
            return tollbar_table_take(get(), number(of), of.data(), of.size(), estimate, &made, out);
        });
        return {answer, made};
    }
    estimated take_at(instant now, const key &of, std::uint64_t estimate) const noexcept {
        receipt made = {};
        const auto answer = decision::of([&](auto *out) {
            return tollbar_table_take_at(get(), number(of), of.data(), of.size(), estimate, now.get(), &made, out);
        });
        return {answer, made};
    }
    /// Settles a receipt at the real cost: returns unused permits of the estimate to the key, or
    /// charges a higher cost as a debt. Only the first call for a receipt settles it (tollbar.h,
    /// "Receipts").
    settled settle(const receipt &of, std::uint64_t cost) const noexcept {
        return settled::of([&](auto *out) { return tollbar_table_settle(get(), &of, cost, out); });
    }
    /// The same at the caller's time, which is not before that of any call for this key that has
    /// returned.
    settled settle_at(instant now, const receipt &of, std::uint64_t cost) const noexcept {
        return settled::of([&](auto *out) { return tollbar_table_settle_at(get(), &of, cost, now.get(), out); });
    }
    /// settle() that also returns the permits that the key has regained by refill. Unsafe for the
    /// limit: each receipt that was open for the refill of a burst may let one more burst pass.
    settled settle_in_full(const receipt &of, std::uint64_t cost) const noexcept {
        return settled::of([&](auto *out) { return tollbar_table_settle_in_full(get(), &of, cost, out); });
    }

    /// Resets a key: it starts with a fresh state, and a ban ends. False if all of the key's other
    /// slots are taken. Then nothing has changed.
    bool reset(const key &of) const { return try_reset(of).value(); }
    result<bool> try_reset(const key &of) const noexcept {
        return detail::yes_or_no(tollbar_table_reset(get(), number(of), of.data(), of.size()));
    }
    bool reset_at(instant now, const key &of) const { return try_reset_at(now, of).value(); }
    result<bool> try_reset_at(instant now, const key &of) const noexcept {
        return detail::yes_or_no(tollbar_table_reset_at(get(), number(of), of.data(), of.size(), now.get()));
    }

    /// Exempts a key: it always passes and is charged nothing. A table has room for some 1,600
    /// exempt keys (errc::exemptions_full).
    void exempt(const key &of) const { try_exempt(of).value(); }
    result<void> try_exempt(const key &of) const noexcept {
        return detail::done(tollbar_table_exempt(get(), number(of), of.data(), of.size()));
    }
    /// Ends a key's exemption. False if the key was not exempt.
    bool unexempt(const key &of) const { return try_unexempt(of).value(); }
    result<bool> try_unexempt(const key &of) const noexcept {
        return detail::yes_or_no(tollbar_table_unexempt(get(), number(of), of.data(), of.size()));
    }

    /// Gives a key a policy of its own in place of the one that it names, in all processes at once,
    /// until clear_override:
    ///
    ///     calls.set_override("acme", "1000/s burst 50");
    ///
    /// `keep`, a TOLLBAR_KEEP_ number, says what the key keeps of its debt when the override begins
    /// and when it ends. The error is errc::overrides_full if as many keys have one as
    /// table_options::overrides says.
    void set_override(const key &of, const spec &own, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const {
        try_set_override(of, own, keep).value();
    }
    result<void> try_set_override(const key &of, const spec &own, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const noexcept {
        return detail::done(tollbar_table_set_override(get(), number(of), of.data(), of.size(), own.get(), keep));
    }
    /// Puts a key back under its policy. False if it had no policy of its own.
    bool clear_override(const key &of) const { return try_clear_override(of).value(); }
    result<bool> try_clear_override(const key &of) const noexcept {
        return detail::yes_or_no(tollbar_table_clear_override(get(), number(of), of.data(), of.size()));
    }
    /// The policy that a key has of its own.
    std::optional<spec> override_of(const key &of) const { return try_override_of(of).value(); }
    result<std::optional<spec>> try_override_of(const key &of) const noexcept {
        auto raw = detail::blank<tollbar_policy_spec>();
        const std::int32_t code = tollbar_table_get_override(get(), number(of), of.data(), of.size(), &raw);
        if (code < 0)
            return detail::failed(code);
        return code == TOLLBAR_YES ? std::optional<spec>(spec(raw)) : std::nullopt;
    }
    /// Calls `visit(policy_id, hash, spec)` for each key with a policy of its own.
    template <class Visit> void each_override(Visit &&visit) const {
        auto found = detail::blank<tollbar_table_override>();
        auto raw = detail::blank<tollbar_policy_spec>();
        while (tollbar_table_next_override(get(), found.next, &found, &raw) == TOLLBAR_YES)
            visit(static_cast<policy_id>(found.policy), found.hash, spec(raw));
    }

    /// The hash by which the table knows a key, as entries() shows it.
    std::uint64_t hash(const key &of) const { return try_hash(of).value(); }
    result<std::uint64_t> try_hash(const key &of) const noexcept {
        std::uint64_t hash = 0;
        const std::int32_t code = tollbar_table_hash(get(), number(of), of.data(), of.size(), &hash);
        return detail::done(code, hash);
    }

    /// The time that calls without `_at` read.
    nanoseconds now() const { return try_now().value(); }
    result<nanoseconds> try_now() const noexcept {
        std::uint64_t ns = 0;
        const std::int32_t code = tollbar_table_now(get(), &ns);
        return detail::done(code, detail::from_c(ns));
    }

    /// The keys of the table, with their states at the current time or another. Each entry is what
    /// its slot held at one instant. A key that is inserted, moved or removed meanwhile may appear
    /// once, twice or not at all. The range must not outlive the table.
    entry_range entries(std::optional<instant> at = std::nullopt) const noexcept {
        return entry_range({get(), moment(at), 0});
    }

    /// The current policies in the order of their numbers. The range must not outlive the table.
    policy_range policies() const noexcept { return policy_range({get(), 0}); }
    spec policy(policy_id id) const { return try_policy(id).value(); }
    result<spec> try_policy(policy_id id) const noexcept {
        auto raw = detail::blank<tollbar_policy_spec>();
        const std::int32_t code = tollbar_table_get_policy(get(), static_cast<std::uint32_t>(id), &raw);
        return detail::done(code, spec(raw));
    }
    /// Adds a policy, for all processes, while the table is in use.
    policy_id add_policy(const spec &of) const { return try_add_policy(of).value(); }
    result<policy_id> try_add_policy(const spec &of) const noexcept {
        std::uint32_t id = 0;
        const std::int32_t code = tollbar_table_add_policy(get(), of.get(), &id);
        return detail::done(code, static_cast<policy_id>(id));
    }
    /// Returns the number of the first policy that equals this one in every field, and adds it if
    /// there is none. If several callers ask for one policy at once, all get the same number.
    policy_id find_or_add_policy(const spec &of) const { return try_find_or_add_policy(of).value(); }
    result<policy_id> try_find_or_add_policy(const spec &of) const noexcept {
        std::uint32_t id = 0;
        const std::int32_t code = tollbar_table_find_or_add_policy(get(), of.get(), &id);
        return detail::done(code, static_cast<policy_id>(id));
    }
    /// Changes a policy, for all processes at once, while the table is in use. A key keeps the
    /// number of permits that it has left, up to the new burst, or with TOLLBAR_KEEP_TIME the time
    /// until its debt is paid.
    void set_policy(policy_id id, const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const {
        try_set_policy(id, to, keep).value();
    }
    result<void> try_set_policy(policy_id id, const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const noexcept {
        return detail::done(tollbar_table_set_policy(get(), static_cast<std::uint32_t>(id), to.get(), keep));
    }

    /// The table's counters and sizes.
    table_stats stats() const { return try_stats().value(); }
    result<table_stats> try_stats() const noexcept {
        auto raw = detail::blank<tollbar_table_stats>();
        const std::int32_t code = tollbar_table_get_stats(get(), &raw);
        return detail::done(code, raw);
    }

    /// Decisions of all threads and processes under one policy, by verdict. stats() has the sums
    /// over all policies.
    decision_counts counts(std::uint32_t policy = 0) const { return try_counts(policy).value(); }
    result<decision_counts> try_counts(std::uint32_t policy = 0) const noexcept {
        auto raw = detail::blank<tollbar_counts>();
        const std::int32_t code = tollbar_table_get_counts(get(), policy, &raw);
        return detail::done(code, raw);
    }

    /// Counts a decision that the caller has made because of a peek. It charges nothing.
    void count(outcome decided, std::uint32_t policy = 0, reason why = reason::rate) const {
        try_count(decided, policy, why).value();
    }
    result<void> try_count(outcome decided, std::uint32_t policy = 0, reason why = reason::rate) const noexcept {
        return detail::done(tollbar_table_count_verdict(get(), policy, static_cast<std::int32_t>(decided),
                                                        static_cast<std::uint32_t>(why)));
    }

    /// count for a request of a key that the caller has refused. If the table records refusals, it
    /// records this one, too.
    void count_refusal(const key &of, outcome decided = outcome::denied, reason why = reason::rate) const {
        try_count_refusal(of, decided, why).value();
    }
    result<void> try_count_refusal(const key &of, outcome decided = outcome::denied, reason why = reason::rate) const noexcept {
        return detail::done(tollbar_table_count_refusal(get(), number(of), of.data(),
                                                        of.size(), static_cast<std::int32_t>(decided),
                                                        static_cast<std::uint32_t>(why)));
    }

    /// Examines `most` slots from number `from` on, and makes vacant the slots whose keys have
    /// expired. No table needs sweeps. They serve to count the keys with a debt.
    sweep_result sweep(std::optional<instant> at = std::nullopt, std::uint64_t from = 0,
                       std::uint64_t most = UINT64_MAX) const {
        return try_sweep(at, from, most).value();
    }
    result<sweep_result> try_sweep(std::optional<instant> at = std::nullopt, std::uint64_t from = 0,
                                   std::uint64_t most = UINT64_MAX) const noexcept {
        auto raw = detail::blank<tollbar_table_sweep_result>();
        const std::int32_t code = tollbar_table_sweep(get(), from, most, moment(at), &raw);
        return detail::done(code, raw);
    }

    /// Writes the table of a file to the disk, with the current time.
    void sync() const { try_sync().value(); }
    result<void> try_sync() const noexcept { return detail::done(tollbar_table_sync(get())); }

    /// Examines every slot. Damage is part of the result, and no error.
    table_health validate(std::optional<instant> at = std::nullopt) const { return try_validate(at).value(); }
    result<table_health> try_validate(std::optional<instant> at = std::nullopt) const noexcept {
        return looked_at(tollbar_table_validate, at);
    }
    /// Repairs the slots that validate reports, and returns that report. No other thread or process
    /// may use the table meanwhile.
    table_health repair(std::optional<instant> at = std::nullopt) const { return try_repair(at).value(); }
    result<table_health> try_repair(std::optional<instant> at = std::nullopt) const noexcept {
        return looked_at(tollbar_table_repair, at);
    }

    /// Sets whether requests of all processes record the keys that they refuse, for top_refused. No
    /// table records them at first.
    void record_refusals(bool on) const { try_record_refusals(on).value(); }
    result<void> try_record_refusals(bool on) const noexcept {
        return detail::done(tollbar_table_record_refusals(get(), on ? 1 : 0));
    }
    bool records_refusals() const { return try_records_refusals().value(); }
    result<bool> try_records_refusals() const noexcept {
        return detail::yes_or_no(tollbar_table_records_refusals(get()));
    }
    /// The keys that requests were refused most in the last minute or two, the most refused first,
    /// at most 224. The bytes of a key are the client's: escape them before they go to a terminal,
    /// a page or a log.
    std::vector<refused_key> top_refused(std::size_t most = 20, std::optional<instant> at = std::nullopt) const {
        std::vector<tollbar_table_refused> raw(std::clamp<std::size_t>(most, 1, TOLLBAR_REFUSED_MOST));
        raw[0] = detail::blank<tollbar_table_refused>();
        std::size_t count = 0;
        detail::done(tollbar_table_top_refused(get(), moment(at), raw.data(), std::min(most, raw.size()), &count)).value();
        std::vector<refused_key> top;
        for (std::size_t n = 0; n < count; n++)
            top.push_back({static_cast<policy_id>(raw[n].policy), raw[n].count, {reinterpret_cast<const char *>(raw[n].key), raw[n].length},
                           raw[n].is_cut == TOLLBAR_YES});
        return top;
    }

    /// Copies the debts and exemptions of another table's keys into this table, for example to go
    /// on in a table of another size. Both tables must have the same seed and clock, and this one a
    /// policy of each number that the other has.
    table_copied copy_from(const table &other, std::optional<instant> at = std::nullopt) const {
        return try_copy_from(other, at).value();
    }
    result<table_copied> try_copy_from(const table &other, std::optional<instant> at = std::nullopt) const noexcept {
        auto raw = detail::blank<tollbar_table_copy_result>();
        const std::int32_t code = tollbar_table_copy(get(), other.get(), moment(at), &raw);
        return detail::done(code, raw);
    }

    /// Takes the handle of a C call into ownership.
    static table adopt(tollbar_table *made) noexcept { return table(handle(made)); }
    tollbar_table *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller ends it with tollbar_table_close.
    [[nodiscard]] tollbar_table *release() noexcept { return handle_.release(); }
    /// Whether this object holds a table. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_table *made) const noexcept { tollbar_table_close(made); }
    };
    using handle = std::unique_ptr<tollbar_table, deleter>;
    explicit table(handle made) noexcept : handle_(std::move(made)) {}

    template <class Call>
    static result<table> made(const table_options &options, const policy_list &policies, const Call &call) noexcept {
        const tollbar_table_options raw = for_c(options);
        return detail::made<table, tollbar_table>(
            [&](auto **out) { return call(policies.get(), policies.size(), &raw, out); });
    }

    result<table_health> looked_at(decltype(tollbar_table_validate) *look,
                                   std::optional<instant> at) const noexcept {
        auto slots = detail::blank<tollbar_table_health>();
        const std::int32_t code = look(get(), moment(at), &slots);
        if (code != 0 && code != TOLLBAR_E_SLOTS_INVALID)
            return detail::failed(code);
        return table_health{code != 0, slots};
    }

    static tollbar_table_options for_c(const table_options &options) noexcept {
        auto raw = detail::blank<tollbar_table_options>();
        raw.capacity = options.capacity;
        raw.on_full = static_cast<std::uint32_t>(options.when_full);
        raw.missing_key = static_cast<std::uint32_t>(options.without_key);
        raw.clock = static_cast<std::uint32_t>(options.clock);
        raw.mode = options.mode;
        raw.waiters = options.waiters;
        raw.seed = options.seed;
        if (options.seeded)
            raw.flags |= TOLLBAR_TABLE_HAS_SEED;
        if (options.small_pages)
            raw.flags |= TOLLBAR_TABLE_SMALL_PAGES;
        if (options.whose == trust::anyone)
            raw.flags |= TOLLBAR_TABLE_TRUST_ANYONE;
        raw.hot_keys = options.hot_keys;
        raw.overrides = options.overrides;
        raw.room = options.room;
        return raw;
    }
    static const tollbar_request *for_c(span<const request> requests) noexcept {
        return reinterpret_cast<const tollbar_request *>(requests.data());
    }
    static std::uint32_t number(const key &of) noexcept { return static_cast<std::uint32_t>(of.policy()); }

    /// The caller's time, or the table's. Without a table it is 0, and the C call then returns the
    /// error.
    std::uint64_t moment(std::optional<instant> at) const noexcept {
        std::uint64_t ns = 0;
        if (at)
            return at->get();
        tollbar_table_now(get(), &ns);
        return ns;
    }

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_TABLE_HPP
