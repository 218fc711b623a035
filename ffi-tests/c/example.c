/* What a reader of the README types in. */
#include <stdio.h>
#include <tollbar.h>

int main(void) {
    tollbar_limiter *limiter;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    int i, passed = 0;
    if (tollbar_limiter_from_text("3/h burst 2", &limiter, &error) != 0) {
        fprintf(stderr, "column %u: expected %s\n", (unsigned)error.column, error.expected);
        return 1;
    }
    for (i = 0; i < 5; i++)
        passed += tollbar_limiter_check(limiter, 1, NULL) == TOLLBAR_ALLOWED;
    tollbar_limiter_free(limiter);
    printf("%d of 5 with tollbar %s\n", passed, tollbar_version_string());
    return passed != 2;
}
