/* Limiter: one state under any policy. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    tollbar_limiter *handle;
    core_state *state;
    PyTypeObject *decision;
    /* Whether the algorithm can book permits ahead of their time. */
    int books;
} core_limiter;

static inline core_limiter *of(PyObject *self) {
    return (core_limiter *)self;
}

const tollbar_limiter *core_limiter_handle(PyObject *self) {
    return of(self)->handle;
}

/* Limiter(text, clock, credit) */
static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *text;
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    int credit;
    if (!PyArg_ParseTuple(args, "OIp", &text, &options.clock, &credit))
        return NULL;
    options.credit = credit ? TOLLBAR_CREDIT_ON : TOLLBAR_CREDIT_OFF;
    core_state *state = core_state_of(type);
    tollbar_policy_spec spec;
    if (state == NULL || core_spec_parse(state, text, &spec) != 0)
        return NULL;
    tollbar_limiter *handle;
    int32_t code = tollbar_limiter_new(&spec, &options, &handle);
    if (code != 0)
        return core_raise(state, code, NULL);

    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        tollbar_limiter_free(handle);
        return NULL;
    }
    of(self)->handle = handle;
    of(self)->state = state;
    of(self)->decision = state->decision;
    of(self)->books = core_books_ahead(&spec);
    return self;
}

