/* Client: a connection to the store for the nodes of leases. A node's place in the client is a number.
 * The client does not keep the leases alive. */

#include <string.h>

#include "redis.h"

/* The most bytes of a TLS fault's text, with the zero at its end. */
#define FAULT_ROOM 160

/* The most nodes of a client. */
#define NODES 128

typedef struct {
    PyObject_HEAD
    core_state *state;
    /* NULL once closed. */
    tollbar_lease_client *handle;
    /* By place; NULL where there is none. */
    redis_node *nodes[NODES];
    /* What begins TLS with a host (tollbar._tls.starter), or NULL. */
    PyObject *starter;
    /* The last fault of TLS, as text. */
    char fault[FAULT_ROOM];
    /* Whether a call that drives the client is under way. */
    int running;
} redis_client;

static inline redis_client *of(PyObject *self) {
    return (redis_client *)self;
}

/* The library calls this when a circuit changes: run returns then. */
static void changed(void *argument, uint32_t circuit) {
    (void)circuit;
    tollbar_lease_client_stop(argument);
}

/* TLS. The library calls these functions from tick, run or close, with or without the GIL. A
 * connection is a tollbar._tls.Connection; its client is in tls_connection. */
typedef struct {
    redis_client *client;
    PyObject *object;
} tls_connection;

/* Keeps the text of the exception that is set, and ends it. Only an OSError is a fault of TLS. */
static void tls_failed(redis_client *client) {
    PyObject *type, *value, *trace;
    PyObject *said = NULL, *bytes = NULL;
    if (!PyErr_ExceptionMatches(PyExc_OSError)) {
        PyErr_WriteUnraisable(client->starter);
        PyErr_Clear();
        return;
    }
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    said = value == NULL ? NULL : PyObject_Str(value);
    bytes = said == NULL ? NULL : PyUnicode_AsEncodedString(said, "ascii", "replace");
    if (bytes != NULL) {
        strncpy(client->fault, PyBytes_AsString(bytes), FAULT_ROOM - 1);
        client->fault[FAULT_ROOM - 1] = '\0';
    }
    Py_XDECREF(bytes);
    Py_XDECREF(said);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
}

static void *tls_start(void *context, const char *host) {
    PyGILState_STATE gil = PyGILState_Ensure();
    redis_client *client = context;
    tls_connection *made = PyMem_Malloc(sizeof *made);
    PyObject *object = made == NULL ? NULL : PyObject_CallFunction(client->starter, "s", host);
    if (object == NULL) {
        if (made != NULL)
            tls_failed(client);
        PyMem_Free(made);
        made = NULL;
    } else {
        made->client = client;
        made->object = object;
    }
    PyGILState_Release(gil);
    return made;
}

/* Calls a method that takes bytes and returns how many. */
static int64_t tls_put(void *connection, const char *method, const void *bytes, size_t length) {
    PyGILState_STATE gil = PyGILState_Ensure();
    tls_connection *c = connection;
    PyObject *answer = PyObject_CallMethod(c->object, method, "y#", (const char *)bytes, (Py_ssize_t)length);
    long long taken = answer == NULL ? -1 : PyLong_AsLongLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred() != NULL) {
        tls_failed(c->client);
        taken = -1;
    }
    PyGILState_Release(gil);
    return taken;
}

/* Calls a method that returns at most so many bytes. */
static int64_t tls_get(void *connection, const char *method, void *bytes, size_t length) {
    PyGILState_STATE gil = PyGILState_Ensure();
    tls_connection *c = connection;
    PyObject *answer = PyObject_CallMethod(c->object, method, "n", (Py_ssize_t)length);
    char *given = NULL;
    Py_ssize_t count = -1;
    if (answer == NULL || PyBytes_AsStringAndSize(answer, &given, &count) != 0 || (size_t)count > length) {
        tls_failed(c->client);
        count = -1;
    } else
        memcpy(bytes, given, (size_t)count);
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return count;
}

static int64_t tls_cipher_in(void *connection, const void *bytes, size_t length) {
    return tls_put(connection, "cipher_in", bytes, length);
}

static int64_t tls_cipher_out(void *connection, void *bytes, size_t length) {
    return tls_get(connection, "cipher_out", bytes, length);
}

static int64_t tls_plain_in(void *connection, const void *bytes, size_t length) {
    return tls_put(connection, "plain_in", bytes, length);
}

static int64_t tls_plain_out(void *connection, void *bytes, size_t length) {
    return tls_get(connection, "plain_out", bytes, length);
}

static int32_t tls_wants(void *connection) {
    PyGILState_STATE gil = PyGILState_Ensure();
    tls_connection *c = connection;
    PyObject *answer = PyObject_CallMethod(c->object, "wants", NULL);
    long wants = answer == NULL ? TOLLBAR_TLS_FAULT : PyLong_AsLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred() != NULL) {
        tls_failed(c->client);
        wants = TOLLBAR_TLS_FAULT;
    }
    PyGILState_Release(gil);
    return (int32_t)wants;
}

