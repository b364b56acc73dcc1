/* SPDX-License-Identifier: Apache-2.0 */
/* see limiter.h */
#include "limiter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attributes.h"
#include "lines.h"

#define NS_PER_S 1e9

/* What a check writes to. */
struct room {
    struct weir_answer_summary answer;
    struct weir_limit_answer limits[WEIR_LIMITS_MAX];
    struct weir_reservation_token reservation;
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
    struct weir_py_reads reads;
    struct lines lines; /* to be logged */
    pid_t lines_pid;    /* whose they are */
    PyObject *kept[5];  /* the objects that have the texts of `options` and the rules' path */
    const char *rules_file;
    struct weir_options options;
    enum weir_on_store_error on_store_error; /* what the rules said when it was opened */
};

/* --- Logging ---------------------------------------------------------------------------------- */

static void log_line(const struct line *line)
{
    static const int levels[] = {
        [WEIR_SAY_INFO] = 20, [WEIR_SAY_WARNING] = 30, [WEIR_SAY_ERROR] = 40};
    PyObject *logging = PyImport_ImportModule("logging"), *logger = NULL, *done = NULL;
    if (logging)
        logger = PyObject_CallMethod(logging, "getLogger", "s", "weir");
    if (logger)
        done = PyObject_CallMethod(logger, "log", "iss", levels[line->level], "%s", line->text);
    if (!done)
        PyErr_WriteUnraisable(logger);
    Py_XDECREF(done);
    Py_XDECREF(logger);
    Py_XDECREF(logging);
}

/* A child begins with no lines: another thread of the parent may have kept the list locked. */
static void own_lines(struct limiter *self)
{
    pid_t pid = getpid();
    if (self->lines_pid != pid)
        lines_init(&self->lines);
    self->lines_pid = pid;
}

/* The end of a call: logs what libweir has said meanwhile, by the logger "weir". Handlers may call
 * this limiter, or close it. An error of the call goes first. */
static PyObject *logged(struct limiter *self, PyObject *result)
{
    struct line *line;
    if (lines_any(&self->lines))
        own_lines(self);
    while (result && lines_any(&self->lines) && (line = lines_take(&self->lines))) {
        log_line(line);
        free(line);
    }
    return result;
}

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

