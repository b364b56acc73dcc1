/* SPDX-License-Identifier: Apache-2.0 */
/* see client.h */
#include "client.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/client.h>

#include "client_copy.h"
#include "stream.h"

#define HEADERS_MAX 64
#define LOOK_NS 50000000 /* how often a waiting thread looks for signals */

struct client_state {
    PyTypeObject *type, *stream; /* owned */
};

/* --- Values ----------------------------------------------------------------------------------- */

static PyObject *seconds(uint64_t ns)
{
    return ns == WEIR_CLIENT_UNKNOWN ? Py_NewRef(Py_None) : PyFloat_FromDouble((double)ns / 1e9);
}

static PyObject *number(uint64_t value)
{
    return value == WEIR_CLIENT_UNKNOWN ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(value);
}

/* (limit, remaining, reset, interval) */
PyObject *client_as_limit(const struct weir_client_limit *limit)
{
    return Py_BuildValue("(NNNN)", number(limit->limit), number(limit->remaining),
                         seconds(limit->reset_ns), seconds(limit->interval_ns));
}

/* Seconds of Python; infinity is no limit, and 0 or less is the default. */
static uint64_t as_ns(double value)
{
    if (isnan(value) || value <= 0)
        return 0;
    return value > 1e9 ? WEIR_CLIENT_UNKNOWN : (uint64_t)(value * 1e9);
}

/* Raises an error of libweir-client, by the exceptions of weir. */
static PyObject *raise(int err, const char *text)
{
    const char *name = err == WEIR_ERR_IO || err == WEIR_ERR_FORMAT || err == WEIR_ERR_CANCELLED ||
                               err == WEIR_ERR_FULL || err == WEIR_ERR_UNSUPPORTED
                           ? "StateError"
                           : "RequestError";
    if (err == WEIR_ERR_MEMORY)
        return PyErr_NoMemory();
    PyObject *module = PyImport_ImportModule("weir._weir");
    PyObject *type = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *error = type ? PyObject_CallFunction(type, "s", text) : NULL;
    PyObject *code = error ? PyLong_FromLong(err) : NULL;
    if (code && PyObject_SetAttrString(error, "code", code) == 0)
        PyErr_SetObject(type, error);
    Py_XDECREF(code);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

/* --- One request ------------------------------------------------------------------------------ */

/* Where a thread waits for the outcome of its request. */
struct waiting {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done, no_memory;
    struct weir_client_answer answer; /* copies */
};

/* On the client's thread, without the GIL. */
static void on_done(void *context, const struct weir_client_answer *answer)
{
    struct waiting *waiting = context;
    pthread_mutex_lock(&waiting->mutex);
    waiting->answer = client_copy_answer(answer, &waiting->no_memory);
    waiting->done = true;
    pthread_cond_signal(&waiting->changed);
    pthread_mutex_unlock(&waiting->mutex);
}

/* Waits for a moment. Returns whether the request has ended. */
static bool look(struct waiting *waiting)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int err = 0;
    pthread_mutex_lock(&waiting->mutex);
    while (!waiting->done && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&waiting->changed, &waiting->mutex, &until);
    bool done = waiting->done;
    pthread_mutex_unlock(&waiting->mutex);
    return done;
}

/* Waits for the end; an interrupt cancels the request, and is raised. Returns 0, or -1 with an
 * exception set. */
static int wait_for(struct client *self, struct waiting *waiting, uint64_t id)
{
    int status = 0;
    for (;;) {
        bool done;
        Py_BEGIN_ALLOW_THREADS done = look(waiting);
        Py_END_ALLOW_THREADS if (done) return status;
        if (status == 0 && PyErr_CheckSignals() < 0) {
            status = -1;
            if (self->client) /* else its close has cancelled it */
                weir_client_cancel(self->client, id);
        }
    }
}

/* (outcome, status, tries, limit, retry_after, headers, body, reason) */
PyObject *client_as_answer(const struct weir_client_answer *answer)
{
    const char *headers = answer->headers ? answer->headers : "";
    return Py_BuildValue(
        "(siINNNNN)", weir_client_outcome_text(answer->outcome), answer->status, answer->tries,
        client_as_limit(&answer->limit),
        answer->outcome == WEIR_CLIENT_LIMITED ? seconds(answer->retry_after_ns)
                                               : Py_NewRef(Py_None),
        PyUnicode_DecodeLatin1(headers, (Py_ssize_t)strlen(headers), NULL),
        PyBytes_FromStringAndSize(answer->body, answer->body ? (Py_ssize_t)answer->body_size : 0),
        PyUnicode_DecodeUTF8(answer->reason.text, (Py_ssize_t)strlen(answer->reason.text),
                             "replace"));
}

