/* take_many: several limits in one request. All of them are charged, or none. */

#include <stddef.h>
#include <string.h>

#include "core.h"

/* The decision of several limits, with memory for one decision each. */
typedef struct {
    PyObject_HEAD
    core_state *state;
    tollbar_taken answer;
    size_t count;
    /* 0: the limit is not a permit in flight, or the request was refused. */
    tollbar_ticket tickets[TOLLBAR_LIMITS_MOST];
    tollbar_decision each[TOLLBAR_LIMITS_MOST];
} core_taken;

static core_taken *taken(PyObject *self) {
    return (core_taken *)self;
}

static core_taken *taken_new(core_state *state, size_t count) {
    core_taken *self = PyObject_Malloc(offsetof(core_taken, each) + count * sizeof self->each[0]);
    if (self == NULL)
        return (core_taken *)PyErr_NoMemory();
    self->state = state;
    self->answer = (tollbar_taken)TOLLBAR_TAKEN_INIT;
    self->count = count;
    memset(self->tickets, 0, sizeof self->tickets);
    self->each[0] = (tollbar_decision)TOLLBAR_DECISION_INIT;
    return (core_taken *)PyObject_Init((PyObject *)self, state->taken);
}

/* Adds the limit's index to the exception that is being raised. */
static void say_which(Py_ssize_t index) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *note = PyUnicode_FromFormat("in limits[%zd] of take_many()", index);
    PyObject *done = note == NULL ? NULL : PyObject_CallMethod(value, "add_note", "O", note);
    if (done == NULL)
        PyErr_Clear();
    Py_XDECREF(note);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

/* Reads one limit: its numbers and its key. `*of` is the limiter or the table, whose handle is read
 * later. */
static int limit_read(core_state *state, PyObject *object, core_key *key, tollbar_limit *limit, PyObject **of) {
    const Py_ssize_t size = PyTuple_Check(object) ? PyTuple_Size(object) : 0;
    PyObject *given[5] = { object, NULL, NULL, NULL, NULL };
    for (Py_ssize_t i = 0; i < size && i < 5; i++)
        given[i] = PyTuple_GetItem(object, i);
    *of = given[0];
    *limit = (tollbar_limit){ .cost = 1 };
    if (PyObject_TypeCheck(*of, state->limiter) && (size <= 2 || (size == 3 && PyUnicode_Check(given[2])))) {
        if (given[2] != NULL && core_class_name(given[2], &limit->class_name) != 0)
            return -1;
        return given[1] == NULL ? 0 : core_uint64(given[1], "cost", &limit->cost);
    }
    if (PyObject_TypeCheck(*of, state->table) && size >= 2 && size <= 5) {
        if ((given[2] != NULL && core_uint64(given[2], "cost", &limit->cost) != 0)
            || (given[3] != NULL && core_table_policy((core_table *)*of, given[3], &limit->policy) != 0)
            || (given[4] != NULL && core_class_name(given[4], &limit->class_name) != 0)
            || core_key_get(given[1], key) != 0)
            return -1;
        limit->key = key->data;
        limit->length = key->length;
        return 0;
    }
    if (PyObject_TypeCheck(*of, state->in_flight) && size == 3) {
        uint64_t most;
        if (core_uint64(given[2], "limit", &most) != 0 || core_key_get(given[1], key) != 0)
            return -1;
        limit->most = most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
        limit->key = key->data;
        limit->length = key->length;
        return 0;
    }
    PyErr_Format(PyExc_TypeError,
                 "a limit is a Limiter, (Limiter, cost=1[, class_name]), (Table, key, cost=1, policy=0[, class_name]) or "
                 "(InFlight, key, limit), not %R", object);
    return -1;
}

