/* SPDX-License-Identifier: Apache-2.0 */
/* Which language a person reads, by the field Accept-Language (RFC 9110 section 12.5.4):
 * "de-CH, de;q=0.9, en;q=0.8". Languages are compared by their first part, so "de-CH" is "de".
 *
 * Threads: pure. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_LANGUAGE_H
#define WEIR_FEATURE_CHALLENGE_LANGUAGE_H

#include <weir/bytes.h>

/* The language with the highest weight among `languages`, which are lower-case and of letters only,
 * such as "de". Of several the first that the field names; 0 where it names none, or names them
 * with weight 0 only. Weights that cannot be read count as 0. */
unsigned weir_language_choose(struct weir_bytes accept, const char *const *languages,
                              unsigned count);

#endif
