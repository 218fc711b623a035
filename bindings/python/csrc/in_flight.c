/* InFlight: limits how many requests a key has open at one time. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    /* NULL once closed. */
    tollbar_in_flight *handle;
    core_state *state;
} core_in_flight;

static inline core_in_flight *of(PyObject *self) {
    return (core_in_flight *)self;
}

const tollbar_in_flight *core_in_flight_handle(PyObject *self) {
    if (of(self)->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the table is closed");
    return of(self)->handle;
}

enum { PRIVATE, SHARED, IN_FILE };

/* InFlight(capacity, processes, flags, mode, kind, path). Capacity 0 opens a file's table whatever
 * its capacity is. */
static PyObject *in_flight_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *capacity, *path, *name = NULL;
    int kind;
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    if (!PyArg_ParseTuple(args, "OIIIiO", &capacity, &options.processes, &options.flags, &options.mode, &kind, &path))
        return NULL;
    core_state *state = core_state_of(type);
    if (state == NULL || core_uint64(capacity, "capacity", &options.capacity) != 0)
        return NULL;
    if (kind == IN_FILE && !PyUnicode_FSConverter(path, &name))
        return NULL;
    const char *bytes = name == NULL ? "" : PyBytes_AsString(name);
    tollbar_in_flight *handle = NULL;
    int32_t code;
    /* Without the GIL, because another process may hold the file's lock. */
    Py_BEGIN_ALLOW_THREADS
    if (kind == IN_FILE)
        code = tollbar_in_flight_open(bytes, options.capacity == 0 ? NULL : &options, &handle);
    else
        code = kind == SHARED ? tollbar_in_flight_new_shared(&options, &handle) : tollbar_in_flight_new(&options, &handle);
    Py_END_ALLOW_THREADS
    Py_XDECREF(name);
    if (code != 0)
        return core_raise(state, code, kind == IN_FILE ? path : NULL);
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        tollbar_in_flight_close(handle);
        return NULL;
    }
    of(self)->handle = handle;
    of(self)->state = state;
    return self;
}

static void in_flight_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_in_flight_close(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *in_flight_close(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_in_flight_close(of(self)->handle);
    of(self)->handle = NULL;
    Py_RETURN_NONE;
}

static PyObject *in_flight_get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->handle == NULL);
}

static PyObject *in_flight_acquire(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "key", "limit", NULL };
    PyObject *given[2] = { NULL, NULL };
    uint64_t limit;
    core_key key;
    tollbar_ticket ticket = 0;
    if (core_bind("acquire", names, 2, 2, args, nargs, keywords, given) != 0 || core_uint64(given[1], "limit", &limit) != 0)
        return NULL;
    if (core_key_get(given[0], &key) != 0)
        return NULL;
    const tollbar_in_flight *table = core_in_flight_handle(self);
    const uint32_t most = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    int32_t code = table == NULL ? 0 : tollbar_in_flight_acquire(table, key.data, key.length, most, &ticket);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    if (code != TOLLBAR_ALLOWED)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(ticket);
}

static PyObject *in_flight_release(PyObject *self, PyObject *object) {
    uint64_t ticket;
    if (core_uint64(object, "ticket", &ticket) != 0)
        return NULL;
    const tollbar_in_flight *table = core_in_flight_handle(self);
    if (table == NULL)
        return NULL;
    int32_t code = tollbar_in_flight_release(table, ticket);
    if (code < 0 && code != TOLLBAR_E_TICKET)
        return core_raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

static PyObject *in_flight_count(PyObject *self, PyObject *object) {
    uint64_t count = 0;
    core_key key;
    if (core_key_get(object, &key) != 0)
        return NULL;
    const tollbar_in_flight *table = core_in_flight_handle(self);
    int32_t code = table == NULL ? 0 : tollbar_in_flight_count(table, key.data, key.length, &count);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *in_flight_join(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_in_flight *table = core_in_flight_handle(self);
    if (table == NULL)
        return NULL;
    int32_t code = tollbar_in_flight_join(table);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef in_flight_methods[] = {
    CORE_FAST("acquire", in_flight_acquire, "($self, /, key, limit)",
              "A ticket for one permit of the key, or None if limit are in flight. The limit may be another in each call."),
    CORE_METHOD("release", in_flight_release, METH_O, "($self, ticket, /)",
                "Gives a permit back. False if the ticket was released before, or is another process's."),
    CORE_METHOD("count", in_flight_count, METH_O, "($self, key, /)", "How many permits of the key are in flight."),
    CORE_METHOD("join", in_flight_join, METH_NOARGS, "($self, /)",
                "Makes this process an owner now, and not with its first permit."),
    CORE_METHOD("close", in_flight_close, METH_NOARGS, "($self, /)", "Ends this view, and releases all permits that this process still has."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef in_flight_getset[] = {
    { "closed", in_flight_get_closed, NULL, "Whether this view has been closed.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot in_flight_slots[] = {
    CORE_SLOTS(in_flight),
    { Py_tp_getset, in_flight_getset },
    { 0, NULL },
};

CORE_TYPE(core_in_flight_spec, "tollbar._core.InFlight", core_in_flight, Py_TPFLAGS_BASETYPE, in_flight_slots);
