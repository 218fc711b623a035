/* Shared declarations of tollbar._core, which uses the stable ABI of Python 3.11 over tollbar.h.
 *
 * Two rules keep every call from crashing:
 *   - A call converts its arguments to C values first, because that may run Python code. It reads a table's handle
 *     only afterwards, because that code may have closed the table.
 *   - Every decision holds the GIL, because releasing it costs more than a decision. So a handle that has been read
 *     stays valid. A call that releases the GIL counts itself in `users`, which keeps the handle. */

#ifndef TOLLBAR_CORE_H
#define TOLLBAR_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* For adaptive.c and pacing.c. */
#define TOLLBAR_EXPERIMENTAL
#include "tollbar.h"

typedef struct {
    PyTypeObject *decision;
    PyTypeObject *taken;
    PyTypeObject *limiter;
    PyTypeObject *table;
    PyTypeObject *in_flight;
    PyTypeObject *share;
    /* tollbar._errors.policy_error and .call_error, which make the exceptions. */
    PyObject *policy_error;
    PyObject *call_error;
    /* Whether some limiter or table goes by Python's clock (_driven.py). */
    int drives;
} core_state;

extern struct PyModuleDef core_module;
extern PyType_Spec core_decision_spec;
extern PyType_Spec core_taken_spec;
extern PyType_Spec core_limiter_spec;
extern PyType_Spec core_table_spec;
extern PyType_Spec core_in_flight_spec;
extern PyType_Spec core_adaptive_spec;
extern PyType_Spec core_meter_spec;
extern PyType_Spec core_pacing_spec;
extern PyType_Spec core_send_window_spec;
extern PyType_Spec core_share_spec;
extern PyType_Spec core_hierarchy_spec;
extern PyType_Spec core_queue_spec;

/* The state of the module that defines `type` or its base. */
core_state *core_state_of(PyTypeObject *type);

/* decision.c: a new Decision, into which the library writes. */
typedef struct {
    PyObject_HEAD
    tollbar_decision answer;
} core_decision;

core_decision *core_decision_new(PyTypeObject *type);
/* The getters of Decision. Other types whose objects begin with a core_decision use them too. */
void core_decision_dealloc(PyObject *self);
int core_decision_bool(PyObject *self);
PyObject *core_get_allowed(PyObject *self, void *unused);
PyObject *core_get_never(PyObject *self, void *unused);
PyObject *core_get_reason(PyObject *self, void *unused);
PyObject *core_get_bound(PyObject *self, void *unused);
PyObject *core_get_remaining(PyObject *self, void *unused);
PyObject *core_get_retry_ns(PyObject *self, void *unused);
PyObject *core_get_retry(PyObject *self, void *unused);
PyObject *core_get_reset_ns(PyObject *self, void *unused);
PyObject *core_get_reset(PyObject *self, void *unused);
const char *core_verdict_name(const tollbar_decision *answer);
/* A time of a decision as an int or None, and as a float. */
PyObject *core_nanoseconds(uint64_t time);
PyObject *core_seconds(uint64_t time);

/* errors.c: raise the exception for a result. `path` may be NULL. Return NULL. */
PyObject *core_raise(core_state *state, int32_t code, PyObject *path);
/* Parses a text into a spec. Returns -1 with PolicyError. */
int core_spec_parse(core_state *state, PyObject *text, tollbar_policy_spec *spec);
/* A policy's canonical text. */
PyObject *core_spec_text(core_state *state, const tollbar_policy_spec *spec);
PyObject *core_parse(PyObject *module, PyObject *text);
PyObject *core_worst_case(PyObject *module, PyObject *args);
PyObject *core_curve(PyObject *module, PyObject *args);
/* Raises tollbar.PolicyError for a text, and returns NULL. */
PyObject *core_policy_raise(core_state *state, int32_t code, const tollbar_policy_error *error, PyObject *text);
PyObject *core_schedule_text(PyObject *module, PyObject *text);
PyObject *core_schedule_at(PyObject *module, PyObject *args);
/* Whether permits of such a policy can be booked ahead of their time. */
int core_books_ahead(const tollbar_policy_spec *spec);
/* The Python result of a reserve that returned `code`: (departs_ns, wait_ns, cost), or None if it
 * booked nothing. */
PyObject *core_booked(core_state *state, int32_t code, const tollbar_reservation *booked);

/* args.c */

/* Writes the arguments of a fast call to `out`, in the order of `names`, which ends with NULL. A
 * missing argument leaves its place unchanged. The first `positional` may be positional, and the
 * first `required` of these must be given. */
int core_bind(const char *function, const char *const *names, Py_ssize_t required, Py_ssize_t positional,
              PyObject *const *args, Py_ssize_t nargs, PyObject *keywords, PyObject **out);

/* Converts to uint64_t. Returns -1 with TypeError or ValueError. */
int core_uint64(PyObject *object, const char *what, uint64_t *out);

/* A key's bytes for the library. Valid until core_key_release. */
typedef struct {
    const void *data;
    size_t length;
    uint64_t number;
    /* An object that owns `data`, where that is not the argument itself. */
    PyObject *owner;
} core_key;

int core_key_get(PyObject *object, core_key *key);

static inline void core_key_release(core_key *key) {
    Py_XDECREF(key->owner);
}

/* Whether a limiter or a table goes by Python's clock, and then its time. Returns -1 with an exception. */
int core_driven_time(core_state *state, PyObject *object, uint64_t *now);

PyObject *core_address_key(PyObject *module, PyObject *args);
PyObject *core_network(PyObject *module, PyObject *object);
PyObject *core_client_key(PyObject *module, PyObject *args);
PyObject *core_key_bytes(PyObject *module, PyObject *key);

