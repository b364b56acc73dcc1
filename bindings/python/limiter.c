/* SPDX-License-Identifier: Apache-2.0 */
/* see limiter.h */
#include "limiter.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <structmember.h>

#define NS_PER_S 1e9

/* What a check writes to. */
struct room {
    struct weir_full_answer answer;
    struct weir_reservation_token token;
    char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];
};

struct limiter {
    PyObject_HEAD struct weir_py_state *state; /* of the module, which the type keeps alive */
    struct weir *weir;                         /* NULL: closed */
    struct room *spare;                        /* for the next call; or NULL */
    unsigned busy;                             /* calls on `weir` that have released the GIL */
    unsigned opened;                           /* how often `weir` was opened again */
    bool closing;                              /* the last of them closes */
    bool waits;                                /* checks release the GIL */
    bool refunds;
    int field;         /* the handle of a header field that the rules read; -1: none */
    PyObject *handles; /* dict: the attributes that the rules read, and their handles */
    PyObject *reads;   /* tuple: their names */
    PyObject *kept[5]; /* the objects that have the texts of `options` and the rules' path */
    const char *rules_file;
    struct weir_options options;
};

/* --- Times ------------------------------------------------------------------------------------ */

/* Seconds as a call may give them: None is the default, infinity is never. */
static bool read_seconds(PyObject *object, uint64_t none_ns, const char *name, uint64_t *ns)
{
    *ns = none_ns;
    if (object == Py_None)
        return true;
    double value = PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return false;
    if (isnan(value) || value < 0) {
        PyErr_Format(PyExc_ValueError, "%s: not a number of seconds", name);
        return false;
    }
    /* 0 means the default in libweir */
    *ns = value > 1e9 ? WEIR_NEVER : value * NS_PER_S < 1 ? 1 : (uint64_t)(value * NS_PER_S);
    return true;
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static void close_now(struct limiter *self)
{
    struct weir *weir = self->weir;
    self->weir = NULL;
    self->closing = false;
    Py_BEGIN_ALLOW_THREADS weir_close(weir);
    Py_END_ALLOW_THREADS
}

static bool is_open(struct limiter *self)
{
    if (self->weir && !self->closing)
        return true;
    weir_py_raise_closed(&self->state->errors);
    return false;
}

/* The beginning and the end of a call that releases the GIL. What has begun on a weir that was
 * opened again meanwhile is not counted any more. */
static unsigned enter(struct limiter *self)
{
    self->busy++;
    return self->opened;
}

static void leave(struct limiter *self, unsigned entered)
{
    if (entered == self->opened && --self->busy == 0 && self->closing)
        close_now(self);
}

/* Adds a name that the rules read. */
static bool learn(struct limiter *self, PyObject *handles, PyObject *reads, int handle)
{
    const char *name = weir_attribute_name(self->weir, handle);
    PyObject *key = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
    PyObject *number = PyLong_FromLong(handle);
    if (key)
        PyUnicode_InternInPlace(&key);
    bool done = key && number && PyDict_SetItem(handles, key, number) == 0 &&
                PyList_Append(reads, key) == 0;
    Py_XDECREF(key);
    Py_XDECREF(number);
    if (strncmp(name, "header.", strlen("header.")) == 0)
        self->field = handle;
    return done;
}

/* Learns what the rules read, after they have been opened or read again. */
static bool learn_rules(struct limiter *self)
{
    PyObject *handles = PyDict_New(), *reads = PyList_New(0), *tuple = NULL;
    bool done = handles && reads;
    self->field = -1;
    self->refunds = weir_rules_refund(self->weir);
    for (int i = 0; done && weir_attribute_name(self->weir, i); i++)
        if (weir_attribute_read(self->weir, i))
            done = learn(self, handles, reads, i);
    if (done)
        tuple = PyList_AsTuple(reads);
    Py_XDECREF(reads);
    if (!tuple) {
        Py_XDECREF(handles);
        return false;
    }
    Py_XDECREF(self->handles);
    Py_XDECREF(self->reads);
    self->handles = handles;
    self->reads = tuple;
    return true;
}

static int open_weir(struct limiter *self, struct weir **weir)
{
    int err;
    struct weir_reason reason;
    Py_BEGIN_ALLOW_THREADS err = weir_open(weir, self->rules_file, &self->options, &reason);
    Py_END_ALLOW_THREADS if (err == 0) return 0;
    weir_py_raise_open(&self->state->errors, err, self->rules_file, reason.text);
    return -1;
}

/* Opens again in a child; `parents` is what the call was made with. Another thread of the child may
 * do so at the same time. Returns 0, or -1 with an exception set. */
static int reopen(struct limiter *self, const struct weir *parents)
{
    struct weir *weir;
    if (!is_open(self))
        return -1;
    if (self->weir != parents)
        return 0;
    if (open_weir(self, &weir) < 0)
        return -1;
    if (self->weir != parents || self->closing) {
        Py_BEGIN_ALLOW_THREADS weir_close(weir);
        Py_END_ALLOW_THREADS return is_open(self) ? 0 : -1;
    }
    self->weir = weir; /* the parent's is the parent's */
    self->busy = 0;    /* its threads are not here */
    self->opened++;
    return learn_rules(self) ? 0 : -1;
}

/* --- Attributes of a request ------------------------------------------------------------------ */

struct call {
    struct weir_call weir;
    struct weir_value values[WEIR_HANDLES_MAX + 1];
    struct sockaddr_in6 client; /* or a sockaddr_in */
};

/* Text as UTF-8, or bytes as they are; None is absent. */
static bool read_bytes(struct limiter *self, PyObject *object, const char *what, const char **data,
                       size_t *size)
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
            weir_py_raise(&self->state->errors, WEIR_ERR_SYNTAX, what);
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
static int handle_of(struct limiter *self, PyObject *name, bool *field)
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
    PyObject *found = plain ? PyDict_GetItemWithError(self->handles, plain) : NULL;
    if (!found && *field && !PyErr_Occurred()) {
        PyObject *lower = PyObject_CallMethod(plain, "lower", NULL);
        found = lower ? PyDict_GetItemWithError(self->handles, lower) : NULL;
        Py_XDECREF(lower);
    }
    Py_XDECREF(plain);
    if (!found)
        return PyErr_Occurred() ? -2 : -1;
    return (int)PyLong_AsLong(found);
}

