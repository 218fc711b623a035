/* Client: a lease's connection to the store. It is an object of its own, so that its thread does
 * not keep the lease alive. */

#include <string.h>

#include "redis.h"

/* The most bytes of a TLS fault's text, with the zero at its end. */
#define FAULT_ROOM 160

typedef struct {
    PyObject_HEAD
    redis_node *node;
    core_state *state;
    /* NULL once closed. */
    tollbar_lease_client *handle;
    /* The listener, which is called with a TOLLBAR_CIRCUIT_ number, or NULL. */
    PyObject *listener;
    /* The text of the fault when the circuit last changed, for threads that do not drive the client;
     * NULL before. */
    PyObject *said;
    /* What begins TLS with a host (tollbar._tls.starter), or NULL. */
    PyObject *starter;
    /* The last fault of TLS, as text. */
    char fault[FAULT_ROOM];
    /* Whether a call of tick or run is under way. */
    int running;
} redis_client;

static inline redis_client *of(PyObject *self) {
    return (redis_client *)self;
}

/* The text of the last fault. Only the thread that drives the client may call it. */
static PyObject *fault_of(redis_client *client) {
    const char *text = tollbar_lease_client_error(client->handle);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static void tell(PyObject *listener, uint32_t circuit) {
    Py_INCREF(listener);
    PyObject *answer = PyObject_CallFunction(listener, "I", circuit);
    if (answer == NULL)
        PyErr_WriteUnraisable(listener);
    Py_XDECREF(answer);
    Py_DECREF(listener);
}

/* The library calls this from tick or run, in their thread, with or without the GIL. */
static void changed(void *argument, uint32_t circuit) {
    PyGILState_STATE gil = PyGILState_Ensure();
    redis_client *client = argument;
    PyObject *before = client->said;
    client->said = fault_of(client);
    if (client->said == NULL)
        PyErr_Clear();
    Py_XDECREF(before);
    if (client->listener != NULL)
        tell(client->listener, circuit);
    PyGILState_Release(gil);
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
    if (client->starter == NULL)
        return tollbar_lease_client_new(client->node->handle, url, length, column, &client->handle);
    tls.context = client;
    tls.start = tls_start;
    tls.cipher_in = tls_cipher_in;
    tls.cipher_out = tls_cipher_out;
    tls.plain_in = tls_plain_in;
    tls.plain_out = tls_plain_out;
    tls.wants = tls_wants;
    tls.fault = tls_fault;
    tls.end = tls_end;
    return tollbar_lease_client_new_tls(client->node->handle, url, length, &tls, column, &client->handle);
}

/* Client(lease, url, listener or None, starter or None) */
static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *lease, *listener, *starter;
    const char *url;
    Py_ssize_t length;
    size_t column = 0;
    redis_state *module = redis_state_of(type);
    if (module == NULL || !PyArg_ParseTuple(args, "O!s#OO", module->lease, &lease, &url, &length, &listener, &starter))
        return NULL;
    if (redis_lease_handle(lease) == NULL)
        return NULL;
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL)
        return NULL;
    redis_client *client = of(self);
    client->state = module->core;
    client->node = ((redis_lease *)lease)->node;
    client->node->users++;
    if (starter != Py_None) {
        Py_INCREF(starter);
        client->starter = starter;
    }
    int32_t code = make(client, url, (size_t)length, &column);
    if (listener != Py_None) {
        Py_INCREF(listener);
        client->listener = listener;
    }
    if (code == 0)
        code = tollbar_lease_client_on_change(client->handle, changed, client);
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

static int client_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(of(self)->listener);
    Py_VISIT(of(self)->starter);
    return 0;
}

static int client_clear(PyObject *self) {
    /* A call under way may use the listener. It holds a reference to this object, which then is not
     * garbage. The starter stays for the connection, and leads to no client. */
    if (of(self)->handle != NULL)
        tollbar_lease_client_on_change(of(self)->handle, NULL, NULL);
    Py_CLEAR(of(self)->listener);
    return 0;
}

static void client_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tollbar_lease_client_close(of(self)->handle, 0);
    of(self)->handle = NULL;
    Py_CLEAR(of(self)->listener);
    Py_CLEAR(of(self)->starter);
    Py_CLEAR(of(self)->said);
    redis_node_release(of(self)->node);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* The handle, for a call that must be the only one. */
static tollbar_lease_client *mine(PyObject *self) {
    if (of(self)->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the lease is closed");
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
    /* The mark stays during the tick, because a listener may run Python code that closes the
     * client. */
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

static PyObject *client_error(PyObject *self, PyObject *unused) {
    (void)unused;
    redis_client *client = of(self);
    if (client->handle == NULL || !client->running)
        return mine(self) == NULL ? NULL : fault_of(client);
    if (client->said == NULL)
        return PyUnicode_FromString("");
    Py_INCREF(client->said);
    return client->said;
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
    CORE_METHOD("run", client_run, METH_NOARGS, "($self, /)", "Asks the store until stop, without the GIL."),
    CORE_METHOD("stop", client_stop, METH_NOARGS, "($self, /)", "Lets run return."),
    CORE_METHOD("tick", client_tick, METH_NOARGS, "($self, /)",
                "Does the pending work, and returns the milliseconds until the next call."),
    CORE_METHOD("fd", client_fd, METH_NOARGS, "($self, /)", "The descriptor, and what to watch it for."),
    CORE_METHOD("error", client_error, METH_NOARGS, "($self, /)", "Why the store does not answer, or refuses."),
    CORE_METHOD("close", client_close, METH_VARARGS, "($self, milliseconds, /)",
                "Reports the unreported permits to the store, and frees the client."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot client_slots[] = {
    CORE_SLOTS(client),
    { Py_tp_traverse, client_traverse },
    { Py_tp_clear, client_clear },
    { 0, NULL },
};

CORE_TYPE(redis_client_spec, "tollbar._redis.Client", redis_client, Py_TPFLAGS_HAVE_GC, client_slots);
