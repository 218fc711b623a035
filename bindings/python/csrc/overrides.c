/* Keys of a table with a policy of their own. */

#include "core.h"

static inline core_table *of(PyObject *self) {
    return (core_table *)self;
}

/* _set_override(key, policy, text, keep). One in a hundred calls with new policies examines every
 * slot. */
PyObject *core_table_set_override(PyObject *self, PyObject *args) {
    PyObject *object, *policy, *text;
    uint32_t number;
    unsigned int keep;
    core_key key;
    tollbar_policy_spec spec;
    if (!PyArg_ParseTuple(args, "OOOI", &object, &policy, &text, &keep)
        || core_table_policy(of(self), policy, &number) != 0 || core_spec_parse(of(self)->state, text, &spec) != 0
        || core_key_get(object, &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    int32_t code = table == NULL ? 0 : tollbar_table_set_override(table, number, key.data, key.length, &spec, keep);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* _override(key, policy): its text, or None. */
PyObject *core_table_override(PyObject *self, PyObject *args) {
    PyObject *object, *policy;
    uint32_t number;
    core_key key;
    if (!PyArg_ParseTuple(args, "OO", &object, &policy) || core_table_policy(of(self), policy, &number) != 0
        || core_key_get(object, &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t code = table == NULL ? 0 : tollbar_table_get_override(table, number, key.data, key.length, &spec);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    if (code == TOLLBAR_NO)
        Py_RETURN_NONE;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : core_spec_text(of(self)->state, &spec);
}

/* _overrides(): a list of (policy, hash, text). */
PyObject *core_table_overrides(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_table *table = core_table_handle(of(self));
    PyObject *list = table == NULL ? NULL : PyList_New(0);
    tollbar_table_override found = TOLLBAR_TABLE_OVERRIDE_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    while (list != NULL && tollbar_table_next_override(table, found.next, &found, &spec) == TOLLBAR_YES) {
        PyObject *text = core_spec_text(of(self)->state, &spec);
        PyObject *one = text == NULL ? NULL : Py_BuildValue("(IKN)", found.policy, (unsigned long long)found.hash, text);
        if (one == NULL || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}
