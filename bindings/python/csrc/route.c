/* route: which of several nodes a key belongs to. */

#include "core.h"

/* The nodes of a call. */
typedef struct {
    /* Of a mapping its items, otherwise its nodes: a new list. */
    PyObject *list;
    int weighted;
    Py_ssize_t count;
    /* How many of `names` hold a name. */
    Py_ssize_t named;
    core_key *names;
    tollbar_node *nodes;
} route_nodes;

static PyObject *name_at(const route_nodes *of, Py_ssize_t n) {
    PyObject *one = PyList_GetItem(of->list, n);
    return of->weighted ? PyTuple_GetItem(one, 0) : one;
}

static void release_nodes(route_nodes *of) {
    while (of->named > 0)
        core_key_release(&of->names[--of->named]);
    PyMem_Free(of->names);
    PyMem_Free(of->nodes);
    Py_CLEAR(of->list);
}

/* Reads the names and weights. On failure the caller releases the nodes, too. */
static int read_nodes(PyObject *object, route_nodes *of) {
    if (PyUnicode_Check(object) || PyBytes_Check(object)) {
        PyErr_SetString(PyExc_TypeError,
                        "nodes are several names, or a mapping of names to weights, not one name");
        return -1;
    }
    of->weighted = PyObject_HasAttrString(object, "keys");
    of->list = of->weighted ? PyMapping_Items(object) : PySequence_List(object);
    if (of->list == NULL)
        return -1;
    of->count = PyList_Size(of->list);
    if (of->count > TOLLBAR_NODES_MOST) {
        PyErr_Format(PyExc_ValueError, "%zd nodes, expected at most %d", of->count,
                     TOLLBAR_NODES_MOST);
        return -1;
    }
    of->names = PyMem_Calloc((size_t)of->count + 1, sizeof *of->names);
    of->nodes = PyMem_Calloc((size_t)of->count + 1, sizeof *of->nodes);
    if (of->names == NULL || of->nodes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t n = 0; n < of->count; n++) {
        PyObject *name = name_at(of, n);
        uint64_t weight = 1;
        if (name == NULL || core_key_get(name, &of->names[n]) != 0)
            return -1;
        of->named++;
        if (of->weighted && core_uint64(PyTuple_GetItem(PyList_GetItem(of->list, n), 1), "a weight",
                                        &weight) != 0)
            return -1;
        if (weight > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError, "the weight of %R must be below 2**32", name);
            return -1;
        }
        of->nodes[n].name = of->names[n].data;
        of->nodes[n].length = of->names[n].length;
        of->nodes[n].weight = (uint32_t)weight;
    }
    return 0;
}

static PyObject *choose(core_state *state, const route_nodes *of, const core_key *key,
                        uint64_t seed) {
    size_t index = 0;
    /* The library refuses an empty list. It is a cluster without a node that takes the key. */
    const int32_t code = of->count == 0 ? TOLLBAR_NO
                                        : tollbar_route(of->nodes, (size_t)of->count, key->data,
                                                        key->length, seed, &index);
    if (code < 0)
        return core_raise(state, code, NULL);
    return Py_NewRef(code == TOLLBAR_YES ? name_at(of, (Py_ssize_t)index) : Py_None);
}

/* route(nodes, key, seed=0) */
PyObject *core_route(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *keywords) {
    static const char *const names[] = { "nodes", "key", "seed", NULL };
    PyObject *given[3] = { NULL, NULL, NULL };
    PyObject *found = NULL;
    uint64_t seed = 0;
    core_key key;
    route_nodes nodes = { 0 };
    if (core_bind("route", names, 2, 3, args, nargs, keywords, given) != 0
        || (given[2] != NULL && core_uint64(given[2], "seed", &seed) != 0)
        || core_key_get(given[1], &key) != 0)
        return NULL;
    if (read_nodes(given[0], &nodes) == 0)
        found = choose(PyModule_GetState(module), &nodes, &key, seed);
    release_nodes(&nodes);
    core_key_release(&key);
    return found;
}
