/* Hierarchy: classes with guaranteed rates and ceilings, that borrow what is idle. Their nodes are
 * keys of a table. */

#include <string.h>

#include "core.h"

/* The answer to a request for a class: a decision, and what a permit costs the leaf. */
typedef struct {
    core_decision decision;
    uint64_t interval_ns;
} core_share;

static core_share *share_new(PyTypeObject *type) {
    core_share *self = PyObject_Malloc(sizeof *self);
    return self == NULL ? (core_share *)PyErr_NoMemory() : (core_share *)PyObject_Init((PyObject *)self, type);
}

static void share_fill(core_share *self, const tollbar_share *from) {
    self->decision.answer = (tollbar_decision)TOLLBAR_DECISION_INIT;
    self->decision.answer.verdict = from->verdict;
    self->decision.answer.remaining = from->remaining;
    self->decision.answer.retry_after_ns = from->retry_after_ns;
    self->decision.answer.reset_after_ns = from->reset_after_ns;
    self->decision.answer.reason = from->reason;
    self->decision.answer.bound = from->bound;
    self->interval_ns = from->interval_ns;
}

static PyObject *get_interval_ns(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((core_share *)self)->interval_ns);
}

static PyObject *get_interval(PyObject *self, void *unused) {
    (void)unused;
    return core_seconds(((core_share *)self)->interval_ns);
}

static PyObject *share_repr(PyObject *self) {
    const core_share *share = (core_share *)self;
    const tollbar_decision *a = &share->decision.answer;
    PyObject *retry = core_seconds(a->retry_after_ns), *text = NULL;
    if (retry != NULL)
        text = PyUnicode_FromFormat("<tollbar.Share %s, remaining=%llu, retry_after=%R, interval_ns=%llu, bound=%u>",
                                    core_verdict_name(a), (unsigned long long)a->remaining, retry,
                                    (unsigned long long)share->interval_ns, (unsigned int)a->bound);
    Py_XDECREF(retry);
    return text;
}

static PyGetSetDef share_getset[] = {
    { "allowed", core_get_allowed, NULL, "Whether the request may pass. Then the leaf and all classes above it have been charged.", NULL },
    { "never", core_get_never, NULL, "Whether the cost can never pass.", NULL },
    { "reason", core_get_reason, NULL, "The reason of the decision, such as 'over the rate' or 'table full'.", NULL },
    { "bound", core_get_bound, NULL, "The class that bound: the one with the longest wait, or with the fewest permits left.", NULL },
    { "remaining", core_get_remaining, NULL, "Permits that the leaf could take now.", NULL },
    { "retry_after", core_get_retry, NULL, "Seconds until it would pass; 0.0 if it has, inf if never.", NULL },
    { "retry_after_ns", core_get_retry_ns, NULL, "The same in nanoseconds; None if never.", NULL },
    { "reset_after", core_get_reset, NULL, "Seconds until the leaf and the classes above it owe nothing.", NULL },
    { "reset_after_ns", core_get_reset_ns, NULL, "The same in nanoseconds.", NULL },
    { "interval", get_interval, NULL, "The seconds that a permit costs the leaf at present.", NULL },
    { "interval_ns", get_interval_ns, NULL, "The same in nanoseconds.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot share_slots[] = {
    { Py_tp_doc, "The answer to a request for a class of a hierarchy. True if the request may pass." },
    { Py_tp_dealloc, core_decision_dealloc },
    { Py_tp_repr, share_repr },
    { Py_nb_bool, core_decision_bool },
    { Py_tp_getset, share_getset },
    { 0, NULL },
};

CORE_TYPE(core_share_spec, "tollbar.Share", core_share, Py_TPFLAGS_DISALLOW_INSTANTIATION, share_slots);

typedef struct {
    PyObject_HEAD
    /* NULL once closed. */
    tollbar_hierarchy *handle;
    core_state *state;
} core_hierarchy;

static inline core_hierarchy *of(PyObject *self) {
    return (core_hierarchy *)self;
}

/* The handle, or NULL with an exception if the hierarchy is closed. */
static tollbar_hierarchy *open_handle(PyObject *self) {
    if (of(self)->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the hierarchy is closed");
    return of(self)->handle;
}

/* Converts to uint32_t. Returns -1 with TypeError or ValueError. */
static int get_uint32(PyObject *object, const char *what, uint32_t *out) {
    uint64_t number;
    if (core_uint64(object, what, &number) != 0)
        return -1;
    if (number > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be 0 to 2**32 - 1", what);
        return -1;
    }
    *out = (uint32_t)number;
    return 0;
}

/* The text that C reads up to a NUL. Valid as long as the object. NULL with TypeError or
 * ValueError. */
static const char *get_text(PyObject *object, const char *what) {
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, object);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text != NULL && strlen(text) != (size_t)length) {
        PyErr_Format(PyExc_ValueError, "%s must not have a NUL: %R", what, object);
        return NULL;
    }
    return text;
}

