/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "attributes.h"

#include <arpa/inet.h>
#include <string.h>

#define STATUS_MIN 100
#define STATUS_MAX 599

/* --- What the rules read ---------------------------------------------------------------------- */

/* Adds a name that the rules read. */
static bool learn_name(struct weir_py_reads *reads, PyObject *list, struct weir *weir, int handle)
{
    const char *name = weir_attribute_name(weir, handle);
    PyObject *key = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
    PyObject *number = PyLong_FromLong(handle);
    if (key)
        PyUnicode_InternInPlace(&key);
    bool done = key && number && PyDict_SetItem(reads->handles, key, number) == 0 &&
                PyList_Append(list, key) == 0;
    Py_XDECREF(key);
    Py_XDECREF(number);
    if (strncmp(name, "header.", strlen("header.")) == 0)
        reads->field = handle;
    return done;
}

static bool learn_names(struct weir_py_reads *reads, struct weir *weir)
{
    PyObject *list = PyList_New(0);
    bool done = list && (reads->handles = PyDict_New());
    for (int i = 0; done && weir_attribute_name(weir, i); i++)
        if (weir_attribute_read(weir, i))
            done = learn_name(reads, list, weir, i);
    if (done)
        reads->names = PyList_AsTuple(list);
    Py_XDECREF(list);
    return reads->names;
}

static bool learn_outcomes(struct weir_py_reads *reads, struct weir *weir)
{
    PyObject *list = PyList_New(0);
    bool done = list;
    for (unsigned status = STATUS_MIN; done && status <= STATUS_MAX; status++) {
        if (!weir_rules_outcome(weir, status))
            continue;
        PyObject *number = PyLong_FromUnsignedLong(status);
        done = number && PyList_Append(list, number) == 0;
        Py_XDECREF(number);
    }
    if (done)
        reads->outcomes = PyFrozenSet_New(list);
    Py_XDECREF(list);
    return reads->outcomes;
}

bool weir_py_reads_learn(struct weir_py_reads *reads, struct weir *weir)
{
    struct weir_py_reads learned = {.field = -1, .refunds = weir_rules_refund(weir)};
    bool done = learn_names(&learned, weir) && learn_outcomes(&learned, weir);
    struct weir_py_reads old = done ? *reads : learned;
    if (done)
        *reads = learned;
    weir_py_reads_clear(&old);
    return done;
}

void weir_py_reads_clear(struct weir_py_reads *reads)
{
    Py_CLEAR(reads->handles);
    Py_CLEAR(reads->names);
    Py_CLEAR(reads->outcomes);
}

/* --- Attributes of a request ------------------------------------------------------------------ */

/* Text as UTF-8, or bytes as they are; None is absent. */
static bool read_bytes(const struct weir_py_errors *errors, PyObject *object, const char *what,
                       const char **data, size_t *size)
{
    char *bytes;
    Py_ssize_t length = 0;
    *data = NULL;
    *size = 0;
    if (object == Py_None)
        return true;
    if (PyUnicode_Check(object)) {
        *data = PyUnicode_AsUTF8AndSize(object, &length);
        if (!*data && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
            PyErr_Clear();
            weir_py_raise(errors, WEIR_ERR_SYNTAX, what);
        }
    } else if (PyBytes_AsStringAndSize(object, &bytes, &length) == 0) {
        *data = bytes;
    } else {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: a str, bytes or None", what);
    }
    *size = (size_t)length;
    return *data;
}

/* The handle of a name; -1: the rules do not read it; -2: an exception is set. *field: it is one of
 * a header. A subclass of str is taken as its plain text, since its methods might run any code, and
 * close this limiter. */
static int handle_of(const struct weir_py_reads *reads, PyObject *name, bool *field)
{
    Py_ssize_t size;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the name of an attribute is a str");
        return -2;
    }
    *field = strncasecmp(text, "header.", strlen("header.")) == 0;
    PyObject *plain = PyUnicode_FromObject(name);
    PyObject *found = plain ? PyDict_GetItemWithError(reads->handles, plain) : NULL;
    if (!found && *field && !PyErr_Occurred()) {
        PyObject *lower = PyObject_CallMethod(plain, "lower", NULL);
        found = lower ? PyDict_GetItemWithError(reads->handles, lower) : NULL;
        Py_XDECREF(lower);
    }
    Py_XDECREF(plain);
    if (!found)
        return PyErr_Occurred() ? -2 : -1;
    return (int)PyLong_AsLong(found);
}

bool weir_py_attributes(const struct weir_py_errors *errors, const struct weir_py_reads *reads,
                        PyObject *attributes, struct weir_py_call *call)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    size_t count = 1; /* the first place is for a field that is absent */
    bool fields = false, field;
    while (attributes && PyDict_Next(attributes, &position, &name, &value)) {
        int handle = handle_of(reads, name, &field);
        if (handle == -2)
            return false;
        fields |= field;
        if (handle < 0)
            continue;
        if (count > WEIR_HANDLES_MAX) {
            weir_py_raise(errors, WEIR_ERR_TOO_LARGE, "attributes");
            return false;
        }
        struct weir_value *to = &call->values[count++];
        to->attribute = handle;
        if (!read_bytes(errors, value, PyUnicode_AsUTF8AndSize(name, NULL), &to->data, &to->size))
            return false;
    }
    call->values[0] = (struct weir_value){.attribute = fields ? reads->field : -1};
    call->weir.values = call->values;
    call->weir.count = count;
    return true;
}

bool weir_py_client(const struct weir_py_errors *errors, const char *text,
                    struct weir_py_call *call)
{
    char address[INET6_ADDRSTRLEN];
    struct sockaddr_in *in4 = (struct sockaddr_in *)&call->client;
    if (!text)
        return true;
    size_t size = strcspn(text, "%");
    memset(&call->client, 0, sizeof call->client);
    if (size < sizeof address) {
        memcpy(address, text, size);
        address[size] = '\0';
        call->weir.client = (const struct sockaddr *)&call->client;
        in4->sin_family = AF_INET;
        if (inet_pton(AF_INET, address, &in4->sin_addr) == 1)
            return true;
        call->client.sin6_family = AF_INET6;
        if (inet_pton(AF_INET6, address, &call->client.sin6_addr) == 1)
            return true;
    }
    weir_py_raise(errors, WEIR_ERR_SYNTAX, "client: not an address");
    return false;
}
