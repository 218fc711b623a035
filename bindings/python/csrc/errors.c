/* Errors, and policies between text and struct. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core.h"

/* The errors after which errno has the system's reason. */
/* [lists: system errors] written by cargo xtask lists */
enum { SYSTEM_FIRST = TOLLBAR_E_OPEN, SYSTEM_LAST = TOLLBAR_E_SYNC };
/* [lists: end] */

static void raise_made(PyObject *exception) {
    if (exception != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
}

PyObject *core_raise(core_state *state, int32_t code, PyObject *path) {
    int reason = code <= SYSTEM_FIRST && code >= SYSTEM_LAST ? errno : 0;
    raise_made(PyObject_CallFunction(state->call_error, "issiO", (int)code, tollbar_errname(code),
                                     tollbar_strerror(code), reason, path == NULL ? Py_None : path));
    return NULL;
}

PyObject *core_policy_raise(core_state *state, int32_t code, const tollbar_policy_error *error, PyObject *text) {
    raise_made(PyObject_CallFunction(state->policy_error, "issKO", (int)code, tollbar_errname(code),
                                     error->expected == NULL ? tollbar_strerror(code) : error->expected,
                                     (unsigned long long)error->column, text));
    return NULL;
}

int core_spec_parse(core_state *state, PyObject *text, tollbar_policy_spec *spec) {
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a policy is a str or a Policy");
        return -1;
    }
    Py_ssize_t length;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (bytes == NULL)
        return -1;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    *spec = (tollbar_policy_spec)TOLLBAR_POLICY_SPEC_INIT;
    int32_t code = tollbar_policy_spec_parse(bytes, (size_t)length, spec, &error);
    if (code == 0)
        return 0;
    core_policy_raise(state, code, &error, text);
    return -1;
}

PyObject *core_spec_text(core_state *state, const tollbar_policy_spec *spec) {
    char text[TOLLBAR_POLICY_TEXT_MAX];
    size_t length = 0;
    int32_t code = tollbar_policy_spec_print(spec, text, sizeof text, &length);
    if (code != 0)
        return core_raise(state, code, NULL);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
}

/* worst_case(text, window_ns) -> permits */
PyObject *core_worst_case(PyObject *module, PyObject *args) {
    core_state *state = PyModule_GetState(module);
    tollbar_policy_spec spec;
    PyObject *text;
    unsigned long long window;
    uint64_t most = 0;
    if (!PyArg_ParseTuple(args, "OK", &text, &window) || core_spec_parse(state, text, &spec) != 0)
        return NULL;
    int32_t code = tollbar_policy_spec_worst_case(&spec, window, &most);
    return code != 0 ? core_raise(state, code, NULL) : PyLong_FromUnsignedLongLong(most);
}

/* curve(limit, period_ns, shares) -> (text, error, time); `shares` are doubles as bytes. */
PyObject *core_curve(PyObject *module, PyObject *args) {
    core_state *state = PyModule_GetState(module);
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_curve_fit fit = TOLLBAR_CURVE_FIT_INIT;
    unsigned long long limit, period;
    PyObject *shares;
    char *bytes;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "KKS", &limit, &period, &shares) || PyBytes_AsStringAndSize(shares, &bytes, &length) != 0)
        return NULL;
    int32_t code = tollbar_policy_spec_samples(limit, period, (const double *)(const void *)bytes,
                                               (size_t)length / sizeof(double), &spec, &fit);
    if (code != 0 && fit.expected != NULL && *fit.expected != 0) {
        char why[200];
        snprintf(why, sizeof why, "at time %g of the slice the function gives %g, expected %s", fit.time, fit.value,
                 fit.expected);
        PyErr_SetString(PyExc_ValueError, why);
        return NULL;
    }
    if (code != 0)
        return core_raise(state, code, NULL);
    PyObject *text = core_spec_text(state, &spec);
    return text == NULL ? NULL : Py_BuildValue("Ndd", text, fit.error, fit.time);
}

/* parse(text) -> (canonical text, the fields of the struct in order, the last time) */
PyObject *core_parse(PyObject *module, PyObject *text) {
    core_state *state = PyModule_GetState(module);
    tollbar_policy_spec spec;
    if (core_spec_parse(state, text, &spec) != 0)
        return NULL;
    uint64_t last = 0;
    int32_t code = tollbar_policy_spec_last_time(&spec, &last);
    if (code != 0)
        return core_raise(state, code, NULL);
    PyObject *canonical = core_spec_text(state, &spec);
    if (canonical == NULL)
        return NULL;
    return Py_BuildValue("NIKKKKKKIIIIIIK", canonical, spec.algorithm, (unsigned long long)spec.limit,
                         (unsigned long long)spec.period_ns, (unsigned long long)spec.burst,
                         (unsigned long long)spec.init, (unsigned long long)spec.slack,
                         (unsigned long long)spec.warm_up_ns, spec.cold, spec.segments, spec.mode, spec.anchor,
                         spec.unit, spec.flags, (unsigned long long)last);
}

/* The algorithms that can book ahead, each as the bit of its number. */
/* [lists: booking] written by cargo xtask lists */
#define BOOKING (1u << TOLLBAR_ALGORITHM_GCRA \
                 | 1u << TOLLBAR_ALGORITHM_INTERVAL \
                 | 1u << TOLLBAR_ALGORITHM_PACER \
                 | 1u << TOLLBAR_ALGORITHM_WARM_UP)
/* [lists: end] */

int core_books_ahead(const tollbar_policy_spec *spec) {
    /* An interval that begins with the first request cannot. */
    return (BOOKING >> spec->algorithm & 1u) != 0 && spec->anchor == TOLLBAR_ANCHOR_EPOCH;
}

PyObject *core_booked(core_state *state, int32_t code, const tollbar_reservation *booked) {
    if (code < 0)
        return core_raise(state, code, NULL);
    if (code != TOLLBAR_ALLOWED)
        Py_RETURN_NONE;
    return Py_BuildValue("KKK", (unsigned long long)booked->departs_ns, (unsigned long long)booked->wait_ns,
                         (unsigned long long)booked->cost);
}
