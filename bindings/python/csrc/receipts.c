/* Receipts of a table's keys: an estimate now, the real cost later. */

#include <string.h>

#include "core.h"

static inline core_table *of(PyObject *self) {
    return (core_table *)self;
}

/* take(key, estimate, policy=0, *, at=None) -> (decision, receipt or None) */
PyObject *core_table_take(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    core_call c;
    if (core_call_read(of(self), "take", "estimate", 1, args, nargs, keywords, &c) != 0)
        return NULL;
    tollbar_receipt receipt;
    core_decision *out = core_decision_new(of(self)->decision);
    int32_t code = TOLLBAR_E_NO_MEMORY;
    if (out != NULL)
        code = c.timed ? tollbar_table_take_at(c.table, c.policy, c.key.data, c.key.length, c.cost, c.now, &receipt, &out->answer)
                       : tollbar_table_take(c.table, c.policy, c.key.data, c.key.length, c.cost, &receipt, &out->answer);
    core_key_release(&c.key);
    if (out == NULL)
        return NULL;
    if (code < 0) {
        Py_DECREF(out);
        return core_raise(of(self)->state, code, NULL);
    }
    if (code != TOLLBAR_ALLOWED)
        return Py_BuildValue("NO", out, Py_None);
    return Py_BuildValue("Ny#", out, (const char *)&receipt, (Py_ssize_t)sizeof receipt);
}

static int receipt_get(PyObject *object, tollbar_receipt *receipt) {
    char *data;
    Py_ssize_t length;
    if (!PyBytes_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a receipt is bytes, as take() returns them");
        return -1;
    }
    if (PyBytes_AsStringAndSize(object, &data, &length) != 0)
        return -1;
    if (length != (Py_ssize_t)sizeof *receipt) {
        PyErr_Format(PyExc_ValueError, "a receipt is 32 bytes, not %zd", length);
        return -1;
    }
    memcpy(receipt, data, sizeof *receipt);
    return 0;
}

/* _settle(receipt, cost, at or None, full) -> (first, given_back, rest) */
PyObject *core_table_settle(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    uint64_t cost, now = 0;
    tollbar_receipt receipt;
    tollbar_settled settled = TOLLBAR_SETTLED_INIT;
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "_settle() takes a receipt, a cost, a time and whether all comes back");
        return NULL;
    }
    const int timed = args[2] != Py_None;
    const int full = PyObject_IsTrue(args[3]);
    if (full < 0 || receipt_get(args[0], &receipt) != 0 || core_uint64(args[1], "cost", &cost) != 0
        || (timed && core_uint64(args[2], "at", &now) != 0))
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    int32_t code = full    ? tollbar_table_settle_in_full(table, &receipt, cost, &settled)
                   : timed ? tollbar_table_settle_at(table, &receipt, cost, now, &settled)
                           : tollbar_table_settle(table, &receipt, cost, &settled);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("NKK", PyBool_FromLong(settled.first == TOLLBAR_YES), (unsigned long long)settled.given_back,
                         (unsigned long long)settled.rest);
}
