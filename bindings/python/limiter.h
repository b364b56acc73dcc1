/* SPDX-License-Identifier: Apache-2.0 */
/* The type Limiter: a struct weir that opens again in a process that has been forked.
 *
 * Threads: one Limiter serves all threads. A check keeps the GIL, for it takes about a microsecond,
 * unless `state_patience` allows a wait of more than 100 ms for a process that is stopped. Opening
 * and reading rules again release it.
 * Fork: libweir refuses calls in a child; the first of them there opens the rules file and the
 * state again, by their absolute paths. Memory: beside libweir's, 64 KiB for each thread that
 * checks at the same time.
 */
#ifndef WEIR_PYTHON_LIMITER_H
#define WEIR_PYTHON_LIMITER_H

#include <Python.h>

#include "answer.h"
#include "errors.h"

/* What an interpreter has of this module. */
struct weir_py_state {
    struct weir_py_errors errors;
    struct weir_py_answers answers;
    PyTypeObject *limiter; /* owned */
};

/* Makes the type and adds it to the module. Returns 0, or -1 with an exception set. */
int weir_py_limiter_init(struct weir_py_state *state, PyObject *module);

#endif