/* What a call reads: where it releases the GIL, a copy, for another thread may change the dict. */
static bool keep_attributes(struct limiter *self, PyObject *given, PyObject **attributes)
{
    *attributes = NULL;
    if (!given || given == Py_None)
        return true;
    if (!PyDict_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "attributes are a dict: {\"path\": \"/login\", ...}");
        return false;
    }
    *attributes = self->waits ? PyDict_Copy(given) : Py_NewRef(given);
    return *attributes;
}

static bool read_attributes(struct limiter *self, PyObject *attributes, struct call *call)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    size_t count = 1; /* the first place is for a field that is absent */
    bool fields = false, field;
    while (attributes && PyDict_Next(attributes, &position, &name, &value)) {
        int handle = handle_of(self, name, &field);
        if (handle == -2)
            return false;
        fields |= field;
        if (handle < 0)
            continue;
        if (count > WEIR_HANDLES_MAX) {
            weir_py_raise(&self->state->errors, WEIR_ERR_TOO_LARGE, "attributes");
            return false;
        }
        struct weir_value *to = &call->values[count++];
        to->attribute = handle;
        if (!read_bytes(self, value, PyUnicode_AsUTF8AndSize(name, NULL), &to->data, &to->size))
            return false;
    }
    call->values[0] = (struct weir_value){.attribute = fields ? self->field : -1};
    call->weir.values = call->values;
    call->weir.count = count;
    return true;
}

/* The peer's address, without the zone of an IPv6 one. */
static bool read_client(struct limiter *self, const char *text, struct call *call)
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
    weir_py_raise(&self->state->errors, WEIR_ERR_SYNTAX, "client: not an address");
    return false;
}

/* --- Checking --------------------------------------------------------------------------------- */

static struct room *take_room(struct limiter *self)
{
    struct room *room = self->spare;
    self->spare = NULL;
    if (!room)
        room = PyMem_Malloc(sizeof *room);
    if (!room)
        PyErr_NoMemory();
    return room;
}

