/* Common parts of the tests of arguments: addresses that are wrong for an object, and a check that
 * no call writes there. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "test.h"

/* Room for any argument, and an address in it that is aligned for no type but char. */
static union {
    uint64_t words[64];
    unsigned char bytes[512];
} room;
#define ODD(type) ((type *)(void *)(room.bytes + 1))

/* A length that no object has. */
#define TOO_LONG (SIZE_MAX / 2 + 1)

#define NULL_IS(call) assert_int_equal((call), TOLLBAR_E_NULL)
#define ODD_IS(call) assert_int_equal((call), TOLLBAR_E_MISALIGNED)

static int set_up(void **state) {
    (void)state;
    memset(&room, 0, sizeof room);
    return 0;
}

/* No call has written through the odd pointers. */
static int tear_down(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < sizeof room.bytes; i++)
        if (room.bytes[i] != 0)
            return -1;
    return 0;
}

#endif
