/* Arguments: names, numbers, keys. */

#include <string.h>
#include "core.h"

int core_bind(const char *function, const char *const *names, Py_ssize_t required, Py_ssize_t positional,
              PyObject *const *args, Py_ssize_t nargs, PyObject *keywords, PyObject **out) {
    if (nargs > positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd positional arguments (%zd given)", function, positional,
                     nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        out[i] = args[i];
    Py_ssize_t count = keywords == NULL ? 0 : PyTuple_Size(keywords);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *name = PyTuple_GetItem(keywords, k);
        Py_ssize_t i = 0;
        while (names[i] != NULL && PyUnicode_CompareWithASCIIString(name, names[i]) != 0)
            i++;
        if (names[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name);
            return -1;
        }
        if (i < nargs) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function, names[i]);
            return -1;
        }
        out[i] = args[nargs + k];
    }
    for (Py_ssize_t i = nargs; i < required; i++) {
        if (out[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", function, names[i]);
            return -1;
        }
    }
    return 0;
}

int core_uint64(PyObject *object, const char *what, uint64_t *out) {
    PyObject *index = NULL;
    if (!PyLong_Check(object)) {
        /* Objects with __index__, such as numpy's integers. */
        index = PyNumber_Index(object);
        if (index == NULL) {
            if (PyErr_ExceptionMatches(PyExc_TypeError)) {
                PyObject *name = PyType_GetName(Py_TYPE(object));
                PyErr_Clear();
                if (name != NULL)
                    PyErr_Format(PyExc_TypeError, "%s must be an int, not %U", what, name);
                Py_XDECREF(name);
            }
            return -1;
        }
        object = index;
    }
    unsigned long long value = PyLong_AsUnsignedLongLong(object);
    Py_XDECREF(index);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError, "%s must be 0 to 2**64 - 1", what);
        }
        return -1;
    }
    *out = value;
    return 0;
}

/* An int from 0 is its eight bytes, as in an array of uint64. A negative int is refused, because it
 * is usually the -1 of a failed lookup, and all callers whose lookups fail would share one limit. A
 * bool is refused, because it is usually the result of a comparison. */
static int key_of_int(PyObject *object, core_key *key) {
    if (PyBool_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a key is bytes, str, int, a buffer or None, not bool");
        return -1;
    }
    unsigned long long value = PyLong_AsUnsignedLongLong(object);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError, "an int key is 0 to 2**64 - 1, not %R", object);
        }
        return -1;
    }
    key->number = value;
    key->data = &key->number;
    key->length = sizeof key->number;
    return 0;
}

/* numpy's integers are buffers of their own length. */
static int refuse_negative(PyObject *object) {
    if (!PyIndex_Check(object))
        return 0;
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) {
        /* An array. It has an __index__, which works only for an array of one number. */
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    PyObject *zero = PyLong_FromLong(0);
    int negative = zero == NULL ? -1 : PyObject_RichCompareBool(number, zero, Py_LT);
    if (negative > 0)
        PyErr_Format(PyExc_ValueError, "an int key is 0 to 2**64 - 1, not %R", number);
    Py_XDECREF(zero);
    Py_DECREF(number);
    return negative == 0 ? 0 : -1;
}

int core_key_get(PyObject *object, core_key *key) {
    char *data = NULL;
    Py_ssize_t length = 0;
    key->owner = NULL;
    if (PyBytes_Check(object)) {
        if (PyBytes_AsStringAndSize(object, &data, &length) != 0)
            return -1;
        key->data = data;
    } else if (PyUnicode_Check(object)) {
        key->data = PyUnicode_AsUTF8AndSize(object, &length);
        if (key->data == NULL)
            return -1;
    } else if (PyLong_Check(object)) {
        return key_of_int(object, key);
    } else if (object == Py_None) {
        /* A request without a key, which the table's `missing` decides. */
        key->data = NULL;
    } else if (PyObject_CheckBuffer(object)) {
        if (refuse_negative(object) != 0)
            return -1;
        /* A copy, because other code could change or resize a writable buffer during the call. */
        key->owner = PyBytes_FromObject(object);
        if (key->owner == NULL || PyBytes_AsStringAndSize(key->owner, &data, &length) != 0) {
            Py_CLEAR(key->owner);
            return -1;
        }
        key->data = data;
    } else {
        PyObject *name = PyType_GetName(Py_TYPE(object));
        if (name != NULL)
            PyErr_Format(PyExc_TypeError, "a key is bytes, str, int, a buffer or None, not %U", name);
        Py_XDECREF(name);
        return -1;
    }
    key->length = (size_t)length;
    return 0;
}

