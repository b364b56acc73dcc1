/* SPDX-License-Identifier: Apache-2.0 */
/* see answer.h */
#include "answer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* --- Records: objects whose members are Python objects ---------------------------------------- */

#define ANSWER_MEMBERS(X)                                                                          \
    X(allowed, "whether the request may pass")                                                     \
    X(status, "of HTTP: 200, or what the denial means")                                            \
    X(denied_by, "the limit that denies, 'standing', or None")                                     \
    X(retry_after, "seconds until the same request passes; 0.0 when allowed; inf: never")          \
    X(delay, "seconds to hold the request, or its denial, before it continues")                    \
    X(remaining, "units left of the tightest limit, or None where no limit applies")               \
    X(warning, "the highest warn_at that is reached, in percent; 0: none")                         \
    X(action, "what steps or reject make of the request, such as 'mark', or None")                 \
    X(standing, "the caller's standing, or None if it is good")                                    \
    X(reason, "of the standing, or None")                                                          \
    X(class_name, "the request's class (priority), or None")                                       \
    X(store_failed, "whether on_store_error has decided")                                          \
    X(repeated, "whether it was allowed before, by its idempotency key")                           \
    X(headers, "(name, value) of each header field that the answer should have")                   \
    X(body, "of a denial; else empty")                                                             \
    X(content_type, "of the body, or None")                                                        \
    X(lease, "what ends the lease of a concurrency limit, or None")                                \
    X(reservation, "what settle, report or cancel take, or None")                                  \
    X(limits, "what each limit says of the request")

#define LIMIT_MEMBERS(X)                                                                           \
    X(name, "of the limit")                                                                        \
    X(allowed, "this limit's own verdict")                                                         \
    X(shadow, "whether it denies nothing")                                                         \
    X(unlimited, "whether the caller's rate is unlimited")                                         \
    X(borrowed, "whether this pool was charged in place of limits that deny")                      \
    X(overflow, "whether the numbers are an estimate, since the state is full")                    \
    X(algorithm, "its name in the rules file")                                                     \
    X(warning, "warn_at that is reached, in percent; 0: none")                                     \
    X(cost, "what the request takes of it")                                                        \
    X(window, "its window in seconds; the life of a lease for concurrency")                        \
    X(limit, "its capacity")                                                                       \
    X(remaining, "the largest cost that would pass now")                                           \
    X(retry_after, "seconds until the same cost passes; 0.0 if it does; inf: never")               \
    X(reset_after, "seconds until the state is as a fresh one")

#define AS_INDEX(name, doc) ANSWER_##name,
enum { ANSWER_MEMBERS(AS_INDEX) ANSWER_COUNT };
#undef AS_INDEX
#define AS_INDEX(name, doc) LIMIT_##name,
enum { LIMIT_MEMBERS(AS_INDEX) LIMIT_COUNT };
#undef AS_INDEX

struct record {
    PyObject_HEAD PyObject *member[];
};

static const char *const answer_names[] = {
#define AS_NAME(name, doc) #name,
    ANSWER_MEMBERS(AS_NAME) NULL};
static const char *const limit_names[] = {LIMIT_MEMBERS(AS_NAME) NULL};

