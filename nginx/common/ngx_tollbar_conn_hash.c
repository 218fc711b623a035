/* SipHash-2-4 of Aumasson and Bernstein. */

#include "ngx_tollbar_conn.h"

typedef struct {
    uint64_t v0, v1, v2, v3;
} state_t;

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void rounds(state_t *s, int n)
{
    while (n-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = turn(s->v1, 13) ^ s->v0;
        s->v3 = turn(s->v3, 16) ^ s->v2;
        s->v0 = turn(s->v0, 32) + s->v3;
        s->v2 += s->v1;
        s->v3 = turn(s->v3, 21) ^ s->v0;
        s->v1 = turn(s->v1, 17) ^ s->v2;
        s->v2 = turn(s->v2, 32);
    }
}

static void absorb(state_t *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

uint64_t ngx_tollbar_conn_siphash(const uint64_t seed[2], const void *key, size_t length)
{
    const unsigned char *bytes = key;
    state_t s = { seed[0] ^ UINT64_C(0x736f6d6570736575), seed[1] ^ UINT64_C(0x646f72616e646f6d),
                  seed[0] ^ UINT64_C(0x6c7967656e657261), seed[1] ^ UINT64_C(0x7465646279746573) };
    uint64_t word = 0;
    size_t n;

    /* Eight bytes at a time, the lowest first; the last word ends in the length. */
    for (n = 0; n < length; n++) {
        word |= (uint64_t) bytes[n] << n % 8 * 8;
        if (n % 8 == 7) {
            absorb(&s, word);
            word = 0;
        }
    }
    absorb(&s, word | (uint64_t) length << 56);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
