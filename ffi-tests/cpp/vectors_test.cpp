// The golden vectors: limiters and tables give the decisions of the oracle. VECTORS is their
// folder.
#include "test.hpp"

#include <chrono>
#include <memory>

#include "tollbar.hpp"
#include "../c/vectors.h"

namespace {

std::chrono::nanoseconds duration(std::uint64_t ns) { return std::chrono::nanoseconds(static_cast<std::int64_t>(ns)); }

template <class Decide> bool repeats(const golden_vector &policy, const Decide &decide) {
    for (std::size_t i = 0; i < policy.count; i++) {
        const vector_step &step = policy.steps[i];
        const bool is_allowed = step.verdict == TOLLBAR_ALLOWED, is_never = step.verdict == TOLLBAR_NEVER;
        const bool waits = step.retry_after != TOLLBAR_NO_TIME;
        const tollbar::decision got = decide(duration(step.now), step.cost);
        if (got.allowed() != is_allowed || got.never() != is_never || got.remaining() != step.remaining ||
            (waits ? got.retry_after() != duration(step.retry_after) : got.retry_after().has_value())) {
            std::printf("# \"%s\", step %u\n", policy.policy, static_cast<unsigned>(i));
            return false;
        }
    }
    return true;
}

} // namespace

TEST(limiters_and_tables_repeat_the_vectors) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(VECTORS "/decisions.json", "r"), std::fclose);
    const auto policy = std::make_unique<golden_vector>();
    int more = -1, count = 0;
    while (file && (more = vector_read(file.get(), policy.get())) == 1) {
        tollbar::limiter_options on_wall;
        on_wall.clock = tollbar::clock_source::wall;
        const tollbar::limiter limiter(policy->policy, on_wall);
        CHECK(repeats(*policy, [&](auto now, auto cost) { return limiter.check_at(now, cost); }));
        tollbar::table_options options(100);
        options.clock = tollbar::clock_source::wall;
        const tollbar::table table(options, {policy->policy});
        CHECK(repeats(*policy, [&](auto now, auto cost) { return table.check_at(now, "key", cost); }));
        count++;
    }
    CHECK(more == 0 && count >= 29);
}
