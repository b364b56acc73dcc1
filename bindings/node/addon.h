/* SPDX-License-Identifier: Apache-2.0 */
/* weir.node: libweir for JavaScript, as the class Weir. index.js is the module that programs see.
 *
 * Nothing here decides. Errors are thrown with the name of the enum weir_err as `code`, and its
 * text or the reason as message. Context-aware: it has no variables, so each thread of Node
 * (worker_threads) loads the addon for itself. What a thread has opened is closed when it is
 * collected, or when the thread ends.
 *
 * Threads: an object belongs to the thread of Node that made it.
 */
#ifndef WEIR_BINDINGS_NODE_ADDON_H
#define WEIR_BINDINGS_NODE_ADDON_H

#include <node_api.h>

#include "check.h"
#include "lines.h"

/* What an object of JavaScript wraps. */
struct handle {
    struct weir *weir;                       /* NULL: closed */
    enum weir_on_store_error on_store_error; /* what the rules said when it was opened */
    struct checker checker;
    struct lines lines; /* to be logged */
    napi_ref numbers;   /* keeps checker.numbers */
};

/* How a reservation ends: the third argument of `end`. */
enum ending { SETTLE, REPORT, CANCEL };

#endif
