/* SendWindow: a limit on the permits of one process that are sent and not acknowledged. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_send_window window;
    core_state *state;
} core_send_window;

/* The library's number 0 is this number in Python, where a number that is false would look like a
 * refusal. */
#define ZERO (1u << 22)

static inline core_send_window *of(PyObject *self) {
    return (core_send_window *)self;
}

/* Reads a uint32_t. A larger number becomes the largest, which is above all limits and numbers. */
static int number_of(PyObject *object, const char *what, uint32_t *out) {
    uint64_t number;
    if (object == NULL) {
        *out = 1;
        return 0;
    }
    if (core_uint64(object, what, &number) != 0)
        return -1;
    *out = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    return 0;
}

static PyObject *send_window_resize(PyObject *self, PyObject *object) {
    uint32_t limit;
    if (number_of(object, "limit", &limit) != 0)
        return NULL;
    const int32_t code = tollbar_send_window_resize(&of(self)->window, limit);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* SendWindow(limit) */
static PyObject *send_window_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *limit;
    if (!PyArg_ParseTuple(args, "O", &limit))
        return NULL;
    core_state *state = core_state_of(type);
    if (state == NULL)
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    of(self)->state = state;
    PyObject *resized = send_window_resize(self, limit);
    if (resized == NULL)
        Py_CLEAR(self);
    Py_XDECREF(resized);
    return self;
}

static void send_window_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *send_window_acquire(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *keywords) {
    static const char *const names[] = { "permits", NULL };
    PyObject *given[1] = { NULL };
    uint32_t permits, last = 0;
    if (core_bind("acquire", names, 0, 1, args, nargs, keywords, given) != 0
        || number_of(given[0], "permits", &permits) != 0)
        return NULL;
    const int32_t code = tollbar_send_window_acquire(&of(self)->window, permits, &last);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    if (code != TOLLBAR_ALLOWED)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(last == 0 ? ZERO : last);
}

static PyObject *released(PyObject *self, int32_t code) {
    if (code < 0 && code != TOLLBAR_E_TICKET)
        return core_raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

static PyObject *send_window_release(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *keywords) {
    static const char *const names[] = { "permits", NULL };
    PyObject *given[1] = { NULL };
    uint32_t permits;
    if (core_bind("release", names, 0, 1, args, nargs, keywords, given) != 0
        || number_of(given[0], "permits", &permits) != 0)
        return NULL;
    return released(self, tollbar_send_window_release(&of(self)->window, permits));
}

static PyObject *send_window_acknowledge(PyObject *self, PyObject *object) {
    uint32_t last;
    if (number_of(object, "number", &last) != 0)
        return NULL;
    return released(self, tollbar_send_window_acknowledge(&of(self)->window,
                                                          last == ZERO ? 0 : last));
}

/* _read() -> (limit, in_flight, usable, sent, acknowledged) */
static PyObject *send_window_read(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_send_window_state seen = TOLLBAR_SEND_WINDOW_STATE_INIT;
    const int32_t code = tollbar_send_window_read(&of(self)->window, &seen);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("(IIIII)", seen.limit, seen.in_flight, seen.usable, seen.sent,
                         seen.acknowledged);
}

static PyMethodDef send_window_methods[] = {
    CORE_FAST("acquire", send_window_acquire, "($self, /, permits=1)",
              "Sends permits, and returns the number of the last one, 1 to 2**22. None, and it "
              "sends none, if fewer are usable."),
    CORE_METHOD("acknowledge", send_window_acknowledge, METH_O, "($self, number, /)",
                "Releases all permits up to this number. False if no permit in flight has it."),
    CORE_FAST("release", send_window_release, "($self, /, permits=1)",
              "Releases any permits. False if fewer are in flight. A window has either these "
              "calls or those of acknowledge."),
    CORE_METHOD("resize", send_window_resize, METH_O, "($self, limit, /)",
                "Sets the limit, 2**20 - 1 at most. If more are in flight, none is usable until "
                "enough are released."),
    CORE_METHOD("_read", send_window_read, METH_NOARGS, "($self, /)", ""),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot send_window_slots[] = { CORE_SLOTS(send_window), { 0, NULL } };

CORE_TYPE(core_send_window_spec, "tollbar._core.SendWindow", core_send_window, Py_TPFLAGS_BASETYPE,
          send_window_slots);
