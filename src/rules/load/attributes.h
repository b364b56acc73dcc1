/* SPDX-License-Identifier: Apache-2.0 */
/* The names of attributes in a rules file: their syntax, their numbers, which ones are secret. */
#ifndef WEIR_RULES_LOAD_ATTRIBUTES_H
#define WEIR_RULES_LOAD_ATTRIBUTES_H

#include "rules/load/fields.h"

/* Numbers the attributes that every file has; false when memory is out. */
bool rules_fixed_attributes(struct rules_loader *loader);

/* The number of an attribute, assigned when the name is new; -1 after a problem. */
int rules_intern_attribute(struct rules_loader *loader, const struct rules_node *node,
                           struct weir_bytes name);

/* Whether `attributes` may declare this name; false after a problem. */
bool rules_check_attribute_name(struct rules_loader *loader, const struct rules_node *node,
                                struct weir_bytes name);

/* The number of a claim ("sub", without "jwt."), assigned when it is new; -1 after a problem. */
int rules_intern_claim(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name);

/* "client.ip", "client.ip/64", "client.ip/64/24": 1 and the prefix lengths; 0: another attribute;
 * -1 after a problem. */
int rules_read_address_name(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name, uint8_t *bits4, uint8_t *bits6);

/* Whether an attribute's values are credentials with a scheme (core/text/credential.h). */
bool rules_has_scheme(const char *name);

/* Whether `identify` or `jwt` reads who is calling from it. */
bool rules_identifies(const struct weir_rules *rules, uint16_t attribute);
/* Whether an attribute is shown only as SHA-256: the sources of `identify` (which is loaded before
 * the limits) and of tokens, cookies, and header fields that carry credentials. */
bool rules_is_secret(const struct weir_rules *rules, uint16_t attribute);

#endif
