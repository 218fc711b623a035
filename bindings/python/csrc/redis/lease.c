/* Lease: this machine's part of a limit that many share. */

#include "redis.h"

void redis_node_release(redis_node *node) {
    if (node != NULL && --node->users == 0) {
        tollbar_lease_close(node->handle);
        PyMem_Free(node);
    }
}

#define NODE "tollbar._redis.node"

redis_node *redis_node_of(PyObject *capsule) {
    redis_node *node = PyCapsule_GetPointer(capsule, NODE);
    if (node != NULL)
        node->users++;
    return node;
}

static void release(PyObject *capsule) {
    redis_node_release(PyCapsule_GetPointer(capsule, NODE));
}

static inline redis_lease *of(PyObject *self) {
    return (redis_lease *)self;
}

/* Lease(name, text, nodes, capacity, life_ns, overdraft or None, fallback, inexact, refill) */
static PyObject *lease_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *text, *nodes, *capacity, *life, *overdraft;
    const char *name;
    Py_ssize_t name_length;
    int inexact, refill;
    uint64_t machines;
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(0);
    if (!PyArg_ParseTuple(args, "s#OOOOOIpp", &name, &name_length, &text, &nodes, &capacity, &life, &overdraft,
                          &options.fallback, &inexact, &refill))
        return NULL;
    redis_state *module = redis_state_of(type);
    core_state *state = module == NULL ? NULL : module->core;
    tollbar_policy_spec spec;
    if (state == NULL || core->spec_parse(state, text, &spec) != 0 || core->uint64(nodes, "nodes", &machines) != 0
        || core->uint64(capacity, "capacity", &options.capacity) != 0 || core->uint64(life, "life", &options.life_ns) != 0)
        return NULL;
    if (overdraft != Py_None) {
        options.flags |= TOLLBAR_LEASE_HAS_OVERDRAFT;
        if (core->uint64(overdraft, "overdraft", &options.overdraft) != 0)
            return NULL;
    }
    if (inexact)
        options.flags |= TOLLBAR_LEASE_INEXACT;
    if (refill)
        options.flags |= TOLLBAR_LEASE_REFILL;
    /* The library returns an error for a number that is too large. */
    options.nodes = machines > UINT32_MAX ? UINT32_MAX : (uint32_t)machines;

    redis_node *node = PyMem_Malloc(sizeof *node);
    if (node == NULL)
        return PyErr_NoMemory();
    int32_t code = tollbar_lease_new_shared(name, (size_t)name_length, &spec, &options, &node->handle);
    if (code != 0) {
        PyMem_Free(node);
        return core->raise(state, code, NULL);
    }
    node->users = 1;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        redis_node_release(node);
        return NULL;
    }
    of(self)->node = node;
    of(self)->state = state;
    of(self)->decision = state->decision;
    return self;
}

static void lease_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    redis_node_release(of(self)->node);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

const tollbar_lease *redis_lease_handle(PyObject *self) {
    if (of(self)->node == NULL) {
        PyErr_SetString(PyExc_ValueError, "the lease is closed");
        return NULL;
    }
    return of(self)->node->handle;
}

/* The arguments of a decision: (key=b"", cost=1, *, at=None). A peek takes no `at`. */
typedef struct {
    const tollbar_lease *lease;
    core_key key;
    uint64_t cost, now;
    int timed;
} call;

static int call_read(PyObject *self, const char *function, int may_be_timed, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *keywords, call *c) {
    const char *const names[] = { "key", "cost", may_be_timed ? "at" : NULL, NULL };
    PyObject *given[3] = { NULL, NULL, NULL };
    c->cost = 1;
    c->timed = 0;
    c->key = (core_key){ NULL, 0, 0, NULL };
    if (core->bind(function, names, 0, 2, args, nargs, keywords, given) != 0)
        return -1;
    if (given[1] != NULL && core->uint64(given[1], "cost", &c->cost) != 0)
        return -1;
    if (given[2] != NULL && given[2] != Py_None) {
        c->timed = 1;
        if (core->uint64(given[2], "at", &c->now) != 0)
            return -1;
    }
    if (given[0] != NULL && core->key_get(given[0], &c->key) != 0)
        return -1;
    /* The handle is read last, because code that was called before may have closed the lease. */
    c->lease = redis_lease_handle(self);
    if (c->lease != NULL)
        return 0;
    core_key_release(&c->key);
    return -1;
}

static int32_t call_check(const call *c, tollbar_decision *out) {
    return c->timed ? tollbar_lease_check_at(c->lease, c->key.data, c->key.length, c->cost, c->now, out)
                    : tollbar_lease_check(c->lease, c->key.data, c->key.length, c->cost, out);
}

static PyObject *decide(PyObject *self, const char *function, int takes, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *keywords) {
    call c;
    if (call_read(self, function, takes, args, nargs, keywords, &c) != 0)
        return NULL;
    core_decision *out = core->decision_new(of(self)->decision);
    int32_t code = 0;
    if (out != NULL)
        code = takes ? call_check(&c, &out->answer)
                     : tollbar_lease_peek(c.lease, c.key.data, c.key.length, c.cost, &out->answer);
    core_key_release(&c.key);
    if (code >= 0 || out == NULL)
        return (PyObject *)out;
    Py_DECREF(out);
    return core->raise(of(self)->state, code, NULL);
}