PyObject *client_raise_submit(int err)
{
    return raise(err, err == WEIR_ERR_SYNTAX ? "the URL, the method or a header field is invalid"
                                             : weir_error_text(err));
}

static PyObject *submit(struct client *self, struct weir_client_request *request)
{
    uint64_t id;
    pthread_condattr_t attributes;
    struct waiting waiting = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    PyObject *answer = NULL;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiting.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    request->on_done = on_done;
    request->context = &waiting;
    int err = weir_client_submit(self->client, request, &id);
    if (err < 0)
        client_raise_submit(err);
    else if (wait_for(self, &waiting, id) == 0)
        answer = waiting.no_memory ? PyErr_NoMemory() : client_as_answer(&waiting.answer);
    free(waiting.answer.headers);
    free(waiting.answer.body);
    pthread_cond_destroy(&waiting.changed);
    pthread_mutex_destroy(&waiting.mutex);
    return answer;
}

/* --- One request that nobody waits for -------------------------------------------------------- */

/* Until it has ended, it keeps the client. */
struct started {
    struct client *client; /* owned */
    PyObject *callback;    /* owned */
};

/* On the client's thread. */
static void on_done_started(void *context, const struct weir_client_answer *answer)
{
    struct started *started = context;
    PyGILState_STATE state = PyGILState_Ensure();
    started->client->thread = PyThread_get_thread_ident();
    PyObject *text = client_as_answer(answer);
    PyObject *done = text ? PyObject_CallFunctionObjArgs(started->callback, text, NULL) : NULL;
    if (!done)
        PyErr_WriteUnraisable(started->callback);
    Py_XDECREF(done);
    Py_XDECREF(text);
    Py_DECREF(started->callback);
    Py_DECREF(started->client);
    PyGILState_Release(state);
    free(started);
}

static PyObject *start(struct client *self, struct weir_client_request *request, PyObject *callback)
{
    uint64_t id;
    struct started *started = malloc(sizeof *started);
    if (!started)
        return PyErr_NoMemory();
    *started = (struct started){(struct client *)Py_NewRef((PyObject *)self), Py_NewRef(callback)};
    request->on_done = on_done_started;
    request->context = started;
    int err = weir_client_submit(self->client, request, &id); /* without a wait for the GIL */
    if (err == 0)
        return PyLong_FromUnsignedLongLong(id);
    Py_DECREF(started->callback);
    Py_DECREF(started->client);
    free(started);
    return client_raise_submit(err);
}

/* The texts of a tuple of str. Returns how many, or -1 with an exception set. */
static Py_ssize_t read_headers(PyObject *tuple, const char *headers[HEADERS_MAX])
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > HEADERS_MAX) {
        PyErr_Format(PyExc_ValueError, "more than %d header fields", HEADERS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t size;
        headers[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), &size);
        if (headers[i] && strlen(headers[i]) != (size_t)size) {
            PyErr_SetString(PyExc_ValueError, "a header field with a NUL");
            return -1;
        }
        if (!headers[i])
            return -1;
    }
    return count;
}

static bool is_open(const struct client *self)
{
    if (self->client)
        return true;
    raise(WEIR_ERR_CANCELLED, "the client is closed: open another");
    return false;
}

/* In a callback, the client's thread would wait for itself. */
static bool is_other_thread(const struct client *self)
{
    if (self->thread == 0 || self->thread != PyThread_get_thread_ident())
        return true;
    raise(
        WEIR_ERR_UNSUPPORTED,
        "callbacks run on the session's own thread: make requests and close it on another thread");
    return false;
}

bool client_may_wait(const struct client *self)
{
    return is_open(self) && is_other_thread(self);
}

enum way { FETCH, START, STREAM };

/* fetch(method, url, headers, body, idempotency_key, priority, scope, tries, time), or with a
 * callback: start(…, callback), which returns the request's number, for cancel. The callback is
 * called once with what fetch returns, on the client's thread. stream(…, wake): see stream.h. */
