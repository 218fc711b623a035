/* Shared declarations of tollbar._redis: leases, over tollbar_redis.h. It is a separate module, so
 * that only programs with a lease load libtollbar-redis. It uses tollbar._core's decisions, keys
 * and errors, through a capsule. */

#ifndef TOLLBAR_REDIS_MODULE_H
#define TOLLBAR_REDIS_MODULE_H

#include "../core.h"
#include "tollbar_redis.h"

typedef struct {
    /* A reference to tollbar._core, and its state, which is valid as long as the reference
     * exists. */
    PyObject *core_module;
    core_state *core;
    PyTypeObject *lease;
} redis_state;

extern PyType_Spec redis_lease_spec;
extern PyType_Spec redis_client_spec;
extern PyType_Spec redis_calls_spec;
extern PyType_Spec redis_store_spec;

/* The functions of tollbar._core: the same in all interpreters of the process. */
extern const core_api *core;

/* The state of the module that defines `type` or its base. */
redis_state *redis_state_of(PyTypeObject *type);

/* lease.c */

/* The library's lease, and the number of objects that use it, counted under the GIL. */
typedef struct {
    tollbar_lease *handle;
    Py_ssize_t users;
} redis_node;

void redis_node_release(redis_node *node);

/* The node of a capsule that Lease._node has made, with one user more; NULL with an error. */
redis_node *redis_node_of(PyObject *capsule);

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
