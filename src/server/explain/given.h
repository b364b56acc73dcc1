/* SPDX-License-Identifier: Apache-2.0 */
/* What of the request that was given an explanation leaves out, and why. */
#ifndef WEIR_SERVER_EXPLAIN_GIVEN_H
#define WEIR_SERVER_EXPLAIN_GIVEN_H

#include "server/explain/explained.h"

/* Prints a line for each header field and attribute that no rule reads, or that no request can say.
 */
void weir_explain_given(const struct weir_explained *explained);

#endif
