/* The keys that a table refuses most. */

#include "core.h"

static inline core_table *of(PyObject *self) {
    return (core_table *)self;
}

/* record_refusals(on) */
PyObject *core_table_record_refusals(PyObject *self, PyObject *on) {
    const int is_on = PyObject_IsTrue(on);
    const tollbar_table *table = is_on < 0 ? NULL : core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    const int32_t code = tollbar_table_record_refusals(table, (uint32_t)is_on);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* records_refusals() */
PyObject *core_table_records_refusals(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_table *table = core_table_handle(of(self));
    return table == NULL ? NULL : PyBool_FromLong(tollbar_table_records_refusals(table) == TOLLBAR_YES);
}

/* _top_refused(most, at): a list of (policy, count, key, is_cut). `at` may be None. */
PyObject *core_table_top_refused(PyObject *self, PyObject *args) {
    Py_ssize_t most;
    PyObject *at;
    if (!PyArg_ParseTuple(args, "nO", &most, &at))
        return NULL;
    if (most < 0)
        return PyErr_Format(PyExc_ValueError, "most is %zd, expected 0 or more", most);
    const tollbar_table *table = core_table_handle(of(self));
    uint64_t now = 0;
    if (table == NULL)
        return NULL;
    if (at != Py_None)
        now = PyLong_AsUnsignedLongLong(at);
    else if (tollbar_table_now(table, &now) != 0)
        now = 0;
    if (PyErr_Occurred())
        return NULL;
    tollbar_table_refused top[TOLLBAR_REFUSED_MOST] = { TOLLBAR_TABLE_REFUSED_INIT };
    size_t count = 0;
    const size_t room = most < TOLLBAR_REFUSED_MOST ? (size_t)most : TOLLBAR_REFUSED_MOST;
    const int32_t code = tollbar_table_top_refused(table, now, top, room, &count);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    PyObject *list = PyList_New(0);
    for (size_t n = 0; list != NULL && n < count; n++) {
        PyObject *one = Py_BuildValue("(IKy#O)", top[n].policy, (unsigned long long)top[n].count, (const char *)top[n].key,
                                      (Py_ssize_t)top[n].length, top[n].is_cut == TOLLBAR_YES ? Py_True : Py_False);
        if (one == NULL || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}
