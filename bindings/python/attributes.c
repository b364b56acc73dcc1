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

/* Another name of `host`. */
static bool learn_host(struct weir_py_reads *reads, struct weir *weir)
{
    PyObject *number = PyLong_FromLong(weir_attribute(weir, "header.host"));
    bool done = number && PyDict_SetItemString(reads->handles, "header.host", number) == 0;
    Py_XDECREF(number);
    return done;
}

static bool learn_names(struct weir_py_reads *reads, struct weir *weir)
{
    PyObject *list = PyList_New(0);
    bool done = list && (reads->handles = PyDict_New());
    for (int i = 0; done && weir_attribute_name(weir, i); i++)
        if (weir_attribute_is_read(weir, i))
            done = learn_name(reads, list, weir, i);
    done = done && learn_host(reads, weir);
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
        if (!weir_is_strike(weir, status))
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
    struct weir_py_reads learned = {.weir = weir, .field = -1, .refunds = weir_gives_back(weir)};
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

/* --- Numbers and UUIDs ------------------------------------------------------------------------ */

/* Infinity and NaN have none: NULL without an exception. */
static PyObject *text_of_float(double value)
{
    bool whole = value > -1e15 && value < 1e15 && value == (double)(long long)value;
    if (!(value - value == 0))
        return NULL;
    if (whole)
        return PyUnicode_FromFormat("%lld", (long long)value);
    char *digits = PyOS_double_to_string(value, 'r', 0, 0, NULL);
    PyObject *text = digits ? PyUnicode_FromString(digits) : NULL;
    PyMem_Free(digits);
    return text;
}

/* Exactly a uuid.UUID, whose module is loaded then. */
static bool is_uuid(PyObject *value)
{
    PyObject *name = PyUnicode_FromString("uuid");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *type = module ? PyObject_GetAttrString(module, "UUID") : NULL;
    bool is = type == (PyObject *)Py_TYPE(value);
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(type);
    PyErr_Clear();
    return is;
}

/* The text of a number or a UUID, and the lines of a list, which another thread might change. NULL:
 * it is none of these, or an exception is set. */
static PyObject *text_of(PyObject *value)
{
    if (PyList_Check(value))
        return PyList_AsTuple(value);
    if (PyBool_Check(value))
        return PyUnicode_FromString(value == Py_True ? "true" : "false");
    if (PyLong_Check(value))
        return PyNumber_ToBase(value, 10);
    if (PyFloat_Check(value))
        return text_of_float(PyFloat_AsDouble(value));
    return is_uuid(value) ? PyObject_Str(value) : NULL;
}

static bool is_text(PyObject *value)
{
    return value == Py_None || PyUnicode_Check(value) || PyBytes_Check(value) ||
           PyTuple_CheckExact(value);
}

PyObject *weir_py_texts(PyObject *attributes)
{
    PyObject *name, *value, *copy = NULL;
    Py_ssize_t position = 0;
    bool all = true;
    while (all && PyDict_Next(attributes, &position, &name, &value))
        all = is_text(value);
    if (all)
        return Py_NewRef(attributes);
    copy = PyDict_Copy(attributes);
    PyObject *items = copy ? PyDict_Items(copy) : NULL;
    Py_ssize_t count = items ? PyList_Size(items) : 0;
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PyList_GetItem(items, i);
        value = PyTuple_GetItem(item, 1);
        PyObject *text = is_text(value) ? NULL : text_of(value);
        if (text)
            PyDict_SetItem(copy, PyTuple_GetItem(item, 0), text);
        Py_XDECREF(text);
    }
    Py_XDECREF(items);
    if (PyErr_Occurred())
        Py_CLEAR(copy);
    return copy;
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
        PyErr_Format(PyExc_TypeError,
                     "attribute %s: a str, bytes, a number, a UUID or None, not %R", what,
                     (PyObject *)Py_TYPE(object));
    }
    *size = (size_t)length;
    return *data;
}

/* The handle of a name that no rule reads, which is kept: libweir counts those that it does not
 * know. Names of fields, of which a client may send any number, have none. -2: an exception is
 * set. */
static int new_handle(const struct weir_py_reads *reads, PyObject *name, const char *text)
{
    static const char *const families[] = {"header.", "query.", "cookie."};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncasecmp(text, families[i], strlen(families[i])) == 0)
            return -1;
    if (PyDict_Size(reads->handles) >= WEIR_HANDLES_MAX)
        return -1;
    int handle = weir_attribute(reads->weir, text);
    PyObject *number = PyLong_FromLong(handle < 0 ? -1 : handle);
    bool done = number && PyDict_SetItem(reads->handles, name, number) == 0;
    Py_XDECREF(number);
    return done ? handle < 0 ? -1 : handle : -2;
}

/* The handle of a name; -1: there is none; -2: an exception is set. *field: it is one of a header.
 * A subclass of str is taken as its plain text, since its methods might run any code, and close
 * this limiter. */
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
    int handle = found ? (int)PyLong_AsLong(found) : -2;
    if (!found && !PyErr_Occurred())
        handle = new_handle(reads, plain, text);
    Py_XDECREF(plain);
    return handle;
}

/* Adds a value to the call, unless the handle is below 0. */
static bool add_value(const struct weir_py_errors *errors, PyObject *value, const char *name,
                      int handle, struct weir_py_call *call)
{
    struct weir_value read = {.attribute = handle};
    if (!read_bytes(errors, value, name, &read.data, &read.size))
        return false;
    if (handle < 0)
        return true;
    if (call->weir.count > WEIR_HANDLES_MAX) {
        weir_py_raise(errors, WEIR_ERR_TOO_LARGE, "attributes");
        return false;
    }
    call->values[call->weir.count++] = read;
    return true;
}

/* Lines of one header field, as they came. */
static bool add_lines(const struct weir_py_errors *errors, PyObject *lines, const char *name,
                      int handle, struct weir_py_call *call)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(lines); i++)
        if (!add_value(errors, PyTuple_GetItem(lines, i), name,
                       handle < 0 ? handle : WEIR_OF_REQUEST + handle, call))
            return false;
    return true;
}

bool weir_py_attributes(const struct weir_py_errors *errors, const struct weir_py_reads *reads,
                        PyObject *attributes, struct weir_py_call *call)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    bool fields = false, field;
    call->weir.values = call->values;
    call->weir.count = 1; /* the first place is for a field that is absent */
    while (attributes && PyDict_Next(attributes, &position, &name, &value)) {
        int handle = handle_of(reads, name, &field);
        if (handle == -2)
            return false;
        fields |= field;
        const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
        bool lines = field && PyTuple_CheckExact(value);
        if (!(lines ? add_lines : add_value)(errors, value, text, handle, call))
            return false;
    }
    call->values[0] = (struct weir_value){
        .attribute = fields && reads->field >= 0 ? WEIR_OF_REQUEST + reads->field : -1};
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
