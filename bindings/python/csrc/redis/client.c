/* Client: a lease's connection to the store. It is an object of its own, so that its thread does
 * not keep the lease alive. */

#include <string.h>

#include "redis.h"

typedef struct {
    PyObject_HEAD
    redis_node *node;
    core_state *state;
    /* NULL once closed. */
    tollbar_lease_client *handle;
    /* The listener, which is called with a TOLLBAR_CIRCUIT_ number, or NULL. */
    PyObject *listener;
    /* Whether a call of tick or run is under way. */
    int running;
} redis_client;

static inline redis_client *of(PyObject *self) {
    return (redis_client *)self;
}

/* The library calls this from tick or run, in their thread, with or without the GIL. */
static void changed(void *argument, uint32_t circuit) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *listener = of(argument)->listener;
    Py_INCREF(listener);
    PyObject *answer = PyObject_CallFunction(listener, "I", circuit);
    if (answer == NULL)
        PyErr_WriteUnraisable(listener);
    Py_XDECREF(answer);
    Py_DECREF(listener);
    PyGILState_Release(gil);
}

/* Client(lease, url, listener or None) */
static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *lease, *listener;
    const char *url;
    Py_ssize_t length;
    size_t column = 0;
    redis_state *module = redis_state_of(type);
    if (module == NULL || !PyArg_ParseTuple(args, "O!s#O", module->lease, &lease, &url, &length, &listener))
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
    int32_t code = tollbar_lease_client_new(client->node->handle, url, (size_t)length, &column, &client->handle);
    if (code == 0 && listener != Py_None) {
        Py_INCREF(listener);
        client->listener = listener;
        code = tollbar_lease_client_on_change(client->handle, changed, client);
    }
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
    return 0;
}

static int client_clear(PyObject *self) {
    /* A call under way may use the listener. It holds a reference to this object, which then is not
     * garbage. */
    if (of(self)->handle != NULL && of(self)->listener != NULL)
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
    tollbar_lease_client *handle = mine(self);
    if (handle == NULL)
        return NULL;
    const char *text = tollbar_lease_client_error(handle);
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
    CORE_METHOD("run", client_run, METH_NOARGS, "($self, /)", "Asks the store until stop, without the GIL."),
    CORE_METHOD("stop", client_stop, METH_NOARGS, "($self, /)", "Lets run return."),
    CORE_METHOD("tick", client_tick, METH_NOARGS, "($self, /)", "Does what there is to do; milliseconds until the next time."),
    CORE_METHOD("fd", client_fd, METH_NOARGS, "($self, /)", "The descriptor, and what to watch it for."),
    CORE_METHOD("error", client_error, METH_NOARGS, "($self, /)", "Why the store last refused."),
    CORE_METHOD("close", client_close, METH_VARARGS, "($self, milliseconds, /)", "Tells the store what it has not been told."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot client_slots[] = {
    CORE_SLOTS(client),
    { Py_tp_traverse, client_traverse },
    { Py_tp_clear, client_clear },
    { 0, NULL },
};

CORE_TYPE(redis_client_spec, "tollbar._redis.Client", redis_client, Py_TPFLAGS_HAVE_GC, client_slots);
