/* SPDX-License-Identifier: Apache-2.0 */
/* The charge of any span, to edits or in place (see span_change.h); and how large one gets. */
#ifndef WEIR_CORE_SPAN_H
#define WEIR_CORE_SPAN_H

#include "core/span_change.h"

void span_charge(const struct weir_limit *limit, const struct span_change *change,
                 const struct weir_use *use);

/* Words of a state whose limit is used up by requests of cost 1; 0: it needs no span. */
uint32_t span_full_words(const struct weir_limit *limit);

#endif
