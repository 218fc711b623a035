// What a decision costs through tollbar.hpp and through tollbar.h, side by side in one run: rounds
// of both in turn, of which the middle one counts. The header adds no work, so the difference is to
// be noise, below a nanosecond.
#include "bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tollbar.hpp"

char bench_keys[KEYS][KEY_LENGTH];

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 41, count = 64 * 512;

std::string_view key(int i) { return {bench_keys[i % KEYS], KEY_LENGTH}; }

std::uint64_t limiter_check(const tollbar::limiter &limiter) {
    std::uint64_t yes = 0;
    for (int i = 0; i < count; i++)
        yes += limiter.admit() ? 1 : 0;
    return yes;
}

std::uint64_t limiter_check_at(const tollbar::limiter &limiter) {
    std::uint64_t yes = 0;
    for (int i = 0; i < count; i++)
        yes += limiter.admit_at(1s + std::chrono::nanoseconds(i)) ? 1 : 0;
    return yes;
}

std::uint64_t limiter_decide(const tollbar::limiter &limiter) {
    std::uint64_t yes = 0;
    for (int i = 0; i < count; i++) {
        const auto decision = limiter.check();
        yes += decision && decision.remaining() != 0;
    }
    return yes;
}

std::uint64_t table_check(const tollbar::table &table) {
    std::uint64_t yes = 0;
    for (int i = 0; i < count; i++)
        yes += table.admit(key(i)) ? 1 : 0;
    return yes;
}

std::uint64_t table_decide(const tollbar::table &table) {
    std::uint64_t yes = 0;
    for (int i = 0; i < count; i++) {
        const auto decision = table.check(key(i));
        yes += decision && decision.remaining() != 0;
    }
    return yes;
}

std::uint64_t table_check_many(const tollbar::table &table) {
    std::uint64_t yes = 0;
    std::array<tollbar::request, BATCH> requests;
    std::array<tollbar::verdict, BATCH> results;
    for (int i = 0; i < count; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            requests[static_cast<std::size_t>(j)] = key(i + j);
        if (!table.admit_many(requests, results))
            return 0;
        for (const tollbar::verdict result : results)
            yes += result ? 1 : 0;
    }
    return yes;
}

/// Nanoseconds a decision takes; every one is a yes, or the run is worth nothing.
template <class Body> double timed(const Body &body, bool &good) {
    const auto started = std::chrono::steady_clock::now();
    good &= body() == static_cast<std::uint64_t>(count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
    return took.count() / count;
}

double middle(std::vector<double> &of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

template <class C, class Cpp> bool compare(const char *name, const C &c, const Cpp &cpp) {
    std::vector<double> in_c, in_cpp, more;
    bool good = true;
    for (int i = 0; i < rounds; i++) {
        in_c.push_back(timed(c, good));
        in_cpp.push_back(timed(cpp, good));
        more.push_back(in_cpp.back() - in_c.back());
    }
    std::printf("%-20s C %6.2f ns   C++ %6.2f ns   %+.2f ns   goal +1.00\n", name, middle(in_c), middle(in_cpp), middle(more));
    return good;
}

} // namespace

int main() {
    for (int i = 0; i < KEYS; i++) {
        const std::string name = "user-" + std::to_string(1'000'000 + i);
        std::memcpy(bench_keys[i], name.data(), KEY_LENGTH);
    }
    const tollbar::limiter limiter("100000000/s burst 4gb unit bytes"), frozen("100000000/s burst 4gb unit bytes");
    const tollbar::table table(10'000, {"100000000/s burst 1gb unit bytes"});
    const auto *const l = limiter.get();
    const auto *const t = table.get();
    std::printf("through tollbar.hpp and tollbar.h, the middle of %d rounds in turn\n", rounds);
    bool good = compare("limiter.check", [&] { return c_limiter_check(l, count); }, [&] { return limiter_check(limiter); });
    good &= compare("limiter.check_at", [&] { return c_limiter_check_at(frozen.get(), count); },
                    [&] { return limiter_check_at(frozen); });
    good &= compare("limiter.decide", [&] { return c_limiter_decide(l, count); }, [&] { return limiter_decide(limiter); });
    good &= compare("table.check", [&] { return c_table_check(t, count); }, [&] { return table_check(table); });
    good &= compare("table.decide", [&] { return c_table_decide(t, count); }, [&] { return table_decide(table); });
    good &= compare("table.check_many", [&] { return c_table_check_many(t, count); }, [&] { return table_check_many(table); });
    if (!good)
        std::printf("some were refused\n");
    return !good;
}
