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

/* The interpreter looks it up by its name. Returns the module's definition (PEP 489). */
PyMODINIT_FUNC PyInit__client(void);

#endif
