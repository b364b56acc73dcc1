/* SPDX-License-Identifier: Apache-2.0 */
/* weir._weir: what the package weir has of libweir. It has no logic of its own: limiter.h is a
 * struct weir, answer.h what a check returns, errors.h what is raised.
 */
#ifndef WEIR_PYTHON_MODULE_H
#define WEIR_PYTHON_MODULE_H

#include <Python.h>

/* The interpreter looks it up by its name. Returns the module's definition (PEP 489). */
PyMODINIT_FUNC PyInit__weir(void);

#endif
