/* SPDX-License-Identifier: Apache-2.0 */
/* What features hear from an engine. Each is called on its thread, from weir_engine_run or the
 * store's callback; what a call is given is valid during the call. */
#ifndef WEIR_ENGINE_CALLBACKS_H
#define WEIR_ENGINE_CALLBACKS_H

#include <stdint.h>

struct weir_warning;  /* engine/effect/warning.h */
struct weir_struck;   /* feature/penalties/engine/strike.h */
struct weir_observed; /* feature/use/engine/observe.h */

/* Called for each warning. It may not call the engine. */
typedef void (*weir_engine_warn)(void *context, const struct weir_warning *warning);

/* What becomes of a strike that moves the ladder; of others it is ignored. */
enum weir_strike_answer {
    WEIR_STRIKE_DONE,    /* the move is in force: the count is reset */
    WEIR_STRIKE_LATER,   /* it will be: weir_engine_strike_end ends the count then */
    WEIR_STRIKE_REFUSED, /* there is no room for it: the strike is given back */
};

/* Called for each strike that was counted. It may not call the engine. */
typedef enum weir_strike_answer (*weir_engine_strike)(void *context,
                                                      const struct weir_struck *struck);

/* Called for samples and denials. It may not call the engine, except the functions of observe.h and
 * weir_engine_answer. Returns how many requests pass until the next sample, 1 or more; ignored
 * where this was none. */
typedef uint32_t (*weir_engine_observe)(void *context, const struct weir_observed *observed);

#endif
