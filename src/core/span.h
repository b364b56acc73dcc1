/* SPDX-License-Identifier: Apache-2.0 */
/* The charge of any span, to edits or in place (see span_change.h). */
#ifndef WEIR_CORE_SPAN_H
#define WEIR_CORE_SPAN_H

#include "core/span_change.h"

void span_charge(const struct weir_limit *limit, const struct span_change *change,
                 const struct weir_use *use);

#endif
