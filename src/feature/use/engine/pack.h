/* SPDX-License-Identifier: Apache-2.0 */
/* Packing what is shown of a key or a caller (core/text/shown.h): long values and secrets are
 * hashed, and get the id that standing knows them by, so that a page can ban what it must not show.
 *
 * Only what is kept is packed: it costs a SHA-256 for each such value.
 *
 * Threads: plain functions.
 */
#ifndef WEIR_FEATURE_USE_ENGINE_PACK_H
#define WEIR_FEATURE_USE_ENGINE_PACK_H

#include "core/text/shown.h"
#include "rules/match/checks.h"

struct weir_standing;

/* Makes the list of the values of a check's key. `map` is the standing of callers; NULL: there is
 * none, and ids are not known. */
void weir_pack_key(struct weir_shown_list *list, const struct weir_rules *rules,
                   const struct weir_check *check, const struct weir_standing *map);
/* The same from the text of a key. */
void weir_pack_text(struct weir_shown_list *list, struct weir_bytes text);

/* Adds one value of a kind: whole, or by its hash where it is long. */
void weir_pack_value(struct weir_shown_list *list, const char *kind, struct weir_bytes value,
                     const struct weir_standing *map);

#endif
