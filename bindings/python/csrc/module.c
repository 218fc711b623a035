/* The module tollbar._core. */

#include "core.h"

core_state *core_state_of(PyTypeObject *type) {
    for (; type != NULL; type = PyType_GetSlot(type, Py_tp_base)) {
        PyObject *module = PyType_GetModule(type);
        if (module == NULL)
            PyErr_Clear();
        else if (PyModule_GetDef(module) == &core_module)
            return PyModule_GetState(module);
    }
    PyErr_SetString(PyExc_SystemError, "not a type of tollbar");
    return NULL;
}

static PyObject *core_drive(PyObject *module, PyObject *unused) {
    (void)unused;
    core_state *state = PyModule_GetState(module);
    state->drives = 1;
    Py_RETURN_NONE;
}

static PyMethodDef core_methods[] = {
    CORE_METHOD("worst_case", core_worst_case, METH_VARARGS, "($module, text, window_ns, /)",
                "The most that a policy admits in a window."),
    CORE_METHOD("curve", core_curve, METH_VARARGS, "($module, limit, period_ns, shares, /)",
                "The text of a curve through these values; use tollbar.Policy.curve."),
    CORE_METHOD("parse", core_parse, METH_O, "($module, text, /)", "The canonical text and the fields of a policy's text."),
    CORE_METHOD("schedule_text", core_schedule_text, METH_O, "($module, text, /)", "The canonical text of a schedule."),
    CORE_METHOD("schedule_at", core_schedule_at, METH_VARARGS, "($module, text, unix_ns, /)",
                "The policy in force, and the time of the next change or None; use tollbar.Schedule."),
    CORE_METHOD("address_key", core_address_key, METH_VARARGS, "($module, text, ipv4_bits, ipv6_bits, /)",
                "The key of a network address."),
    CORE_METHOD("network", core_network, METH_O, "($module, text, /)", "A network of trusted proxies, for client_key."),
    CORE_METHOD("client_key", core_client_key, METH_VARARGS, "($module, peer, forwarded, networks, /)",
                "The key of a client behind proxies; use `proxies` of the middleware."),
    CORE_METHOD("key_bytes", core_key_bytes, METH_O, "($module, key, /)",
                "The bytes that a table knows a key by; None for no key."),
    CORE_FAST("take_many", core_take_many, "($module, /, limits, *, at=None)",
              "Takes the cost of each limit, or nothing from any. A limit is a Limiter, (Limiter, cost) or\n"
              "(Table, key, cost=1, policy=0); there are 1 to 16. Each limit reads its own clock."),
    CORE_METHOD("drive", core_drive, METH_NOARGS, "($module, /)",
                "From now on some limiter or table goes by Python's clock."),
    CORE_FAST("route", core_route, "($module, /, nodes, key, seed=0)",
              "The node that a key belongs to. `nodes` are names, or a mapping of names to weights: a node's share of the\n"
              "keys is its weight by the sum of all weights. None if no node has a weight above 0. If a node leaves, only its\n"
              "own keys move. All callers give the same seed. With a secret one a stranger cannot invent keys that all belong\n"
              "to one node. A call takes some 200 ns for each node."),
    CORE_METHOD("http_write", core_http_write, METH_VARARGS, "($module, limits, what, number, /)", "Header fields, or a problem; use tollbar.http."),
    CORE_METHOD("metrics", core_metrics, METH_VARARGS, "($module, sources, openmetrics, /)", "The metrics as text; use tollbar.metrics."),
    CORE_METHOD("http_read", core_http_read, METH_VARARGS, "($module, lines, utc_ns, /)", "What header fields say; use tollbar.http."),
    { NULL, NULL, 0, NULL },
};

static const core_api core_functions = {
    core_raise, core_spec_parse, core_decision_new, core_bind, core_uint64, core_key_get,
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, type) != 0)
        Py_CLEAR(type);
    return type;
}

static int core_exec(PyObject *module) {
    core_state *state = PyModule_GetState(module);
    /* A library of another ABI does not have this symbol, so the module does not load with it. */
    if (tollbar_abi_1 != 1) {
        PyErr_SetString(PyExc_ImportError, "tollbar: a library of another ABI");
        return -1;
    }
    PyObject *errors = PyImport_ImportModule("tollbar._errors");
    if (errors == NULL)
        return -1;
    state->policy_error = PyObject_GetAttrString(errors, "policy_error");
    state->call_error = PyObject_GetAttrString(errors, "call_error");
    Py_DECREF(errors);
    if (state->policy_error == NULL || state->call_error == NULL)
        return -1;

    state->decision = add_type(module, &core_decision_spec);
    state->taken = add_type(module, &core_taken_spec);
    state->limiter = add_type(module, &core_limiter_spec);
    state->table = add_type(module, &core_table_spec);
    state->in_flight = add_type(module, &core_in_flight_spec);
    state->share = add_type(module, &core_share_spec);
    if (state->decision == NULL || state->taken == NULL || state->limiter == NULL || state->table == NULL
        || state->in_flight == NULL || state->share == NULL)
        return -1;
    /* The module keeps no reference to these types, because no C code needs it. */
    PyType_Spec *const others[] = {
        &core_adaptive_spec, &core_hierarchy_spec, &core_meter_spec, &core_pacing_spec, &core_queue_spec, &core_send_window_spec,
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        PyTypeObject *type = add_type(module, others[i]);
        if (type == NULL)
            return -1;
        Py_DECREF(type);
    }
    if (PyModule_AddStringConstant(module, "hierarchy_policy", TOLLBAR_HIERARCHY_POLICY) != 0
        || PyModule_AddIntConstant(module, "hierarchy_root", TOLLBAR_HIERARCHY_ROOT) != 0)
        return -1;
    /* A capsule takes a pointer to non-const. No code writes through it. */
    PyObject *api = PyCapsule_New((void *)&core_functions, CORE_API, NULL);
    if (api == NULL)
        return -1;
    int added = PyModule_AddObjectRef(module, "_api", api);
    Py_DECREF(api);
    return added != 0 ? -1 : PyModule_AddStringConstant(module, "version", tollbar_version_string());
}

static int core_traverse(PyObject *module, visitproc visit, void *arg) {
    core_state *state = PyModule_GetState(module);
    Py_VISIT(state->decision);
    Py_VISIT(state->taken);
    Py_VISIT(state->limiter);
    Py_VISIT(state->table);
    Py_VISIT(state->in_flight);
    Py_VISIT(state->share);
    Py_VISIT(state->policy_error);
    Py_VISIT(state->call_error);
    return 0;
}

static int core_clear(PyObject *module) {
    core_state *state = PyModule_GetState(module);
    Py_CLEAR(state->decision);
    Py_CLEAR(state->taken);
    Py_CLEAR(state->limiter);
    Py_CLEAR(state->table);
    Py_CLEAR(state->in_flight);
    Py_CLEAR(state->share);
    Py_CLEAR(state->policy_error);
    Py_CLEAR(state->call_error);
    return 0;
}

static void core_free(void *module) {
    core_clear(module);
}

static PyModuleDef_Slot core_slots[] = {
    { Py_mod_exec, core_exec },
    { 0, NULL },
};

struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tollbar._core",
    .m_doc = "What tollbar is made of; use the package.",
    .m_size = sizeof(core_state),
    .m_methods = core_methods,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&core_module);
}