static const char *tls_fault(void *connection) {
    tls_connection *c = connection;
    return c->client->fault[0] == '\0' ? NULL : c->client->fault;
}

static void tls_end(void *connection) {
    PyGILState_STATE gil = PyGILState_Ensure();
    tls_connection *c = connection;
    Py_DECREF(c->object);
    PyMem_Free(c);
    PyGILState_Release(gil);
}

/* Makes the client's handle. */
static int32_t make(redis_client *client, const char *url, size_t length, size_t *column) {
    tollbar_tls tls = TOLLBAR_TLS_INIT;
    const tollbar_lease *lease = client->nodes[0]->handle;
    if (client->starter == NULL)
        return tollbar_lease_client_new(lease, url, length, column, &client->handle);
    tls.context = client;
    tls.start = tls_start;
    tls.cipher_in = tls_cipher_in;
    tls.cipher_out = tls_cipher_out;
    tls.plain_in = tls_plain_in;
    tls.plain_out = tls_plain_out;
    tls.wants = tls_wants;
    tls.fault = tls_fault;
    tls.end = tls_end;
    return tollbar_lease_client_new_tls(lease, url, length, &tls, column, &client->handle);
}

/* Client(node, url, starter or None): the node has place 0. */
static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *node, *starter;
    const char *url;
    Py_ssize_t length;
    size_t column = 0;
    redis_state *module = redis_state_of(type);
    if (module == NULL || !PyArg_ParseTuple(args, "Os#O", &node, &url, &length, &starter))
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    redis_client *client = of(self);
    client->state = module->core;
    client->nodes[0] = redis_node_of(node);
    if (client->nodes[0] == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    if (starter != Py_None) {
        Py_INCREF(starter);
        client->starter = starter;
    }
    int32_t code = make(client, url, (size_t)length, &column);
    if (code == 0)
        code = tollbar_lease_client_on_change(client->handle, changed, client->handle);
    if (code == 0)
        return self;
    Py_DECREF(self);
    if (code != TOLLBAR_E_URL)
        return core->raise(module->core, code, NULL);
    /* The message leaves out the URL, which may contain a password. */
    PyObject *where = PyUnicode_FromFormat("column %zu", column);
    if (where != NULL) {
        core->raise(module->core, code, where);
        Py_DECREF(where);
    }
    return NULL;
}

static void client_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_lease_client_close(of(self)->handle, 0);
    of(self)->handle = NULL;
    Py_CLEAR(of(self)->starter);
    for (int place = 0; place < NODES; place++)
        redis_node_release(of(self)->nodes[place]);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* The handle, for a call that must be the only one. */
