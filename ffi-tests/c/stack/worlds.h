/* The worlds of the cases. */
#ifndef TOLLBAR_TEST_STACK_WORLDS_H
#define TOLLBAR_TEST_STACK_WORLDS_H

#include "stack.h"

extern const size_t world_count;
/* The objects of a world, which the cases use one after the other. */
struct world *world_begin(size_t number);
void world_end(struct world *world);
/* The most stack that the function of that name may take, in bytes. */
size_t most_of(const char *name);

#endif