/* A time or a wait of a clock for tests; None: none. */
static bool read_test_time(PyObject *object, const char *name, uint64_t *ns)
{
    double value = object == Py_None ? 0 : PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return false;
    if (isnan(value) || value < 0)
        PyErr_Format(PyExc_ValueError, "%s: not a number of seconds", name);
    *ns = value < 1e10 ? (uint64_t)(value * NS_PER_S) : UINT64_MAX; /* which is out of range */
    return !PyErr_Occurred();
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

static int open_weir(struct limiter *self, struct weir **weir)
{
    int err;
    struct weir_reason reason;
    own_lines(self);
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
    unsigned entered = enter(self); /* the collector may run code that closes it */
    bool done = weir_py_reads_learn(&self->reads, self->weir);
    leave(self, entered);
    return done && is_open(self) ? 0 : -1;
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
    *attributes = weir_py_texts(given);
    if (*attributes == given && self->waits) {
        Py_DECREF(given);
        *attributes = PyDict_Copy(given);
    }
    return *attributes;
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

/* What a call is for. */
struct purpose {
    unsigned status;      /* the outcome that is reported; 0: the request is decided */
    PyObject *attributes; /* that were read; NULL: none */
    struct room *room;    /* for what a decision writes */
};

static int ask(struct weir *weir, const struct weir_call *call, const struct purpose *purpose)
{
    return purpose->status ? weir_outcome(weir, call, purpose->status)
                           : weir_check_full(weir, call, &purpose->room->answer);
}

static int ask_once(struct limiter *self, const struct weir_call *call,
                    const struct purpose *purpose)
{
    int err;
    if (!self->waits)
        return ask(self->weir, call, purpose);
    unsigned entered = enter(self);
    Py_BEGIN_ALLOW_THREADS err = ask(self->weir, call, purpose);
    Py_END_ALLOW_THREADS leave(self, entered);
    return err;
}

/* Asks, if need be a limiter that is opened again. False: an exception is set. */
static bool ask_again(struct limiter *self, struct weir_py_call *call,
                      const struct purpose *purpose)
{
    const struct weir *before = self->weir;
    if (!is_open(self)) /* the collector may have run code that closes it */
        return false;
    int err = ask_once(self, &call->weir, purpose);
    if (err == WEIR_ERR_UNSUPPORTED) {
        if (reopen(self, before) < 0 ||
            !weir_py_attributes(&self->state->errors, &self->reads, purpose->attributes, call) ||
            !is_open(self))
            return false;
        err = ask_once(self, &call->weir, purpose);
    }
    if (err < 0)
        weir_py_raise(&self->state->errors, err, NULL);
    return err >= 0;
}

static PyObject *decide(struct limiter *self, PyObject *attributes, struct weir_py_call *call)
{
    struct room *room = take_room(self);
    PyObject *answer = NULL;
    if (!room)
        return NULL;
    call->weir.fields = room->fields;
    call->weir.body = room->body;
    call->weir.limits = room->limits;
    call->weir.reservation = &room->reservation;
    if (ask_again(self, call, &(struct purpose){.attributes = attributes, .room = room}))
        answer = weir_py_answer(&self->state->answers, &call->weir, &room->answer);
    give_room(self, room);
    return logged(self, answer);
}

struct arguments {
    PyObject *attributes;
    long long cost;
    const char *client, *forwarded_for, *forwarded, *key;
    Py_ssize_t forwarded_for_size, forwarded_size, key_size;
    int peek, trusted;
};

/* Reads a request; *attributes keeps its values, and is the caller's. */
static bool read_request(struct limiter *self, const struct arguments *given,
                         struct weir_py_call *call, PyObject **attributes)
{
    const struct weir_py_errors *errors = &self->state->errors;
    *attributes = NULL;
    call->weir = (struct weir_call){
        .forwarded_for = given->forwarded_for,
        .forwarded_for_size = (size_t)given->forwarded_for_size,
        .forwarded = given->forwarded,
        .forwarded_size = (size_t)given->forwarded_size,
        .cost = (uint64_t)given->cost,
        .peek = given->peek,
        .untrusted = !given->trusted,
        .idempotency_key = given->key,
        .idempotency_size = (size_t)given->key_size,
    };
    if (given->cost < 0)
        weir_py_raise(errors, WEIR_ERR_RANGE, "cost");
    return given->cost >= 0 && is_open(self) &&
           keep_attributes(self, given->attributes, attributes) &&
           weir_py_attributes(errors, &self->reads, *attributes, call) &&
           weir_py_client(errors, given->client, call);
}

static PyObject *check(struct limiter *self, const struct arguments *given,
                       enum weir_reserve_when reserve, uint64_t life_ns)
{
    struct weir_py_call call;
    PyObject *attributes, *answer = NULL;
    if (read_request(self, given, &call, &attributes)) {
        call.weir.reserve = given->cost > 0 ? reserve : WEIR_RESERVE_NEVER;
        call.weir.reserve_life_ns = life_ns;
        answer = decide(self, attributes, &call);
    }
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

static PyObject *limiter_outcome(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "", "client", "forwarded_for", "forwarded", "trusted", NULL};
    struct limiter *self = (struct limiter *)object;
    struct arguments given = {.cost = 1, .trusted = true};
    struct weir_py_call call;
    PyObject *attributes;
    int status;
    if (!PyArg_ParseTupleAndKeywords(args, named, "i|O$zz#z#p:outcome", names, &status,
                                     &given.attributes, &given.client, &given.forwarded_for,
                                     &given.forwarded_for_size, &given.forwarded,
                                     &given.forwarded_size, &given.trusted))
        return NULL;
    if (status <= 0) /* other statuses that are none are libweir's to refuse */
        return weir_py_raise(&self->state->errors, WEIR_ERR_RANGE, "status");
    bool done = read_request(self, &given, &call, &attributes) &&
                ask_again(self, &call,
                          &(struct purpose){.status = (unsigned)status, .attributes = attributes});
    Py_XDECREF(attributes);
    return done ? Py_NewRef(Py_None) : NULL;
}

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
                     : logged(self, PyLong_FromLong(ended));
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
    bool done = err == 0 && weir_py_reads_learn(&self->reads, self->weir);
    leave(self, entered);
    if (err == WEIR_ERR_UNSUPPORTED && reason.text[0] == '\0')
        return reopen(self, before) < 0 ? NULL : Py_NewRef(Py_None);
    if (err < 0)
        return weir_py_raise_open(&self->state->errors, err, self->rules_file, reason.text);
    return done ? logged(self, Py_NewRef(Py_None)) : NULL;
}

static PyObject *limiter_advance(PyObject *object, PyObject *seconds)
{
    struct limiter *self = (struct limiter *)object;
    uint64_t ns;
    if (!read_test_time(seconds, "seconds", &ns) || !is_open(self))
        return NULL;
    int err = weir_advance(self->weir, ns);
    if (err == WEIR_ERR_UNSUPPORTED)
        return weir_py_raise(&self->state->errors, err,
                             "only a limiter of weir.testing has a clock to advance");
    return err < 0 ? weir_py_raise(&self->state->errors, err, "seconds") : Py_NewRef(Py_None);
}

static PyObject *limiter_close(PyObject *object, PyObject *unused)
{
    struct limiter *self = (struct limiter *)object;
    if (self->weir && self->busy > 0)
        self->closing = true;
    else if (self->weir)
        close_now(self);
    return logged(self, Py_NewRef(Py_None));
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
                            "state_must_open",
                            "test_clock",
                            NULL};
    PyObject *test_clock = Py_None;
    PyObject *rules, *state = Py_None, *owner = Py_None, *group = Py_None;
    PyObject *patience = Py_None, *open_patience = Py_None;
    long long bytes = 0;
    int mode = 0;
    int own_leases = true, must_open = false;
    struct weir_options *options = &self->options;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|O$LOOiOOppO:Limiter", names, &rules, &state,
                                     &bytes, &owner, &group, &mode, &patience, &open_patience,
                                     &own_leases, &must_open, &test_clock))
        return false;
    if (!keep_text(self, 0, rules, "rules", &self->rules_file) ||
        !keep_text(self, 1, state, "state", &options->state_file) ||
        !keep_text(self, 2, owner, "state_owner", &options->state_owner) ||
        !keep_text(self, 3, group, "state_group", &options->state_group) ||
        !read_test_time(test_clock, "test_clock", &options->test_clock_ns) ||
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
    options->state_must_open = must_open;
    options->say = lines_put;
    options->say_context = &self->lines;
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
    if (self->lines_pid == getpid())
        lines_free(&self->lines);
    weir_py_reads_clear(&self->reads);
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
        !weir_py_reads_learn(&self->reads, self->weir)) {
        Py_DECREF(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS self->on_store_error = weir_rules_on_store_error(self->rules_file);
    Py_END_ALLOW_THREADS return logged(self, (PyObject *)self);
}

static int limiter_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object)); /* all else are texts and numbers */
    return 0;
}

