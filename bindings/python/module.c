/* SPDX-License-Identifier: Apache-2.0 */
/* see module.h */
#include "module.h"

#include "limiter.h"

static PyObject *mistakes(PyObject *module, PyObject *rules)
{
    struct weir_py_state *state = PyModule_GetState(module);
    PyObject *path, *list;
    if (!PyUnicode_FSConverter(rules, &path))
        return NULL;
    list = weir_py_mistakes(&state->errors, PyBytes_AsString(path));
    Py_DECREF(path);
    return list;
}

static PyMethodDef methods[] = {
    {"mistakes", mistakes, METH_O, "The mistakes of a rules file: (file, line, column, message)."},
    {NULL, NULL, 0, NULL}};

static int module_exec(PyObject *module)
{
    struct weir_py_state *state = PyModule_GetState(module);
    if (PyModule_AddStringConstant(module, "__version__", WEIR_VERSION) < 0 ||
        weir_py_errors_init(&state->errors, module) < 0 ||
        weir_py_answers_init(&state->answers, module) < 0)
        return -1;
    return weir_py_limiter_init(state, module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    const struct weir_py_state *state = PyModule_GetState(module);
    Py_VISIT(state->limiter);
    int stop = weir_py_errors_visit(&state->errors, visit, arg);
    return stop ? stop : weir_py_answers_visit(&state->answers, visit, arg);
}

static int module_clear(PyObject *module)
{
    struct weir_py_state *state = PyModule_GetState(module);
    Py_CLEAR(state->limiter);
    weir_py_errors_clear(&state->errors);
    weir_py_answers_clear(&state->answers);
    return 0;
}

static void module_free(void *module)
{
    (void)module_clear(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "weir._weir",
    .m_doc = "libweir",
    .m_size = sizeof(struct weir_py_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__weir(void)
{
    return PyModuleDef_Init(&definition);
}