static void give_room(struct limiter *self, struct room *room)
{
    PyMem_Free(self->spare);
    self->spare = room;
}

static int check_once(struct limiter *self, const struct weir_call *call,
                      struct weir_full_answer *answer)
{
    int err;
    if (!self->waits)
        return weir_check_full(self->weir, call, answer);
    unsigned entered = enter(self);
    Py_BEGIN_ALLOW_THREADS err = weir_check_full(self->weir, call, answer);
    Py_END_ALLOW_THREADS leave(self, entered);
    return err;
}

/* Decides, if need be in a limiter that is opened again. */
static PyObject *decide(struct limiter *self, PyObject *attributes, struct call *call)
{
    const struct weir *before = self->weir;
    struct room *room = take_room(self);
    PyObject *answer = NULL;
    if (!room)
        return NULL;
    call->weir.fields = room->fields;
    call->weir.body = room->body;
    int err = check_once(self, &call->weir, &room->answer);
    if (err == WEIR_ERR_UNSUPPORTED) {
        if (reopen(self, before) < 0 || !read_attributes(self, attributes, call))
            goto give;
        err = check_once(self, &call->weir, &room->answer);
    }
    if (err < 0)
        weir_py_raise(&self->state->errors, err, NULL);
    else
        answer = weir_py_answer(&self->state->answers, &room->answer, room->fields, room->body);
give:
    give_room(self, room);
    return answer;
}

struct arguments {
    PyObject *attributes;
    long long cost;
    const char *client, *forwarded_for, *forwarded, *key;
    Py_ssize_t forwarded_for_size, forwarded_size, key_size;
    int peek, trusted;
};

static PyObject *check(struct limiter *self, const struct arguments *given,
                       enum weir_reserve_when reserve, uint64_t life_ns)
{
    struct call call;
    call.weir = (struct weir_call){
        .forwarded_for = given->forwarded_for,
        .forwarded_for_size = (size_t)given->forwarded_for_size,
        .forwarded = given->forwarded,
        .forwarded_size = (size_t)given->forwarded_size,
        .cost = (uint64_t)given->cost,
        .peek = given->peek,
        .untrusted = !given->trusted,
        .idempotency_key = given->key,
        .idempotency_size = (size_t)given->key_size,
        .reserve = given->cost > 0 ? reserve : WEIR_RESERVE_NEVER,
        .reserve_life_ns = life_ns,
    };
    if (given->cost < 0)
        return weir_py_raise(&self->state->errors, WEIR_ERR_RANGE, "cost");
    PyObject *attributes = NULL, *answer = NULL;
    if (!is_open(self) || !keep_attributes(self, given->attributes, &attributes))
        return NULL;
    if (read_attributes(self, attributes, &call) && read_client(self, given->client, &call))
        answer = decide(self, attributes, &call);
    Py_XDECREF(attributes);
    return answer;
}

static PyObject *limiter_check(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"",          "cost",    "client",          "forwarded_for",
                            "forwarded", "trusted", "idempotency_key", "peek",
                            NULL};
    struct arguments given = {.cost = 1, .trusted = true};
    if (!PyArg_ParseTupleAndKeywords(
            args, named, "|O$Lzz#z#pz#p:check", names, &given.attributes, &given.cost,
            &given.client, &given.forwarded_for, &given.forwarded_for_size, &given.forwarded,
            &given.forwarded_size, &given.trusted, &given.key, &given.key_size, &given.peek))
        return NULL;
    return check((struct limiter *)object, &given, WEIR_RESERVE_NEVER, 0);
}

static PyObject *limiter_reserve(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"",          "cost",    "client", "forwarded_for",
                            "forwarded", "trusted", "life",   "only_delayed",
                            NULL};
    struct arguments given = {.cost = 1, .trusted = true};
    PyObject *life = Py_None;
    int only_delayed = false;
    uint64_t life_ns;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O$Lzz#z#pOp:reserve", names, &given.attributes,
                                     &given.cost, &given.client, &given.forwarded_for,
                                     &given.forwarded_for_size, &given.forwarded,
                                     &given.forwarded_size, &given.trusted, &life, &only_delayed))
        return NULL;
    if (!read_seconds(life, 0, "life", &life_ns))
        return NULL;
    return check((struct limiter *)object, &given,
                 only_delayed ? WEIR_RESERVE_DELAYED : WEIR_RESERVE_ALWAYS, life_ns);
}

