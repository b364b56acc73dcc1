/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine does with decisions of front ends, requests and operations alike (struct
 * weir_purpose in turn.h): hooks of features (hook.h), counters, and on_store_error.
 *
 *   the store decides   hooks may have it decided once more; the limits' counters; whom to blame;
 *                       the other hooks
 *   the store fails     an operation is refused; checks of a request are settled by their
 *                       on_store_error (failure.h), and then as above
 *   finished            the front end's `done` is called
 *
 * A circle with hook.h and effect/warning.h, as hook.h says. Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_REQUEST_H
#define WEIR_ENGINE_REQUEST_H

#include "engine/turn.h"

/* Of every decision that a front end takes. */
extern const struct weir_purpose weir_request_purpose;

/* The steps of that purpose, for decisions that do more: see struct weir_purpose. */
bool weir_request_decided(struct weir_engine *engine, struct weir_entry *entry);
bool weir_request_failed(struct weir_engine *engine, struct weir_entry *entry, int error);
void weir_request_finish(struct weir_engine *engine, struct weir_entry *entry);

#endif