/* address_key(text, ipv4_bits, ipv6_bits) -> bytes */
int core_driven_time(core_state *state, PyObject *object, uint64_t *now) {
    if (!state->drives || !(PyObject_TypeCheck(object, state->limiter) || PyObject_TypeCheck(object, state->table)))
        return 0;
    PyObject *driven = PyObject_GetAttrString(object, "_driven");
    if (driven != Py_True) {
        Py_XDECREF(driven);
        return driven == NULL ? -1 : 0;
    }
    Py_DECREF(driven);
    PyObject *time = PyObject_CallMethod(object, "now", NULL);
    const int failed = time == NULL ? -1 : core_uint64(time, "now", now);
    Py_XDECREF(time);
    return failed != 0 ? -1 : 1;
}

PyObject *core_address_key(PyObject *module, PyObject *args) {
    const char *text;
    Py_ssize_t length;
    unsigned int four, six;
    if (!PyArg_ParseTuple(args, "s#II", &text, &length, &four, &six))
        return NULL;
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    int32_t code = tollbar_prefix_parse(text, (size_t)length, four, six, &prefix);
    if (code != 0)
        return core_raise(PyModule_GetState(module), code, NULL);
    return PyBytes_FromStringAndSize((const char *)prefix.bytes, prefix.length);
}

/* network(text) -> the bytes of a tollbar_prefix, for client_key */
PyObject *core_network(PyObject *module, PyObject *object) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text == NULL)
        return NULL;
    tollbar_prefix network = TOLLBAR_PREFIX_INIT;
    int32_t code = tollbar_network_parse(text, (size_t)length, &network);
    if (code != 0)
        return core_raise(PyModule_GetState(module), code, NULL);
    return PyBytes_FromStringAndSize((const char *)&network, sizeof network);
}

/* client_key(peer, forwarded, networks) -> bytes; the networks are those of network(), one behind
 * the other */
PyObject *core_client_key(PyObject *module, PyObject *args) {
    const char *peer, *forwarded, *networks;
    Py_ssize_t peer_length, forwarded_length, networks_length;
    if (!PyArg_ParseTuple(args, "s#s#y#", &peer, &peer_length, &forwarded, &forwarded_length, &networks, &networks_length))
        return NULL;
    /* Bytes need not be aligned as the structs are. */
    size_t count = (size_t)networks_length / sizeof(tollbar_prefix);
    tollbar_prefix *proxies = PyMem_Malloc(count * sizeof *proxies);
    if (proxies == NULL)
        return PyErr_NoMemory();
    memcpy(proxies, networks, count * sizeof *proxies);
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    int32_t code = tollbar_prefix_of_client(peer, (size_t)peer_length, forwarded, (size_t)forwarded_length, proxies, count, 32, 64,
                                            &prefix);
    PyMem_Free(proxies);
    if (code != 0)
        return core_raise(PyModule_GetState(module), code, NULL);
    return PyBytes_FromStringAndSize((const char *)prefix.bytes, prefix.length);
}

/* key_bytes(key) -> the bytes that a table hashes for the key, or None for no key */
PyObject *core_key_bytes(PyObject *module, PyObject *object) {
    (void)module;
    core_key key;
    if (core_key_get(object, &key) != 0)
        return NULL;
    PyObject *bytes = key.length == 0 ? Py_NewRef(Py_None)
                                      : PyBytes_FromStringAndSize(key.data, (Py_ssize_t)key.length);
    core_key_release(&key);
    return bytes;
}
