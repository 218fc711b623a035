// Decides on requests of requests.py by the rules file argv[1], and prints "VERDICT STATUS RULE
// REMAINING" for each, and "= KNOWN" where it settles one. argv[2] is the file for the metrics in the
// end.
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tollbar/rules.hpp"

int main(int count, char **arguments) {
    const tollbar::rules rules(arguments[1]);
    tollbar::rules_answer answer;
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<tollbar::rules_field> request;
        std::string_view rest = line;
        const auto next = [&] {
            const std::string_view word = rest.substr(0, rest.find('\t'));
            rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : word.size());
            return word;
        };
        const bool settles = rest.substr(0, 1) == "=";
        rest.remove_prefix(settles ? 1 : 0);
        const std::chrono::nanoseconds now(std::stoll(std::string(next())));
        while (!rest.empty()) {
            const std::string_view name = next();
            request.emplace_back(name, next());
        }
        if (settles) {
            std::cout << "= " << (answer.allowed() && rules.settle_at(now, answer, request)) << '\n';
            continue;
        }
        answer = rules.check_at(now, request);
        std::cout << answer.answer().get() << ' ' << answer.status() << ' ' << (answer.rule().empty() ? "-" : answer.rule()) << ' '
                  << answer.remaining() << '\n';
    }
    if (count == 3)
        std::ofstream(arguments[2]) << rules.metrics("site");
}
