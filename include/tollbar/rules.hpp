/* tollbar/rules.hpp: rate limits from a file in TOML or YAML, for C++17 and later.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     tollbar::rules rules("site.toml");
 *     const auto answer = rules.check({{":method", "GET"}, {":path", path}, {":address", address}});
 *     if (!answer)
 *         return reply(answer.status(), answer.body());
 *
 * Everything here is inline over tollbar_rules.h, which is the manual. Its calls are libtollbar-rules's, and a program links libtollbar, too
 * (`pkg-config --libs tollbar-rules tollbar`). The conventions are tollbar.hpp's. docs/rules.md describes the file.
 */

#ifndef TOLLBAR_RULES_HPP
#define TOLLBAR_RULES_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <type_traits>
#include <utility>

#include "../tollbar_rules.h"
#include "decision.hpp"
#include "error.hpp"
#include "metrics.hpp"

namespace tollbar {

/// The exception of rules that cannot be loaded. what() ends with the faults.
class rules_error : public error {
public:
    rules_error(const failure &why, const std::string &faults)
        : error(why, faults.empty() ? "tollbar" : "tollbar: " + faults), faults_(std::make_shared<const std::string>(faults)) {}

    /// A line for each fault, such as
    /// `site.toml:3:11: group.a.limit: "r/y" in "5r/y"; expected a limit: a whole number`.
    const std::string &faults() const noexcept { return *faults_; }

private:
    // Shared, because a copy of an exception must not throw.
    std::shared_ptr<const std::string> faults_;
};

/// How rules are opened.
struct rules_options {
    /// How many keys can have a debt at one time. A key counts once for each of its limits.
    std::uint64_t keys = 100000;
    /// The states are in memory that this process shares with the processes that it forks later.
    /// Then only this process can reload.
    bool shared = false;
    /// The most segments of a sliding window, or permits of a sliding log, for which each key has
    /// room. A reload may then change such a limit to any other, and any other to it, and keys keep
    /// the permits that they have left. 0: none, and such a limit begins anew if its policy
    /// changes.
    std::uint32_t room = 0;
};

/// A field of a request: ":method", ":path", ":address", another word of the server with a colon
/// before it, or a header. It owns nothing.
class rules_field {
public:
    rules_field(std::string_view name, std::string_view value) noexcept
        : raw_{name.empty() ? "" : name.data(), name.size(), value.empty() ? "" : value.data(), value.size()} {}

private:
    tollbar_rules_field raw_;
};

static_assert(sizeof(rules_field) == sizeof(tollbar_rules_field) && std::is_standard_layout_v<rules_field>, "an array of fields is C's");

/// The decision on a request. True if the request may pass.
class [[nodiscard]] rules_answer {
public:
    /// A default answer is a refusal.
    rules_answer() noexcept { raw_.retry_after_ns = TOLLBAR_NO_TIME; }
    explicit operator bool() const noexcept { return answer().allowed(); }
    bool allowed() const noexcept { return answer().allowed(); }
    /// Whether the call failed. Nothing has been charged then, and the caller decides whether the
    /// request passes.
    bool failed() const noexcept { return answer().failed(); }
    std::error_code error() const noexcept { return answer().error(); }
    verdict answer() const noexcept { return verdict(code_); }

    /// The reason. reason::fault if the call failed.
    tollbar::reason why() const noexcept { return failed() ? tollbar::reason::fault : static_cast<tollbar::reason>(raw_.reason); }
    /// The HTTP status to answer; 200 for a request that may pass, and 0 if the call failed.
    std::uint32_t status() const noexcept { return raw_.status; }
    /// The body to answer; empty for a request that may pass. The text lives as long as this
    /// object.
    std::string_view body() const noexcept { return raw_.body; }
    /// The name of the rule that refuses or, in an admission, has the fewest permits left. Empty if
    /// no rule matches.
    std::string_view rule() const noexcept { return raw_.rule; }
    /// Permits that are left of that rule.
    std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /// The time until the same request would pass. Empty if waiting does not help, or if the call
    /// failed.
    std::optional<nanoseconds> retry_after() const noexcept { return detail::if_any(raw_.retry_after_ns); }
    /// The time until all limits are as good as fresh.
    nanoseconds reset_after() const noexcept { return detail::from_c(raw_.reset_after_ns); }
    /// The number of the set of rules that decided: each reload that succeeds adds 1.
    std::uint64_t generation() const noexcept { return raw_.generation; }
    /// The C struct.
    const tollbar_rules_answer &get() const noexcept { return raw_; }

