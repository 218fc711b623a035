// Limits logins: one limit for each client, in memory that processes share, and one limit for all
// clients together.
//
//     c++ -std=c++17 keyed.cpp $(pkg-config --cflags --libs tollbar) && ./a.out 192.0.2.1 2001:db8::1 2001:db8::2
//
// Each argument is a request by that address. The last two of these are one client, because a host
// may use any address of its /64. The table lasts until the machine stops, so run the program
// again. LOGINS names another file than /run/logins/table, which must be in a directory of the
// program's own.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tollbar.hpp"

namespace {

using namespace std::chrono_literals;

/// The whole seconds of an HTTP Retry-After, rounded up.
long long seconds(std::chrono::nanoseconds wait) {
    return std::chrono::ceil<std::chrono::seconds>(wait).count();
}

bool may_log_in(const tollbar::table &clients, const tollbar::limiter &everybody, const char *address) {
    const auto client = tollbar::prefix::try_parse(address);
    if (!client) {
        std::printf("%s: %s\n", address, client.error().message().c_str());
        return false;
    }
    // check() returns the full decision, which a refusal needs. admit() returns only yes or no, and
    // is cheaper.
    const auto decision = clients.check(*client);
    if (!decision) {
        if (decision.retry_after())
            std::printf("%s: 429, Retry-After: %lld\n", address, seconds(*decision.retry_after()));
        else
            std::printf("%s: 500, %s\n", address, decision.error().message().c_str());
        return false;
    }
    // A request that the client's limit admits may wait for the limit of all clients.
    if (!everybody.wait(10ms)) {
        std::printf("%s: 503\n", address);
        return false;
    }
    std::printf("%s: 200, %llu left\n", address, static_cast<unsigned long long>(decision.remaining()));
    return true;
}

} // namespace

int main(int argc, char **argv) {
    const char *const path = std::getenv("LOGINS") ? std::getenv("LOGINS") : "/run/logins/table";
    try {
        const auto clients = tollbar::table::open(path, 100'000, {"5/min burst 2"});
        const tollbar::limiter everybody("1000/s burst 100");
        bool all = true;
        for (int i = 1; i < argc; i++)
            all &= may_log_in(clients, everybody, argv[i]);
        return all ? 0 : 1;
    } catch (const tollbar::error &error) {
        std::fprintf(stderr, "%s: %s\n", path, error.what());
        return 2;
    }
}