/* --- After a request -------------------------------------------------------------------------- */

/* What a call after a request does with its token. */
struct ending {
    int (*run)(struct weir *weir, const struct ending *ending);
    const struct weir_reservation_token *reservation;
    const struct weir_lease_token *lease;
    uint64_t cost;
    unsigned status;
};

static int run_settle(struct weir *weir, const struct ending *ending)
{
    return weir_settle(weir, ending->reservation, ending->cost);
}

static int run_report(struct weir *weir, const struct ending *ending)
{
    return weir_report(weir, ending->reservation, ending->status);
}

static int run_cancel(struct weir *weir, const struct ending *ending)
{
    return weir_cancel(weir, ending->reservation);
}

static int run_release(struct weir *weir, const struct ending *ending)
{
    return weir_release(weir, ending->lease);
}

static int run_renew(struct weir *weir, const struct ending *ending)
{
    return weir_renew(weir, ending->lease);
}

static int run_once(struct limiter *self, const struct ending *ending)
{
    int err;
    if (!self->waits)
        return ending->run(self->weir, ending);
    unsigned entered = enter(self);
    Py_BEGIN_ALLOW_THREADS err = ending->run(self->weir, ending);
    Py_END_ALLOW_THREADS leave(self, entered);
    return err;
}

static PyObject *end(struct limiter *self, const struct ending *ending, const char *what)
{
    const struct weir *before = self->weir;
    if (!is_open(self))
        return NULL;
    int err = run_once(self, ending);
    if (err == WEIR_ERR_UNSUPPORTED) {
        if (reopen(self, before) < 0)
            return NULL;
        err = run_once(self, ending);
    }
    if (err < 0)
        return weir_py_raise(&self->state->errors, err, what);
    return Py_NewRef(Py_None);
}

static PyObject *end_reservation(struct limiter *self, PyObject *token, struct ending *ending,
                                 const char *what)
{
    struct weir_reservation_token *room = PyMem_Malloc(sizeof *room);
    PyObject *done = NULL;
    if (!room)
        return PyErr_NoMemory();
    ending->reservation = weir_py_reservation(&self->state->answers, token, room);
    if (ending->reservation)
        done = end(self, ending, what);
    PyMem_Free(room);
    return done;
}

static PyObject *limiter_settle(PyObject *self, PyObject *args)
{
    PyObject *token;
    long long cost;
    if (!PyArg_ParseTuple(args, "OL:settle", &token, &cost))
        return NULL;
    if (cost < 0)
        return weir_py_raise(&((struct limiter *)self)->state->errors, WEIR_ERR_RANGE, "cost");
    struct ending ending = {.run = run_settle, .cost = (uint64_t)cost};
    return end_reservation((struct limiter *)self, token, &ending, "reservation");
}

static PyObject *limiter_report(PyObject *self, PyObject *args)
{
    PyObject *token;
    int status;
    if (!PyArg_ParseTuple(args, "Oi:report", &token, &status))
        return NULL;
    struct ending ending = {.run = run_report, .status = status < 0 ? 0 : (unsigned)status};
    return end_reservation((struct limiter *)self, token, &ending, "reservation or status");
}

static PyObject *limiter_cancel(PyObject *self, PyObject *token)
{
    struct ending ending = {.run = run_cancel};
    return end_reservation((struct limiter *)self, token, &ending, "reservation");
}

static PyObject *end_lease(PyObject *self, PyObject *token,
                           int (*run)(struct weir *, const struct ending *))
{
    Py_ssize_t size;
    struct weir_lease_token lease;
    struct ending ending = {.run = run, .lease = &lease};
    const char *text = PyUnicode_Check(token) ? PyUnicode_AsUTF8AndSize(token, &size) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a lease is a str");
        return NULL;
    }
    if ((size_t)size >= sizeof lease.text || strlen(text) != (size_t)size)
        return weir_py_raise(&((struct limiter *)self)->state->errors, WEIR_ERR_SYNTAX, "lease");
    memcpy(lease.text, text, (size_t)size + 1);
    return end((struct limiter *)self, &ending, "lease");
}

