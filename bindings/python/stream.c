/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client_copy.h"

#define LOOK_NS 50000000 /* how often a waiting thread looks for signals */

/* What the client's thread has brought. */
struct feed {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int references;        /* the Stream, and the request until its end */
    struct client *client; /* owned until the end */
    PyObject *wake;        /* or NULL; owned until the end */
    bool begun, done, no_memory;
    struct weir_client_answer head, end; /* headers and body are copies */
    char *data;                          /* not read yet */
    size_t size, room;
};

struct stream {
    PyObject_HEAD struct feed *feed;
    struct client *client; /* owned */
    uint64_t id;
};

static void free_feed(struct feed *feed)
{
    free(feed->head.headers);
    free(feed->end.headers);
    free(feed->end.body);
    free(feed->data);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->mutex);
    free(feed);
}

static void release(struct feed *feed)
{
    pthread_mutex_lock(&feed->mutex);
    int left = --feed->references;
    pthread_mutex_unlock(&feed->mutex);
    if (left == 0)
        free_feed(feed);
}

static struct feed *new_feed(void)
{
    pthread_condattr_t attributes;
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return NULL;
    pthread_mutex_init(&feed->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&feed->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    feed->references = 1;
    return feed;
}

/* --- On the client's thread, without the GIL -------------------------------------------------- */

static void call(PyObject *wake)
{
    PyObject *done = PyObject_CallNoArgs(wake);
    if (!done)
        PyErr_WriteUnraisable(wake);
    Py_XDECREF(done);
}

static void tell(struct feed *feed)
{
    pthread_cond_signal(&feed->changed);
    pthread_mutex_unlock(&feed->mutex);
    if (!feed->wake)
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    feed->client->thread = PyThread_get_thread_ident();
    call(feed->wake);
    PyGILState_Release(state);
}

static bool on_head(void *context, const struct weir_client_head *head)
{
    struct feed *feed = context;
    pthread_mutex_lock(&feed->mutex);
    feed->head = (struct weir_client_answer){
        .status = head->status, .tries = head->tries, .limit = head->limit};
    feed->head.headers =
        client_copy(head->headers, head->headers ? strlen(head->headers) : 0, &feed->no_memory);
    feed->begun = true;
    bool good = !feed->no_memory;
    tell(feed);
    return good;
}

/* With the mutex. */
static bool make_room(struct feed *feed, size_t size)
{
    if (feed->size + size <= feed->room)
        return true;
    size_t room = (feed->size + size) * 2;
    char *grown = realloc(feed->data, room);
    if (!grown)
        return false;
    feed->data = grown;
    feed->room = room;
    return true;
}

static bool on_body(void *context, int status, uint64_t offset, const void *data, size_t size)
{
    struct feed *feed = context;
    pthread_mutex_lock(&feed->mutex);
    bool good = make_room(feed, size);
    if (good) {
        memcpy(feed->data + feed->size, data, size);
        feed->size += size;
    }
    feed->no_memory |= !good;
    tell(feed);
    return good;
}

static void on_done(void *context, const struct weir_client_answer *answer)
{
    struct feed *feed = context;
    pthread_mutex_lock(&feed->mutex);
    feed->end = client_copy_answer(answer, &feed->no_memory);
    feed->done = true;
    pthread_cond_signal(&feed->changed);
    pthread_mutex_unlock(&feed->mutex);
    PyGILState_STATE state = PyGILState_Ensure();
    feed->client->thread = PyThread_get_thread_ident();
    if (feed->wake)
        call(feed->wake);
    Py_CLEAR(feed->wake);
    Py_DECREF(feed->client); /* its last reference may go here: see close_elsewhere */
    PyGILState_Release(state);
    release(feed);
}

/* --- On the reader's thread ------------------------------------------------------------------- */

static bool has_head(const struct feed *feed)
{
    return feed->begun || feed->done;
}

static bool has_bytes(const struct feed *feed)
{
    return feed->size > 0 || feed->done;
}

/* Whether this is the process that made the stream; else raises. In a child of it, the mutex may be
 * locked for good: by a thread that the child does not have. */
static bool is_own(const struct stream *self)
{
    if (self->client->pid == getpid())
        return true;
    PyErr_SetString(PyExc_RuntimeError, "the stream is that of the process before the fork");
    return false;
}

/* Waits for a moment. */
static bool look(struct feed *feed, bool (*has)(const struct feed *feed))
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int err = 0;
    pthread_mutex_lock(&feed->mutex);
    while (!has(feed) && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&feed->changed, &feed->mutex, &until);
    bool found = has(feed);
    pthread_mutex_unlock(&feed->mutex);
    return found;
}

/* Returns 1, 0 without `wait`, or -1 with an exception set: an interrupt. */
static int wait_for(struct stream *self, bool (*has)(const struct feed *feed), bool wait)
{
    if (!is_own(self))
        return -1;
    pthread_mutex_lock(&self->feed->mutex);
    bool found = has(self->feed);
    pthread_mutex_unlock(&self->feed->mutex);
    if (!found && wait && !client_may_wait(self->client))
        return -1;
    while (!found && wait) {
        Py_BEGIN_ALLOW_THREADS found = look(self->feed, has);
        Py_END_ALLOW_THREADS if (!found && PyErr_CheckSignals() < 0) return -1;
    }
    return found;
}

