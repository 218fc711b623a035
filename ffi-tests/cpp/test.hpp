// A test program in one header: TEST(name) { ... CHECK(...); } and a main that prints TAP.
#ifndef TOLLBAR_TEST_HPP
#define TOLLBAR_TEST_HPP

#include <cstdio>
#include <exception>
#include <vector>

namespace test {

struct one {
    const char *name;
    void (*body)();
};

inline std::vector<one> &all() {
    static std::vector<one> tests;
    return tests;
}

inline bool &good() {
    static bool is_good = true;
    return is_good;
}

struct registered {
    registered(const char *name, void (*body)()) { all().push_back({name, body}); }
};

inline void check(bool holds, const char *what, const char *file, int line) {
    if (holds)
        return;
    good() = false;
    std::printf("# %s:%d: %s\n", file, line, what);
}

/// The exception of that type which a call throws is given to `look`; another one, or none, fails
/// the test.
template <class Exception, class Call, class Look>
void throws(const Call &call, const Look &look, const char *what, const char *file, int line) {
    try {
        call();
    } catch (const Exception &thrown) {
        look(thrown);
        return;
    } catch (...) {
        check(false, what, file, line);
        return;
    }
    check(false, what, file, line);
}

inline int run() {
    // No output may be buffered when a test forks, because under valgrind the child would print it
    // again.
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    int number = 0, failed = 0;
    for (const one &each : all()) {
        good() = true;
        try {
            each.body();
        } catch (const std::exception &thrown) {
            check(false, thrown.what(), each.name, 0);
        }
        failed += !good();
        std::printf("%s %d - %s\n", good() ? "ok" : "not ok", ++number, each.name);
    }
    std::printf("1..%d\n", number);
    return failed != 0;
}

} // namespace test

#define TEST(name)                                                                                   \
    static void name();                                                                              \
    static const test::registered registered_##name(#name, name);                                    \
    static void name()

#define CHECK(...) test::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

/// CHECK_THROWS(type, expression, e, condition on e...)
#define CHECK_THROWS(type, expression, name, ...)                                                    \
    test::throws<type>([&] { static_cast<void>(expression); },                                       \
                       [&](const type &name) { CHECK(__VA_ARGS__); }, #expression " throws " #type, __FILE__, __LINE__)

int main() { return test::run(); }

#endif
