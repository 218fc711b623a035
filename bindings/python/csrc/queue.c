/* Queue: items that leave at a policy's pace. The library keeps a number in place of each item;
 * tollbar/queue.py has the items, and sleeps. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_queue *handle;
    core_state *state;
} core_queue;

static inline core_queue *of(PyObject *self) {
    return (core_queue *)self;
}

/* Queue(text, capacity, spare, clock) */
static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *text, *capacity_given;
    uint64_t capacity;
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    if (!PyArg_ParseTuple(args, "OOII", &text, &capacity_given, &options.spare, &options.clock)
        || core_uint64(capacity_given, "capacity", &capacity) != 0)
        return NULL;
    core_state *state = core_state_of(type);
    tollbar_policy_spec spec;
    if (state == NULL || core_spec_parse(state, text, &spec) != 0)
        return NULL;
    tollbar_queue *handle;
    const int32_t code = tollbar_queue_new(&spec, capacity, &options, &handle);
    if (code != 0)
        return core_raise(state, code, NULL);
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        tollbar_queue_free(handle);
        return NULL;
    }
    of(self)->handle = handle;
    of(self)->state = state;
    return self;
}

static void queue_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_queue_free(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Reads the time of a call, which is None where the library reads its clock. */
static int time_of(PyObject *self, PyObject *at, uint64_t *now) {
    if (at == Py_None) {
        (void)tollbar_queue_now(of(self)->handle, now);
        return 0;
    }
    return core_uint64(at, "at", now);
}

/* _offer(items, number, item, at) -> (number, ahead, spare), or None if the queue is full. An item
 * that was accepted is in the dict `items`. No signal's handler runs between the two steps. */
static PyObject *queue_offer(PyObject *self, PyObject *args) {
    PyObject *items, *number_given, *item, *at;
    uint64_t number, now;
    tollbar_queue_ticket ticket = { 0, 0, 0 };
    if (!PyArg_ParseTuple(args, "O!OOO", &PyDict_Type, &items, &number_given, &item, &at)
        || core_uint64(number_given, "number", &number) != 0 || time_of(self, at, &now) != 0)
        return NULL;
    if (PyDict_SetItem(items, number_given, item) != 0)
        return NULL;
    const int32_t code = tollbar_queue_offer_at(of(self)->handle, (void *)(uintptr_t)number, now, &ticket);
    if (code == TOLLBAR_ALLOWED)
        return Py_BuildValue("KKK", (unsigned long long)ticket.number, (unsigned long long)ticket.ahead,
                             (unsigned long long)ticket.spare);
    if (PyDict_DelItem(items, number_given) != 0)
        return NULL;
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* The item of which the library has returned the number, which leaves `items`; `other` if `code` is
 * not `yes`. */
static PyObject *removed(PyObject *items, PyObject *other, int32_t code, int32_t yes, void *number) {
    if (code != yes)
        return Py_NewRef(other);
    PyObject *name = PyLong_FromUnsignedLongLong((uintptr_t)number);
    if (name == NULL)
        return NULL;
    PyObject *item = PyDict_GetItemWithError(items, name);
    Py_XINCREF(item);
    if (item != NULL && PyDict_DelItem(items, name) != 0)
        Py_CLEAR(item);
    else if (item == NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, name);
    Py_DECREF(name);
    return item;
}

/* _take(items, other, at) -> the oldest item if it may leave, else other */
static PyObject *queue_take(PyObject *self, PyObject *args) {
    PyObject *items, *other, *at;
    uint64_t now;
    void *number = NULL;
    if (!PyArg_ParseTuple(args, "O!OO", &PyDict_Type, &items, &other, &at) || time_of(self, at, &now) != 0)
        return NULL;
    const int32_t code = tollbar_queue_take_at(of(self)->handle, now, &number);
    if (code < 0 && code != TOLLBAR_E_CLOSED)
        return core_raise(of(self)->state, code, NULL);
    return removed(items, other, code, TOLLBAR_ALLOWED, number);
}

/* _cancel(items, other, the ticket's number) -> the item, or other if it has left */
static PyObject *queue_cancel(PyObject *self, PyObject *args) {
    PyObject *items, *other, *ticket_given;
    tollbar_queue_ticket ticket = { 0, 0, 0 };
    void *number = NULL;
    if (!PyArg_ParseTuple(args, "O!OO", &PyDict_Type, &items, &other, &ticket_given)
        || core_uint64(ticket_given, "ticket", &ticket.number) != 0)
        return NULL;
    const int32_t code = tollbar_queue_cancel(of(self)->handle, &ticket, &number);
    return removed(items, other, code, TOLLBAR_YES, number);
}

/* _drain(items, other) -> the oldest item, or other */
static PyObject *queue_drain(PyObject *self, PyObject *args) {
    PyObject *items, *other;
    void *number = NULL;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &items, &other))
        return NULL;
    const int32_t code = tollbar_queue_drain(of(self)->handle, &number);
    return removed(items, other, code, TOLLBAR_YES, number);
}

/* _next(at) -> the time of the next departure, or None */
static PyObject *queue_next(PyObject *self, PyObject *at) {
    uint64_t now, departs = 0;
    if (time_of(self, at, &now) != 0)
        return NULL;
    if (tollbar_queue_next_departure_at(of(self)->handle, now, &departs) != TOLLBAR_YES)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(departs);
}

static PyObject *queue_close(PyObject *self, PyObject *unused) {
    (void)unused;
    (void)tollbar_queue_close(of(self)->handle);
    Py_RETURN_NONE;
}

static PyObject *queue_length(PyObject *self, PyObject *unused) {
    uint64_t items = 0;
    (void)unused;
    (void)tollbar_queue_length(of(self)->handle, &items);
    return PyLong_FromUnsignedLongLong(items);
}

static PyObject *queue_now(PyObject *self, PyObject *unused) {
    uint64_t now = 0;
    (void)unused;
    (void)tollbar_queue_now(of(self)->handle, &now);
    return PyLong_FromUnsignedLongLong(now);
}

static PyMethodDef queue_methods[] = {
    CORE_METHOD("_offer", queue_offer, METH_VARARGS, "($self, items, number, item, at, /)", "Puts an item behind all others."),
    CORE_METHOD("_take", queue_take, METH_VARARGS, "($self, items, other, at, /)", "Takes the oldest item if it may leave."),
    CORE_METHOD("_cancel", queue_cancel, METH_VARARGS, "($self, items, other, ticket, /)", "Takes an item out of the queue."),
    CORE_METHOD("_drain", queue_drain, METH_VARARGS, "($self, items, other, /)", "Takes the oldest item at once."),
    CORE_METHOD("_next", queue_next, METH_O, "($self, at, /)", "The time of the next departure."),
    CORE_METHOD("_close", queue_close, METH_NOARGS, "($self, /)", "Refuses all offers from now on."),
    CORE_METHOD("_length", queue_length, METH_NOARGS, "($self, /)", "How many items the queue has."),
    CORE_METHOD("now", queue_now, METH_NOARGS, "($self, /)",
                "The time that calls without `at` read: nanoseconds of UTC since 2025-03-13."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot queue_slots[] = { CORE_SLOTS(queue), { 0, NULL } };

CORE_TYPE(core_queue_spec, "tollbar._core.Queue", core_queue, Py_TPFLAGS_BASETYPE, queue_slots);
