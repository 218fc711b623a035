/* Arguments: names, numbers, keys. */

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
        /* The integers of numpy and the like. */
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

/* An int is the eight bytes that it is in an array of int64, or of uint64 where it needs those. */
static int key_of_int(PyObject *object, core_key *key) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && !overflow && PyErr_Occurred())
        return -1;
    key->number = (uint64_t)value;
    if (overflow < 0) {
        PyErr_SetString(PyExc_ValueError, "an int key must be -2**63 to 2**64 - 1");
        return -1;
    }
    if (overflow > 0 && core_uint64(object, "an int key", &key->number) != 0)
        return -1;
    key->data = &key->number;
    key->length = sizeof key->number;
    return 0;
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
        /* A request without a key: the table's `missing` says what becomes of it. */
        key->data = NULL;
    } else if (PyObject_CheckBuffer(object)) {
        /* A copy, since what can be written to could be changed or resized while it is used. */
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
