// The same program as visit.c, in C++.
#include <cstdio>
#include <tollbar.hpp>

int main(int count, char **arguments) {
    const auto table = tollbar::table::open(arguments[1], 10000, {"1/day"});
    for (int i = 2; i < count; i++) {
        const auto client = tollbar::prefix::try_parse(arguments[i]);
        std::puts(!client ? "no address" : table.check(*client) ? "passes" : "refused");
    }
}
