/* Decision: a full decision. True if the request may pass. */

#include "core.h"

core_decision *core_decision_new(PyTypeObject *type) {
    core_decision *self = PyObject_Malloc(sizeof *self);
    if (self == NULL)
        return (core_decision *)PyErr_NoMemory();
    self->answer = (tollbar_decision)TOLLBAR_DECISION_INIT;
    return (core_decision *)PyObject_Init((PyObject *)self, type);
}

void core_decision_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static const tollbar_decision *answer(PyObject *self) {
    return &((core_decision *)self)->answer;
}

int core_decision_bool(PyObject *self) {
    return answer(self)->verdict == TOLLBAR_ALLOWED;
}

PyObject *core_get_allowed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(core_decision_bool(self));
}

PyObject *core_get_never(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(answer(self)->verdict == TOLLBAR_NEVER);
}

PyObject *core_get_reason(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tollbar_strreason(answer(self)->reason));
}

PyObject *core_get_bound(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(answer(self)->bound);
}

PyObject *core_get_remaining(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(answer(self)->remaining);
}

PyObject *core_nanoseconds(uint64_t time) {
    if (time == TOLLBAR_NO_TIME)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(time);
}

PyObject *core_seconds(uint64_t time) {
    return PyFloat_FromDouble(time == TOLLBAR_NO_TIME ? Py_HUGE_VAL : (double)time / 1e9);
}

PyObject *core_get_retry_ns(PyObject *self, void *unused) {
    (void)unused;
    return core_nanoseconds(answer(self)->retry_after_ns);
}

PyObject *core_get_retry(PyObject *self, void *unused) {
    (void)unused;
    return core_seconds(answer(self)->retry_after_ns);
}

PyObject *core_get_reset_ns(PyObject *self, void *unused) {
    (void)unused;
    return core_nanoseconds(answer(self)->reset_after_ns);
}

PyObject *core_get_reset(PyObject *self, void *unused) {
    (void)unused;
    return core_seconds(answer(self)->reset_after_ns);
}

const char *core_verdict_name(const tollbar_decision *a) {
    static const char *const verdicts[] = { "allowed", "denied", "never" };
    return verdicts[a->verdict <= 2 ? a->verdict : 1];
}

static PyObject *decision_repr(PyObject *self) {
    const tollbar_decision *a = answer(self);
    PyObject *retry = core_get_retry(self, NULL);
    PyObject *reset = retry == NULL ? NULL : core_get_reset(self, NULL);
    PyObject *text = NULL;
    if (reset != NULL)
        text = PyUnicode_FromFormat("<tollbar.Decision %s, remaining=%llu, retry_after=%R, reset_after=%R>",
                                    core_verdict_name(a), (unsigned long long)a->remaining,
                                    retry, reset);
    Py_XDECREF(retry);
    Py_XDECREF(reset);
    return text;
}

static PyGetSetDef decision_getset[] = {
    { "allowed", core_get_allowed, NULL, "Whether the request may pass; its cost has been charged.", NULL },
    { "never", core_get_never, NULL, "Whether the cost is more than there can ever be at once.", NULL },
    { "reason", core_get_reason, NULL, "Why, such as 'over the rate', 'table full' or 'exempt'.", NULL },
    { "bound", core_get_bound, NULL, "Which policy of a list bound, from 0: the longest wait, or the fewest permits left.", NULL },
    { "remaining", core_get_remaining, NULL, "Permits that could be taken now.", NULL },
    { "retry_after", core_get_retry, NULL, "Seconds until it would pass; 0.0 if it has, inf if never.", NULL },
    { "retry_after_ns", core_get_retry_ns, NULL, "The same in nanoseconds; None if never.", NULL },
    { "reset_after", core_get_reset, NULL, "Seconds until all is as at first.", NULL },
    { "reset_after_ns", core_get_reset_ns, NULL, "The same in nanoseconds.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot decision_slots[] = {
    { Py_tp_doc, "An answer in full. True if the request may pass." },
    { Py_tp_dealloc, core_decision_dealloc },
    { Py_tp_repr, decision_repr },
    { Py_nb_bool, core_decision_bool },
    { Py_tp_getset, decision_getset },
    { 0, NULL },
};

CORE_TYPE(core_decision_spec, "tollbar.Decision", core_decision, Py_TPFLAGS_DISALLOW_INSTANTIATION, decision_slots);
