/* tollbar/error.hpp: what went wrong, as a code, as an exception and as a result<T>. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_ERROR_HPP
#define TOLLBAR_ERROR_HPP

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "tollbar.hpp needs C++17; tollbar.h is for older ones"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../tollbar.h"

namespace tollbar {

/// The errors of tollbar.h, where each is explained. They compare with std::error_code.
enum class errc : std::int32_t {
    // [lists: errors] written by cargo xtask lists
    null = TOLLBAR_E_NULL,
    misaligned = TOLLBAR_E_MISALIGNED,
    struct_size = TOLLBAR_E_STRUCT_SIZE,
    reserved = TOLLBAR_E_RESERVED,
    out_of_range = TOLLBAR_E_OUT_OF_RANGE,
    limits = TOLLBAR_E_LIMITS,
    closed = TOLLBAR_E_CLOSED,
    syntax = TOLLBAR_E_SYNTAX,
    number_too_large = TOLLBAR_E_NUMBER_TOO_LARGE,
    algorithm = TOLLBAR_E_ALGORITHM,
    duplicate_option = TOLLBAR_E_DUPLICATE_OPTION,
    period_zero = TOLLBAR_E_PERIOD_ZERO,
    burst_zero = TOLLBAR_E_BURST_ZERO,
    rate_too_high = TOLLBAR_E_RATE_TOO_HIGH,
    burst_too_large = TOLLBAR_E_BURST_TOO_LARGE,
    init_above_burst = TOLLBAR_E_INIT_ABOVE_BURST,
    option_mismatch = TOLLBAR_E_OPTION_MISMATCH,
    segments = TOLLBAR_E_SEGMENTS,
    warm_up = TOLLBAR_E_WARM_UP,
    log_too_large = TOLLBAR_E_LOG_TOO_LARGE,
    not_one_word = TOLLBAR_E_NOT_ONE_WORD,
    ban = TOLLBAR_E_BAN,
    list = TOLLBAR_E_LIST,
    quota = TOLLBAR_E_QUOTA,
    classes = TOLLBAR_E_CLASSES,
    no_such_class = TOLLBAR_E_NO_SUCH_CLASS,
    knots = TOLLBAR_E_KNOTS,
    calendar = TOLLBAR_E_CALENDAR,
    wall_clock = TOLLBAR_E_WALL_CLOCK,
    no_memory = TOLLBAR_E_NO_MEMORY,
    buffer_too_small = TOLLBAR_E_BUFFER_TOO_SMALL,
    policy_changes = TOLLBAR_E_POLICY_CHANGES,
    class_number = TOLLBAR_E_CLASS_NUMBER,
    class_rate = TOLLBAR_E_CLASS_RATE,
    guarantee = TOLLBAR_E_GUARANTEE,
    class_tree = TOLLBAR_E_CLASS_TREE,
    capacity = TOLLBAR_E_CAPACITY,
    policy_count = TOLLBAR_E_POLICY_COUNT,
    no_such_policy = TOLLBAR_E_NO_SUCH_POLICY,
    mixed_policies = TOLLBAR_E_MIXED_POLICIES,
    policy_versions = TOLLBAR_E_POLICY_VERSIONS,
    exemptions_full = TOLLBAR_E_EXEMPTIONS_FULL,
    missing_key = TOLLBAR_E_MISSING_KEY,
    unsupported = TOLLBAR_E_UNSUPPORTED,
    address = TOLLBAR_E_ADDRESS,
    receipt = TOLLBAR_E_RECEIPT,
    not_a_table = TOLLBAR_E_NOT_A_TABLE,
    table_version = TOLLBAR_E_TABLE_VERSION,
    truncated = TOLLBAR_E_TRUNCATED,
    corrupt = TOLLBAR_E_CORRUPT,
    other_capacity = TOLLBAR_E_OTHER_CAPACITY,
    other_policies = TOLLBAR_E_OTHER_POLICIES,
    other_options = TOLLBAR_E_OTHER_OPTIONS,
    boot_id = TOLLBAR_E_BOOT_ID,
    slots_invalid = TOLLBAR_E_SLOTS_INVALID,
    overrides_full = TOLLBAR_E_OVERRIDES_FULL,
    owner = TOLLBAR_E_OWNER,
    unsealed = TOLLBAR_E_UNSEALED,
    open = TOLLBAR_E_OPEN,
    read = TOLLBAR_E_READ,
    no_space = TOLLBAR_E_NO_SPACE,
    map = TOLLBAR_E_MAP,
    link = TOLLBAR_E_LINK,
    lock = TOLLBAR_E_LOCK,
    random = TOLLBAR_E_RANDOM,
    sync = TOLLBAR_E_SYNC,
    lease_algorithm = TOLLBAR_E_LEASE_ALGORITHM,
    lease_nodes = TOLLBAR_E_LEASE_NODES,
    lease_life = TOLLBAR_E_LEASE_LIFE,
    lease_burst = TOLLBAR_E_LEASE_BURST,
    lease_too_large = TOLLBAR_E_LEASE_TOO_LARGE,
    lease_name = TOLLBAR_E_LEASE_NAME,
    not_a_lease = TOLLBAR_E_NOT_A_LEASE,
    url = TOLLBAR_E_URL,
    running = TOLLBAR_E_RUNNING,
    unreported = TOLLBAR_E_UNREPORTED,
    client_leases = TOLLBAR_E_CLIENT_LEASES,
    store_algorithm = TOLLBAR_E_STORE_ALGORITHM,
    store_numbers = TOLLBAR_E_STORE_NUMBERS,
    store_value = TOLLBAR_E_STORE_VALUE,
    store_reply = TOLLBAR_E_STORE_REPLY,
    store_key = TOLLBAR_E_STORE_KEY,
    ticket = TOLLBAR_E_TICKET,
    in_flight_full = TOLLBAR_E_IN_FLIGHT_FULL,
    owners_full = TOLLBAR_E_OWNERS_FULL,
    pid_namespace = TOLLBAR_E_PID_NAMESPACE,
    time_namespace = TOLLBAR_E_TIME_NAMESPACE,
    other_boot = TOLLBAR_E_OTHER_BOOT,
    slot_room = TOLLBAR_E_SLOT_ROOM,
    internal = TOLLBAR_E_INTERNAL,
    // [lists: end]
};

namespace detail {

class category final : public std::error_category {
public:
    const char *name() const noexcept override { return "tollbar"; }
    std::string message(int code) const override { return tollbar_strerror(code); }
};

} // namespace detail

/// The category of tollbar's error codes.
inline const std::error_category &error_category() noexcept {
    static const detail::category the_category;
    return the_category;
}

/// std::error_code finds this by its name, so `code == tollbar::errc::syntax` works.
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), error_category()}; }

/// The name of an error's macro in tollbar.h, such as "TOLLBAR_E_SYNTAX".
inline const char *name_of(errc code) noexcept { return tollbar_errname(static_cast<std::int32_t>(code)); }

} // namespace tollbar

template <> struct std::is_error_code_enum<tollbar::errc> : std::true_type {};

namespace tollbar {

/// Why a call failed. It allocates nothing.
struct failure {
    /// The error.
    errc code;
    /// The system's errno for errors of the system, such as errc::open. Otherwise 0.
    int system = 0;
    /// For a policy's text, the column at which its wrong part begins, from 1. Otherwise 0.
    std::uint64_t column = 0;
    /// For a policy's text, what was expected there, or why the policy is refused. Otherwise null.
    /// The string is static.
    const char *expected = nullptr;

    std::error_code error() const noexcept { return make_error_code(code); }
};

/// The exception of throwing calls. what() is one line for people, and code() is of
/// error_category().
class error : public std::system_error {
public:
    explicit error(const failure &why) : std::system_error(why.error(), context(why)), why_(why) {}

    /// The failure in full. `why().system` is the system's errno after an error of the system.
    const failure &why() const noexcept { return why_; }

protected:
    error(const failure &why, const std::string &text) : std::system_error(why.error(), text), why_(why) {}

private:
    static std::string context(const failure &why) {
        if (why.system == 0)
            return "tollbar";
        return "tollbar: " + std::generic_category().message(why.system);
    }

    failure why_;
};

/// The fault of a policy's text: where it is, and what was expected.
class policy_error : public error {
public:
    explicit policy_error(const failure &why)
        : error(why, "tollbar: column " + std::to_string(why.column) + ": expected " + why.expected) {}

    /// The column, from 1, at which the wrong part of the text begins: a word, a number, or an
    /// option with its value. If the text ends too early, the column after its last byte.
    std::uint64_t column() const noexcept { return why().column; }
    /// What was expected there, or why the policy is refused. The string is static.
    const char *expected() const noexcept { return why().expected; }
};

namespace detail {

[[noreturn]] inline void raise([[maybe_unused]] const failure &why) {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    if (why.expected != nullptr)
        throw policy_error(why);
    throw error(why);
#else
    std::abort();
#endif
}

// The errors after which errno has the system's reason.
// [lists: system errors] written by cargo xtask lists
constexpr std::int32_t system_first = TOLLBAR_E_OPEN, system_last = TOLLBAR_E_SYNC;
// [lists: end]

/// The failure that a C call returned. The caller calls this at once, while errno is still that
/// call's.
inline failure failed(std::int32_t code) noexcept {
    failure why{static_cast<errc>(code)};
    if (code <= system_first && code >= system_last)
        why.system = errno;
    return why;
}

} // namespace detail

/// A value, or the failure of the call. value() of a failed result throws what the throwing call
/// would have thrown.
///
///     auto opened = tollbar::table::try_open("/run/logins/table");
///     if (!opened)
///         log(opened.error().message());
template <class T> class [[nodiscard]] result {
public:
    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : value_(std::move(value)) {}
    result(const failure &why) noexcept : why_(why) {}

    bool has_value() const noexcept { return value_.has_value(); }
    /// Whether the call succeeded. For a result<bool> this is not the value.
    explicit operator bool() const noexcept { return has_value(); }

    T &value() & { return checked(), *value_; }
    const T &value() const & { return checked(), *value_; }
    /// From a temporary result the value is moved out, so that no reference to the temporary
    /// remains.
    T value() && { return checked(), std::move(*value_); }
    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T operator*() && { return std::move(*this).value(); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }

    /// The code of the failure. Empty, and false, if there is a value.
    std::error_code error() const noexcept { return has_value() ? std::error_code() : why_.error(); }
    /// The failure in full. It has a meaning only if there is no value.
    const failure &why() const noexcept { return why_; }

private:
    void checked() const {
        if (!has_value())
            detail::raise(why_);
    }

    std::optional<T> value_;
    failure why_{errc::internal};
};

/// Success, or the failure of the call.
template <> class [[nodiscard]] result<void> {
public:
    result() noexcept = default;
    result(const failure &why) noexcept : why_(why) {}

    bool has_value() const noexcept { return !why_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (why_)
            detail::raise(*why_);
    }
    std::error_code error() const noexcept { return why_ ? why_->error() : std::error_code(); }
    /// The failure in full. It has a meaning only if the call failed.
    failure why() const noexcept { return why_.value_or(failure{errc::internal}); }

private:
    std::optional<failure> why_;
};

namespace detail {

/// A growable struct with the fields of its _INIT macro. The macro itself has C casts.
template <class Struct> constexpr Struct blank() noexcept {
    Struct made{};
    made.struct_size = static_cast<std::uint32_t>(sizeof made);
    return made;
}

/// The result of a C call without outputs.
inline result<void> done(std::int32_t code) noexcept {
    if (code != 0)
        return failed(code);
    return {};
}

/// The value that a C call wrote, or its error.
template <class T> result<T> done(std::int32_t code, const T &value) noexcept {
    if (code != 0)
        return failed(code);
    return value;
}

/// The owner of the handle that a C call makes. `call(Handle **)` returns the call's int32_t.
template <class Owner, class Handle, class Call> result<Owner> made(const Call &call) noexcept {
    Handle *handle = nullptr;
    const std::int32_t code = call(&handle);
    if (code != 0)
        return failed(code);
    return Owner::adopt(handle);
}

/// The answer to a question: TOLLBAR_YES, TOLLBAR_NO or an error.
inline result<bool> yes_or_no(std::int32_t code) noexcept {
    if (code < 0)
        return failed(code);
    return code == TOLLBAR_YES;
}

/// The text of anything that converts to a string_view. A null pointer is an empty text.
template <class Text> std::string_view text_of(const Text &text) noexcept {
    if constexpr (std::is_pointer_v<Text>) {
        if (text == nullptr)
            return {};
    }
    return text;
}

/// The text that a C call prints. `print(buffer, capacity, &length)` is called with more room until
/// the text fits.
template <class Print> result<std::string> printed(std::size_t room, const Print &print) {
    for (std::string text;;) {
        text.resize(room);
        std::size_t length = 0;
        const std::int32_t code = print(text.data(), text.size(), &length);
        if (code == TOLLBAR_ALLOWED) {
            text.resize(length);
            return text;
        }
        if (code != TOLLBAR_E_BUFFER_TOO_SMALL || length < room)
            return failed(code);
        // Numbers may grow between two calls.
        room = length + length / 8 + 1;
    }
}

template <class T> using if_text = std::enable_if_t<std::is_convertible_v<const T &, std::string_view>, int>;

} // namespace detail

/// The version of the linked library, such as "0.1.0".
inline std::string_view version() noexcept { return tollbar_version_string(); }
/// The version of the linked library as `major << 16 | minor << 8 | patch`. Compare it with
/// TOLLBAR_VERSION.
inline std::uint32_t version_number() noexcept { return tollbar_version(); }
/// The ABI of the linked library. A program that calls this neither links nor starts with a library
/// of another ABI.
inline std::uint32_t abi() noexcept { return tollbar_abi_1; }

} // namespace tollbar

#endif // TOLLBAR_ERROR_HPP
