/* smoke VERSION: whether the library is of that version, and refuses the fourth of three. */
#include "tollbar.h"
#include "tollbar_redis.h"

#include <string.h>

int main(int argc, char **argv) {
    tollbar_limiter *limiter = NULL;
    int admitted = 0;
    if (argc != 2 || strcmp(argv[1], tollbar_version_string()) != 0 || tollbar_redis_abi_1 != 1)
        return 1;
    if (tollbar_limiter_from_text("3/day", &limiter, NULL) != 0)
        return 2;
    for (int i = 0; i < 5; i++)
        admitted += tollbar_limiter_check(limiter, 1, NULL) == 0;
    tollbar_limiter_free(limiter);
    return admitted == 3 ? 0 : 3;
}
