/* SPDX-License-Identifier: Apache-2.0 */
/* A request as Python gives it, as libweir takes it: a dict of attributes, and the peer's address.
 *
 * Values are borrowed: a call is valid as long as the dict is kept and unchanged. Reading runs no
 * Python code of a request's values, which might close the limiter.
 *
 * Memory: 13 KiB for a call, on the stack. Threads: the caller holds the GIL.
 */
#ifndef WEIR_PYTHON_ATTRIBUTES_H
#define WEIR_PYTHON_ATTRIBUTES_H

#include <netinet/in.h>
#include <stdbool.h>

#include <Python.h>

#include <weir/embed.h>

#include "errors.h"

/* What the present rules read; all owned. */
struct weir_py_reads {
    struct weir *weir;  /* borrowed: of these handles */
    PyObject *handles;  /* dict: the attributes that the rules read, others that were given, and
                           their handles; -1: too long a name to have one */
    PyObject *names;    /* tuple: their names */
    PyObject *outcomes; /* frozenset: the statuses that are strikes of a penalty */
    int field;          /* the handle of a header field that the rules read; -1: none */
    bool refunds;
};

struct weir_py_call {
    struct weir_call weir;
    struct weir_value values[WEIR_HANDLES_MAX + 1];
    struct sockaddr_in6 client; /* or a sockaddr_in */
};

/* Learns what the rules read, after they have been opened or read again. False: an exception is
 * set, and *reads is as before. */
bool weir_py_reads_learn(struct weir_py_reads *reads, struct weir *weir);
void weir_py_reads_clear(struct weir_py_reads *reads);

/* The attributes as texts, bytes and None: the same dict where all of them are, else a copy.
 * Numbers and UUIDs become texts, true and false, too; what has another type stays. Returns a new
 * reference; NULL: an exception is set. */
PyObject *weir_py_texts(PyObject *attributes);

/* Writes the values of a dict (NULL: none) to `call`. False: an exception is set. */
bool weir_py_attributes(const struct weir_py_errors *errors, const struct weir_py_reads *reads,
                        PyObject *attributes, struct weir_py_call *call);

/* Writes the peer's address (NULL: none), without the zone of an IPv6 one. False: an exception is
 * set. */
bool weir_py_client(const struct weir_py_errors *errors, const char *text,
                    struct weir_py_call *call);

#endif