/* Whether the limits go by Python's clock, and then its time. Returns -1 with ValueError if only some of them do. */
static int driven_time(core_state *state, PyObject *const *of, Py_ssize_t count, uint64_t *now) {
    Py_ssize_t driven = 0, others = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const int is_driven = core_driven_time(state, of[i], now);
        if (is_driven < 0)
            return -1;
        driven += is_driven;
        others += !is_driven && !PyObject_TypeCheck(of[i], state->in_flight);
    }
    if (driven != 0 && others != 0) {
        PyErr_SetString(PyExc_ValueError,
                        "take_many(): some limits have the clock \"python\" and others have not; expected: one clock for all");
        return -1;
    }
    return driven != 0;
}

PyObject *core_take_many(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "limits", "at", NULL };
    core_state *state = PyModule_GetState(module);
    PyObject *given[2] = { NULL, NULL }, *of[TOLLBAR_LIMITS_MOST];
    tollbar_limit limits[TOLLBAR_LIMITS_MOST];
    core_key keys[TOLLBAR_LIMITS_MOST];
    core_taken *out = NULL;
    uint64_t now = 0;
    Py_ssize_t read = 0;
    int failed = 0;
    if (core_bind("take_many", names, 1, 1, args, nargs, keywords, given) != 0)
        return NULL;
    int timed = given[1] != NULL && given[1] != Py_None;
    if (timed && core_uint64(given[1], "at", &now) != 0)
        return NULL;
    PyObject *all = PySequence_Tuple(given[0]);
    if (all == NULL)
        return NULL;
    const Py_ssize_t count = PyTuple_Size(all);
    if (count < 1 || count > TOLLBAR_LIMITS_MOST) {
        PyErr_Format(PyExc_ValueError, "take_many() takes 1 to %d limits, not %zd", TOLLBAR_LIMITS_MOST, count);
        goto done;
    }
    for (; read < count && !failed; read++) {
        keys[read].owner = NULL;
        failed = limit_read(state, PyTuple_GetItem(all, read), &keys[read], &limits[read], &of[read]) != 0;
    }
    if (!timed && !failed && state->drives)
        timed = driven_time(state, of, count, &now);
    if (timed < 0)
        goto done;
    /* The handles are read only now, because methods of the costs, policies and keys may have
     * closed a table. */
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        if (PyObject_TypeCheck(of[i], state->limiter)) {
            limits[i].limiter = core_limiter_handle(of[i]);
        } else if (PyObject_TypeCheck(of[i], state->in_flight)) {
            limits[i].in_flight = core_in_flight_handle(of[i]);
            failed = limits[i].in_flight == NULL;
            read = failed ? i + 1 : read;
        } else {
            limits[i].table = core_table_handle((core_table *)of[i]);
            failed = limits[i].table == NULL;
            read = failed ? i + 1 : read;
        }
    }
    if (failed)
        say_which(read - 1);
    else
        out = taken_new(state, (size_t)count);
    for (Py_ssize_t i = 0; out != NULL && i < count; i++)
        limits[i].ticket = limits[i].in_flight == NULL ? NULL : &out->tickets[i];
    if (out != NULL) {
        const int32_t code = timed ? tollbar_take_many_at(limits, (size_t)count, now, out->each, &out->answer)
                                   : tollbar_take_many(limits, (size_t)count, out->each, &out->answer);
        if (code < 0) {
            Py_CLEAR(out);
            core_raise(state, code, NULL);
        }
    }
done:
    for (Py_ssize_t i = 0; i < read; i++)
        core_key_release(&keys[i]);
    Py_DECREF(all);
    return (PyObject *)out;
}

static void taken_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int taken_bool(PyObject *self) {
    return taken(self)->answer.verdict == TOLLBAR_ALLOWED;
}

static PyObject *get_allowed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(taken_bool(self));
}

static PyObject *get_never(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(taken(self)->answer.verdict == TOLLBAR_NEVER);
}

static PyObject *get_reason(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tollbar_strreason(taken(self)->answer.reason));
}

static PyObject *get_bound(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(taken(self)->answer.bound);
}

