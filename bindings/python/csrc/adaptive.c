/* Adaptive: a limit on permits in flight that follows the latency. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_adaptive limit;
    core_state *state;
} core_adaptive;

static inline core_adaptive *of(PyObject *self) {
    return (core_adaptive *)self;
}

/* Adaptive(algorithm, initial, least, most, timeout_ns, window_ns) */
static PyObject *adaptive_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    unsigned long long timeout, window;
    if (!PyArg_ParseTuple(args, "IIIIKK", &options.algorithm, &options.initial, &options.least, &options.most, &timeout, &window))
        return NULL;
    options.timeout_ns = timeout;
    options.window_ns = window;
    core_state *state = core_state_of(type);
    if (state == NULL)
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    of(self)->state = state;
    const int32_t code = tollbar_adaptive_init(&of(self)->limit, &options);
    if (code != 0) {
        Py_DECREF(self);
        return core_raise(state, code, NULL);
    }
    return self;
}

static void adaptive_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *ticket_of(PyObject *self, int32_t code, tollbar_ticket ticket) {
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    if (code != TOLLBAR_ALLOWED)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(ticket);
}

static PyObject *released(PyObject *self, int32_t code) {
    if (code < 0 && code != TOLLBAR_E_TICKET)
        return core_raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

static PyObject *adaptive_acquire(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_ticket ticket = 0;
    const int32_t code = tollbar_adaptive_acquire(&of(self)->limit, &ticket);
    return ticket_of(self, code, ticket);
}

/* _release(ticket, outcome, latency_ns) */
static PyObject *adaptive_release(PyObject *self, PyObject *args) {
    unsigned long long ticket, latency;
    unsigned int outcome;
    if (!PyArg_ParseTuple(args, "KIK", &ticket, &outcome, &latency))
        return NULL;
    return released(self, tollbar_adaptive_release(&of(self)->limit, ticket, outcome, latency));
}

/* Returns `object` as an open in-flight table, or NULL with an exception. */
static const tollbar_in_flight *table_of(PyObject *self, PyObject *object) {
    if (PyObject_TypeCheck(object, of(self)->state->in_flight))
        return core_in_flight_handle(object);
    PyErr_Format(PyExc_TypeError, "a table is an InFlight, not %R", object);
    return NULL;
}

/* _acquire_key(table, key) */
static PyObject *adaptive_acquire_key(PyObject *self, PyObject *args) {
    PyObject *object, *of_key;
    core_key key;
    tollbar_ticket ticket = 0;
    if (!PyArg_ParseTuple(args, "OO", &object, &of_key) || core_key_get(of_key, &key) != 0)
        return NULL;
    const tollbar_in_flight *table = table_of(self, object);
    int32_t code = 0;
    if (table != NULL)
        code = tollbar_adaptive_acquire_key(&of(self)->limit, table, key.data, key.length, &ticket);
    core_key_release(&key);
    return table == NULL ? NULL : ticket_of(self, code, ticket);
}

/* _release_key(table, key, ticket, outcome, latency_ns) */
static PyObject *adaptive_release_key(PyObject *self, PyObject *args) {
    PyObject *object, *of_key;
    unsigned long long ticket, latency;
    unsigned int outcome;
    core_key key;
    if (!PyArg_ParseTuple(args, "OOKIK", &object, &of_key, &ticket, &outcome, &latency) || core_key_get(of_key, &key) != 0)
        return NULL;
    const tollbar_in_flight *table = table_of(self, object);
    int32_t code = 0;
    if (table != NULL)
        code = tollbar_adaptive_release_key(&of(self)->limit, table, key.data, key.length, ticket, outcome, latency);
    core_key_release(&key);
    return table == NULL ? NULL : released(self, code);
}

static PyObject *adaptive_read(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_adaptive_state state = TOLLBAR_ADAPTIVE_STATE_INIT;
    tollbar_adaptive_read(&of(self)->limit, &state);
    return Py_BuildValue("IKK", state.limit, (unsigned long long)state.in_flight, (unsigned long long)state.latency_ns);
}

static PyMethodDef adaptive_methods[] = {
    CORE_METHOD("acquire", adaptive_acquire, METH_NOARGS, "($self, /)", "A ticket, or None if as many as the limit are in flight."),
    CORE_METHOD("_release", adaptive_release, METH_VARARGS, "($self, ticket, outcome, latency_ns, /)", ""),
    CORE_METHOD("_acquire_key", adaptive_acquire_key, METH_VARARGS, "($self, table, key, /)", ""),
    CORE_METHOD("_release_key", adaptive_release_key, METH_VARARGS, "($self, table, key, ticket, outcome, latency_ns, /)", ""),
    CORE_METHOD("_read", adaptive_read, METH_NOARGS, "($self, /)", ""),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot adaptive_slots[] = { CORE_SLOTS(adaptive), { 0, NULL } };

CORE_TYPE(core_adaptive_spec, "tollbar._core.Adaptive", core_adaptive, Py_TPFLAGS_BASETYPE, adaptive_slots);
