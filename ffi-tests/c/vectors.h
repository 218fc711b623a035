/* A reader, for C and C++, of ffi-tests/vectors: of decisions.json, which
 * tests/algorithm/vectors.rs writes and describes, and of policies.json of
 * tests/policy/policy_vectors.rs. */
#ifndef TOLLBAR_VECTORS_H
#define TOLLBAR_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A request to a policy's limiter and the decision; times in nanoseconds. */
struct vector_step {
    uint64_t now, cost;
    int32_t verdict;
    uint64_t remaining, retry_after;
};

/* A policy's text and its requests in their order. */
struct golden_vector {
    char policy[128];
    struct vector_step steps[128];
    size_t count;
};

/* A policy's text and how it is read: if `code` is 0, the canonical text and the last time. */
struct policy_vector {
    char text[128], policy[128], expected[192];
    uint64_t last, column;
    int32_t code;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the next vector of the file. Returns 1, 0 at the end, or -1 if the file does not have the
 * described form. */
int vector_read(FILE *file, struct golden_vector *into);
int policy_vector_read(FILE *file, struct policy_vector *into);

#ifdef __cplusplus
}
#endif

#endif
