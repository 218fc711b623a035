/* What the tests of arguments share: addresses that no object can lie at, and that nothing is written there. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "test.h"

/* Room for any argument, and an address in it that no type but char can lie at. */
static union {
    uint64_t words[64];
    unsigned char bytes[512];
} room;
#define ODD(type) ((type *)(void *)(room.bytes + 1))

/* No object is so long. */
#define TOO_LONG (SIZE_MAX / 2 + 1)

#define NULL_IS(call) assert_int_equal((call), TOLLBAR_E_NULL)
#define ODD_IS(call) assert_int_equal((call), TOLLBAR_E_MISALIGNED)

static int set_up(void **state) {
    (void)state;
    memset(&room, 0, sizeof room);
    return 0;
}

/* Nothing was written through the odd pointers. */
static int tear_down(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < sizeof room.bytes; i++)
        if (room.bytes[i] != 0)
            return -1;
    return 0;
}

#endif
