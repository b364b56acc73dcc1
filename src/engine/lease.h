/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrency leases at the engine: their ids, ending one by its token (weir_engine_apply_lease of
 * engine.h), and ending those whose answer no client will get. lease_token.h has the token's text.
 *
 * Threads: those of the engine. */
#ifndef WEIR_ENGINE_LEASE_H
#define WEIR_ENGINE_LEASE_H

#include "engine/pool.h"

struct weir_engine;

/* Whether a check of the decision is on a concurrency limit. */
bool weir_lease_wanted(const struct weir_decision *decision);

/* Gives a decision that asks for leases an id, unless it has one. */
void weir_lease_prepare(struct weir_engine *engine, struct weir_entry *entry);

/* Turns a finished decision whose answer no client will get into the operation that ends its
 * leases. False: it holds none. */
bool weir_lease_abandon(struct weir_engine *engine, struct weir_decision *decision);

/* Whether a state of this place (enum weir_lease_token_place) is at the local store. */
bool weir_place_is_local(const struct weir_engine *engine, uint8_t place);

#endif