static PyObject *run(struct client *self, PyObject *args, enum way way)
{
    static const char *const formats[] = {"ssO!z#pizId:fetch", "ssO!z#pizIdO:start",
                                          "ssO!z#pizIdO:stream"};
    struct weir_client_request request = {0};
    const char *headers[HEADERS_MAX];
    PyObject *tuple, *callback = NULL;
    Py_ssize_t body_size;
    int idempotency_key;
    double time_s;
    if (!PyArg_ParseTuple(args, formats[way], &request.method, &request.url, &PyTuple_Type, &tuple,
                          &request.body, &body_size, &idempotency_key, &request.priority,
                          &request.scope, &request.tries, &time_s, &callback) ||
        !(way == FETCH ? client_may_wait(self) : is_open(self)))
        return NULL;
    Py_ssize_t count = read_headers(tuple, headers);
    if (count < 0)
        return NULL;
    request.headers = headers;
    request.header_count = (size_t)count;
    request.body_size = (size_t)body_size;
    request.idempotency_key = idempotency_key;
    request.time_ns = as_ns(time_s);
    if (way == STREAM) {
        struct client_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)self));
        return stream_start(state->stream, self, &request, callback);
    }
    return way == FETCH ? submit(self, &request) : start(self, &request, callback);
}

static PyObject *client_fetch(PyObject *self, PyObject *args)
{
    return run((struct client *)self, args, FETCH);
}

static PyObject *client_start(PyObject *self, PyObject *args)
{
    return run((struct client *)self, args, START);
}

static PyObject *client_stream(PyObject *self, PyObject *args)
{
    return run((struct client *)self, args, STREAM);
}

static PyObject *client_cancel(PyObject *object, PyObject *args)
{
    struct client *self = (struct client *)object;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K:cancel", &id))
        return NULL;
    if (self->client && self->pid == getpid()) /* else it has ended, or is the parent's */
        weir_client_cancel(self->client, id);
    return Py_NewRef(Py_None);
}

static PyObject *client_known(PyObject *object, PyObject *args)
{
    struct client *self = (struct client *)object;
    const char *url, *scope;
    struct weir_client_limit limit;
    if (!PyArg_ParseTuple(args, "sz:known", &url, &scope) || !is_open(self))
        return NULL;
    int err = weir_client_known(self->client, url, scope, &limit);
    if (err == WEIR_ERR_NOT_FOUND)
        return Py_NewRef(Py_None);
    return err < 0 ? raise(err, "the URL is invalid") : client_as_limit(&limit);
}

static PyObject *client_expect(PyObject *object, PyObject *args)
{
    struct client *self = (struct client *)object;
    unsigned long long requests;
    if (!PyArg_ParseTuple(args, "K:expect", &requests) || !is_open(self))
        return NULL;
    weir_client_expect(self->client, requests);
    return Py_NewRef(Py_None);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

/* On the client's thread. */
static void on_try(void *context, const struct weir_client_try *one)
{
    struct client *self = context;
    PyGILState_STATE state = PyGILState_Ensure();
    self->thread = PyThread_get_thread_ident();
    PyObject *done =
        PyObject_CallFunction(self->on_try, "sIizNNNN", one->url, one->number, one->status,
                              one->error, seconds(one->waited_ns), seconds(one->took_ns),
                              seconds(one->next_wait_ns), client_as_limit(&one->limit));
    if (!done)
        PyErr_WriteUnraisable(self->on_try);
    Py_XDECREF(done);
    PyGILState_Release(state);
}

static void *close_later(void *client)
{
    weir_client_close(client);
    return NULL;
}

/* The last reference may go on the client's own thread, with the last request that was started. It
 * cannot wait for itself: another thread does. */
static void close_elsewhere(struct weir_client *client)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, close_later, client) == 0)
        pthread_detach(thread);
}

static void close_client(struct client *self)
{
    struct weir_client *client = self->client;
    self->client = NULL;
    if (!client || self->pid != getpid())
        return;
    if (self->thread == PyThread_get_thread_ident()) {
        close_elsewhere(client);
        return;
    }
    Py_BEGIN_ALLOW_THREADS weir_client_close(client);
    Py_END_ALLOW_THREADS
}

static PyObject *client_close(PyObject *self, PyObject *unused)
{
    if (!is_other_thread((struct client *)self))
        return NULL;
    close_client((struct client *)self);
    return Py_NewRef(Py_None);
}

static void client_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    close_client((struct client *)self);
    Py_CLEAR(((struct client *)self)->on_try);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static int client_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct client *)self)->on_try);
    return 0;
}