static PyObject *get_reads(PyObject *self, void *unused)
{
    return Py_NewRef(((struct limiter *)self)->reads.names);
}

static PyObject *get_outcomes(PyObject *self, void *unused)
{
    return Py_NewRef(((struct limiter *)self)->reads.outcomes);
}

static PyObject *get_refunds(PyObject *self, void *unused)
{
    return PyBool_FromLong(((struct limiter *)self)->reads.refunds);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    struct limiter *limiter = (struct limiter *)self;
    return PyBool_FromLong(!limiter->weir || limiter->closing);
}

/* passes(code): whether a request passes that this error left undecided, by what the rules say. */
static PyObject *limiter_passes(PyObject *object, PyObject *code)
{
    const struct limiter *self = (struct limiter *)object;
    long err = PyLong_AsLong(code);
    if (err == -1 && PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(weir_passes((int)err, self->on_store_error, false));
}

static PyObject *get_state_error(PyObject *object, void *unused)
{
    struct limiter *self = (struct limiter *)object;
    struct weir_reason why;
    if (self->weir && weir_state_check(self->weir, &why) < 0 && why.text[0] != '\0')
        return PyUnicode_FromString(why.text);
    Py_RETURN_NONE;
}

static PyGetSetDef getters[] = {
    {"state_error", get_state_error, NULL,
     "why the state file cannot be opened, so that on_store_error decides; None: it is open", NULL},
    {"reads", get_reads, NULL, "the names of the attributes that the rules read", NULL},
    {"outcomes", get_outcomes, NULL, "the statuses that are strikes of a penalty", NULL},
    {"refunds", get_refunds, NULL, "whether some limit has refund_on", NULL},
    {"closed", get_closed, NULL, "whether it has been closed", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

#define NAMED(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef methods[] = {
    {"check", NAMED(limiter_check), METH_VARARGS | METH_KEYWORDS, "Decides one request."},
    {"reserve", NAMED(limiter_reserve), METH_VARARGS | METH_KEYWORDS,
     "Decides one request that is settled, reported or cancelled later."},
    {"outcome", NAMED(limiter_outcome), METH_VARARGS | METH_KEYWORDS,
     "A request ended with this status of HTTP: a strike of penalties that have it in outcomes."},
    {"settle", limiter_settle, METH_VARARGS, "The request has cost this much."},
    {"report", limiter_report, METH_VARARGS, "The request ended with this status of HTTP."},
    {"cancel", limiter_cancel, METH_O, "The request did not happen."},
    {"release", limiter_release, METH_O, "Ends a lease."},
    {"renew", limiter_renew, METH_O, "A lease lives for a whole life from now on."},
    {"tend", limiter_tend, METH_NOARGS,
     "Ends leases of processes that have died; returns how many. Call it once a second."},
    {"passes", limiter_passes, METH_O, "Whether a request without a decision passes."},
    {"advance", limiter_advance, METH_O, "Of weir.testing: lets so many seconds pass."},
    {"reload", limiter_reload, METH_NOARGS, "Reads the rules file again."},
    {"close", limiter_close, METH_NOARGS, "Closes it, once other threads have left it."},
    {"__enter__", limiter_enter, METH_NOARGS, NULL},
    {"__exit__", limiter_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_doc, "Limiter(rules, state=None, *, state_size=0, "
                                          "state_owner=None, state_group=None, state_mode=0, "
                                          "state_patience=None, state_open_patience=None, "
                                          "leases_end_with_process=True, state_must_open=False, "
                                          "test_clock=None)"},
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
