/* Table: a state for each of many keys. This file makes and closes tables, and decides. */

#include <stdlib.h>

#include "core.h"

static inline core_table *of(PyObject *self) {
    return (core_table *)self;
}

const tollbar_table *core_table_handle(core_table *self) {
    if (self->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the table is closed");
    return self->handle;
}

int core_table_policy(core_table *self, PyObject *object, uint32_t *out) {
    if (PyUnicode_Check(object)) {
        PyObject *number = self->names == NULL ? NULL : PyDict_GetItemWithError(self->names, object);
        if (number == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetObject(PyExc_KeyError, object);
            return -1;
        }
        object = number;
    }
    uint64_t number;
    if (core_uint64(object, "policy", &number) != 0)
        return -1;
    /* The library returns an error for a policy that the table does not have. */
    *out = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    return 0;
}

enum { PRIVATE, SHARED, IN_FILE };

/* Makes the table of that `kind`, without the GIL, because a file may be large or locked by another
 * process. */
static int32_t make(int kind, const char *path, const tollbar_table_options *options,
                    const tollbar_policy_spec *specs, Py_ssize_t count, tollbar_table **out) {
    const tollbar_policy_spec *list[128];
    for (Py_ssize_t i = 0; i < count; i++)
        list[i] = &specs[i];
    if (kind == PRIVATE)
        return tollbar_table_new(list, (size_t)count, options, out);
    if (kind == SHARED)
        return tollbar_table_new_shared(list, (size_t)count, options, out);
    if (count == 0) {
        /* Opens a file's table whatever its options are. */
        tollbar_table_options any = TOLLBAR_TABLE_OPTIONS_INIT(0);
        any.flags = options->flags & TOLLBAR_TABLE_TRUST_ANYONE;
        any.hot_keys = options->hot_keys;
        any.mode = options->mode;
        return tollbar_table_open(path, NULL, 0, &any, out);
    }
    return tollbar_table_open(path, list, (size_t)count, options, out);
}

/* Table(texts, names, capacity, on_full, missing, clock, seed, flags, mode, hot_keys, overrides,
 * room, kind, path) */
static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *texts, *names, *capacity, *seed, *path;
    int kind;
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(0);
    if (!PyArg_ParseTuple(args, "O!O!OIIIOIIIIIiO", &PyTuple_Type, &texts, &PyDict_Type, &names, &capacity,
                          &options.on_full, &options.missing_key, &options.clock, &seed, &options.flags,
                          &options.mode, &options.hot_keys, &options.overrides, &options.room, &kind,
                          &path))
        return NULL;
    core_state *state = core_state_of(type);
    if (state == NULL || core_uint64(capacity, "capacity", &options.capacity) != 0
        || core_uint64(seed, "seed", &options.seed) != 0)
        return NULL;
    Py_ssize_t count = PyTuple_Size(texts);
    if (count > 128 || (count == 0 && kind != IN_FILE))
        return core_raise(state, TOLLBAR_E_POLICY_COUNT, NULL);

    tollbar_policy_spec *specs = PyMem_Calloc(count == 0 ? 1 : (size_t)count, sizeof *specs);
    PyObject *name = NULL, *self = NULL;
    tollbar_table *handle = NULL;
    if (specs == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if (core_spec_parse(state, PyTuple_GetItem(texts, i), &specs[i]) != 0)
            goto done;
    if (kind == IN_FILE && !PyUnicode_FSConverter(path, &name))
        goto done;
    const char *bytes = name == NULL ? "" : PyBytes_AsString(name);
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = make(kind, bytes, &options, specs, count, &handle);
    Py_END_ALLOW_THREADS
    if (code != 0) {
        core_raise(state, code, kind == IN_FILE ? path : NULL);
        goto done;
    }
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    self = alloc(type, 0);
    if (self == NULL) {
        tollbar_table_close(handle);
        goto done;
    }
    of(self)->handle = handle;
    of(self)->state = state;
    of(self)->decision = state->decision;
    Py_INCREF(names);
    of(self)->names = names;
done:
    PyMem_Free(specs);
    Py_XDECREF(name);
    return self;
}

static void table_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    /* A call that uses the handle without the GIL holds a reference to the object, so no call is
     * under way here. */
    tollbar_table_close(of(self)->handle);
    Py_XDECREF(of(self)->names);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *table_close(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_table *handle = of(self)->handle;
    of(self)->handle = NULL;
    if (of(self)->users == 0)
        tollbar_table_close(handle);
    else if (handle != NULL)
        of(self)->leaving = handle;
    Py_RETURN_NONE;
}

static PyObject *table_get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->handle == NULL);
}