    /// Makes a C call: `call(tollbar_rules_answer *)` returns its int32_t.
    template <class Call> static rules_answer of(const Call &call) noexcept {
        rules_answer made;
        made.code_ = call(&made.raw_);
        return made;
    }

private:
    tollbar_rules_answer raw_ = detail::blank<tollbar_rules_answer>();
    std::int32_t code_ = TOLLBAR_DENIED;
};

/// Rules in force. Any number of threads may check requests while another one reloads.
class rules {
public:
    /// Reads the file and puts its rules in force. A name that ends in .yaml, .yml or .json is
    /// YAML, any other is TOML. Throws rules_error.
    explicit rules(const std::string &path, const rules_options &options = {}) : rules(loaded(path, options)) {}
    /// Writes the faults to `*faults`, unless it is null.
    static result<rules> try_make(const std::string &path, const rules_options &options = {}, std::string *faults = nullptr) {
        auto raw = detail::blank<tollbar_rules_options>();
        raw.flags = options.shared ? TOLLBAR_RULES_SHARED : 0;
        raw.keys = options.keys;
        raw.room = options.room;
        tollbar_rules *made = nullptr;
        const std::int32_t code = with_faults(
            [&](char *text, std::size_t size) { return tollbar_rules_open(path.c_str(), &raw, &made, text, size); }, faults);
        if (code != 0)
            return detail::failed(code);
        return adopt(made);
    }

    /// Takes the request's cost of all limits of all rules that it matches, or of none.
    rules_answer check(span<const rules_field> request) const noexcept {
        return rules_answer::of([&](auto *out) { return tollbar_rules_check(get(), for_c(request), request.size(), out); });
    }
    rules_answer check(std::initializer_list<rules_field> request) const noexcept {
        return check(span<const rules_field>(request.begin(), request.size()));
    }
    /// check at the caller's time, on the scale of now().
    rules_answer check_at(instant now, span<const rules_field> request) const noexcept {
        return rules_answer::of(
            [&](auto *out) { return tollbar_rules_check_at(get(), for_c(request), request.size(), now.get(), out); });
    }
    rules_answer check_at(instant now, std::initializer_list<rules_field> request) const noexcept {
        return check_at(now, span<const rules_field>(request.begin(), request.size()));
    }

    /// Charges what the answer to an admitted request has cost, under rules with
    /// `cost = "answer NAME"`. `answer` is that of check, and `request` has the request's fields
    /// again, with the words of the answer (":NAME") among them. Returns whether the words had a
    /// whole number for each such cost: the estimate stays where one is missing. Call it once for
    /// each admission (tollbar_rules_settle).
    bool settle(const rules_answer &answer, span<const rules_field> request) const {
        return try_settle(answer, request).value();
    }
    bool settle(const rules_answer &answer, std::initializer_list<rules_field> request) const {
        return settle(answer, span<const rules_field>(request.begin(), request.size()));
    }
    result<bool> try_settle(const rules_answer &answer, span<const rules_field> request) const noexcept {
        return detail::yes_or_no(tollbar_rules_settle(get(), for_c(request), request.size(), &answer.get()));
    }
    /// settle at the caller's time, on the scale of now().
    bool settle_at(instant now, const rules_answer &answer, span<const rules_field> request) const {
        return try_settle_at(now, answer, request).value();
    }
    result<bool> try_settle_at(instant now, const rules_answer &answer, span<const rules_field> request) const noexcept {
        return detail::yes_or_no(tollbar_rules_settle_at(get(), for_c(request), request.size(), &answer.get(), now.get()));
    }

    /// The names of the words of answers that tell costs, such as "tokens" of
    /// `cost = "answer tokens"`, each once. It throws for a name of more than 1,023 bytes
    /// (tollbar_rules_word_of_answers).
    std::vector<std::string> words_of_answers() const {
        std::vector<std::string> words;
        char word[1024];
        while (detail::yes_or_no(tollbar_rules_word_of_answers(get(), words.size(), word, sizeof word)).value())
            words.emplace_back(word);
        return words;
    }

    /// The time that check reads. 0 after this object has been moved from.
    nanoseconds now() const noexcept { return detail::from_c(tollbar_rules_now(get())); }

