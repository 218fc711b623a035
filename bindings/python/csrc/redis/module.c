/* The module tollbar._redis. */

#include "redis.h"

static struct PyModuleDef redis_module;

const core_api *core;

redis_state *redis_state_of(PyTypeObject *type) {
    for (; type != NULL; type = PyType_GetSlot(type, Py_tp_base)) {
        PyObject *module = PyType_GetModule(type);
        if (module == NULL)
            PyErr_Clear();
        else if (PyModule_GetDef(module) == &redis_module)
            return PyModule_GetState(module);
    }
    PyErr_SetString(PyExc_SystemError, "not a type of tollbar");
    return NULL;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, type) != 0)
        Py_CLEAR(type);
    return type;
}

static int redis_exec(PyObject *module) {
    redis_state *state = PyModule_GetState(module);
    /* A library of another ABI does not have this symbol, so the module does not load with it. */
    if (tollbar_redis_abi_1 != 1) {
        PyErr_SetString(PyExc_ImportError, "tollbar: a libtollbar-redis of another ABI");
        return -1;
    }
    state->core_module = PyImport_ImportModule("tollbar._core");
    if (state->core_module == NULL)
        return -1;
    core = PyCapsule_Import(CORE_API, 0);
    state->core = PyModule_GetState(state->core_module);
    if (core == NULL || state->core == NULL)
        return -1;

    state->lease = add_type(module, &redis_lease_spec);
    PyTypeObject *client = add_type(module, &redis_client_spec);
    PyTypeObject *calls = add_type(module, &redis_calls_spec);
    PyTypeObject *store = add_type(module, &redis_store_spec);
    int missing = state->lease == NULL || client == NULL || calls == NULL || store == NULL;
    Py_XDECREF((PyObject *)client);
    Py_XDECREF((PyObject *)calls);
    Py_XDECREF((PyObject *)store);
    if (missing)
        return -1;
    return PyModule_AddStringConstant(module, "SCRIPT", tollbar_lease_calls_script());
}

static int redis_traverse(PyObject *module, visitproc visit, void *arg) {
    redis_state *state = PyModule_GetState(module);
    Py_VISIT(state->core_module);
    Py_VISIT(state->lease);
    return 0;
}

static int redis_clear(PyObject *module) {
    redis_state *state = PyModule_GetState(module);
    Py_CLEAR(state->core_module);
    Py_CLEAR(state->lease);
    return 0;
}

static void redis_free(void *module) {
    redis_clear(module);
}

static PyModuleDef_Slot redis_slots[] = {
    { Py_mod_exec, redis_exec },
    { 0, NULL },
};

static struct PyModuleDef redis_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tollbar._redis",
    .m_doc = "What leases are made of; use the package.",
    .m_size = sizeof(redis_state),
    .m_slots = redis_slots,
    .m_traverse = redis_traverse,
    .m_clear = redis_clear,
    .m_free = redis_free,
};

PyMODINIT_FUNC PyInit__redis(void) {
    return PyModuleDef_Init(&redis_module);
}