static void limiter_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_limiter_free(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Reads (cost=1, *, at=None). */
static int cost_and_time(const char *function, const char *first, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *keywords, uint64_t *cost, uint64_t *now, int *timed) {
    const char *const names[] = { first, "at", NULL };
    PyObject *given[2] = { NULL, NULL };
    *cost = 1;
    *timed = 0;
    if (nargs == 0 && keywords == NULL)
        return 0;
    if (core_bind(function, names, 0, 1, args, nargs, keywords, given) != 0)
        return -1;
    if (given[0] != NULL && core_uint64(given[0], first, cost) != 0)
        return -1;
    if (given[1] == NULL || given[1] == Py_None)
        return 0;
    *timed = 1;
    return core_uint64(given[1], "at", now);
}

static PyObject *limiter_check(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    uint64_t cost, now;
    int timed;
    if (cost_and_time("check", "cost", args, nargs, keywords, &cost, &now, &timed) != 0)
        return NULL;
    core_decision *out = core_decision_new(of(self)->decision);
    if (out == NULL)
        return NULL;
    int32_t code = timed ? tollbar_limiter_check_at(of(self)->handle, cost, now, &out->answer)
                         : tollbar_limiter_check(of(self)->handle, cost, &out->answer);
    if (code >= 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(of(self)->state, code, NULL);
}

static PyObject *limiter_allow(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    uint64_t cost, now;
    int timed;
    if (cost_and_time("allow", "cost", args, nargs, keywords, &cost, &now, &timed) != 0)
        return NULL;
    int32_t code = timed ? tollbar_limiter_check_at(of(self)->handle, cost, now, NULL)
                         : tollbar_limiter_check(of(self)->handle, cost, NULL);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

static PyObject *limiter_peek(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    uint64_t cost, now;
    int timed;
    if (cost_and_time("peek", "cost", args, nargs, keywords, &cost, &now, &timed) != 0)
        return NULL;
    core_decision *out = core_decision_new(of(self)->decision);
    if (out == NULL)
        return NULL;
    int32_t code = timed ? tollbar_limiter_peek_at(of(self)->handle, cost, now, &out->answer)
                         : tollbar_limiter_peek(of(self)->handle, cost, &out->answer);
    if (code >= 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(of(self)->state, code, NULL);
}

static PyObject *limiter_take_up_to(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    uint64_t most, now, taken = 0;
    int timed;
    if (nargs == 0 && keywords == NULL) {
        PyErr_SetString(PyExc_TypeError, "take_up_to() missing required argument: 'most'");
        return NULL;
    }
    if (cost_and_time("take_up_to", "most", args, nargs, keywords, &most, &now, &timed) != 0)
        return NULL;
    int32_t code = timed ? tollbar_limiter_take_up_to_at(of(self)->handle, most, now, &taken)
                         : tollbar_limiter_take_up_to(of(self)->handle, most, &taken);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(taken);
}

static PyObject *limiter_charge(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    uint64_t cost, now, rest = 0;
    int timed;
    if (cost_and_time("charge", "cost", args, nargs, keywords, &cost, &now, &timed) != 0)
        return NULL;
    int32_t code = timed ? tollbar_limiter_charge_at(of(self)->handle, cost, now, &rest)
                         : tollbar_limiter_charge(of(self)->handle, cost, &rest);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(rest);
}

static PyObject *limiter_more_after(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return core_limiter_more_after(of(self)->state, of(self)->handle, args, nargs, keywords);
}

static PyObject *limiter_check_many(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "costs", "at", NULL };
    PyObject *given[2] = { NULL, NULL };
    uint64_t now = 0;
    if (core_bind("check_many", names, 1, 1, args, nargs, keywords, given) != 0)
        return NULL;
    int timed = given[1] != NULL && given[1] != Py_None;
    if (timed && core_uint64(given[1], "at", &now) != 0)
        return NULL;
    return core_limiter_many(of(self)->handle, of(self)->state, given[0], now, timed);
}

/* _take(cost): takes permits that are there. It counts no decision if they are not, because the
 * caller then asks for later ones. */
static PyObject *limiter_take(PyObject *self, PyObject *cost_given) {
    uint64_t cost;
    tollbar_decision peeked = TOLLBAR_DECISION_INIT;
    if (core_uint64(cost_given, "cost", &cost) != 0)
        return NULL;
    int32_t code = tollbar_limiter_peek(of(self)->handle, cost, &peeked);
    if (code == TOLLBAR_ALLOWED)
        code = tollbar_limiter_check(of(self)->handle, cost, NULL);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyBool_FromLong(code == TOLLBAR_ALLOWED);
}

/* _book(cost, patience_ns, at=None): (departs_ns, wait_ns, cost); None if the wait would be longer
 * than the patience; NotImplemented if the algorithm cannot book ahead. Python code sleeps, because
 * signal handlers and event loops must run during the sleep. */
static PyObject *limiter_book(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    uint64_t cost, patience, now = 0;
    tollbar_reservation booked;
    if (nargs != 2 && nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "_book() takes a cost, a patience and a time");
        return NULL;
    }
    const int timed = nargs == 3 && args[2] != Py_None;
    if (core_uint64(args[0], "cost", &cost) != 0 || core_uint64(args[1], "patience", &patience) != 0
        || (timed && core_uint64(args[2], "at", &now) != 0))
        return NULL;
    if (!of(self)->books)
        Py_RETURN_NOTIMPLEMENTED;
    int32_t code = timed ? tollbar_limiter_reserve_at(of(self)->handle, cost, patience, now, &booked)
                         : tollbar_limiter_reserve(of(self)->handle, cost, patience, &booked);
    return core_booked(of(self)->state, code, &booked);
}

/* _cancel(departs_ns, cost, at=None): how many permits came back. */
static PyObject *limiter_cancel(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    tollbar_reservation booked = { 0, 0, 0 };
    uint64_t now = 0, back = 0;
    if (nargs != 2 && nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "_cancel() takes a departure, a cost and a time");
        return NULL;
    }
    const int timed = nargs == 3 && args[2] != Py_None;
    if (core_uint64(args[0], "departs_ns", &booked.departs_ns) != 0 || core_uint64(args[1], "cost", &booked.cost) != 0
        || (timed && core_uint64(args[2], "at", &now) != 0))
        return NULL;
    int32_t code = timed ? tollbar_limiter_cancel_at(of(self)->handle, &booked, now, &back)
                         : tollbar_limiter_cancel(of(self)->handle, &booked, &back);
    return code < 0 ? core_raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLongLong(back);
}

/* _set_policy(text, keep, at) */
static PyObject *limiter_set_policy(PyObject *self, PyObject *args) {
    PyObject *text, *at;
    unsigned int keep;
    uint64_t now = 0;
    tollbar_policy_spec spec;
    if (!PyArg_ParseTuple(args, "OIO", &text, &keep, &at) || core_spec_parse(of(self)->state, text, &spec) != 0
        || (at != Py_None && core_uint64(at, "at", &now) != 0))
        return NULL;
    int32_t code = at == Py_None ? tollbar_limiter_set_policy(of(self)->handle, &spec, keep)
                                 : tollbar_limiter_set_policy_at(of(self)->handle, &spec, keep, now);
    if (code != 0)
        return core_raise(of(self)->state, code, NULL);
    of(self)->books = core_books_ahead(&spec);
    Py_RETURN_NONE;
}

static PyObject *limiter_now(PyObject *self, PyObject *unused) {
    (void)unused;
    uint64_t now = 0;
    int32_t code = tollbar_limiter_now(of(self)->handle, &now);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return PyLong_FromUnsignedLongLong(now);
}

static PyObject *limiter_reset(PyObject *self, PyObject *unused) {
    (void)unused;
    int32_t code = tollbar_limiter_reset(of(self)->handle);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

static PyObject *limiter_counts(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    int32_t code = tollbar_limiter_get_state(of(self)->handle, &view);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return Py_BuildValue("KKK", (unsigned long long)view.allowed, (unsigned long long)view.denied, (unsigned long long)view.never);
}

/* The text of the policy. */
static PyObject *limiter_text(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    int32_t code = tollbar_limiter_get_policy(of(self)->handle, &spec);
    if (code < 0)
        return core_raise(of(self)->state, code, NULL);
    return core_spec_text(of(self)->state, &spec);
}

static PyObject *limiter_check_class(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return core_limiter_check_class(of(self)->state, of(self)->handle, args, nargs, keywords);
}

static PyObject *limiter_check_leaving(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return core_limiter_check_leaving(of(self)->state, of(self)->handle, args, nargs, keywords);
}

static PyMethodDef limiter_methods[] = {
    CORE_FAST("check", limiter_check, "($self, /, cost=1, *, at=None)", "Takes cost permits, or none."),
    CORE_FAST("allow", limiter_allow, "($self, /, cost=1, *, at=None)", "The fastest form of check: a bool."),
    CORE_FAST("peek", limiter_peek, "($self, /, cost=1, *, at=None)", "What check would say; takes nothing."),
    CORE_FAST("check_class", limiter_check_class, "($self, /, class_name, cost=1, *, at=None)",
              "Takes cost permits for a request of that class of the policy, which leaves the class's reserve."),
    CORE_FAST("check_leaving", limiter_check_leaving, "($self, /, reserve, cost=1, *, at=None)",
              "Takes cost permits if at least `reserve` are left afterwards. Sliding windows, logs and policies that lend have no reserve."),
    CORE_FAST("take_up_to", limiter_take_up_to, "($self, /, most, *, at=None)", "Takes what there is, up to most; how many."),
    CORE_FAST("charge", limiter_charge, "($self, /, cost=1, *, at=None)",
              "Charges without asking; the rest that could not be charged."),
    CORE_FAST("more_after", limiter_more_after, "($self, decision, /, cost=1, *, at=None)",
              "Nanoseconds after the decision until there are more permits than it left. None: there are all, or nobody can say."),
    CORE_FAST("check_many", limiter_check_many, "($self, /, costs, *, at=None)",
              "A 1 for each request that may pass, a 0 for each that may not;\n"
              "costs is how many requests of 1, or a cost for each."),
    CORE_METHOD("_set_policy", limiter_set_policy, METH_VARARGS, "($self, text, keep, at, /)", "Changes the policy."),
    CORE_METHOD("_take", limiter_take, METH_O, "($self, cost, /)", "Takes permits if they are there."),
    CORE_METHOD("_book", (PyCFunction)(void (*)(void))limiter_book, METH_FASTCALL, "($self, cost, patience, at=None, /)",
                "Books permits ahead of time."),
    CORE_METHOD("_cancel", (PyCFunction)(void (*)(void))limiter_cancel, METH_FASTCALL, "($self, departs_ns, cost, at=None, /)",
                "Gives a booking back."),
    CORE_METHOD("_counts", limiter_counts, METH_NOARGS, "($self, /)", "Decisions that were allowed, denied, never."),
    CORE_METHOD("_text", limiter_text, METH_NOARGS, "($self, /)", "The text of the policy."),
    CORE_METHOD("now", limiter_now, METH_NOARGS, "($self, /)",
                "The time that calls without `at` read: nanoseconds of UTC since 2025-03-13."),
    CORE_METHOD("reset", limiter_reset, METH_NOARGS, "($self, /)", "Back to fresh, also from a ban."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot limiter_slots[] = { CORE_SLOTS(limiter), { 0, NULL } };

CORE_TYPE(core_limiter_spec, "tollbar._core.Limiter", core_limiter, Py_TPFLAGS_BASETYPE, limiter_slots);