/* limiter.c */
const tollbar_limiter *core_limiter_handle(PyObject *self);

/* in_flight.c: NULL with an exception if the table is closed. */
const tollbar_in_flight *core_in_flight_handle(PyObject *self);

/* take_many.c */
PyObject *core_take_many(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);

/* table.c */
typedef struct {
    PyObject_HEAD
    /* NULL once closed. */
    tollbar_table *handle;
    core_state *state;
    PyTypeObject *decision;
    /* A dict of the policies' names and numbers, which Python code owns, or NULL. */
    PyObject *names;
    /* Calls that use the handle without the GIL. */
    Py_ssize_t users;
    /* The handle of a table that was closed during such calls. The last of them frees it. */
    tollbar_table *leaving;
    /* A bit for each of the first 128 policies: it could book ahead when _book looked last. Another
     * process may have changed the policy since. */
    uint64_t books[2];
} core_table;

/* The handle, or NULL with an error if the table is closed. */
const tollbar_table *core_table_handle(core_table *self);
int core_table_policy(core_table *self, PyObject *object, uint32_t *out);

/* The arguments of a call on one key: (key, cost=1, policy=0, *, at=None). */
typedef struct {
    const tollbar_table *table;
    core_key key;
    uint64_t cost;
    uint64_t now;
    uint32_t policy;
    int timed;
} core_call;

/* Reads the arguments, or returns -1 with an exception. `amount` is the name of the second
 * argument, which is required if `needed`. On success the caller releases the key. */
int core_call_read(core_table *self, const char *function, const char *amount, int needed, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *keywords, core_call *c);
/* classes.c */
/* A class's name for the library, which lives as long as the object. Returns -1 with TypeError. */
int core_class_name(PyObject *object, const char **name);
PyObject *core_limiter_check_class(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *keywords);
PyObject *core_table_check_class(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
PyObject *core_limiter_check_leaving(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *keywords);
PyObject *core_table_check_leaving(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
/* receipts.c */
PyObject *core_table_take(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
PyObject *core_table_settle(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
/* http.c */
PyObject *core_table_more_after(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
PyObject *core_limiter_more_after(core_state *state, const tollbar_limiter *limiter, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *keywords);
PyObject *core_http_write(PyObject *module, PyObject *args);
PyObject *core_http_read(PyObject *module, PyObject *args);
/* route.c */
PyObject *core_route(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
/* metrics.c */
PyObject *core_metrics(PyObject *module, PyObject *args);
/* batch.c */
PyObject *core_table_check_many(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
PyObject *core_limiter_many(const tollbar_limiter *limiter, core_state *state, PyObject *costs, uint64_t now, int timed);
/* table_admin.c: a table's rare calls. */
PyObject *core_table_set_policy(PyObject *self, PyObject *args);
PyObject *core_table_set_override(PyObject *self, PyObject *args);
PyObject *core_table_override(PyObject *self, PyObject *args);
PyObject *core_table_overrides(PyObject *self, PyObject *unused);
PyObject *core_table_record_refusals(PyObject *self, PyObject *on);
PyObject *core_table_records_refusals(PyObject *self, PyObject *unused);
PyObject *core_table_top_refused(PyObject *self, PyObject *args);
PyObject *core_table_add_policy(PyObject *self, PyObject *text);
PyObject *core_table_find_or_add_policy(PyObject *self, PyObject *text);
PyObject *core_table_get_policy(PyObject *self, PyObject *policy);
PyObject *core_table_stats(PyObject *self, PyObject *unused);
PyObject *core_table_counts(PyObject *self, PyObject *policy);
PyObject *core_table_validate(PyObject *self, PyObject *repair);
PyObject *core_table_sync(PyObject *self, PyObject *unused);
PyObject *core_table_copy_from(PyObject *self, PyObject *other);

/* What tollbar._redis uses of this module: the capsule tollbar._core._api. */
typedef struct {
    PyObject *(*raise)(core_state *state, int32_t code, PyObject *path);
    int (*spec_parse)(core_state *state, PyObject *text, tollbar_policy_spec *spec);
    core_decision *(*decision_new)(PyTypeObject *type);
    int (*bind)(const char *function, const char *const *names, Py_ssize_t required, Py_ssize_t positional, PyObject *const *args,
                Py_ssize_t nargs, PyObject *keywords, PyObject **out);
    int (*uint64)(PyObject *object, const char *what, uint64_t *out);
    int (*key_get)(PyObject *object, core_key *key);
} core_api;

#define CORE_API "tollbar._core._api"

/* A method's documentation, with the arguments "(key, cost=1, *, at=None)" in the place that
 * inspect.signature reads. */
#define CORE_DOC(name, arguments, text) name arguments "\n--\n\n" text

/* A method that takes its arguments as a C array. */
#define CORE_FAST(name, function, arguments, text)                                                                  \
    { name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, CORE_DOC(name, arguments, text) }

/* A method by the other conventions. */
#define CORE_METHOD(name, function, flags, arguments, text) { name, function, flags, CORE_DOC(name, arguments, text) }

/* The slots that a type with a constructor and methods has. */
#define CORE_SLOTS(type) { Py_tp_new, type##_new }, { Py_tp_dealloc, type##_dealloc }, { Py_tp_methods, type##_methods }

/* A type whose objects are a C `structure`. `flag` is the one that it has beside Python's usual
 * ones. */
#define CORE_TYPE(spec, python_name, structure, flag, type_slots) \
    PyType_Spec spec = {                                          \
        .name = python_name,                                      \
        .basicsize = sizeof(structure),                           \
        .flags = Py_TPFLAGS_DEFAULT | (flag),                     \
        .slots = type_slots,                                      \
    }

#endif