static PyObject *get_remaining(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(taken(self)->answer.remaining);
}

static PyObject *get_retry_ns(PyObject *self, void *unused) {
    (void)unused;
    return core_nanoseconds(taken(self)->answer.retry_after_ns);
}

static PyObject *get_retry(PyObject *self, void *unused) {
    (void)unused;
    return core_seconds(taken(self)->answer.retry_after_ns);
}

static PyObject *get_reset_ns(PyObject *self, void *unused) {
    (void)unused;
    return core_nanoseconds(taken(self)->answer.reset_after_ns);
}

static PyObject *get_reset(PyObject *self, void *unused) {
    (void)unused;
    return core_seconds(taken(self)->answer.reset_after_ns);
}

/* Makes the decisions' objects only when they are read. */
static PyObject *get_decisions(PyObject *self, void *unused) {
    (void)unused;
    const size_t count = taken(self)->count;
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; all != NULL && i < count; i++) {
        core_decision *one = core_decision_new(taken(self)->state->decision);
        if (one != NULL)
            one->answer = taken(self)->each[i];
        if (one == NULL || PyTuple_SetItem(all, (Py_ssize_t)i, (PyObject *)one) != 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *get_tickets(PyObject *self, void *unused) {
    (void)unused;
    const size_t count = taken(self)->count;
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; all != NULL && i < count; i++) {
        const tollbar_ticket ticket = taken(self)->tickets[i];
        PyObject *one = ticket == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(ticket);
        if (one == NULL || PyTuple_SetItem(all, (Py_ssize_t)i, one) != 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *taken_repr(PyObject *self) {
    const tollbar_taken *a = &taken(self)->answer;
    const char *verdict = a->verdict == TOLLBAR_ALLOWED ? "allowed" : a->verdict == TOLLBAR_NEVER ? "never" : "denied";
    PyObject *retry = get_retry(self, NULL), *text = NULL;
    if (retry != NULL)
        text = PyUnicode_FromFormat("<tollbar.Taken %s, bound=%u, remaining=%llu, retry_after=%R>", verdict, a->bound,
                                    (unsigned long long)a->remaining, retry);
    Py_XDECREF(retry);
    return text;
}

static PyGetSetDef taken_getset[] = {
    { "allowed", get_allowed, NULL, "Whether the request may pass; all limits have been charged.", NULL },
    { "never", get_never, NULL, "Whether a cost is more than its limit can ever have at once.", NULL },
    { "bound", get_bound, NULL,
      "Which limit bound: of a refusal the one with the longest wait, of an admission the one with the fewest permits left.", NULL },
    { "reason", get_reason, NULL, "Why, by the limit that bound.", NULL },
    { "remaining", get_remaining, NULL, "The smallest number of permits that a limit has left.", NULL },
    { "retry_after", get_retry, NULL, "The longest wait in seconds; 0.0 if it has passed, inf if never.", NULL },
    { "retry_after_ns", get_retry_ns, NULL, "The same in nanoseconds; None if never.", NULL },
    { "reset_after", get_reset, NULL, "Seconds until all limits are as at first.", NULL },
    { "reset_after_ns", get_reset_ns, NULL, "The same in nanoseconds.", NULL },
    { "decisions", get_decisions, NULL, "What each limit decides, or, of a refused request, would.", NULL },
    { "tickets", get_tickets, NULL, "For each limit the ticket of its permit in flight, or None. InFlight.permit or release takes it.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot taken_slots[] = {
    { Py_tp_doc, "The answer of several limits. True if the request may pass." },
    { Py_tp_dealloc, taken_dealloc },
    { Py_tp_repr, taken_repr },
    { Py_nb_bool, taken_bool },
    { Py_tp_getset, taken_getset },
    { 0, NULL },
};

CORE_TYPE(core_taken_spec, "tollbar.Taken", core_taken, Py_TPFLAGS_DISALLOW_INSTANTIATION, taken_slots);
