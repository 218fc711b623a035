/* Batches: keys from a sequence or from an array, decided in groups. */

#include <string.h>

#include "core.h"

/* Requests in one call of the library: enough for it to prefetch their slots together, and few
 * enough for the stack and the first-level cache. */
enum { GROUP = 256 };

/* The source of costs: one for all requests, or one each. */
typedef struct {
    uint64_t same;
    /* A tuple, or NULL. */
    PyObject *each;
} costs;

static int costs_get(PyObject *object, Py_ssize_t count, costs *out) {
    out->same = 1;
    out->each = NULL;
    if (object == NULL)
        return 0;
    if (PyLong_Check(object))
        return core_uint64(object, "cost", &out->same);
    if (PyIndex_Check(object)) {
        /* A number of numpy, but not an array, which also has the number protocol. */
        if (PyObject_Size(object) < 0) {
            PyErr_Clear();
            return core_uint64(object, "cost", &out->same);
        }
    }
    out->each = PySequence_Tuple(object);
    if (out->each == NULL)
        return -1;
    if (count < 0 || PyTuple_Size(out->each) == count)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd costs for %zd keys", PyTuple_Size(out->each), count);
    Py_CLEAR(out->each);
    return -1;
}

static int cost_at(const costs *from, Py_ssize_t i, uint64_t *out) {
    *out = from->same;
    return from->each == NULL ? 0 : core_uint64(PyTuple_GetItem(from->each, i), "cost", out);
}

/* The source of keys: a tuple, or an array of items of one size. */
typedef struct {
    PyObject *tuple;
    Py_buffer view;
    const char *items;
    size_t size;
    /* The items are bytes padded with NULs, as numpy has them. */
    int padded;
    /* The items are signed integers. A negative one is refused, as a negative int is. */
    int is_signed;
    Py_ssize_t count;
} source;

/* Whether the bytes of an array's items are keys: integers of this machine's byte order, or bytes.
 * Returns 1, or 0 for an array of objects, or -1 with TypeError. */
static int plain(const Py_buffer *view, int *padded, int *is_signed) {
    const char *format = view->format == NULL ? "B" : view->format;
    *padded = *is_signed = 0;
    if (*format == '@' || *format == '=' || *format == '|' || (*format == '<' && PY_LITTLE_ENDIAN))
        format++;
    const char *kind = format + strspn(format, "0123456789");
    if (*kind == 's' && kind[1] == '\0') {
        *padded = 1;
        return 1;
    }
    if (kind == format && *format != '\0' && format[1] == '\0') {
        if (*format == 'O')
            return 0;
        *is_signed = strchr("bhilqn", *format) != NULL;
        if (*is_signed || strchr("BHILQNc", *format) != NULL)
            return 1;
    }
    PyErr_Format(PyExc_TypeError, "an array of keys has integers of native byte order or bytes, not '%s'", view->format);
    return -1;
}

static int source_get(PyObject *object, source *from) {
    memset(from, 0, sizeof *from);
    if (PyBytes_Check(object) || PyUnicode_Check(object) || PyByteArray_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "check_many() takes a sequence or an array of keys, not one key");
        return -1;
    }
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &from->view, PyBUF_ND | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0)
            return -1;
        int is = plain(&from->view, &from->padded, &from->is_signed);
        if (is > 0 && (from->view.ndim == 1 || (from->view.ndim == 2 && !from->padded))) {
            from->items = from->view.buf;
            from->count = from->view.shape[0];
            /* A row of a matrix is one key, whose numbers may be any. */
            from->is_signed = from->is_signed && from->view.ndim == 1;
            from->size = (size_t)(from->view.itemsize * (from->view.ndim == 2 ? from->view.shape[1] : 1));
            return 0;
        }
        PyBuffer_Release(&from->view);
        if (is > 0)
            PyErr_SetString(PyExc_TypeError, "an array of keys has one dimension, or two with a key in each row");
        if (is != 0)
            return -1;
    }
    from->tuple = PySequence_Tuple(object);
    if (from->tuple == NULL)
        return -1;
    from->count = PyTuple_Size(from->tuple);
    return 0;
}

static void source_release(source *from) {
    if (from->tuple != NULL)
        Py_DECREF(from->tuple);
    else if (from->items != NULL || from->view.obj != NULL)
        PyBuffer_Release(&from->view);
}

/* The index of the byte that has the sign of an integer in this machine's byte order. */
static unsigned char sign_byte(const core_key *key) {
    return ((const unsigned char *)key->data)[PY_LITTLE_ENDIAN ? key->length - 1 : 0];
}

static int source_key(const source *from, Py_ssize_t i, core_key *key) {
    if (from->tuple != NULL)
        return core_key_get(PyTuple_GetItem(from->tuple, i), key);
    key->owner = NULL;
    key->data = from->items + (size_t)i * from->size;
    key->length = from->size;
    if (from->is_signed && (sign_byte(key) & 0x80) != 0) {
        PyErr_Format(PyExc_ValueError, "an int key is 0 to 2**64 - 1, and item %zd of the array is negative", i);
        return -1;
    }
    if (from->padded)
        while (key->length > 0 && ((const char *)key->data)[key->length - 1] == '\0')
            key->length--;
    return 0;
}