/* Hierarchy(rate, burst_ns, classes, policy) */
static PyObject *hierarchy_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *rate, *burst, *most, *number;
    uint64_t burst_ns;
    uint32_t classes, policy;
    if (!PyArg_ParseTuple(args, "OOOO", &rate, &burst, &most, &number))
        return NULL;
    core_state *state = core_state_of(type);
    if (state == NULL || core_uint64(burst, "burst_ns", &burst_ns) != 0 || get_uint32(most, "classes", &classes) != 0
        || get_uint32(number, "policy", &policy) != 0)
        return NULL;
    const char *text = get_text(rate, "rate");
    if (text == NULL)
        return NULL;
    tollbar_hierarchy *handle = NULL;
    const int32_t code = tollbar_hierarchy_new(text, burst_ns, classes, policy, &handle);
    if (code != 0)
        return core_raise(state, code, NULL);
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        tollbar_hierarchy_free(handle);
        return NULL;
    }
    of(self)->handle = handle;
    of(self)->state = state;
    return self;
}

static void hierarchy_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_hierarchy_free(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *hierarchy_close(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_hierarchy_free(of(self)->handle);
    of(self)->handle = NULL;
    Py_RETURN_NONE;
}

static PyObject *hierarchy_get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->handle == NULL);
}

/* add(parent, name, guaranteed="", ceiling="", keys=1) */
static PyObject *hierarchy_add(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "parent", "name", "guaranteed", "ceiling", "keys", NULL };
    PyObject *given[5] = { NULL, NULL, NULL, NULL, NULL };
    const char *texts[4] = { NULL, "", "", "" };
    uint32_t parent, keys = 1, number = 0;
    if (core_bind("add", names, 2, 5, args, nargs, keywords, given) != 0 || get_uint32(given[0], "parent", &parent) != 0
        || (given[4] != NULL && get_uint32(given[4], "keys", &keys) != 0))
        return NULL;
    for (int i = 1; i <= 3; i++)
        if (given[i] != NULL && (texts[i] = get_text(given[i], names[i])) == NULL)
            return NULL;
    tollbar_hierarchy *handle = open_handle(self);
    if (handle == NULL)
        return NULL;
    const int32_t code = tollbar_hierarchy_add(handle, parent, texts[1], texts[2], texts[3], keys, &number);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(number);
}

/* take(table, leaf, key=None, cost=1, *, at=None) */
static PyObject *hierarchy_take(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "table", "leaf", "key", "cost", "at", NULL };
    core_state *state = of(self)->state;
    PyObject *given[5] = { NULL, NULL, NULL, NULL, NULL };
    uint32_t leaf;
    uint64_t cost = 1, now = 0;
    core_key key;
    if (core_bind("take", names, 2, 4, args, nargs, keywords, given) != 0)
        return NULL;
    if (!PyObject_TypeCheck(given[0], state->table)) {
        PyErr_Format(PyExc_TypeError, "table must be a Table, not %R", given[0]);
        return NULL;
    }
    int timed = given[4] != NULL && given[4] != Py_None;
    if (get_uint32(given[1], "leaf", &leaf) != 0 || (given[3] != NULL && core_uint64(given[3], "cost", &cost) != 0)
        || (timed && core_uint64(given[4], "at", &now) != 0) || core_key_get(given[2] == NULL ? Py_None : given[2], &key) != 0)
        return NULL;
    if (!timed && (timed = core_driven_time(state, given[0], &now)) < 0) {
        core_key_release(&key);
        return NULL;
    }
    const tollbar_hierarchy *handle = open_handle(self);
    const tollbar_table *table = handle == NULL ? NULL : core_table_handle((core_table *)given[0]);
    core_share *out = table == NULL ? NULL : share_new(state->share);
    tollbar_share share = TOLLBAR_SHARE_INIT;
    int32_t code = TOLLBAR_E_NO_MEMORY;
    if (out != NULL)
        code = timed ? tollbar_hierarchy_take_at(handle, table, leaf, key.data, key.length, cost, now, &share)
                     : tollbar_hierarchy_take(handle, table, leaf, key.data, key.length, cost, &share);
    core_key_release(&key);
    if (out == NULL)
        return NULL;
    share_fill(out, &share);
    if (code >= 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(state, code, NULL);
}

static PyMethodDef hierarchy_methods[] = {
    CORE_FAST("add", hierarchy_add, "($self, /, parent, name, guaranteed=\"\", ceiling=\"\", keys=1)",
              "Adds a child of the class `parent`, and returns its number. Processes find the same nodes by `name`, which no other\n"
              "child of `parent` has. `guaranteed` is the rate that the child gets whatever others ask for, such as \"100/s\"; \"\" is\n"
              "none. `ceiling` is the rate that it never exceeds; \"\" is that of its parent. `keys` is the number of keys that each\n"
              "get such a node."),
    CORE_FAST("take", hierarchy_take, "($self, /, table, leaf, key=None, cost=1, *, at=None)",
              "Takes permits for a leaf class, or for a key of it, from the leaf and from all classes above it, or from none.\n"
              "None and an empty key are one node of their own."),
    CORE_METHOD("close", hierarchy_close, METH_NOARGS, "($self, /)", "Frees the hierarchy. The table keeps its nodes."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef hierarchy_getset[] = {
    { "closed", hierarchy_get_closed, NULL, "Whether the hierarchy has been closed.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot hierarchy_slots[] = {
    CORE_SLOTS(hierarchy),
    { Py_tp_getset, hierarchy_getset },
    { 0, NULL },
};

CORE_TYPE(core_hierarchy_spec, "tollbar._core.Hierarchy", core_hierarchy, Py_TPFLAGS_BASETYPE, hierarchy_slots);