static PyObject *lease_check(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return decide(self, "check", 1, args, nargs, keywords);
}

static PyObject *lease_peek(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return decide(self, "peek", 0, args, nargs, keywords);
}

static PyObject *lease_allow(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    call c;
    if (call_read(self, "allow", 1, args, nargs, keywords, &c) != 0)
        return NULL;
    int32_t code = call_check(&c, NULL);
    core_key_release(&c.key);
    return code < 0 ? core->raise(of(self)->state, code, NULL) : PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

/* _poll(key, cost, until, progress): the decision, or the next progress of a request that waits for
 * the store, as an int. A new request has the progress 0. */
static PyObject *lease_poll(PyObject *self, PyObject *args) {
    PyObject *key, *cost, *until;
    tollbar_lease_request request = TOLLBAR_LEASE_REQUEST_INIT(0, 0);
    core_key bytes = { NULL, 0, 0, NULL };
    if (!PyArg_ParseTuple(args, "OOOI", &key, &cost, &until, &request.progress)
        || core->uint64(cost, "cost", &request.cost) != 0 || core->uint64(until, "until", &request.until_ns) != 0
        || core->key_get(key, &bytes) != 0)
        return NULL;
    /* The handle is read last, because code that was called before may have closed the lease. */
    const tollbar_lease *lease = redis_lease_handle(self);
    core_decision *out = lease == NULL ? NULL : core->decision_new(of(self)->decision);
    int32_t code = 0;
    if (out != NULL)
        code = tollbar_lease_poll(lease, bytes.data, bytes.length, &request, &out->answer);
    core_key_release(&bytes);
    if (out == NULL || (code >= 0 && code != TOLLBAR_LEASE_WAITS))
        return (PyObject *)out;
    Py_DECREF(out);
    return code < 0 ? core->raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(request.progress);
}

static PyObject *lease_now(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_lease *lease = redis_lease_handle(self);
    return lease == NULL ? NULL : PyLong_FromUnsignedLongLong(tollbar_lease_now(lease));
}

static PyObject *lease_stats(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_lease *lease = redis_lease_handle(self);
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    if (lease == NULL)
        return NULL;
    int32_t code = tollbar_lease_get_stats(lease, &stats);
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    return Py_BuildValue("IKKKKKKKKKKKKK", stats.circuit, (unsigned long long)stats.granted,
                         (unsigned long long)stats.asked, (unsigned long long)stats.overdrawn,
                         (unsigned long long)stats.fallback_permits,
                         (unsigned long long)stats.uncounted, (unsigned long long)stats.denied,
                         (unsigned long long)stats.queue_full, (unsigned long long)stats.opened,
                         (unsigned long long)stats.owed, (unsigned long long)stats.full,
                         (unsigned long long)stats.denied_pending, (unsigned long long)stats.denied_by_store,
                         (unsigned long long)stats.denied_by_fallback);
}

/* A capsule that keeps the node, but not the lease. */
static PyObject *lease_node(PyObject *self, PyObject *unused) {
    (void)unused;
    if (redis_lease_handle(self) == NULL)
        return NULL;
    PyObject *capsule = PyCapsule_New(of(self)->node, NODE, release);
    if (capsule != NULL)
        of(self)->node->users++;
    return capsule;
}

static PyObject *lease_release(PyObject *self, PyObject *unused) {
    (void)unused;
    redis_node_release(of(self)->node);
    of(self)->node = NULL;
    Py_RETURN_NONE;
}

static PyObject *lease_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->node == NULL);
}

static PyMethodDef lease_methods[] = {
    CORE_FAST("check", lease_check, "($self, /, key=b'', cost=1, *, at=None)", "Takes cost permits of the key, or none."),
    CORE_FAST("allow", lease_allow, "($self, /, key=b'', cost=1, *, at=None)", "The fastest form of check: a bool."),
    CORE_FAST("peek", lease_peek, "($self, /, key=b'', cost=1)", "What check would say; takes nothing."),
    CORE_METHOD("_poll", lease_poll, METH_VARARGS, "($self, key, cost, until, progress, /)",
                "A decision, or the progress of a request that waits."),
    CORE_METHOD("now", lease_now, METH_NOARGS, "($self, /)", "The time that calls without `at` read, in nanoseconds."),
    CORE_METHOD("_stats", lease_stats, METH_NOARGS, "($self, /)", "The circuit and the counters."),
    CORE_METHOD("_node", lease_node, METH_NOARGS, "($self, /)", "What a client needs of the lease."),
    CORE_METHOD("_release", lease_release, METH_NOARGS, "($self, /)", "Lets the node go."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef lease_getset[] = {
    { "closed", lease_closed, NULL, "Whether the lease has been closed.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot lease_slots[] = {
    CORE_SLOTS(lease),
    { Py_tp_getset, lease_getset },
    { 0, NULL },
};

CORE_TYPE(redis_lease_spec, "tollbar._redis.Lease", redis_lease, Py_TPFLAGS_BASETYPE, lease_slots);
