/* A table's rare calls: policies, counters, health, file. */

#include "core.h"

static inline core_table *of(PyObject *self) {
    return (core_table *)self;
}

/* For calls that examine every slot or write to a disk, and release the GIL. */
static const tollbar_table *begin(core_table *self) {
    const tollbar_table *table = core_table_handle(self);
    if (table != NULL)
        self->users++;
    return table;
}

static void end(core_table *self) {
    if (--self->users == 0) {
        tollbar_table_close(self->leaving);
        self->leaving = NULL;
    }
}

PyObject *core_table_set_policy(PyObject *self, PyObject *args) {
    PyObject *policy, *text;
    uint32_t number;
    unsigned int keep;
    tollbar_policy_spec spec;
    if (!PyArg_ParseTuple(args, "OOI", &policy, &text, &keep) || core_table_policy(of(self), policy, &number) != 0
        || core_spec_parse(of(self)->state, text, &spec) != 0)
        return NULL;
    const tollbar_table *table = begin(of(self));
    if (table == NULL)
        return NULL;
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_table_set_policy(table, number, &spec, keep);
    Py_END_ALLOW_THREADS
    end(of(self));
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

typedef int32_t (*number_fn)(const tollbar_table *, const tollbar_policy_spec *, uint32_t *);

static PyObject *number_of(PyObject *self, PyObject *text, number_fn ask) {
    tollbar_policy_spec spec;
    uint32_t number = 0;
    if (core_spec_parse(of(self)->state, text, &spec) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    int32_t code = ask(table, &spec, &number);
    return code != 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(number);
}

PyObject *core_table_add_policy(PyObject *self, PyObject *text) {
    return number_of(self, text, tollbar_table_add_policy);
}

PyObject *core_table_find_or_add_policy(PyObject *self, PyObject *text) {
    return number_of(self, text, tollbar_table_find_or_add_policy);
}

PyObject *core_table_get_policy(PyObject *self, PyObject *policy) {
    uint32_t number;
    if (core_table_policy(of(self), policy, &number) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t code = tollbar_table_get_policy(table, number, &spec);
    return code != 0 ? core_raise(of(self)->state, code, NULL) : core_spec_text(of(self)->state, &spec);
}

PyObject *core_table_stats(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    tollbar_table_stats s = TOLLBAR_TABLE_STATS_INIT;
    int32_t code = tollbar_table_get_stats(table, &s);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    const uint64_t fields[] = { s.policies, s.capacity,  s.slots,     s.bytes,        s.keys,
                                s.inserted, s.reclaimed, s.vacated,   s.resets,       s.refused,
                                s.inherited, s.untracked, s.evicted, s.retries, s.backward_steps,
                                s.allowed, s.denied, s.never, s.overrides, s.room };
    const Py_ssize_t count = sizeof fields / sizeof *fields;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(fields[i]);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *core_table_counts(PyObject *self, PyObject *policy) {
    uint32_t number;
    if (core_table_policy(of(self), policy, &number) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL)
        return NULL;
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    int32_t code = tollbar_table_get_counts(table, number, &counts);
    return code != 0 ? core_raise(of(self)->state, code, NULL)
                     : Py_BuildValue("KKK", (unsigned long long)counts.allowed, (unsigned long long)counts.denied,
                                     (unsigned long long)counts.never);
}

PyObject *core_table_validate(PyObject *self, PyObject *repair) {
    int mend = PyObject_IsTrue(repair);
    if (mend < 0)
        return NULL;
    const tollbar_table *table = begin(of(self));
    if (table == NULL)
        return NULL;
    tollbar_table_health h = TOLLBAR_TABLE_HEALTH_INIT;
    uint64_t now = 0;
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_table_now(table, &now);
    if (code == 0)
        code = mend ? tollbar_table_repair(table, now, &h) : tollbar_table_validate(table, now, &h);
    Py_END_ALLOW_THREADS
    end(of(self));
    if (code != 0 && code != TOLLBAR_E_SLOTS_INVALID)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("NIKKKKKK", PyBool_FromLong(code == TOLLBAR_E_SLOTS_INVALID), h.claimed,
                         (unsigned long long)h.vacant, (unsigned long long)h.waiting, (unsigned long long)h.expired,
                         (unsigned long long)h.live, (unsigned long long)h.unknown, (unsigned long long)h.duplicate);
}

PyObject *core_table_sync(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_table *table = begin(of(self));
    if (table == NULL)
        return NULL;
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_table_sync(table);
    Py_END_ALLOW_THREADS
    end(of(self));
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

PyObject *core_table_copy_from(PyObject *self, PyObject *other) {
    if (!PyObject_TypeCheck(other, of(self)->state->table)) {
        PyErr_SetString(PyExc_TypeError, "copy_from() takes a Table");
        return NULL;
    }
    const tollbar_table *table = begin(of(self));
    if (table == NULL)
        return NULL;
    const tollbar_table *from = begin(of(other));
    if (from == NULL) {
        end(of(self));
        return NULL;
    }
    tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
    uint64_t now = 0;
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_table_now(table, &now);
    if (code == 0)
        code = tollbar_table_copy(table, from, now, &copied);
    Py_END_ALLOW_THREADS
    end(of(other));
    end(of(self));
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("KK", (unsigned long long)copied.copied, (unsigned long long)copied.lost);
}
