// Rules in a file: decisions, faults and reloads.
#include "test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tollbar.hpp"
#include "tollbar/rules.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::rules;

namespace {

/// A rules file that is removed in the end.
struct file {
    std::string path = "/tmp/tollbar-rules-" + std::to_string(::getpid()) + ".toml";

    explicit file(const std::string &text) { write(text); }
    ~file() { std::remove(path.c_str()); }
    file(const file &) = delete;
    file &operator=(const file &) = delete;

    void write(const std::string &text) const {
        std::FILE *out = std::fopen(path.c_str(), "w");
        std::fputs(("version = 1\n" + text).c_str(), out);
        std::fclose(out);
    }
};

const std::initializer_list<tollbar::rules_field> request = {{":path", "/"}, {":address", "192.0.2.1"}, {"X-Empty", {}}};

} // namespace

TEST(rules_decide) {
    const file at("[group.a]\nlimit = '2/h'\nstatus = 420\nbody = 'slow down'\n");
    const rules limits(at.path);
    const auto now = limits.now();
    CHECK(now > 0ns);
    const std::vector<tollbar::rules_field> as_vector(request);
    const auto first = limits.check_at(now, request), second = limits.check_at(now, as_vector), third = limits.check_at(now, request);
    CHECK(first && first.status() == 200 && first.body().empty() && first.rule() == "a" && first.remaining() == 1);
    CHECK(second.allowed() && second.remaining() == 0 && second.why() == tollbar::reason::admitted);
    CHECK(!third && !third.failed() && third.status() == 420 && third.body() == "slow down" && third.rule() == "a");
    CHECK(third.retry_after() == 30min && third.reset_after() == 1h && third.generation() == 1 && third.why() == tollbar::reason::rate);
    CHECK(third.get().limit == 2 && third.get().burst == 2 && third.get().period_ns == 3600000000000);
    CHECK(!limits.check(request) && !limits.check(as_vector));
    CHECK(limits.check({{":path", "/"}}).why() == tollbar::reason::missing_key);
}

TEST(metrics_are_those_of_the_rules) {
    const file at("[group.a]\nlimit = '2/h'\n[shadow.b]\nof = 'a'\nlimit = '1/h'\n");
    const rules limits(at.path);
    CHECK(limits.check(request) && limits.check(request) && !limits.check(request));
    CHECK(limits.metrics("site").find("tollbar_shadow_disagreements_total{limit=\"site\",rule=\"b\",of=\"a\",would=\"refuse\"} 1\n") != std::string::npos);
    CHECK(limits.metrics("", tollbar::metrics_format::openmetrics).find("# EOF\n") != std::string::npos);
    CHECK(limits.try_metrics("\xff").error() == errc::out_of_range);
}

TEST(faults_have_their_places) {
    const file at("[group.a]\nlimit = '2/y'\n[group.b]\nlimit = 5\n");
    CHECK_THROWS(tollbar::rules_error, rules(at.path), e,
                 e.code() == errc::syntax && e.faults().rfind(at.path + ":3:", 0) == 0 && e.faults().find(at.path + ":5:") != std::string::npos &&
                     std::string(e.what()).find(e.faults()) != std::string::npos);
    std::string faults;
    CHECK(rules::try_make("/nowhere.toml", {}, &faults).why().code == errc::open && faults.rfind("/nowhere.toml: ", 0) == 0);
    CHECK(rules::try_make("/nowhere.toml").error() == errc::open);
    const file good("[group.a]\nlimit = '2/h'\n");
    CHECK(rules::try_make(good.path, {0, false}).error() == errc::capacity);
}

TEST(a_reload_changes_the_algorithm_where_there_is_room) {
    const file at("[group.a]\nlimit = '10/h'\n");
    tollbar::rules_options options;
    options.room = 30;
    const rules roomy(at.path, options), plain(at.path);
    const auto now = roomy.now();
    CHECK(roomy.check_at(now, request).remaining() == 9 && plain.check_at(now, request).remaining() == 9);
    at.write("[group.a]\nlimit = '10/h algo sliding-log'\n");
    roomy.reload();
    plain.reload();
    CHECK(roomy.check_at(now, request).remaining() == 8 && plain.check_at(now, request).remaining() == 9);
}

TEST(a_reload_keeps_states_and_a_bad_file_changes_nothing) {
    const file at("[group.a]\nlimit = '2/h'\n");
    const rules limits(at.path);
    CHECK(limits.check(request) && limits.check(request) && !limits.check(request));
    CHECK(!limits.reload_if_changed());
    at.write("[group.a]\nlimit = '2/y'\n");
    CHECK_THROWS(tollbar::rules_error, limits.reload(), e, e.faults().rfind(at.path + ":3:", 0) == 0);
    std::string faults;
    CHECK(limits.try_reload(&faults).error() == errc::syntax && !faults.empty() && limits.try_reload().error() == errc::syntax);
    CHECK(!limits.check(request) && limits.check(request).generation() == 1);
    at.write("[group.a]\nlimit = '3/h'\n[group.b]\npath = '/b'\nlimit = '1/h'\n");
    CHECK(limits.reload_if_changed());
    CHECK(limits.check(request).generation() == 2);
    CHECK(limits.try_reload(&faults) && faults.empty());
}

// A9
TEST(keys_begin_anew) {
    const file at("[group.a]\nlimit = '2/h'\n[group.b]\npath = '/b'\nkey = ['address', 'header X']\nmissing = 'allow'\nlimit = '1/h'\n");
    const rules limits(at.path);
    const auto use_up = [&] {
        int passed = 0;
        while (limits.check(request))
            passed++;
        return passed;
    };
    CHECK(use_up() == 2 && use_up() == 0);
    CHECK(limits.reset("a") && use_up() == 2);
    CHECK(limits.reset("a", "192.0.2.1") && use_up() == 2);
    CHECK(limits.try_reset("a", "ann").error() == errc::address && limits.try_reset("a", "").error() == errc::address);
    CHECK(limits.try_reset("b", "192.0.2.1").error() == errc::out_of_range && limits.try_reset("c").error() == errc::no_such_policy);
}

TEST(a_forked_process_takes_over) {
    const file at("[group.a]\nlimit = '2/h'\n");
    const rules limits(at.path, {1000, true});
    const pid_t child = ::fork();
    if (child == 0) {
        bool good = limits.try_reload().error() == errc::owner;
        limits.take_over();
        good = good && limits.try_reload() && limits.check(request);
        // Another program ends it, because at an exit valgrind would count memory of the parent as
        // lost.
        if (good)
            ::execl("/bin/true", "true", static_cast<char *>(nullptr));
        ::_exit(1);
    }
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child && status == 0);
    // The child's charge is this process's, too.
    CHECK(limits.check(request) && !limits.check(request));
}

TEST(rules_that_were_moved_from_refuse) {
    const file at("[group.a]\nlimit = '2/h'\n");
    rules limits(at.path);
    rules other = std::move(limits);
    CHECK(other && !limits && limits.get() == nullptr && limits.now() == 0ns);
    const auto refused = limits.check(request);
    CHECK(!refused && refused.failed() && refused.error() == errc::null && refused.status() == 0 && !refused.retry_after());
    CHECK(refused.why() == tollbar::reason::fault && limits.try_reload().error() == errc::null && limits.try_take_over().error() == errc::null);
    rules back = rules::adopt(other.release());
    CHECK(back.check(request) && !other);
    CHECK(!tollbar::rules_answer());
}