int core_call_read(core_table *self, const char *function, const char *amount, int needed, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *keywords, core_call *c) {
    const char *const names[] = { "key", amount, "policy", "at", NULL };
    PyObject *given[4] = { NULL, NULL, NULL, NULL };
    c->cost = 1;
    c->policy = 0;
    c->timed = 0;
    if (nargs == 1 && keywords == NULL && !needed)
        given[0] = args[0];
    else if (core_bind(function, names, needed ? 2 : 1, 3, args, nargs, keywords, given) != 0)
        return -1;
    if (given[1] != NULL && core_uint64(given[1], amount, &c->cost) != 0)
        return -1;
    if (given[2] != NULL && core_table_policy(self, given[2], &c->policy) != 0)
        return -1;
    if (given[3] != NULL && given[3] != Py_None) {
        c->timed = 1;
        if (core_uint64(given[3], "at", &c->now) != 0)
            return -1;
    }
    if (core_key_get(given[0], &c->key) != 0)
        return -1;
    c->table = core_table_handle(self);
    if (c->table != NULL)
        return 0;
    core_key_release(&c->key);
    return -1;
}

static PyObject *decide(PyObject *self, const char *function, int take, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *keywords) {
    core_call c;
    if (core_call_read(of(self), function, "cost", 0, args, nargs, keywords, &c) != 0)
        return NULL;
    core_decision *out = core_decision_new(of(self)->decision);
    int32_t code = TOLLBAR_E_NO_MEMORY;
    if (out != NULL) {
        tollbar_decision *a = &out->answer;
        const void *key = c.key.data;
        size_t length = c.key.length;
        if (take)
            code = c.timed ? tollbar_table_check_at(c.table, c.policy, key, length, c.cost, c.now, a)
                           : tollbar_table_check(c.table, c.policy, key, length, c.cost, a);
        else
            code = c.timed ? tollbar_table_peek_at(c.table, c.policy, key, length, c.cost, c.now, a)
                           : tollbar_table_peek(c.table, c.policy, key, length, c.cost, a);
    }
    core_key_release(&c.key);
    if (code >= 0 || out == NULL)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(of(self)->state, code, NULL);
}

static PyObject *table_check(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return decide(self, "check", 1, args, nargs, keywords);
}

static PyObject *table_peek(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return decide(self, "peek", 0, args, nargs, keywords);
}

