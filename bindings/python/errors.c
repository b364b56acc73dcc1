/* SPDX-License-Identifier: Apache-2.0 */
/* see errors.h */
#include "errors.h"

#include <stdlib.h>
#include <string.h>

#include <weir/embed.h>

/* --- The exceptions --------------------------------------------------------------------------- */

static PyObject *make(PyObject *module, const char *name, const char *doc, PyObject *bases)
{
    const char *dot = strrchr(name, '.');
    PyObject *made = PyErr_NewExceptionWithDoc(name, doc, bases, NULL);
    if (made && PyModule_AddObjectRef(module, dot + 1, made) < 0)
        Py_CLEAR(made);
    return made;
}

/* An exception that is also one of Python's own. */
static PyObject *make_both(PyObject *module, const char *name, const char *doc, PyObject *base,
                           PyObject *other)
{
    PyObject *bases = PyTuple_Pack(2, base, other);
    if (!bases)
        return NULL;
    PyObject *made = make(module, name, doc, bases);
    Py_DECREF(bases);
    return made;
}

int weir_py_errors_init(struct weir_py_errors *errors, PyObject *module)
{
    errors->base = make(module, "weir.Error", "What weir raises; `code` is libweir's.", NULL);
    if (!errors->base)
        return -1;
    errors->rules =
        make(module, "weir.RulesError",
             "The rules file is not usable; `mistakes` has what is wrong with it.", errors->base);
    errors->state = make(module, "weir.StateError",
                         "The state is not usable, or the limiter is closed.", errors->base);
    errors->request =
        make_both(module, "weir.RequestError", "A path, a host, an address or a number is invalid.",
                  errors->base, PyExc_ValueError);
    errors->not_found =
        make_both(module, "weir.NotFoundError", "A lease or reservation is unknown or has ended.",
                  errors->base, PyExc_LookupError);
    return errors->rules && errors->state && errors->request && errors->not_found ? 0 : -1;
}

void weir_py_errors_clear(struct weir_py_errors *errors)
{
    Py_CLEAR(errors->base);
    Py_CLEAR(errors->rules);
    Py_CLEAR(errors->state);
    Py_CLEAR(errors->request);
    Py_CLEAR(errors->not_found);
}

int weir_py_errors_visit(const struct weir_py_errors *errors, visitproc visit, void *arg)
{
    Py_VISIT(errors->base);
    Py_VISIT(errors->rules);
    Py_VISIT(errors->state);
    Py_VISIT(errors->request);
    Py_VISIT(errors->not_found);
    return 0;
}

/* --- Raising ---------------------------------------------------------------------------------- */

/* `mistakes` may be NULL. */
static PyObject *raise_one(PyObject *type, int err, const char *text, PyObject *mistakes)
{
    PyObject *error = PyObject_CallFunction(type, "s", text);
    PyObject *code = PyLong_FromLong(err);
    if (error && code && PyObject_SetAttrString(error, "code", code) == 0 &&
        (!mistakes || PyObject_SetAttrString(error, "mistakes", mistakes) == 0))
        PyErr_SetObject(type, error);
    Py_XDECREF(code);
    Py_XDECREF(error);
    return NULL;
}

PyObject *weir_py_raise(const struct weir_py_errors *errors, int err, const char *what)
{
    char text[WEIR_REASON_MAX];
    PyObject *type = errors->state;
    if (err == WEIR_ERR_MEMORY)
        return PyErr_NoMemory();
    if (err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE || err == WEIR_ERR_TOO_LARGE)
        type = errors->request;
    else if (err == WEIR_ERR_NOT_FOUND)
        type = errors->not_found;
    PyOS_snprintf(text, sizeof text, "%s%s%s", what ? what : "", what ? ": " : "",
                  weir_error_text(err));
    return raise_one(type, err, text, NULL);
}

PyObject *weir_py_raise_closed(const struct weir_py_errors *errors)
{
    return raise_one(errors->state, WEIR_ERR_CANCELLED, "the limiter is closed: open another",
                     NULL);
}

/* Mistakes are copied while no Python code may run. */
struct mistake {
    struct mistake *next;
    unsigned line, column;
    char *message;
    char file[];
};

struct mistakes {
    struct mistake *first, **last;
    bool no_memory;
};

static void note(void *context, const char *file, unsigned line, unsigned column,
                 const char *message)
{
    struct mistakes *list = context;
    size_t file_size = strlen(file) + 1, message_size = strlen(message) + 1;
    struct mistake *one = malloc(sizeof *one + file_size + message_size);
    if (!one) {
        list->no_memory = true;
        return;
    }
    one->next = NULL;
    one->line = line;
    one->column = column;
    one->message = one->file + file_size;
    memcpy(one->file, file, file_size);
    memcpy(one->message, message, message_size);
    *list->last = one;
    list->last = &one->next;
}

/* Takes the list apart. */
static PyObject *as_list(struct mistakes *mistakes)
{
    PyObject *list = mistakes->no_memory ? PyErr_NoMemory() : PyList_New(0);
    while (mistakes->first) {
        struct mistake *one = mistakes->first;
        PyObject *tuple = NULL;
        if (list)
            tuple = Py_BuildValue("(sIIs)", one->file, one->line, one->column, one->message);
        if (list && (!tuple || PyList_Append(list, tuple) < 0))
            Py_CLEAR(list);
        Py_XDECREF(tuple);
        mistakes->first = one->next;
        free(one);
    }
    return list;
}

/* The mistakes, or NULL with an exception; *err and *reason: what the check returned. */
static PyObject *read_mistakes(const char *rules_file, int *err, struct weir_reason *reason)
{
    struct mistakes mistakes = {NULL, &mistakes.first, false};
    Py_BEGIN_ALLOW_THREADS *err = weir_rules_check_file(rules_file, note, &mistakes, reason);
    Py_END_ALLOW_THREADS return as_list(&mistakes);
}

PyObject *weir_py_mistakes(const struct weir_py_errors *errors, const char *rules_file)
{
    int err;
    struct weir_reason reason;
    PyObject *list = read_mistakes(rules_file, &err, &reason);
    if (list && err < 0 && err != WEIR_ERR_RULES) {
        Py_CLEAR(list);
        weir_py_raise_open(errors, err, rules_file, reason.text);
    }
    return list;
}

PyObject *weir_py_raise_open(const struct weir_py_errors *errors, int err, const char *rules_file,
                             const char *reason)
{
    struct weir_reason unused;
    if (err == WEIR_ERR_MEMORY)
        return PyErr_NoMemory();
    if (err != WEIR_ERR_RULES && err != WEIR_ERR_UNSUPPORTED)
        return raise_one(errors->state, err, reason, NULL);
    int again = 0;
    PyObject *list =
        err == WEIR_ERR_RULES ? read_mistakes(rules_file, &again, &unused) : PyList_New(0);
    if (list)
        raise_one(errors->rules, err, reason, list);
    Py_XDECREF(list);
    return NULL;
}