    /// Reads the file again and puts its rules in force as a whole. Keys of rules whose name stays
    /// keep their states. If that throws rules_error, the old rules stay.
    void reload() const {
        std::string faults;
        if (const result<void> done = try_reload(&faults); !done)
            raise(done.why(), faults);
    }
    result<void> try_reload(std::string *faults = nullptr) const {
        return detail::done(
            with_faults([&](char *text, std::size_t size) { return tollbar_rules_reload(get(), text, size); }, faults));
    }
    /// reload(), if the file has changed since it was last read. Returns whether it has. It throws
    /// the faults of a file once.
    bool reload_if_changed() const {
        std::string faults;
        const result<bool> changed = try_reload_if_changed(&faults);
        if (!changed)
            raise(changed.why(), faults);
        return *changed;
    }
    result<bool> try_reload_if_changed(std::string *faults = nullptr) const {
        return detail::yes_or_no(
            with_faults([&](char *text, std::size_t size) { return tollbar_rules_reload_if_changed(get(), text, size); }, faults));
    }

    /// Lets the keys of a rule begin anew: the one with this text, as `keys` and `exempt` of the
    /// file write it, or all. Returns whether they do (tollbar_rules_reset).
    bool reset(const std::string &rule) const { return try_reset(rule).value(); }
    bool reset(const std::string &rule, std::string_view key) const { return try_reset(rule, key).value(); }
    result<bool> try_reset(const std::string &rule) const {
        return detail::yes_or_no(tollbar_rules_reset(get(), rule.c_str(), nullptr, 0, nullptr, 0));
    }
    result<bool> try_reset(const std::string &rule, std::string_view key) const {
        return detail::yes_or_no(
            tollbar_rules_reset(get(), rule.c_str(), key.empty() ? "" : key.data(), key.size(), nullptr, 0));
    }

    /// What the rules have counted, as text. tollbar_rules_metrics lists the metrics. `name` is
    /// their label `limit`.
    std::string metrics(std::string_view name, metrics_format format = metrics_format::prometheus) const {
        return try_metrics(name, format).value();
    }
    result<std::string> try_metrics(std::string_view name, metrics_format format = metrics_format::prometheus) const {
        const tollbar_rules_source source = {name.empty() ? "" : name.data(), name.size(), get()};
        return detail::printed(4096, [&](char *buffer, std::size_t capacity, std::size_t *length) {
            return tollbar_rules_metrics(&source, 1, static_cast<std::uint32_t>(format), buffer, capacity, length);
        });
    }

    /// Makes this process the one that may reload shared rules, after it was forked from the
    /// process that could before.
    void take_over() const { try_take_over().value(); }
    result<void> try_take_over() const noexcept { return detail::done(tollbar_rules_adopt(get())); }

    /// Takes the handle of a C call into ownership.
    static rules adopt(tollbar_rules *made) noexcept { return rules(handle(made)); }
    tollbar_rules *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller ends it with tollbar_rules_close.
    [[nodiscard]] tollbar_rules *release() noexcept { return handle_.release(); }
    /// Whether this object holds rules. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_rules *made) const noexcept { tollbar_rules_close(made); }
    };
    using handle = std::unique_ptr<tollbar_rules, deleter>;
    explicit rules(handle made) noexcept : handle_(std::move(made)) {}

    static rules loaded(const std::string &path, const rules_options &options) {
        std::string faults;
        result<rules> made = try_make(path, options, &faults);
        if (!made)
            raise(made.why(), faults);
        return std::move(made).value();
    }

    [[noreturn]] static void raise([[maybe_unused]] const failure &why, [[maybe_unused]] const std::string &faults) {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
        throw rules_error(why, faults);
#else
        std::abort();
#endif
    }

    /// The result of `call(char *, std::size_t)`, which writes the faults there.
    template <class Call> static std::int32_t with_faults(const Call &call, std::string *faults) {
        if (faults == nullptr)
            return call(nullptr, 0);
        faults->assign(65536, '\0');
        const std::int32_t code = call(faults->data(), faults->size());
        faults->resize(code < 0 ? std::string_view(faults->c_str()).size() : 0);
        return code;
    }

    static const tollbar_rules_field *for_c(span<const rules_field> request) noexcept {
        return reinterpret_cast<const tollbar_rules_field *>(request.data());
    }

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_RULES_HPP
