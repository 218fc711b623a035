/* Requests that leave permits for others: those of a class ("100/s reserve low 20 high 0"), and
 * those with a reserve of their own. */

#include <string.h>

#include "core.h"

int core_class_name(PyObject *object, const char **name) {
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "class_name must be a str: the name of a class of the policy, or its number from \"1\"");
        return -1;
    }
    *name = PyUnicode_AsUTF8AndSize(object, &length);
    if (*name == NULL)
        return -1;
    /* No class has a NUL in its name, and C would take the text before it. */
    if (strlen(*name) != (size_t)length)
        *name = "";
    return 0;
}

/* What a request leaves: the reserve of its class, or the number that the caller gives. */
typedef struct {
    const char *class_name;
    uint64_t reserve;
} share;

static int get_share(PyObject *given, int by_class, share *out) {
    return by_class ? core_class_name(given, &out->class_name) : core_uint64(given, "reserve", &out->reserve);
}

static PyObject *limiter_decide(core_state *state, const tollbar_limiter *limiter, int by_class, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *keywords) {
    const char *const names[] = { by_class ? "class_name" : "reserve", "cost", "at", NULL };
    PyObject *given[3] = { NULL, NULL, NULL };
    share left = { NULL, 0 };
    uint64_t cost = 1, now = 0;
    if (core_bind(by_class ? "check_class" : "check_leaving", names, 1, 2, args, nargs, keywords, given) != 0)
        return NULL;
    if (get_share(given[0], by_class, &left) != 0 || (given[1] != NULL && core_uint64(given[1], "cost", &cost) != 0))
        return NULL;
    const int timed = given[2] != NULL && given[2] != Py_None;
    if (timed && core_uint64(given[2], "at", &now) != 0)
        return NULL;
    core_decision *out = core_decision_new(state->decision);
    if (out == NULL)
        return NULL;
    int32_t code;
    if (by_class)
        code = timed ? tollbar_limiter_check_class_at(limiter, cost, left.class_name, now, &out->answer)
                     : tollbar_limiter_check_class(limiter, cost, left.class_name, &out->answer);
    else
        code = timed ? tollbar_limiter_check_leaving_at(limiter, cost, left.reserve, now, &out->answer)
                     : tollbar_limiter_check_leaving(limiter, cost, left.reserve, &out->answer);
    if (code >= 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(state, code, NULL);
}

/* check_class(class_name, cost=1, *, at=None) */
PyObject *core_limiter_check_class(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *keywords) {
    return limiter_decide(state, limiter, 1, args, nargs, keywords);
}

/* check_leaving(reserve, cost=1, *, at=None) */
PyObject *core_limiter_check_leaving(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *keywords) {
    return limiter_decide(state, limiter, 0, args, nargs, keywords);
}

static PyObject *table_decide(core_table *of, int by_class, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    const char *const names[] = { "key", by_class ? "class_name" : "reserve", "cost", "policy", "at", NULL };
    PyObject *given[5] = { NULL, NULL, NULL, NULL, NULL };
    share left = { NULL, 0 };
    uint64_t cost = 1, now = 0;
    uint32_t policy = 0;
    core_key key;
    if (core_bind(by_class ? "check_class" : "check_leaving", names, 2, 4, args, nargs, keywords, given) != 0)
        return NULL;
    if (get_share(given[1], by_class, &left) != 0 || (given[2] != NULL && core_uint64(given[2], "cost", &cost) != 0))
        return NULL;
    if (given[3] != NULL && core_table_policy(of, given[3], &policy) != 0)
        return NULL;
    const int timed = given[4] != NULL && given[4] != Py_None;
    if ((timed && core_uint64(given[4], "at", &now) != 0) || core_key_get(given[0], &key) != 0)
        return NULL;
    const tollbar_table *table = core_table_handle(of);
    core_decision *out = table == NULL ? NULL : core_decision_new(of->decision);
    if (out == NULL) {
        core_key_release(&key);
        return NULL;
    }
    int32_t code;
    if (by_class)
        code = timed ? tollbar_table_check_class_at(table, policy, key.data, key.length, cost, left.class_name, now, &out->answer)
                     : tollbar_table_check_class(table, policy, key.data, key.length, cost, left.class_name, &out->answer);
    else
        code = timed ? tollbar_table_check_leaving_at(table, policy, key.data, key.length, cost, left.reserve, now, &out->answer)
                     : tollbar_table_check_leaving(table, policy, key.data, key.length, cost, left.reserve, &out->answer);
    core_key_release(&key);
    if (code >= 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return core_raise(of->state, code, NULL);
}

/* check_class(key, class_name, cost=1, policy=0, *, at=None) */
PyObject *core_table_check_class(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return table_decide((core_table *)self, 1, args, nargs, keywords);
}

/* check_leaving(key, reserve, cost=1, policy=0, *, at=None) */
PyObject *core_table_check_leaving(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    return table_decide((core_table *)self, 0, args, nargs, keywords);
}