#define AS_MEMBER(prefix, name, doc)                                                               \
    {#name, T_OBJECT_EX,                                                                           \
     (Py_ssize_t)(offsetof(struct record, member) + prefix##name * sizeof(PyObject *)), READONLY,  \
     doc},
#define AS_ANSWER(name, doc) AS_MEMBER(ANSWER_, name, doc)
#define AS_LIMIT(name, doc) AS_MEMBER(LIMIT_, name, doc)
static PyMemberDef answer_members[] = {ANSWER_MEMBERS(AS_ANSWER){NULL, 0, 0, 0, NULL}};
static PyMemberDef limit_members[] = {LIMIT_MEMBERS(AS_LIMIT){NULL, 0, 0, 0, NULL}};

static void record_free(PyObject *self, int count)
{
    PyTypeObject *type = Py_TYPE(self);
    struct record *record = (struct record *)self;
    for (int i = 0; i < count; i++)
        Py_CLEAR(record->member[i]);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void answer_dealloc(PyObject *self)
{
    record_free(self, ANSWER_COUNT);
}
static void limit_dealloc(PyObject *self)
{
    record_free(self, LIMIT_COUNT);
}

/* "weir.Limit(name='login', ...)" */
static PyObject *record_repr(PyObject *self, const char *name, const char *const *names)
{
    struct record *record = (struct record *)self;
    PyObject *parts = PyList_New(0), *comma = NULL, *joined = NULL, *text = NULL;
    for (int i = 0; parts && names[i]; i++) {
        PyObject *part = PyUnicode_FromFormat("%s=%R", names[i], record->member[i]);
        if (!part || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
    }
    if (parts)
        comma = PyUnicode_FromString(", ");
    if (comma)
        joined = PyUnicode_Join(comma, parts);
    if (joined)
        text = PyUnicode_FromFormat("weir.%s(%U)", name, joined);
    Py_XDECREF(joined);
    Py_XDECREF(comma);
    Py_XDECREF(parts);
    return text;
}

static PyObject *answer_repr(PyObject *self)
{
    return record_repr(self, "Answer", answer_names);
}
static PyObject *limit_repr(PyObject *self)
{
    return record_repr(self, "Limit", limit_names);
}

/* A fresh record has room for its members, all NULL. */
static struct record *record_new(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return (struct record *)allocate(type, 0);
}

/* `if limiter.check(...):` asks for the verdict. */
static int answer_bool(PyObject *self)
{
    return ((struct record *)self)->member[ANSWER_allowed] == Py_True;
}

static int limit_bool(PyObject *self)
{
    return ((struct record *)self)->member[LIMIT_allowed] == Py_True;
}

static PyType_Slot answer_slots[] = {
    {Py_tp_doc, "The decision on a request; true where it is allowed."},
    {Py_tp_dealloc, answer_dealloc},
    {Py_tp_repr, answer_repr},
    {Py_nb_bool, answer_bool},
    {Py_tp_members, answer_members},
    {0, NULL}};
static PyType_Slot limit_slots[] = {{Py_tp_doc, "What one limit says of a request."},
                                    {Py_tp_dealloc, limit_dealloc},
                                    {Py_tp_repr, limit_repr},
                                    {Py_nb_bool, limit_bool},
                                    {Py_tp_members, limit_members},
                                    {0, NULL}};

#define TYPE_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION)
static PyType_Spec answer_spec = {"weir.Answer",
                                  (int)(sizeof(struct record) + ANSWER_COUNT * sizeof(PyObject *)),
                                  0, TYPE_FLAGS, answer_slots};
static PyType_Spec limit_spec = {"weir.Limit",
                                 (int)(sizeof(struct record) + LIMIT_COUNT * sizeof(PyObject *)), 0,
                                 TYPE_FLAGS, limit_slots};

/* --- Reservations ----------------------------------------------------------------------------- */

struct reservation {
    PyObject_HEAD struct weir_reservation_token token;
};

static void reservation_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *reservation_str(PyObject *self)
{
    return PyUnicode_FromString(((struct reservation *)self)->token.text);
}

static PyType_Slot reservation_slots[] = {
    {Py_tp_doc, "What settle, report or cancel take. Its text (str) is good in all processes."},
    {Py_tp_dealloc, reservation_dealloc},
    {Py_tp_str, reservation_str},
    {0, NULL}};
static PyType_Spec reservation_spec = {"weir.Reservation", sizeof(struct reservation), 0,
                                       TYPE_FLAGS, reservation_slots};

static PyObject *new_reservation(const struct weir_py_answers *types,
                                 const struct weir_reservation_token *token)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(types->reservation, Py_tp_alloc);
    struct reservation *self = (struct reservation *)allocate(types->reservation, 0);
    if (self)
        self->token = *token;
    return (PyObject *)self;
}

const struct weir_reservation_token *weir_py_reservation(const struct weir_py_answers *types,
                                                         PyObject *object,
                                                         struct weir_reservation_token *room)
{
    Py_ssize_t size;
    if (PyObject_TypeCheck(object, types->reservation))
        return &((struct reservation *)object)->token;
    if (!PyUnicode_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a reservation is a weir.Reservation, or a str: its text");
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text)
        return NULL;
    if ((size_t)size >= sizeof room->text || strlen(text) != (size_t)size) {
        PyErr_SetString(PyExc_ValueError, "this text is not one of a reservation");
        return NULL;
    }
    memcpy(room->text, text, (size_t)size + 1);
    room->place_count = 0;
    return room;
}

/* --- The types -------------------------------------------------------------------------------- */

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int weir_py_answers_init(struct weir_py_answers *types, PyObject *module)
{
    types->answer = add_type(module, &answer_spec);
    types->limit = add_type(module, &limit_spec);
    types->reservation = add_type(module, &reservation_spec);
    return types->answer && types->limit && types->reservation ? 0 : -1;
}

void weir_py_answers_clear(struct weir_py_answers *types)
{
    Py_CLEAR(types->answer);
    Py_CLEAR(types->limit);
    Py_CLEAR(types->reservation);
}

int weir_py_answers_visit(const struct weir_py_answers *types, visitproc visit, void *arg)
{
    Py_VISIT(types->answer);
    Py_VISIT(types->limit);
    Py_VISIT(types->reservation);
    return 0;
}

/* --- Values ----------------------------------------------------------------------------------- */

static PyObject *seconds(uint64_t ns)
{
    return PyFloat_FromDouble(ns == WEIR_NEVER ? (double)INFINITY : (double)ns / 1e9);
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *text_or_none(const char *text)
{
    if (!text || text[0] == '\0')
        return Py_NewRef(Py_None);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* "Name: value\r\n" lines as a tuple of (name, value). */
static PyObject *pairs(const char *fields, size_t size)
{
    Py_ssize_t count = 0, i = 0;
    const char *end = fields + size;
    for (const char *p = fields; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        count++;
    PyObject *tuple = PyTuple_New(count);
    for (const char *p = fields; tuple && i < count; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *colon = memchr(p, ':', (size_t)(stop - p));
        const char *value = colon ? colon + 1 : stop;
        while (value < stop && *value == ' ')
            value++;
        size_t value_size = (size_t)(stop - value);
        if (value_size > 0 && stop[-1] == '\r')
            value_size--;
        PyObject *name = PyUnicode_DecodeLatin1(p, colon ? colon - p : 0, NULL);
        PyObject *rest = PyUnicode_DecodeLatin1(value, (Py_ssize_t)value_size, NULL);
        PyObject *pair = name && rest ? PyTuple_Pack(2, name, rest) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(rest);
        if (!pair || PyTuple_SetItem(tuple, i, pair) < 0)
            Py_CLEAR(tuple);
        p = stop + 1;
    }
    return tuple;
}

static bool is_whole(struct record *record, int count)
{
    for (int i = 0; i < count; i++)
        if (!record->member[i])
            return false;
    return true;
}

static PyObject *new_limit(const struct weir_py_answers *types,
                           const struct weir_limit_answer *limit)
{
    struct record *record = record_new(types->limit);
    if (!record)
        return NULL;
    PyObject **member = record->member;
    member[LIMIT_name] = PyUnicode_DecodeUTF8(limit->name, (Py_ssize_t)strlen(limit->name), NULL);
    member[LIMIT_allowed] = PyBool_FromLong(limit->allowed);
    member[LIMIT_shadow] = PyBool_FromLong(limit->shadow);
    member[LIMIT_unlimited] = PyBool_FromLong(limit->unlimited);
    member[LIMIT_borrowed] = PyBool_FromLong(limit->borrowed);
    member[LIMIT_overflow] = PyBool_FromLong(limit->overflow);
    member[LIMIT_algorithm] = PyUnicode_FromString(weir_algorithm_name(limit->algorithm));
    member[LIMIT_warning] = PyLong_FromUnsignedLong(limit->warning);
    member[LIMIT_cost] = number(limit->cost);
    member[LIMIT_window] = seconds(limit->window_ns);
    member[LIMIT_limit] = number(limit->report.limit);
    member[LIMIT_remaining] = number(limit->report.remaining);
    member[LIMIT_retry_after] = seconds(limit->report.retry_after_ns);
    member[LIMIT_reset_after] = seconds(limit->report.reset_after_ns);
    if (!is_whole(record, LIMIT_COUNT))
        Py_CLEAR(record);
    return (PyObject *)record;
}

static PyObject *new_limits(const struct weir_py_answers *types,
                            const struct weir_limit_answer *limits, unsigned count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (unsigned i = 0; tuple && i < count; i++) {
        PyObject *limit = new_limit(types, &limits[i]);
        if (!limit || PyTuple_SetItem(tuple, (Py_ssize_t)i, limit) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static void fill_summary(PyObject **member, const struct weir_answer_summary *summary)
{
    member[ANSWER_allowed] = PyBool_FromLong(summary->allowed);
    member[ANSWER_denied_by] = text_or_none(summary->denied_by);
    member[ANSWER_retry_after] = seconds(summary->retry_after_ns);
    member[ANSWER_delay] = seconds(summary->delay_ns);
    member[ANSWER_remaining] =
        summary->remaining == WEIR_NEVER ? Py_NewRef(Py_None) : number(summary->remaining);
    member[ANSWER_warning] = PyLong_FromUnsignedLong(summary->warning);
    member[ANSWER_action] = text_or_none(summary->action);
    member[ANSWER_standing] = text_or_none(summary->standing);
    member[ANSWER_reason] = text_or_none(summary->reason);
    member[ANSWER_store_failed] = PyBool_FromLong(summary->store_failed);
    member[ANSWER_repeated] = PyBool_FromLong(summary->repeated);
    member[ANSWER_lease] = text_or_none(summary->lease.text);
}

PyObject *weir_py_answer(const struct weir_py_answers *types, const struct weir_call *call,
                         const struct weir_answer_summary *answer)
{
    struct record *record = record_new(types->answer);
    if (!record)
        return NULL;
    PyObject **member = record->member;
    fill_summary(member, answer);
    member[ANSWER_status] = PyLong_FromUnsignedLong(answer->status);
    member[ANSWER_class_name] = text_or_none(answer->class_name);
    member[ANSWER_headers] = pairs(call->fields, answer->fields_size);
    member[ANSWER_body] = PyBytes_FromStringAndSize(call->body, (Py_ssize_t)answer->body_size);
    member[ANSWER_content_type] = text_or_none(answer->type);
    member[ANSWER_reservation] = call->reservation->text[0] != '\0'
                                     ? new_reservation(types, call->reservation)
                                     : Py_NewRef(Py_None);
    member[ANSWER_limits] = new_limits(types, call->limits, answer->limit_count);
    if (!is_whole(record, ANSWER_COUNT))
        Py_CLEAR(record);
    return (PyObject *)record;
}