static PyObject *stream_head(PyObject *object, PyObject *args)
{
    struct stream *self = (struct stream *)object;
    int wait;
    if (!PyArg_ParseTuple(args, "p:head", &wait))
        return NULL;
    int found = wait_for(self, has_head, wait);
    if (found <= 0)
        return found < 0 ? NULL : Py_NewRef(Py_None);
    struct feed *feed = self->feed;
    pthread_mutex_lock(&feed->mutex);
    bool begun = feed->begun, no_memory = feed->no_memory;
    pthread_mutex_unlock(&feed->mutex);
    if (no_memory)
        return PyErr_NoMemory();
    if (!begun)
        return client_as_answer(&feed->end);
    const char *headers = feed->head.headers ? feed->head.headers : "";
    return Py_BuildValue("(siINONys)", "begun", feed->head.status, feed->head.tries,
                         client_as_limit(&feed->head.limit), Py_None,
                         PyUnicode_DecodeLatin1(headers, (Py_ssize_t)strlen(headers), NULL), "",
                         "");
}

/* Takes what has come. The caller frees *data. */
static size_t take(struct feed *feed, char **data)
{
    pthread_mutex_lock(&feed->mutex);
    size_t size = feed->size;
    *data = feed->data;
    feed->data = NULL;
    feed->size = feed->room = 0;
    pthread_mutex_unlock(&feed->mutex);
    return size;
}

static PyObject *stream_read(PyObject *object, PyObject *args)
{
    struct stream *self = (struct stream *)object;
    int wait, err = 0;
    if (!PyArg_ParseTuple(args, "p:read", &wait))
        return NULL;
    int found = wait_for(self, has_bytes, wait);
    if (found <= 0)
        return found < 0 ? NULL : Py_NewRef(Py_None);
    char *data;
    size_t size = take(self->feed, &data);
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    free(data);
    if (size > 0 && self->client->client)
        err = weir_client_consumed(self->client->client, self->id, size);
    if (err == 0 || !bytes)
        return bytes;
    Py_DECREF(bytes);
    return PyErr_NoMemory();
}

static PyObject *stream_end(PyObject *object, PyObject *unused)
{
    struct feed *feed = ((struct stream *)object)->feed;
    if (!is_own((struct stream *)object))
        return NULL;
    pthread_mutex_lock(&feed->mutex);
    bool done = feed->done, no_memory = feed->no_memory;
    pthread_mutex_unlock(&feed->mutex);
    if (!done)
        return Py_NewRef(Py_None);
    return no_memory ? PyErr_NoMemory() : client_as_answer(&feed->end);
}

static void cancel(struct stream *self)
{
    if (self->client->client && self->client->pid == getpid())
        weir_client_cancel(self->client->client, self->id); /* one that has ended is ignored */
}

static PyObject *stream_cancel(PyObject *object, PyObject *unused)
{
    cancel((struct stream *)object);
    return Py_NewRef(Py_None);
}

static void stream_dealloc(PyObject *object)
{
    struct stream *self = (struct stream *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    cancel(self);
    if (self->client->pid == getpid())
        release(self->feed);
    Py_DECREF(self->client);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static int stream_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((struct stream *)object)->client);
    return 0;
}

PyObject *stream_start(PyTypeObject *type, struct client *client,
                       struct weir_client_request *request, PyObject *wake)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct feed *feed = new_feed();
    struct stream *self = feed ? (struct stream *)allocate(type, 0) : NULL;
    if (!self) {
        if (feed)
            free_feed(feed);
        return PyErr_NoMemory();
    }
    self->feed = feed;
    self->client = (struct client *)Py_NewRef((PyObject *)client);
    feed->client = (struct client *)Py_NewRef((PyObject *)client);
    feed->wake = wake == Py_None ? NULL : Py_NewRef(wake);
    request->on_head = on_head;
    request->on_body = on_body;
    request->on_done = on_done;
    request->context = feed;
    request->body_window = STREAM_WINDOW;
    feed->references = 2;
    int err = weir_client_submit(client->client, request, &self->id);
    if (err == 0)
        return (PyObject *)self;
    Py_CLEAR(feed->wake);
    Py_DECREF(feed->client);
    feed->references = 1; /* no other thread has it */
    Py_DECREF(self);
    return client_raise_submit(err);
}

static PyMethodDef methods[] = {{"head", stream_head, METH_VARARGS, "The beginning of the answer."},
                                {"read", stream_read, METH_VARARGS, "What has come of its body."},
                                {"end", stream_end, METH_NOARGS, "How it has ended."},
                                {"cancel", stream_cancel, METH_NOARGS, "Ends it."},
                                {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_dealloc, stream_dealloc},
                              {Py_tp_traverse, stream_traverse},
                              {Py_tp_methods, methods},
                              {0, NULL}};
PyType_Spec stream_spec = {
    "weir._client.Stream", sizeof(struct stream), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
