/* Meter: the colour of packets by RFC 2697 and RFC 2698. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_meter meter;
    /* An object keeps its address, which the buckets need. */
    tollbar_meter_state buckets;
    core_state *state;
} core_meter;

static const char *const colors[] = { "green", "yellow", "red" };

static inline core_meter *of(PyObject *self) {
    return (core_meter *)self;
}

/* Meter(committed_bytes, period_ns, committed_burst, peak_bytes, second_burst) */
static PyObject *meter_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *given[5];
    tollbar_meter meter = TOLLBAR_METER_INIT;
    if (!PyArg_ParseTuple(args, "OOOOO", &given[0], &given[1], &given[2], &given[3], &given[4]))
        return NULL;
    core_state *state = core_state_of(type);
    if (state == NULL || core_uint64(given[0], "committed_bytes", &meter.committed_bytes) != 0
        || core_uint64(given[1], "period", &meter.period_ns) != 0
        || core_uint64(given[2], "committed_burst", &meter.committed_burst) != 0
        || core_uint64(given[3], "peak_bytes", &meter.peak_bytes) != 0
        || core_uint64(given[4], "a burst", &meter.second_burst) != 0)
        return NULL;
    const int32_t code = tollbar_meter_validate(&meter);
    if (code != 0)
        return core_raise(state, code, NULL);
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    of(self)->meter = meter;
    of(self)->state = state;
    return self;
}

static void meter_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Reads a colour's name. NULL is green. */
static int color_of(PyObject *object, uint32_t *out) {
    *out = TOLLBAR_COLOR_GREEN;
    if (object == NULL)
        return 0;
    for (uint32_t n = 0; PyUnicode_Check(object) && n < sizeof colors / sizeof *colors; n++) {
        if (PyUnicode_CompareWithASCIIString(object, colors[n]) == 0) {
            *out = n;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "before must be 'green', 'yellow' or 'red', not %R", object);
    return -1;
}

static PyObject *meter_color(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *keywords) {
    static const char *const names[] = { "bytes", "before", "at", NULL };
    PyObject *given[3] = { NULL, NULL, NULL };
    uint64_t bytes, now;
    uint32_t before;
    int32_t code;
    if (core_bind("color", names, 1, 2, args, nargs, keywords, given) != 0
        || core_uint64(given[0], "bytes", &bytes) != 0
        || color_of(given[1], &before) != 0)
        return NULL;
    if (given[2] == NULL || given[2] == Py_None) {
        code = tollbar_meter_color(&of(self)->meter, &of(self)->buckets, bytes, before);
    } else {
        if (core_uint64(given[2], "at", &now) != 0)
            return NULL;
        code = tollbar_meter_color_at(&of(self)->meter, &of(self)->buckets, bytes, before, now);
    }
    if (code < 0 || code > TOLLBAR_COLOR_RED)
        return core_raise(of(self)->state, code, NULL);
    return PyUnicode_InternFromString(colors[code]);
}

static PyMethodDef meter_methods[] = {
    CORE_FAST("color", meter_color, "($self, /, bytes, before='green', *, at=None)",
              "The colour of a packet, 'green', 'yellow' or 'red'. The bytes are charged to the "
              "buckets of that colour; a red\n"
              "packet charges nothing. `before` is the colour that an earlier meter gave: the "
              "answer is never better."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot meter_slots[] = { CORE_SLOTS(meter), { 0, NULL } };

CORE_TYPE(core_meter_spec, "tollbar._core.Meter", core_meter, Py_TPFLAGS_BASETYPE, meter_slots);
