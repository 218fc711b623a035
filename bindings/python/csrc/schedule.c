/* Schedules: another policy by time of day and day of the week. */

#include "core.h"

static const char *schedule_bytes(PyObject *text, Py_ssize_t *length) {
    if (PyUnicode_Check(text))
        return PyUnicode_AsUTF8AndSize(text, length);
    PyErr_SetString(PyExc_TypeError, "a schedule is a str");
    return NULL;
}

/* schedule_text(text) -> the canonical text */
PyObject *core_schedule_text(PyObject *module, PyObject *text) {
    core_state *state = PyModule_GetState(module);
    Py_ssize_t length;
    const char *bytes = schedule_bytes(text, &length);
    if (bytes == NULL)
        return NULL;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    char out[TOLLBAR_SCHEDULE_TEXT_MAX];
    size_t written = 0;
    int32_t code = tollbar_schedule_print(bytes, (size_t)length, out, sizeof out, &written, &error);
    if (code != 0)
        return core_policy_raise(state, code, &error, text);
    return PyUnicode_FromStringAndSize(out, (Py_ssize_t)written);
}

/* schedule_at(text, unix_ns) -> (the text of the policy in force, the time of the next change or
 * None) */
PyObject *core_schedule_at(PyObject *module, PyObject *args) {
    core_state *state = PyModule_GetState(module);
    PyObject *text, *time;
    Py_ssize_t length;
    uint64_t now;
    if (!PyArg_ParseTuple(args, "OO", &text, &time))
        return NULL;
    const char *bytes = schedule_bytes(text, &length);
    if (bytes == NULL || core_uint64(time, "at", &now) != 0)
        return NULL;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    uint64_t until = 0;
    int32_t code = tollbar_schedule_at(bytes, (size_t)length, now, &spec, &until, &error);
    if (code != 0)
        return core_policy_raise(state, code, &error, text);
    PyObject *policy = core_spec_text(state, &spec);
    if (policy == NULL)
        return NULL;
    if (until == TOLLBAR_NO_TIME)
        return Py_BuildValue("NO", policy, Py_None);
    return Py_BuildValue("NK", policy, (unsigned long long)until);
}
