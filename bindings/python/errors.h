/* SPDX-License-Identifier: Apache-2.0 */
/* The module's exceptions: libweir's errors as Python raises them.
 *
 *   Error                the base; `code` is the number of <weir/error.h>
 *   RulesError           the rules file; `mistakes`: (file, line, column, message) of each
 *   StateError           the state file, or a limiter that is closed
 *   RequestError         an argument of a call: a path, an address, a cost (also a ValueError)
 *   NotFoundError        a lease or a reservation that is unknown or has ended (also a LookupError)
 *
 * Threads: the caller holds the GIL.
 */
#ifndef WEIR_PYTHON_ERRORS_H
#define WEIR_PYTHON_ERRORS_H

#include <Python.h>

struct weir_py_errors {
    PyObject *base, *rules, *state, *request, *not_found; /* owned */
};

/* Makes the exceptions and adds them to the module. Returns 0, or -1 with an exception set. */
int weir_py_errors_init(struct weir_py_errors *errors, PyObject *module);
void weir_py_errors_clear(struct weir_py_errors *errors);
int weir_py_errors_visit(const struct weir_py_errors *errors, visitproc visit, void *arg);

/* Raises what a call has returned; `what` (may be NULL) names the call or the argument. Returns
 * NULL. */
PyObject *weir_py_raise(const struct weir_py_errors *errors, int err, const char *what);

/* Raises that the limiter is closed. Returns NULL. */
PyObject *weir_py_raise_closed(const struct weir_py_errors *errors);

/* Raises what weir_open or weir_reload has returned, with its reason. Of a rules file with mistakes
 * it reads all of them. Returns NULL. */
PyObject *weir_py_raise_open(const struct weir_py_errors *errors, int err, const char *rules_file,
                             const char *reason);

/* The mistakes of a rules file as a list of tuples (file, line, column, message), empty where there
 * are none. Reads files, with the GIL released. NULL: an exception is set; of a file that is not
 * usable for another reason too. */
PyObject *weir_py_mistakes(const struct weir_py_errors *errors, const char *rules_file);

#endif
