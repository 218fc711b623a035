/* Calls: the script calls that a Redis client of the program makes for a lease. */

#include <string.h>

#include "redis.h"

typedef struct {
    PyObject_HEAD
    redis_node *node;
    core_state *state;
    /* NULL once closed. */
    tollbar_lease_calls *handle;
    /* Whether a thread waits. */
    int waits;
} redis_calls;

static inline redis_calls *of(PyObject *self) {
    return (redis_calls *)self;
}

/* Calls(node) */
static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *node;
    redis_state *module = redis_state_of(type);
    if (module == NULL || !PyArg_ParseTuple(args, "O", &node))
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    redis_calls *calls = of(self);
    calls->state = module->core;
    calls->node = redis_node_of(node);
    int32_t code = calls->node == NULL ? 0 : tollbar_lease_calls_new(calls->node->handle, &calls->handle);
    if (calls->handle != NULL)
        return self;
    Py_DECREF(self);
    return code != 0 ? core->raise(module->core, code, NULL) : NULL;
}

static void calls_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_lease_calls_close(of(self)->handle);
    redis_node_release(of(self)->node);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* The handle, for a call that must be the only one. */
static tollbar_lease_calls *mine(PyObject *self) {
    if (of(self)->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the lease is closed");
    else if (of(self)->waits)
        core->raise(of(self)->state, TOLLBAR_E_RUNNING, NULL);
    else
        return of(self)->handle;
    return NULL;
}

/* So many parts as a list of bytes. */
static PyObject *list_of(const tollbar_lease_part *parts, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t n = 0; list != NULL && n < count; n++) {
        PyObject *part = PyBytes_FromStringAndSize(parts[n].bytes, (Py_ssize_t)parts[n].length);
        if (part == NULL || PyList_SetItem(list, (Py_ssize_t)n, part) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* turn(closing) -> (the number of keys, the keys and arguments), or the milliseconds to wait */
static PyObject *calls_turn(PyObject *self, PyObject *args) {
    int closing;
    if (!PyArg_ParseTuple(args, "p", &closing))
        return NULL;
    tollbar_lease_calls *handle = mine(self);
    tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;
    if (handle == NULL)
        return NULL;
    int32_t code = tollbar_lease_calls_turn(handle, closing ? TOLLBAR_LEASE_CLOSING : 0, &call);
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    if (call.count == 0)
        return PyLong_FromUnsignedLong(call.wait_ms);
    PyObject *parts = list_of(call.parts, call.count);
    return parts == NULL ? NULL : Py_BuildValue("nN", (Py_ssize_t)call.keys, parts);
}

/* Passes bytes to a function of the library. */
static PyObject *tell(PyObject *self, PyObject *args,
                      int32_t (*call)(tollbar_lease_calls *, const char *, size_t)) {
    const char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y#", &text, &length))
        return NULL;
    tollbar_lease_calls *handle = mine(self);
    if (handle == NULL)
        return NULL;
    int32_t code = call(handle, text, (size_t)length);
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

static int32_t answered(tollbar_lease_calls *handle, const char *reply, size_t length) {
    return tollbar_lease_calls_answered(handle, reply, length);
}

static PyObject *calls_answered(PyObject *self, PyObject *args) {
    return tell(self, args, answered);
}

static PyObject *calls_refused(PyObject *self, PyObject *args) {
    return tell(self, args, tollbar_lease_calls_refused);
}

static PyObject *calls_lost(PyObject *self, PyObject *args) {
    return tell(self, args, tollbar_lease_calls_lost);
}

static PyObject *calls_wait(PyObject *self, PyObject *args) {
    unsigned int millis;
    if (!PyArg_ParseTuple(args, "I", &millis))
        return NULL;
    tollbar_lease_calls *handle = mine(self);
    int32_t code;
    if (handle == NULL)
        return NULL;
    of(self)->waits = 1;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_lease_calls_wait(handle, millis);
    Py_END_ALLOW_THREADS
    of(self)->waits = 0;
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

static PyObject *calls_circuit(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    int32_t code = tollbar_lease_get_stats(of(self)->node->handle, &stats);
    return code != 0 ? core->raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(stats.circuit);
}

static PyObject *calls_error(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_calls *handle = mine(self);
    if (handle == NULL)
        return NULL;
    const char *text = tollbar_lease_calls_error(handle);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* close() -> whether the store knows all admissions */
static PyObject *calls_close(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_calls *handle = mine(self);
    if (handle == NULL)
        return NULL;
    of(self)->handle = NULL;
    int32_t code = tollbar_lease_calls_close(handle);
    if (code != 0 && code != TOLLBAR_E_UNREPORTED)
        return core->raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == 0);
}

static PyMethodDef calls_methods[] = {
    CORE_METHOD("turn", calls_turn, METH_VARARGS, "($self, closing, /)",
                "The number of keys, and the keys and arguments, of the call to make; or milliseconds to wait."),
    CORE_METHOD("answered", calls_answered, METH_VARARGS, "($self, reply, /)", "Takes the script's string."),
    CORE_METHOD("refused", calls_refused, METH_VARARGS, "($self, error, /)", "Takes the store's error."),
    CORE_METHOD("lost", calls_lost, METH_VARARGS, "($self, why, /)", "Says that the call has no reply."),
    CORE_METHOD("wait", calls_wait, METH_VARARGS, "($self, milliseconds, /)",
                "Waits, without the GIL, until a request cannot wait."),
    CORE_METHOD("circuit", calls_circuit, METH_NOARGS, "($self, /)", "The number of the circuit."),
    CORE_METHOD("error", calls_error, METH_NOARGS, "($self, /)", "Why the store does not answer, or refuses."),
    CORE_METHOD("close", calls_close, METH_NOARGS, "($self, /)", "Frees the calls."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot calls_slots[] = {
    CORE_SLOTS(calls),
    { 0, NULL },
};

CORE_TYPE(redis_calls_spec, "tollbar._redis.Calls", redis_calls, 0, calls_slots);
