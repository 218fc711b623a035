/* Pacing: the rates at which a client sends to its hosts. tollbar/pacing.py holds its lock around
 * each call. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_pacing *handle;
    core_state *state;
} core_pacing;

static inline core_pacing *of(PyObject *self) {
    return (core_pacing *)self;
}

/* Pacing(algorithm, least, most, increase, pause_most_ns, burst, hosts), rates in millionths of a
 * request per second */
static PyObject *pacing_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    tollbar_pacing_options options = TOLLBAR_PACING_OPTIONS_INIT;
    unsigned long long least, most, increase, pause_most, hosts;
    if (!PyArg_ParseTuple(args, "IKKKKIK", &options.algorithm, &least, &most, &increase, &pause_most, &options.burst, &hosts))
        return NULL;
    options.least = least;
    options.most = most;
    options.increase = increase;
    options.pause_most_ns = pause_most;
    core_state *state = core_state_of(type);
    if (state == NULL)
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    of(self)->state = state;
    const int32_t code = tollbar_pacing_new(&options, (size_t)hosts, &of(self)->handle);
    if (code != 0) {
        Py_DECREF(self);
        return core_raise(state, code, NULL);
    }
    return self;
}

static void pacing_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_pacing_free(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* acquire(host, now_ns) -> (host, turn) */
static PyObject *pacing_acquire(PyObject *self, PyObject *args) {
    const char *host;
    Py_ssize_t length;
    unsigned long long now;
    tollbar_pacing_ticket ticket;
    if (!PyArg_ParseTuple(args, "y#K", &host, &length, &now))
        return NULL;
    const int32_t code = tollbar_pacing_acquire_at(of(self)->handle, host, (size_t)length, now, &ticket);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("KK", (unsigned long long)ticket.host, (unsigned long long)ticket.turn);
}

/* wait(ticket, now_ns) -> nanoseconds to sleep */
static PyObject *pacing_wait(PyObject *self, PyObject *args) {
    unsigned long long host, turn, now;
    uint64_t wait = 0;
    if (!PyArg_ParseTuple(args, "(KK)K", &host, &turn, &now))
        return NULL;
    const tollbar_pacing_ticket ticket = { host, turn };
    const int32_t code = tollbar_pacing_wait_at(of(self)->handle, &ticket, now, &wait);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return PyLong_FromUnsignedLongLong(wait);
}

/* respond(ticket, status, lines, utc_ns, now_ns) */
static PyObject *pacing_respond(PyObject *self, PyObject *args) {
    unsigned long long host, turn, utc, now;
    unsigned int status;
    const char *lines;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "(KK)Iy#KK", &host, &turn, &status, &lines, &length, &utc, &now))
        return NULL;
    const tollbar_pacing_ticket ticket = { host, turn };
    const int32_t code = tollbar_pacing_respond_at(of(self)->handle, &ticket, status, lines, (size_t)length, utc, now);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* leave(ticket, now_ns) */
static PyObject *pacing_leave(PyObject *self, PyObject *args) {
    unsigned long long host, turn, now;
    if (!PyArg_ParseTuple(args, "(KK)K", &host, &turn, &now))
        return NULL;
    const tollbar_pacing_ticket ticket = { host, turn };
    const int32_t code = tollbar_pacing_leave_at(of(self)->handle, &ticket, now);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* read(host, now_ns) -> (rate, measured, waiting, paused_ns), or None for an unknown host */
static PyObject *pacing_read(PyObject *self, PyObject *args) {
    const char *host;
    Py_ssize_t length;
    unsigned long long now;
    tollbar_pacing_state found = TOLLBAR_PACING_STATE_INIT;
    if (!PyArg_ParseTuple(args, "y#K", &host, &length, &now))
        return NULL;
    const int32_t code = tollbar_pacing_read_at(of(self)->handle, host, (size_t)length, now, &found);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    if (code != TOLLBAR_YES)
        Py_RETURN_NONE;
    return Py_BuildValue("KKKK", (unsigned long long)found.rate, (unsigned long long)found.measured, (unsigned long long)found.waiting,
                         (unsigned long long)found.paused_ns);
}

static PyMethodDef pacing_methods[] = {
    CORE_METHOD("acquire", pacing_acquire, METH_VARARGS, "($self, host, now_ns, /)", ""),
    CORE_METHOD("wait", pacing_wait, METH_VARARGS, "($self, ticket, now_ns, /)", ""),
    CORE_METHOD("respond", pacing_respond, METH_VARARGS, "($self, ticket, status, lines, utc_ns, now_ns, /)", ""),
    CORE_METHOD("leave", pacing_leave, METH_VARARGS, "($self, ticket, now_ns, /)", ""),
    CORE_METHOD("read", pacing_read, METH_VARARGS, "($self, host, now_ns, /)", ""),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot pacing_slots[] = { CORE_SLOTS(pacing), { 0, NULL } };

CORE_TYPE(core_pacing_spec, "tollbar._core.Pacing", core_pacing, 0, pacing_slots);
