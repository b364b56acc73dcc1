/* SPDX-License-Identifier: Apache-2.0 */
/* weir._client: a struct weir_client for weir/client.py. It is an extension of its own, since
 * libweir needs no libcurl.
 *
 * Threads: a Client serves all threads. A request releases the GIL while it waits, and an interrupt
 * (Ctrl-C) cancels it. on_try is called on the client's own thread, with the GIL.
 * Fork: a child opens a Client of its own; in it, closing the parent's does nothing.
 */
#ifndef WEIR_PYTHON_CLIENT_H
#define WEIR_PYTHON_CLIENT_H

#include <Python.h>
#include <stdbool.h>
#include <sys/types.h>

#include <weir/client.h>

struct client {
    PyObject_HEAD struct weir_client *client; /* NULL: closed */
    PyObject *on_try;                         /* or NULL */
    unsigned long thread; /* of the client, once it has run Python code; 0 before */
    pid_t pid;
};

/* The interpreter looks it up by its name. Returns the module's definition (PEP 489). */
PyMODINIT_FUNC PyInit__client(void);

/* (limit, remaining, reset, interval) */
PyObject *client_as_limit(const struct weir_client_limit *limit);

/* (outcome, status, tries, limit, retry_after, headers, body, reason) */
PyObject *client_as_answer(const struct weir_client_answer *answer);

/* Raises the error of a submission, by the exceptions of weir. Returns NULL. */
PyObject *client_raise_submit(int err);

/* Whether the client is open and this thread may wait for it; else raises. */
bool client_may_wait(const struct client *self);

#endif
