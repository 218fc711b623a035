/* Calls the functions of tollbar.h that write and read HTTP header fields about limits. */

#include <string.h>

#include "core.h"

/* The decision in `args[0]`, or NULL with TypeError. */
static const tollbar_decision *decision_of(PyTypeObject *type, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs >= 1 && PyObject_TypeCheck(args[0], type))
        return &((core_decision *)args[0])->answer;
    PyErr_SetString(PyExc_TypeError, "more_after() takes the Decision first");
    return NULL;
}

static PyObject *more_or_raise(core_state *state, int32_t code, uint64_t more) {
    return code == 0 ? core_nanoseconds(more) : core_raise(state, code, NULL);
}

/* more_after(decision, key, cost=1, policy=0, *, at=None) -> int or None */
PyObject *core_table_more_after(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    core_table *table = (core_table *)self;
    const tollbar_decision *decision = decision_of(table->decision, args, nargs);
    core_call c;
    uint64_t more = TOLLBAR_NO_TIME;
    if (decision == NULL || core_call_read(table, "more_after", "cost", 0, args + 1, nargs - 1, keywords, &c) != 0)
        return NULL;
    const int32_t code =
        c.timed ? tollbar_table_more_after_at(c.table, c.policy, c.key.data, c.key.length, c.cost, c.now, decision, &more)
                : tollbar_table_more_after(c.table, c.policy, c.key.data, c.key.length, c.cost, decision, &more);
    core_key_release(&c.key);
    return more_or_raise(table->state, code, more);
}

/* more_after(decision, cost=1, *, at=None) -> int or None */
PyObject *core_limiter_more_after(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *keywords) {
    static const char *const names[] = { "cost", "at", NULL };
    const tollbar_decision *decision = decision_of(state->decision, args, nargs);
    PyObject *given[2] = { NULL, NULL };
    uint64_t cost = 1, now = 0, more = TOLLBAR_NO_TIME;
    if (decision == NULL || core_bind("more_after", names, 0, 1, args + 1, nargs - 1, keywords, given) != 0
        || (given[0] != NULL && core_uint64(given[0], "cost", &cost) != 0))
        return NULL;
    const int timed = given[1] != NULL && given[1] != Py_None;
    if (timed && core_uint64(given[1], "at", &now) != 0)
        return NULL;
    const int32_t code = timed ? tollbar_limiter_more_after_at(limiter, cost, now, decision, &more)
                               : tollbar_limiter_more_after(limiter, cost, decision, &more);
    return more_or_raise(state, code, more);
}

/* Reads the tuple (name, policy, decision, more_after_ns or None, partition) into `*limit` and
 * `*policy`. `*limit` points into the tuple and to `*policy`, so both must outlive it. */
static int limit_read(core_state *state, PyObject *object, tollbar_http_limit *limit, tollbar_policy_spec *policy) {
    const char *name, *partition;
    Py_ssize_t name_length, partition_length;
    PyObject *text, *decision, *more;
    if (!PyArg_ParseTuple(object, "s#UO!Oy#", &name, &name_length, &text, state->decision, &decision, &more, &partition, &partition_length)
        || core_spec_parse(state, text, policy) != 0)
        return -1;
    *limit = (tollbar_http_limit){
        .name = name,
        .name_length = (size_t)name_length,
        .policy = policy,
        .decision = &((core_decision *)decision)->answer,
        .more_after_ns = TOLLBAR_NO_TIME,
        .partition = partition,
        .partition_length = (size_t)partition_length,
    };
    return more == Py_None ? 0 : core_uint64(more, "more_after_ns", &limit->more_after_ns);
}

/* http_write(limits, what, number) -> str
 *
 * With `what` 0 it returns the problem in JSON, and `number` is its status. Otherwise `what` is a
 * sum of TOLLBAR_HTTP_ numbers, the call returns the lines of these fields, and `number` is the
 * time in nanoseconds since
 * 1970. */
PyObject *core_http_write(PyObject *module, PyObject *args) {
    core_state *state = PyModule_GetState(module);
    tollbar_http_limit limits[TOLLBAR_LIMITS_MOST];
    tollbar_policy_spec policies[TOLLBAR_LIMITS_MOST];
    PyObject *all, *made = NULL;
    unsigned long long number;
    unsigned int what;
    if (!PyArg_ParseTuple(args, "O!IK", &PyTuple_Type, &all, &what, &number))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(all);
    if (count < 1 || count > TOLLBAR_LIMITS_MOST)
        return PyErr_Format(PyExc_ValueError, "expected 1 to %d limits, found %zd", TOLLBAR_LIMITS_MOST, count);
    size_t capacity = 300;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (limit_read(state, PyTuple_GetItem(all, i), &limits[i], &policies[i]) != 0)
            return NULL;
        /* The comment of tollbar_http_fields in tollbar.h gives these numbers. */
        capacity += 100 + 4 * limits[i].name_length + 3 * limits[i].partition_length;
    }
    char *text = PyMem_Malloc(capacity);
    if (text == NULL)
        return PyErr_NoMemory();
    size_t length = 0;
    const int32_t code = what == 0 ? tollbar_http_problem(limits, (size_t)count, (uint32_t)number, text, capacity, &length)
                                   : tollbar_http_fields(limits, (size_t)count, what, number, text, capacity, &length);
    if (code == 0)
        made = PyUnicode_DecodeASCII(text, (Py_ssize_t)length, NULL);
    else
        core_raise(state, code, NULL);
    PyMem_Free(text);
    return made;
}

static PyObject *number_or_none(uint64_t number) {
    if (number == UINT64_MAX)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(number);
}

/* http_read(lines, utc_ns) -> (limit, window_ns, remaining, more_after_ns, retry_after_ns). An item
 * is None if no header field gives it. */
PyObject *core_http_read(PyObject *module, PyObject *args) {
    tollbar_http_seen seen = TOLLBAR_HTTP_SEEN_INIT;
    unsigned long long utc;
    const char *lines;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y#K", &lines, &length, &utc))
        return NULL;
    const int32_t code = tollbar_http_read(lines, (size_t)length, utc, &seen);
    if (code < 0)
        return core_raise(PyModule_GetState(module), code, NULL);
    return Py_BuildValue("NNNNN", number_or_none(seen.limit), number_or_none(seen.window_ns), number_or_none(seen.remaining),
                         number_or_none(seen.more_after_ns), number_or_none(seen.retry_after_ns));
}
