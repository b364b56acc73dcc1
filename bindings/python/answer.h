/* SPDX-License-Identifier: Apache-2.0 */
/* What a check returns: the types Answer, Limit and Reservation, immutable copies of what
 * weir_check_full writes. Times are seconds as float, "never" is infinity.
 *
 * Threads: the caller holds the GIL.
 */
#ifndef WEIR_PYTHON_ANSWER_H
#define WEIR_PYTHON_ANSWER_H

#include <Python.h>

#include <weir/embed.h>

struct weir_py_answers {
    PyTypeObject *answer, *limit, *reservation; /* owned */
};

/* Makes the types and adds them to the module. Returns 0, or -1 with an exception set. */
int weir_py_answers_init(struct weir_py_answers *types, PyObject *module);
void weir_py_answers_clear(struct weir_py_answers *types);
int weir_py_answers_visit(const struct weir_py_answers *types, visitproc visit, void *arg);

/* A new Answer of a call that asked for everything. NULL: an exception is set. */
PyObject *weir_py_answer(const struct weir_py_answers *types, const struct weir_call *call,
                         const struct weir_answer_summary *answer);

/* The token of a Reservation, or of a str with its text, which is written to *room. NULL: a
 * TypeError or ValueError is set. The token is valid as long as `object` and `room`. */
const struct weir_reservation_token *weir_py_reservation(const struct weir_py_answers *types,
                                                         PyObject *object,
                                                         struct weir_reservation_token *room);

#endif