static PyObject *limiter_release(PyObject *self, PyObject *token)
{
    return end_lease(self, token, run_release);
}

static PyObject *limiter_renew(PyObject *self, PyObject *token)
{
    return end_lease(self, token, run_renew);
}

static PyObject *limiter_tend(PyObject *object, PyObject *unused)
{
    struct limiter *self = (struct limiter *)object;
    const struct weir *before = self->weir;
    if (!is_open(self))
        return NULL;
    long ended = weir_tend(self->weir); /* one thread at a time: with the GIL */
    if (ended == WEIR_ERR_UNSUPPORTED) {
        if (reopen(self, before) < 0)
            return NULL;
        ended = weir_tend(self->weir);
    }
    return ended < 0 ? weir_py_raise(&self->state->errors, (int)ended, NULL)
                     : PyLong_FromLong(ended);
}

/* --- The rules again -------------------------------------------------------------------------- */

static int reload_once(struct limiter *self, struct weir_reason *reason)
{
    int err;
    Py_BEGIN_ALLOW_THREADS err = weir_reload(self->weir, reason);
    Py_END_ALLOW_THREADS return err;
}

static PyObject *limiter_reload(PyObject *object, PyObject *unused)
{
    struct limiter *self = (struct limiter *)object;
    struct weir_reason reason;
    const struct weir *before = self->weir;
    if (!is_open(self))
        return NULL;
    unsigned entered = enter(self);
    int err = reload_once(self, &reason);
    bool done = err == 0 && learn_rules(self);
    leave(self, entered);
    if (err == WEIR_ERR_UNSUPPORTED && reason.text[0] == '\0')
        return reopen(self, before) < 0 ? NULL : Py_NewRef(Py_None);
    if (err < 0)
        return weir_py_raise_open(&self->state->errors, err, self->rules_file, reason.text);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *limiter_close(PyObject *object, PyObject *unused)
{
    struct limiter *self = (struct limiter *)object;
    if (self->weir && self->busy > 0)
        self->closing = true;
    else if (self->weir)
        close_now(self);
    return Py_NewRef(Py_None);
}

static PyObject *limiter_enter(PyObject *self, PyObject *unused)
{
    return is_open((struct limiter *)self) ? Py_NewRef(self) : NULL;
}

static PyObject *limiter_exit(PyObject *self, PyObject *unused)
{
    return limiter_close(self, NULL);
}

/* --- The type --------------------------------------------------------------------------------- */

/* A path, a user or a group; the text is the object's, which is kept. */
static bool keep_text(struct limiter *self, int place, PyObject *object, const char *name,
                      const char **text)
{
    if (object == Py_None)
        return true;
    bool path = place < 2;
    PyObject *bytes;
    if (path && PyUnicode_FSConverter(object, &bytes))
        self->kept[place] = bytes;
    else if (!path && PyUnicode_Check(object))
        self->kept[place] = PyUnicode_AsUTF8String(object);
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s: a str or None", name);
    *text = self->kept[place] ? PyBytes_AsString(self->kept[place]) : NULL;
    return *text;
}

static bool read_options(struct limiter *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"rules",
                            "state",
                            "state_size",
                            "state_owner",
                            "state_group",
                            "state_mode",
                            "state_patience",
                            "state_open_patience",
                            "leases_end_with_process",
                            NULL};
    PyObject *rules, *state = Py_None, *owner = Py_None, *group = Py_None;
    PyObject *patience = Py_None, *open_patience = Py_None;
    long long bytes = 0;
    int mode = 0;
    int own_leases = true;
    struct weir_options *options = &self->options;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|O$LOOiOOp:Limiter", names, &rules, &state,
                                     &bytes, &owner, &group, &mode, &patience, &open_patience,
                                     &own_leases))
        return false;
    if (!keep_text(self, 0, rules, "rules", &self->rules_file) ||
        !keep_text(self, 1, state, "state", &options->state_file) ||
        !keep_text(self, 2, owner, "state_owner", &options->state_owner) ||
        !keep_text(self, 3, group, "state_group", &options->state_group) ||
        !read_seconds(patience, 0, "state_patience", &options->state_patience_ns) ||
        !read_seconds(open_patience, 0, "state_open_patience", &options->state_open_patience_ns))
        return false;
    if (!self->rules_file)
        PyErr_SetString(PyExc_TypeError, "rules: the path of a rules file");
    self->waits = options->state_patience_ns > WEIR_STATE_PATIENCE_DEFAULT_NS;
    if (bytes < 0 || mode < 0)
        PyErr_SetString(PyExc_ValueError, "state_size and state_mode are not negative");
    options->state_bytes = (uint64_t)bytes;
    options->state_mode = (unsigned)mode;
    options->leases_end_with_process = own_leases;
    options->threads = self->waits ? 0 : 1; /* the GIL lets one in */
    return !PyErr_Occurred();
}