/* The policy, the time and the class, which all requests of a batch share. */
typedef struct {
    uint32_t policy, class_number;
    uint64_t now;
} shared;

/* Decides up to GROUP requests, from index `start`. */
static int group(core_table *self, const source *from, const costs *cost, const shared *all, Py_ssize_t start, size_t count, char *out) {
    tollbar_request requests[GROUP];
    core_key keys[GROUP];
    int32_t results[GROUP];
    int32_t code = 0;
    size_t held = 0;
    int status = -1;
    for (size_t i = 0; i < count; i++) {
        if (source_key(from, start + (Py_ssize_t)i, &keys[i]) != 0)
            goto done;
        held++;
        requests[i] = (tollbar_request){ keys[i].data, keys[i].length, 1, all->policy, all->class_number };
        if (cost_at(cost, start + (Py_ssize_t)i, &requests[i].cost) != 0)
            goto done;
    }
    /* The handle is read only now, because methods of the keys and costs may have closed the
     * table. */
    const tollbar_table *table = core_table_handle(self);
    if (table == NULL)
        goto done;
    code = tollbar_table_check_many_at(table, requests, count, all->now, results);
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (results[i] == TOLLBAR_E_NO_SUCH_POLICY)
            code = results[i];
        out[i] = results[i] == TOLLBAR_ALLOWED;
    }
    status = code == 0 ? 0 : -1;
    if (code != 0)
        core_raise(self->state, code, NULL);
done:
    for (size_t i = 0; i < held; i++)
        core_key_release(&keys[i]);
    return status;
}

PyObject *core_table_check_many(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    static const char *const names[] = { "keys", "cost", "policy", "at", "class_number", NULL };
    core_table *self = (core_table *)object;
    PyObject *given[5] = { NULL, NULL, NULL, NULL, NULL };
    uint32_t policy = 0;
    uint64_t now = 0, class_number = 0;
    int timed = 0;
    if (core_bind("check_many", names, 1, 3, args, nargs, keywords, given) != 0
        || (given[2] != NULL && core_table_policy(self, given[2], &policy) != 0))
        return NULL;
    if (given[3] != NULL && given[3] != Py_None) {
        timed = 1;
        if (core_uint64(given[3], "at", &now) != 0)
            return NULL;
    }
    if (given[4] != NULL && core_uint64(given[4], "class_number", &class_number) != 0)
        return NULL;
    /* A number that no struct holds is no class's number. */
    shared all = { policy, class_number > UINT32_MAX ? UINT32_MAX : (uint32_t)class_number, 0 };
    source from;
    costs cost = { 1, NULL };
    PyObject *result = NULL;
    if (source_get(given[0], &from) != 0)
        return NULL;
    if (costs_get(given[1], from.count, &cost) != 0)
        goto done;
    /* All requests of the batch have this one time. */
    const tollbar_table *table = core_table_handle(self);
    int32_t code = table == NULL || timed ? 0 : tollbar_table_now(table, &now);
    if (code != 0)
        core_raise(self->state, code, NULL);
    if (table == NULL || code != 0)
        goto done;
    result = PyBytes_FromStringAndSize(NULL, from.count);
    char *out = result == NULL ? NULL : PyBytes_AsString(result);
    all.now = now;
    for (Py_ssize_t i = 0; result != NULL && i < from.count; i += GROUP) {
        size_t count = from.count - i < GROUP ? (size_t)(from.count - i) : GROUP;
        if (group(self, &from, &cost, &all, i, count, out + i) != 0)
            Py_CLEAR(result);
    }
done:
    Py_XDECREF(cost.each);
    source_release(&from);
    return result;
}

PyObject *core_limiter_many(const tollbar_limiter *limiter, core_state *state, PyObject *object, uint64_t now, int timed) {
    costs cost;
    if (costs_get(object, -1, &cost) != 0)
        return NULL;
    /* A number n means n requests of cost 1. */
    uint64_t number = cost.each == NULL ? cost.same : (uint64_t)PyTuple_Size(cost.each);
    PyObject *result = NULL;
    if (number > PY_SSIZE_T_MAX)
        PyErr_NoMemory();
    else
        result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)number);
    char *out = result == NULL ? NULL : PyBytes_AsString(result);
    for (uint64_t start = 0; result != NULL && start < number; start += GROUP) {
        uint64_t amounts[GROUP];
        int32_t results[GROUP];
        size_t count = number - start < GROUP ? (size_t)(number - start) : GROUP;
        int failed = 0;
        for (size_t i = 0; cost.each != NULL && i < count && !failed; i++)
            failed = cost_at(&cost, (Py_ssize_t)(start + i), &amounts[i]) != 0;
        if (!failed) {
            const uint64_t *list = cost.each == NULL ? NULL : amounts;
            int32_t code = timed ? tollbar_limiter_check_many_at(limiter, list, count, now, results)
                                 : tollbar_limiter_check_many(limiter, list, count, results);
            if (code != 0)
                core_raise(state, code, NULL);
            failed = code != 0;
        }
        for (size_t i = 0; !failed && i < count; i++)
            out[start + i] = results[i] == TOLLBAR_ALLOWED;
        if (failed)
            Py_CLEAR(result);
    }
    Py_XDECREF(cost.each);
    return result;
}
