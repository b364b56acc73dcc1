/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of limits as sentences for customers: "600 a minute, up to 60 at once".
 *
 * Threads: no state.
 */
#ifndef WEIR_CLI_DOCUMENT_PHRASES_H
#define WEIR_CLI_DOCUMENT_PHRASES_H

#include <stdint.h>

#include <weir/limit.h>

#define DOCUMENT_PHRASE_MAX 160

/* What one rate affords to calls of a cost (1 and up): "60 a minute", "100 a month". */
const char *document_rate(char text[DOCUMENT_PHRASE_MAX], const struct weir_limit_spec *spec,
                          uint64_t cost);

#endif
