/* Store: which call of a script decides in the store, and what its reply says. */

#include "redis.h"

/* More numbers than any script returns. */
enum { NUMBERS_MOST = 8 };

typedef struct {
    PyObject_HEAD
    core_state *state;
    tollbar_store_limit *handle;
} redis_store;

static inline redis_store *of(PyObject *self) {
    return (redis_store *)self;
}

/* Store(name, text) */
static PyObject *store_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *text;
    const char *name;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "s#O", &name, &length, &text))
        return NULL;
    redis_state *module = redis_state_of(type);
    core_state *state = module == NULL ? NULL : module->core;
    tollbar_policy_spec spec;
    if (state == NULL || core->spec_parse(state, text, &spec) != 0)
        return NULL;
    tollbar_store_limit *handle = NULL;
    int32_t code = tollbar_store_limit_new(name, (size_t)length, &spec, &handle);
    if (code != 0)
        return core->raise(state, code, NULL);
    allocfunc alloc = PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (self == NULL) {
        tollbar_store_limit_free(handle);
        return NULL;
    }
    of(self)->state = state;
    of(self)->handle = handle;
    return self;
}

static void store_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tollbar_store_limit_free(of(self)->handle);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ask(what, key, cost) -> (script or None, the name of the key, arguments) */
static PyObject *store_ask(PyObject *self, PyObject *args) {
    unsigned int what;
    PyObject *of_key, *of_cost;
    uint64_t cost;
    core_key key = { NULL, 0, 0, NULL };
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    if (!PyArg_ParseTuple(args, "IOO", &what, &of_key, &of_cost) || core->uint64(of_cost, "cost", &cost) != 0
        || core->key_get(of_key, &key) != 0)
        return NULL;
    if (key.length == 0 || key.length > TOLLBAR_STORE_KEY_MAX) {
        PyErr_Format(PyExc_ValueError, "a key in a store has 1 to %d bytes, not %zu", TOLLBAR_STORE_KEY_MAX, key.length);
        core_key_release(&key);
        return NULL;
    }
    int32_t code = tollbar_store_ask(of(self)->handle, what, key.data, key.length, cost, &question);
    core_key_release(&key);
    if (code != 0)
        return core->raise(of(self)->state, code, NULL);
    PyObject *numbers = PyTuple_New(question.arg_count);
    for (uint32_t n = 0; numbers != NULL && n < question.arg_count; n++) {
        PyObject *number = PyLong_FromUnsignedLongLong(question.args[n]);
        if (number == NULL || PyTuple_SetItem(numbers, n, number) != 0)
            Py_CLEAR(numbers);
    }
    if (numbers == NULL)
        return NULL;
    return Py_BuildValue("zy#N", question.script, (const char *)question.key, (Py_ssize_t)question.key_length, numbers);
}

/* Reads the numbers of a reply and returns how many they are, or -1 with an error. A reply that is not
 * a list of whole numbers has none. */
static Py_ssize_t numbers_of(PyObject *reply, int64_t *numbers) {
    if (!PyList_Check(reply))
        return 0;
    Py_ssize_t count = PyList_Size(reply);
    if (count > NUMBERS_MOST)
        count = NUMBERS_MOST;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *number = PyList_GetItem(reply, n);
        if (number == NULL)
            return -1;
        if (!PyLong_Check(number))
            return 0;
        numbers[n] = PyLong_AsLongLong(number);
        if (numbers[n] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    }
    return count;
}

/* answer(what, cost, reply) -> (the decision, the permits that the store has charged) */
static PyObject *store_answer(PyObject *self, PyObject *args) {
    unsigned int what;
    PyObject *of_cost, *reply;
    uint64_t cost, taken = 0;
    int64_t numbers[NUMBERS_MOST];
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    if (!PyArg_ParseTuple(args, "IOO", &what, &of_cost, &reply) || core->uint64(of_cost, "cost", &cost) != 0)
        return NULL;
    Py_ssize_t count = numbers_of(reply, numbers);
    core_decision *out = count < 0 ? NULL : core->decision_new(of(self)->state->decision);
    if (out == NULL)
        return NULL;
    question.ask = what;
    question.cost = cost;
    int32_t code = tollbar_store_answer(of(self)->handle, &question, numbers, (size_t)count, &out->answer, &taken);
    if (code >= 0)
        return Py_BuildValue("NK", out, (unsigned long long)taken);
    Py_DECREF(out);
    return core->raise(of(self)->state, code, NULL);
}

static PyMethodDef store_methods[] = {
    CORE_METHOD("ask", store_ask, METH_VARARGS, "($self, what, key, cost, /)",
                "The script to run, or None; its key; and its arguments."),
    CORE_METHOD("answer", store_answer, METH_VARARGS, "($self, what, cost, reply, /)",
                "The decision, and the permits that the store has charged."),
    { NULL, NULL, 0, NULL },
};

static PyType_Slot store_slots[] = {
    CORE_SLOTS(store),
    { 0, NULL },
};

CORE_TYPE(redis_store_spec, "tollbar._redis.Store", redis_store, 0, store_slots);