static PyObject *table_allow(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    core_call c;
    if (core_call_read(of(self), "allow", "cost", 0, args, nargs, keywords, &c) != 0)
        return NULL;
    int32_t code = c.timed
                       ? tollbar_table_check_at(c.table, c.policy, c.key.data, c.key.length, c.cost, c.now, NULL)
                       : tollbar_table_check(c.table, c.policy, c.key.data, c.key.length, c.cost, NULL);
    core_key_release(&c.key);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

static PyObject *table_take_up_to(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    core_call c;
    uint64_t taken = 0;
    if (core_call_read(of(self), "take_up_to", "most", 1, args, nargs, keywords, &c) != 0)
        return NULL;
    int32_t code =
        c.timed ? tollbar_table_take_up_to_at(c.table, c.policy, c.key.data, c.key.length, c.cost, c.now, &taken)
                : tollbar_table_take_up_to(c.table, c.policy, c.key.data, c.key.length, c.cost, &taken);
    core_key_release(&c.key);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(taken);
}

static PyObject *table_charge(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    core_call c;
    uint64_t rest = 0;
    if (core_call_read(of(self), "charge", "cost", 0, args, nargs, keywords, &c) != 0)
        return NULL;
    int32_t code = c.timed ? tollbar_table_charge_at(c.table, c.policy, c.key.data, c.key.length, c.cost, c.now, &rest)
                           : tollbar_table_charge(c.table, c.policy, c.key.data, c.key.length, c.cost, &rest);
    core_key_release(&c.key);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(rest);
}

/* _take(key, cost, policy): as a limiter's. */
static PyObject *table_take_now(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    uint64_t cost;
    uint32_t policy;
    core_key key;
    tollbar_decision peeked = TOLLBAR_DECISION_INIT;
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "_take() takes a key, a cost and a policy");
        return NULL;
    }
    if (core_uint64(args[1], "cost", &cost) != 0 || core_table_policy(of(self), args[2], &policy) != 0 || core_key_get(args[0], &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    int32_t code = table == NULL ? 0 : tollbar_table_peek(table, policy, key.data, key.length, cost, &peeked);
    if (table != NULL && code == TOLLBAR_ALLOWED)
        code = tollbar_table_check(table, policy, key.data, key.length, cost, NULL);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

/* Whether the policy can book ahead now: 1 or 0, or a negative code. It reads and decodes the whole
 * policy, which takes longer than a booking. */
static int32_t look_whether_it_books(core_table *self, const tollbar_table *table, uint32_t policy) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t code = tollbar_table_get_policy(table, policy, &spec);
    if (code < 0)
        return code;
    const int books = core_books_ahead(&spec);
    if (policy < 128) {
        const uint64_t bit = UINT64_C(1) << policy % 64;
        self->books[policy / 64] = books ? self->books[policy / 64] | bit : self->books[policy / 64] & ~bit;
    }
    return books;
}

/* _book(key, patience_ns, cost, policy, at=None): as a limiter's. A policy that could book ahead is
 * asked at once. If it refuses, it may have been changed to one that cannot, and only then is it
 * looked at again. */
static PyObject *table_book(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    uint64_t cost, patience, now = 0;
    uint32_t policy;
    core_key key;
    if (nargs != 4 && nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "_book() takes a key, a patience, a cost, a policy and a time");
        return NULL;
    }
    const int timed = nargs == 5 && args[4] != Py_None;
    if (core_uint64(args[1], "patience", &patience) != 0 || core_uint64(args[2], "cost", &cost) != 0
        || (timed && core_uint64(args[4], "at", &now) != 0)
        || core_table_policy(of(self), args[3], &policy) != 0 || core_key_get(args[0], &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    if (table == NULL) {
        core_key_release(&key);
        return NULL;
    }
    tollbar_reservation booked;
    int32_t code = 0;
    const int could = policy < 128 && (of(self)->books[policy / 64] >> policy % 64 & 1);
    int32_t books = could ? 1 : look_whether_it_books(of(self), table, policy);
    if (books > 0)
        code = timed ? tollbar_table_reserve_at(table, policy, key.data, key.length, cost, patience, now, &booked)
                     : tollbar_table_reserve(table, policy, key.data, key.length, cost, patience, &booked);
    if (could && code > 0)
        books = look_whether_it_books(of(self), table, policy);
    core_key_release(&key);
    if (books == 0)
        Py_RETURN_NOTIMPLEMENTED;
    return core_booked(of(self)->state, books < 0 ? books : code, &booked);
}

/* _cancel(key, departs_ns, cost, policy, at=None): how many permits came back. */
static PyObject *table_cancel(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    tollbar_reservation booked = { 0, 0, 0 };
    uint64_t now = 0, back = 0;
    uint32_t policy;
    core_key key;
    if (nargs != 4 && nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "_cancel() takes a key, a departure, a cost, a policy and a time");
        return NULL;
    }
    const int timed = nargs == 5 && args[4] != Py_None;
    if (core_uint64(args[1], "departs_ns", &booked.departs_ns) != 0 || core_uint64(args[2], "cost", &booked.cost) != 0
        || (timed && core_uint64(args[4], "at", &now) != 0)
        || core_table_policy(of(self), args[3], &policy) != 0 || core_key_get(args[0], &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    int32_t code = 0;
    if (table != NULL)
        code = timed ? tollbar_table_cancel_at(table, policy, key.data, key.length, &booked, now, &back)
                     : tollbar_table_cancel(table, policy, key.data, key.length, &booked, &back);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(back);
}

typedef int32_t (*key_call)(const tollbar_table *, uint32_t, const void *, size_t);

/* True if the call returns `yes`. */
static PyObject *on_key(PyObject *self, PyObject *args, key_call function, int32_t yes) {
    PyObject *object, *number = NULL;
    uint32_t policy = 0;
    core_key key;
    if (!PyArg_ParseTuple(args, "O|O", &object, &number))
        return NULL;
    if ((number != NULL && core_table_policy(of(self), number, &policy) != 0) || core_key_get(object, &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of(self));
    int32_t code = table == NULL ? 0 : function(table, policy, key.data, key.length);
    core_key_release(&key);
    if (table == NULL)
        return NULL;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyBool_FromLong(code == yes);
}

static PyObject *table_reset(PyObject *self, PyObject *args) {
    return on_key(self, args, tollbar_table_reset, TOLLBAR_YES);
}

static PyObject *table_exempt(PyObject *self, PyObject *args) {
    return on_key(self, args, tollbar_table_exempt, 0);
}

static PyObject *table_unexempt(PyObject *self, PyObject *args) {
    return on_key(self, args, tollbar_table_unexempt, TOLLBAR_YES);
}

static PyObject *table_clear_override(PyObject *self, PyObject *args) {
    return on_key(self, args, tollbar_table_clear_override, TOLLBAR_YES);
}

static PyObject *table_now(PyObject *self, PyObject *unused) {
    (void)unused;
    const tollbar_table *table = core_table_handle(of(self));
    uint64_t now = 0;
    int32_t code = table == NULL ? 0 : tollbar_table_now(table, &now);
    if (table == NULL)
        return NULL;
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(now);
}

/* Converts a policy's name or number to its number. */
static PyObject *table_number(PyObject *self, PyObject *policy) {
    uint32_t number;
    return core_table_policy(of(self), policy, &number) != 0 ? NULL : PyLong_FromUnsignedLong(number);
}

static PyMethodDef table_methods[] = {
    CORE_FAST("check", table_check, "($self, /, key, cost=1, policy=0, *, at=None)", "Takes cost permits of the key, or none."),
    CORE_FAST("allow", table_allow, "($self, /, key, cost=1, policy=0, *, at=None)", "The fastest form of check: a bool."),
    CORE_FAST("peek", table_peek, "($self, /, key, cost=1, policy=0, *, at=None)", "What check would say; takes nothing."),
    CORE_FAST("check_class", core_table_check_class, "($self, /, key, class_name, cost=1, policy=0, *, at=None)",
              "Takes cost permits of the key for a request of that class of the policy, which leaves the class's reserve."),
    CORE_FAST("check_leaving", core_table_check_leaving, "($self, /, key, reserve, cost=1, policy=0, *, at=None)",
              "Takes cost permits of the key if at least `reserve` are left afterwards. Sliding windows, logs and policies that lend have no reserve."),
    CORE_FAST("take_up_to", table_take_up_to, "($self, /, key, most, policy=0, *, at=None)",
              "Takes what there is, up to most; how many."),
    CORE_FAST("charge", table_charge, "($self, /, key, cost=1, policy=0, *, at=None)",
              "Charges the key without asking; the rest that could not be charged."),
    CORE_FAST("take", core_table_take, "($self, /, key, estimate, policy=0, *, at=None)",
              "Takes an estimate of what a request will cost: the decision, and the receipt for settle, or None."),
    CORE_METHOD("_settle", (PyCFunction)(void (*)(void))core_table_settle, METH_FASTCALL, "($self, receipt, cost, at, full, /)",
                "Settles a receipt: (first, given_back, rest)."),
    CORE_FAST("more_after", core_table_more_after, "($self, decision, /, key, cost=1, policy=0, *, at=None)",
              "Nanoseconds after the decision until the key has more permits than it left. None: it has all, or nobody can say."),
    CORE_FAST("check_many", core_table_check_many, "($self, /, keys, cost=1, policy=0, *, at=None, class_number=0)",
              "A 1 for each key that may pass, a 0 for each that may not."),
    CORE_METHOD("_take", (PyCFunction)(void (*)(void))table_take_now, METH_FASTCALL, "($self, key, cost, policy, /)",
                "Takes permits if they are there."),
    CORE_METHOD("_book", (PyCFunction)(void (*)(void))table_book, METH_FASTCALL, "($self, key, patience, cost, policy, at=None, /)",
                "Books permits of a key ahead of time."),
    CORE_METHOD("_cancel", (PyCFunction)(void (*)(void))table_cancel, METH_FASTCALL, "($self, key, departs_ns, cost, policy, at=None, /)",
                "Gives a booking back."),
    CORE_METHOD("reset", table_reset, METH_VARARGS, "($self, key, policy=0, /)", "Lets a key begin again, which ends a ban, too."),
    CORE_METHOD("exempt", table_exempt, METH_VARARGS, "($self, key, policy=0, /)",
                "Lets a key pass always. An address is exempt by its address_key."),
    CORE_METHOD("unexempt", table_unexempt, METH_VARARGS, "($self, key, policy=0, /)", "Takes that back."),
    CORE_METHOD("clear_override", table_clear_override, METH_VARARGS, "($self, key, policy=0, /)",
                "Puts a key back under its policy. False: it had no policy of its own."),
    CORE_METHOD("_set_override", core_table_set_override, METH_VARARGS, "($self, key, policy, text, keep, /)",
                "Gives a key a policy of its own."),
    CORE_METHOD("_override", core_table_override, METH_VARARGS, "($self, key, policy, /)", "The text of a key's own policy."),
    CORE_METHOD("_overrides", core_table_overrides, METH_NOARGS, "($self, /)", "All keys' own policies: (policy, hash, text)."),
    CORE_METHOD("record_refusals", core_table_record_refusals, METH_O, "($self, on, /)",
                "Sets whether requests of all processes record the keys that they refuse. No table does at first."),
    CORE_METHOD("records_refusals", core_table_records_refusals, METH_NOARGS, "($self, /)",
                "Whether requests record the keys that they refuse."),
    CORE_METHOD("_top_refused", core_table_top_refused, METH_VARARGS, "($self, most, at, /)",
                "The most refused keys: (policy, count, key, is_cut)."),
    CORE_METHOD("now", table_now, METH_NOARGS, "($self, /)", "The time that calls without `at` read, in nanoseconds."),
    CORE_METHOD("close", table_close, METH_NOARGS, "($self, /)", "Ends this view of the table. What is in a file stays."),
    CORE_METHOD("sync", core_table_sync, METH_NOARGS, "($self, /)", "Writes a file's table to the disk."),
    CORE_METHOD("copy_from", core_table_copy_from, METH_O, "($self, other, /)",
                "Copies another table's keys into this one: (copied, lost)."),
    CORE_METHOD("_number", table_number, METH_O, "($self, policy, /)", "The number of a policy."),
    CORE_METHOD("_set_policy", core_table_set_policy, METH_VARARGS, "($self, policy, text, keep, /)", "Changes a policy."),
    CORE_METHOD("_add_policy", core_table_add_policy, METH_O, "($self, text, /)", "Adds a policy; its number."),
    CORE_METHOD("_find_or_add_policy", core_table_find_or_add_policy, METH_O, "($self, text, /)",
                "The number of a policy, added if there is none."),
    CORE_METHOD("_text", core_table_get_policy, METH_O, "($self, policy, /)", "The text of a policy."),
    CORE_METHOD("_counts", core_table_counts, METH_O, "($self, policy, /)", "Decisions that were allowed, denied, never."),
    CORE_METHOD("_stats", core_table_stats, METH_NOARGS, "($self, /)", "Counters and sizes."),
    CORE_METHOD("_health", core_table_validate, METH_O, "($self, repair, /)",
                "What is in the slots; repaired if the argument is true."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef table_getset[] = {
    { "closed", table_get_closed, NULL, "Whether the table has been closed.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot table_slots[] = {
    CORE_SLOTS(table),
    { Py_tp_getset, table_getset },
    { 0, NULL },
};

CORE_TYPE(core_table_spec, "tollbar._core.Table", core_table, Py_TPFLAGS_BASETYPE, table_slots);
