/* This library and another Rust library, with std, in one program. */
#include "tollbar.h"

extern int32_t neighbour_answer(void);

int main(void) {
    tollbar_limiter *limiter = NULL;
    int wrong = neighbour_answer() != 42;
    if (tollbar_limiter_from_text("2/h algo sliding-log", &limiter, NULL) != 0)
        return 2;
    wrong |= tollbar_limiter_check(limiter, 2, NULL) != TOLLBAR_ALLOWED;
    wrong |= tollbar_limiter_check(limiter, 1, NULL) != TOLLBAR_DENIED;
    tollbar_limiter_free(limiter);
    return wrong || neighbour_answer() != 42;
}