static void limiter_dealloc(PyObject *object)
{
    struct limiter *self = (struct limiter *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weir)
        close_now(self);
    PyMem_Free(self->spare);
    Py_CLEAR(self->handles);
    Py_CLEAR(self->reads);
    for (size_t i = 0; i < sizeof self->kept / sizeof self->kept[0]; i++)
        Py_CLEAR(self->kept[i]);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct limiter *self = (struct limiter *)allocate(type, 0);
    if (!self)
        return NULL;
    self->state = PyType_GetModuleState(type);
    if (!read_options(self, args, named) || open_weir(self, &self->weir) < 0 ||
        !learn_rules(self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int limiter_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object)); /* all else are texts and numbers */
    return 0;
}

static PyObject *get_reads(PyObject *self, void *unused)
{
    return Py_NewRef(((struct limiter *)self)->reads);
}

static PyObject *get_refunds(PyObject *self, void *unused)
{
    return PyBool_FromLong(((struct limiter *)self)->refunds);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    struct limiter *limiter = (struct limiter *)self;
    return PyBool_FromLong(!limiter->weir || limiter->closing);
}

static PyGetSetDef getters[] = {
    {"reads", get_reads, NULL, "the names of the attributes that the rules read", NULL},
    {"refunds", get_refunds, NULL, "whether some limit has refund_on", NULL},
    {"closed", get_closed, NULL, "whether it has been closed", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

#define NAMED(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef methods[] = {
    {"check", NAMED(limiter_check), METH_VARARGS | METH_KEYWORDS, "Decides one request."},
    {"reserve", NAMED(limiter_reserve), METH_VARARGS | METH_KEYWORDS,
     "Decides one request that is settled, reported or cancelled later."},
    {"settle", limiter_settle, METH_VARARGS, "The request has cost this much."},
    {"report", limiter_report, METH_VARARGS, "The request ended with this status of HTTP."},
    {"cancel", limiter_cancel, METH_O, "The request did not happen."},
    {"release", limiter_release, METH_O, "Ends a lease."},
    {"renew", limiter_renew, METH_O, "A lease lives for a whole life from now on."},
    {"tend", limiter_tend, METH_NOARGS,
     "Ends leases of processes that have died; returns how many. Call it once a second."},
    {"reload", limiter_reload, METH_NOARGS, "Reads the rules file again."},
    {"close", limiter_close, METH_NOARGS, "Closes it, once other threads have left it."},
    {"__enter__", limiter_enter, METH_NOARGS, NULL},
    {"__exit__", limiter_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_doc, "Limiter(rules, state=None, *, state_size=0, "
                                          "state_owner=None, state_group=None, state_mode=0, "
                                          "state_patience=None, state_open_patience=None, "
                                          "leases_end_with_process=True)"},
                              {Py_tp_new, limiter_new},
                              {Py_tp_dealloc, limiter_dealloc},
                              {Py_tp_traverse, limiter_traverse},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {0, NULL}};
static PyType_Spec spec = {"weir.Limiter", sizeof(struct limiter), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

int weir_py_limiter_init(struct weir_py_state *state, PyObject *module)
{
    state->limiter = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->limiter ? PyModule_AddType(module, state->limiter) : -1;
}
