/* The counters of limiters and tables as text for Prometheus. */

#include "core.h"

/* metrics(sources, openmetrics) -> str; a source is (name, Limiter or Table) */
PyObject *core_metrics(PyObject *module, PyObject *args) {
    core_state *state = PyModule_GetState(module);
    tollbar_metrics_source sources[TOLLBAR_METRICS_MOST];
    PyObject *all, *made = NULL;
    int openmetrics;
    if (!PyArg_ParseTuple(args, "O!p", &PyTuple_Type, &all, &openmetrics))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(all);
    if (count > TOLLBAR_METRICS_MOST)
        return PyErr_Format(PyExc_ValueError, "metrics() takes at most %d limiters and tables, not %zd", TOLLBAR_METRICS_MOST, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t length;
        PyObject *of;
        if (!PyArg_ParseTuple(PyTuple_GetItem(all, i), "s#O", &sources[i].name, &length, &of))
            return NULL;
        sources[i].name_length = (size_t)length;
        sources[i].limiter = NULL;
        sources[i].table = NULL;
        sources[i].flags = 0;
        if (PyObject_TypeCheck(of, state->limiter))
            sources[i].limiter = core_limiter_handle(of);
        else if (PyObject_TypeCheck(of, state->table))
            sources[i].table = core_table_handle((core_table *)of);
        else
            return PyErr_Format(PyExc_TypeError, "metrics() takes limiters and tables, not %R", of);
        if (sources[i].limiter == NULL && sources[i].table == NULL)
            return NULL;
    }
    for (size_t capacity = 16384;;) {
        char *text = PyMem_Malloc(capacity);
        size_t length = 0;
        if (text == NULL)
            return PyErr_NoMemory();
        const int32_t code = tollbar_metrics(sources, (size_t)count, openmetrics ? TOLLBAR_METRICS_OPENMETRICS : TOLLBAR_METRICS_PROMETHEUS,
                                             text, capacity, &length);
        if (code == 0)
            made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, NULL);
        PyMem_Free(text);
        if (code == 0)
            return made;
        if (code != TOLLBAR_E_BUFFER_TOO_SMALL || length < capacity)
            return core_raise(state, code, NULL);
        /* Counters may gain digits until the next call. */
        capacity = length + length / 8 + 1;
    }
}
