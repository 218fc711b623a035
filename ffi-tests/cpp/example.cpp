// What a reader of the README types in: for the tests of packages.
#include <tollbar.hpp>

int main() {
    const tollbar::limiter limiter("3/h burst 2");
    int passed = 0;
    for (int i = 0; i < 5; i++)
        passed += limiter.check().allowed();
    return passed == 2 && tollbar::version() == TOLLBAR_VERSION_STRING ? 0 : 1;
}
