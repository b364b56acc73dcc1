/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a rules file may use: those that are built in, and those that `attributes` declares.
 *
 *   attributes: [tenant, tool, jwt.tenant]
 *
 * A limit by a name that no request has would apply to nobody, in silence. So every name that is
 * not built in is written twice: once where it is declared, once where it is used, and a mistyped
 * one is found. Built in are what weir itself makes of a request, and the names of others that have
 * a prefix: fields, parameters, cookies. Claims have one, too, but the registered ones and those
 * that `jwt` reads are few, so that the others are declared.
 */
#ifndef WEIR_RULES_LOAD_NAMES_H
#define WEIR_RULES_LOAD_NAMES_H

#include "rules/load/fields.h"

/* `attributes`: before anything that names attributes. */
void rules_load_declared(struct rules_loader *loader, const struct rules_node *node);

/* Reports a name that is neither built in nor declared. */
void rules_check_declared(struct rules_loader *loader, const struct rules_node *node,
                          struct weir_bytes name);

#endif