/* The statuses of a tuple. Returns 0, or -1 with an exception set. */
static int read_statuses(const char *name, PyObject *tuple,
                         uint16_t statuses[WEIR_CLIENT_RETRY_ON_MOST])
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > WEIR_CLIENT_RETRY_ON_MOST) {
        PyErr_Format(PyExc_ValueError, "%s: more than %d statuses", name,
                     WEIR_CLIENT_RETRY_ON_MOST);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        long status = PyLong_AsLong(PyTuple_GetItem(tuple, i));
        if (status == -1 && PyErr_Occurred())
            return -1;
        statuses[i] = status > 0 && status <= UINT16_MAX ? (uint16_t)status : UINT16_MAX;
    }
    return 0;
}

/* Client(state, concurrency, host_concurrency, adaptive, tries, time, try_time, jitter,
 * backoff_base, backoff_cap, body_most, queue_most, follow, user_agent, seed, on_try, retry_on,
 * retry_statuses, backoff_factor, rate) */
static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    struct weir_client_options options = {0};
    struct weir_reason reason;
    PyObject *callback, *retry_on, *retry_statuses;
    int adaptive, follow, jitter;
    double time_s, try_s, base_s, cap_s;
    unsigned long long body_most, seed;
    if (!PyArg_ParseTuple(args, "zIIpIddiddKIpzKOO!O!dz:Client", &options.state_file,
                          &options.concurrency, &options.host_concurrency, &adaptive,
                          &options.tries, &time_s, &try_s, &jitter, &base_s, &cap_s, &body_most,
                          &options.queue_most, &follow, &options.user_agent, &seed, &callback,
                          &PyTuple_Type, &retry_on, &PyTuple_Type, &retry_statuses,
                          &options.backoff_factor, &options.rate) ||
        read_statuses("retry_on", retry_on, options.retry_on) < 0 ||
        read_statuses("retry_statuses", retry_statuses, options.retry_statuses) < 0)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct client *self = (struct client *)allocate(type, 0);
    if (!self)
        return NULL;
    options.adaptive = adaptive;
    options.follow = follow;
    options.jitter = (enum weir_client_jitter)jitter;
    options.time_ns = as_ns(time_s);
    options.try_ns = as_ns(try_s);
    options.backoff_base_ns = as_ns(base_s);
    options.backoff_cap_ns = as_ns(cap_s);
    options.body_most = body_most;
    options.seed = seed;
    self->pid = getpid();
    if (callback != Py_None) {
        self->on_try = Py_NewRef(callback);
        options.on_try = on_try;
        options.context = self;
    }
    int err;
    Py_BEGIN_ALLOW_THREADS err = weir_client_open(&self->client, &options, &reason);
    Py_END_ALLOW_THREADS if (err < 0)
    {
        Py_DECREF(self);
        return raise(err, reason.text[0] != '\0' ? reason.text : weir_error_text(err));
    }
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"fetch", client_fetch, METH_VARARGS, "Makes a request and waits for its outcome."},
    {"start", client_start, METH_VARARGS, "Begins a request; a callback gets its outcome."},
    {"stream", client_stream, METH_VARARGS, "Begins a request whose answer is read as it comes."},
    {"cancel", client_cancel, METH_VARARGS, "Ends a request that has begun."},
    {"known", client_known, METH_VARARGS, "What is known of the tightest limit of a URL's host."},
    {"expect", client_expect, METH_VARARGS, "How many requests are still to come."},
    {"close", client_close, METH_NOARGS, "Cancels what is left, and closes."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_new, client_new},
                              {Py_tp_dealloc, client_dealloc},
                              {Py_tp_traverse, client_traverse},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {"weir._client.Client", sizeof(struct client), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

/* --- The module ------------------------------------------------------------------------------- */

static int module_exec(PyObject *module)
{
    struct client_state *state = PyModule_GetState(module);
    state->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    state->stream = (PyTypeObject *)PyType_FromModuleAndSpec(module, &stream_spec, NULL);
    return state->type && state->stream ? PyModule_AddType(module, state->type) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((struct client_state *)PyModule_GetState(module))->type);
    Py_VISIT(((struct client_state *)PyModule_GetState(module))->stream);
    return 0;
}

static int module_clear(PyObject *module)
{
    Py_CLEAR(((struct client_state *)PyModule_GetState(module))->type);
    Py_CLEAR(((struct client_state *)PyModule_GetState(module))->stream);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,     .m_name = "weir._client",
    .m_doc = "libweir-client", .m_size = sizeof(struct client_state),
    .m_slots = module_slots,   .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__client(void)
{
    return PyModuleDef_Init(&definition);
}
