/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of standing, and changes of them, as JSON. */
#ifndef WEIR_FEATURE_STANDING_SERVER_JSON_H
#define WEIR_FEATURE_STANDING_SERVER_JSON_H

#include <jansson.h>

#include "feature/standing/history.h"

/* A text; of one that is not UTF-8 only that. */
json_t *weir_standing_text_json(struct weir_bytes text);

/* JSON of an entry in force: "level", "origin", "since_ms", "until_ms", "reason". */
json_t *weir_standing_json(const struct weir_standing_entry *entry);

/* Appends the JSON of an entry, or of a row of the audit, to an array (`context`). */
void weir_standing_add_entry(void *context, const struct weir_history_entry *entry);
void weir_standing_add_row(void *context, const struct weir_history_row *row);

#endif
