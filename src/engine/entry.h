/* SPDX-License-Identifier: Apache-2.0 */
/* One decision of the pool, below all that decides: taking it and giving it back, what it keeps in
 * its memory, and what it says of itself. weir_engine_take, weir_engine_release, weir_decision_keep
 * and other functions of engine.h are here. All files of the engine may call these; these call
 * none of them, but what a decision names itself (weir_entry.drop).
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_ENTRY_H
#define WEIR_ENGINE_ENTRY_H

#include "engine/pool.h"
#include "rules/match/key.h"

struct weir_engine;

/* Back to the pool, from any state; no list may point at it any more. */
void weir_engine_give_back(struct weir_engine *engine, struct weir_entry *entry);

/* The text of the key of a check of an entry's decision; it may be written into `room`. */
struct weir_bytes weir_engine_key_text(const struct weir_engine *engine,
                                       const struct weir_entry *entry,
                                       const struct weir_check *check,
                                       char room[WEIR_KEY_TEXT_MAX]);

/* A name, kept with a decision; data == NULL: it has no room, or is too long to be one. */
struct weir_bytes weir_entry_keep_name(struct weir_decision *decision, struct weir_bytes name);

/* Keeps with a decision who it is for: reported once the store has answered, when the values of the
 * request, and perhaps of the directory, are gone. What has no room, or is too long to be a name,
 * is left out. */
void weir_engine_keep_identity(struct weir_entry *entry, const struct weir_identity *identity);

#endif
