/* What the parts of tollbar._redis share: leases, over tollbar_redis.h. It is a module of its own, so that only programs with a
 * lease load libtollbar-redis. Decisions, keys and errors are tollbar._core's, through its capsule. */

#ifndef TOLLBAR_REDIS_MODULE_H
#define TOLLBAR_REDIS_MODULE_H

#include "../core.h"
#include "tollbar_redis.h"

typedef struct {
    /* tollbar._core, which is kept for as long as its state is used, and that state. */
    PyObject *core_module;
    core_state *core;
    PyTypeObject *lease;
} redis_state;

extern PyType_Spec redis_lease_spec;
extern PyType_Spec redis_client_spec;

/* The functions of tollbar._core: the same in all interpreters of the process. */
extern const core_api *core;

/* The state of the module that `type`, or what it inherits from, was defined in. */
redis_state *redis_state_of(PyTypeObject *type);

/* lease.c */

/* The library's lease, and how many objects have it: counted under the GIL. */
typedef struct {
    tollbar_lease *handle;
    Py_ssize_t users;
} redis_node;

void redis_node_release(redis_node *node);

typedef struct {
    PyObject_HEAD
    /* NULL once closed. */
    redis_node *node;
    core_state *state;
    PyTypeObject *decision;
} redis_lease;

/* The handle, or NULL with an error if the lease is closed. */
const tollbar_lease *redis_lease_handle(PyObject *self);

#endif
