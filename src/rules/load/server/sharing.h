/* SPDX-License-Identifier: Apache-2.0 */
/* What limits share: states with other nodes (`mode`, `hash_tag`, `on_store_error`), and capacity
 * with other limits (`borrow`, `reserve`, `pool`). See division.h and charge/borrow.h. */
#ifndef WEIR_RULES_LOAD_SERVER_SHARING_H
#define WEIR_RULES_LOAD_SERVER_SHARING_H

#include "rules/load/fields.h"

/* `mode`, `hash_tag` and `on_store_error` of a limit, whose key and rates are loaded already; with
 * a shared store, also the part that this node decides alone. `scaling`: the keyword that scales
 * the limit for one request, or acts on what is used of it (NULL: none does); a node's share says
 * nothing about that. */
void rules_load_sharing(struct rules_loader *loader, const struct rules_field *fields,
                        const struct rules_field *scaling, struct rules_rule *rule);

/* `borrow`, `reserve` and `pool` of all limits, which are loaded already. `fields` has
 * `each` for each limit; `names` are for suggestions. */
void rules_load_loans(struct rules_loader *loader, const struct rules_field *fields, uint32_t each,
                      const char *const *names, uint32_t name_count);

/* Checks that `nodes` is given where `on_store_error: local` needs it; all limits are loaded
 * already. */
void rules_check_nodes(struct rules_loader *loader);

/* Which attribute of the key a name means: its own, in any case for a header field, or client.ip
 * without its prefix length. The number of it; -1: none. */
int rules_key_find(struct rules_loader *loader, const struct rules_rule *rule,
                   struct weir_bytes name);

/* "exact", "leased"; "local", "open", "closed": enum weir_store_failure. Up to a NULL. */
extern const char *const rules_mode_words[], *const rules_failure_words[];

/* One of rules_failure_words. */
uint8_t rules_read_failure(struct rules_loader *loader, const struct rules_node *node);

#endif
