/* SPDX-License-Identifier: Apache-2.0 */
/* The store that several machines share (`store`), and what belongs to it (`idempotency`). */
#ifndef WEIR_RULES_LOAD_SERVER_STORE_H
#define WEIR_RULES_LOAD_SERVER_STORE_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_store, rules_section_store_redis,
    rules_section_idempotency;

/* What counts where `store` says nothing. */
void rules_store_defaults(struct rules_loader *loader);

/* regions: the file has the section `regions`, which says which Redis. */
void rules_load_store(struct rules_loader *loader, const struct rules_node *node, bool regions);

/* `redis` of `store`, or of this region in its place: a URL, or a mapping. */
void rules_load_store_redis(struct rules_loader *loader, const struct rules_field *redis);

void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node);

#endif
