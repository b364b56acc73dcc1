/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the daemon: `server`, `state`, `headers`. */
#ifndef WEIR_RULES_LOAD_SERVER_SETTINGS_H
#define WEIR_RULES_LOAD_SERVER_SETTINGS_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_server, rules_section_state;
extern const char *const rules_header_words[]; /* of `headers`, up to a NULL */

/* Each function takes the value of its key. */
void rules_load_server(struct rules_loader *loader, const struct rules_node *node);
void rules_load_state(struct rules_loader *loader, const struct rules_node *node);
void rules_load_headers(struct rules_loader *loader, const struct rules_node *node);

#endif