static tollbar_lease_client *mine(PyObject *self) {
    if (of(self)->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the client is closed");
    else if (of(self)->running)
        core->raise(of(self)->state, TOLLBAR_E_RUNNING, NULL);
    else
        return of(self)->handle;
    return NULL;
}

static PyObject *client_run(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_client *handle = mine(self);
    int32_t code;
    if (handle == NULL)
        return NULL;
    of(self)->running = 1;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_lease_client_run(handle);
    Py_END_ALLOW_THREADS
    of(self)->running = 0;
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

static PyObject *client_stop(PyObject *self, PyObject *unused) {
    (void)unused;
    if (of(self)->handle != NULL)
        tollbar_lease_client_stop(of(self)->handle);
    Py_RETURN_NONE;
}

static PyObject *client_tick(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_client *handle = mine(self);
    uint32_t wait = 0;
    if (handle == NULL)
        return NULL;
    /* TLS runs Python code, which must not use the client. */
    of(self)->running = 1;
    int32_t code = tollbar_lease_client_tick(handle, &wait);
    of(self)->running = 0;
    return code != 0 ? core->raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(wait);
}

/* (the descriptor or -1, the events to watch) */
static PyObject *client_fd(PyObject *self, PyObject *unused) {
    (void)unused;
    tollbar_lease_client *handle = mine(self);
    uint32_t events = 0;
    if (handle == NULL)
        return NULL;
    int fd = tollbar_lease_client_fd(handle, &events);
    return Py_BuildValue("iI", fd, events);
}

/* The node at the place that is the method's first argument, or NULL with an error. */
static redis_node *node_at(PyObject *self, unsigned int place) {
    redis_node *node = place < NODES ? of(self)->nodes[place] : NULL;
    if (node == NULL)
        PyErr_SetString(PyExc_IndexError, "the client has no such lease");
    return node;
}

/* add(node) -> its place */
static PyObject *client_add(PyObject *self, PyObject *capsule) {
    tollbar_lease_client *handle = mine(self);
    redis_node *node = handle == NULL ? NULL : redis_node_of(capsule);
    unsigned int place = 0;
    if (node == NULL)
        return NULL;
    int32_t code = tollbar_lease_client_add(handle, node->handle);
    if (code != 0) {
        redis_node_release(node);
        return core->raise(of(self)->state, code, NULL);
    }
    while (of(self)->nodes[place] != NULL)
        place++;
    of(self)->nodes[place] = node;
    return PyLong_FromUnsignedLong(place);
}

/* report(place, milliseconds) -> whether all permits were reported to the store */
static PyObject *client_report(PyObject *self, PyObject *args) {
    unsigned int place, patience;
    if (!PyArg_ParseTuple(args, "II", &place, &patience))
        return NULL;
    tollbar_lease_client *handle = mine(self);
    redis_node *node = handle == NULL ? NULL : node_at(self, place);
    int32_t code;
    if (node == NULL)
        return NULL;
    of(self)->running = 1;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_lease_client_report(handle, node->handle, patience);
    Py_END_ALLOW_THREADS
    of(self)->running = 0;
    if (code != 0 && code != TOLLBAR_E_UNREPORTED)
        return core->raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == 0);
}

/* remove(place) */
static PyObject *client_remove(PyObject *self, PyObject *args) {
    unsigned int place;
    tollbar_lease_client *handle = PyArg_ParseTuple(args, "I", &place) ? mine(self) : NULL;
    redis_node *node = handle == NULL ? NULL : node_at(self, place);
    if (node == NULL)
        return NULL;
    of(self)->running = 1;
    int32_t code = tollbar_lease_client_remove(handle, node->handle, 0);
    of(self)->running = 0;
    of(self)->nodes[place] = NULL;
    redis_node_release(node);
    if (code != 0 && code != TOLLBAR_E_UNREPORTED)
        return core->raise(of(self)->state, code, NULL);
    Py_RETURN_NONE;
}

/* circuit(place): a TOLLBAR_CIRCUIT_ number */
static PyObject *client_circuit(PyObject *self, PyObject *args) {
    unsigned int place;
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    redis_node *node = PyArg_ParseTuple(args, "I", &place) ? node_at(self, place) : NULL;
    if (node == NULL)
        return NULL;
    int32_t code = tollbar_lease_get_stats(node->handle, &stats);
    return code != 0 ? core->raise(of(self)->state, code, NULL) : PyLong_FromUnsignedLong(stats.circuit);
}

/* error(place): the text of the fault, as far as it is about one lease */
static PyObject *client_error(PyObject *self, PyObject *args) {
    unsigned int place;
    tollbar_lease_client *handle = PyArg_ParseTuple(args, "I", &place) ? mine(self) : NULL;
    redis_node *node = handle == NULL ? NULL : node_at(self, place);
    if (node == NULL)
        return NULL;
    const char *text = tollbar_lease_client_lease_error(handle, node->handle);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* close(milliseconds) -> whether all permits were reported to the store */
static PyObject *client_close(PyObject *self, PyObject *args) {
    unsigned int patience;
    if (!PyArg_ParseTuple(args, "I", &patience))
        return NULL;
    tollbar_lease_client *handle = mine(self);
    int32_t code;
    if (handle == NULL)
        return NULL;
    of(self)->handle = NULL;
    Py_BEGIN_ALLOW_THREADS
    code = tollbar_lease_client_close(handle, patience);
    Py_END_ALLOW_THREADS
    if (code != 0 && code != TOLLBAR_E_UNREPORTED)
        return core->raise(of(self)->state, code, NULL);
    return PyBool_FromLong(code == 0);
}

static PyMethodDef client_methods[] = {
    CORE_METHOD("add", client_add, METH_O, "($self, node, /)", "Asks for another lease, too, and returns its place."),
    CORE_METHOD("report", client_report, METH_VARARGS, "($self, place, milliseconds, /)",
                "Reports a lease's unreported permits to the store."),
    CORE_METHOD("remove", client_remove, METH_VARARGS, "($self, place, /)", "Forgets the lease at the place."),
    CORE_METHOD("run", client_run, METH_NOARGS, "($self, /)",
                "Asks the store until stop or until a circuit changes, without the GIL."),
    CORE_METHOD("stop", client_stop, METH_NOARGS, "($self, /)", "Lets run return."),
    CORE_METHOD("tick", client_tick, METH_NOARGS, "($self, /)",
                "Does the pending work, and returns the milliseconds until the next call."),
    CORE_METHOD("fd", client_fd, METH_NOARGS, "($self, /)", "The descriptor, and what to watch it for."),
    CORE_METHOD("circuit", client_circuit, METH_VARARGS, "($self, place, /)", "Whether the store answers."),
    CORE_METHOD("error", client_error, METH_VARARGS, "($self, place, /)", "Why the store does not answer, or refuses."),
    CORE_METHOD("close", client_close, METH_VARARGS, "($self, milliseconds, /)",
                "Reports the unreported permits to the store, and frees the client."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot client_slots[] = {
    CORE_SLOTS(client),
    { 0, NULL },
};

CORE_TYPE(redis_client_spec, "tollbar._redis.Client", redis_client, 0, client_slots);
