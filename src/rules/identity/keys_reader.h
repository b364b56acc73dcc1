/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a keys file: what its two readers share. As YAML (keys_yaml.c), which tells what is wrong
 * and where, and as plain lines (keys_load.c), which gives up where anything is. See keys.h.
 */
#ifndef WEIR_RULES_IDENTITY_KEYS_READER_H
#define WEIR_RULES_IDENTITY_KEYS_READER_H

#include <stdio.h>

#include "rules/identity/keys_overrides.h"

struct rules_keys_reader {
    struct weir_rules *rules;
    struct rules_keys *keys;
    struct rules_string_map orgs; /* name -> where it stands */
    struct rules_keys_overrides overrides;
    uint32_t *lines; /* of each owner */
    uint32_t lines_room;
    const char *file;
    struct weir_problems *problems;
};

/* Keeps an org, which repeats, once; *at is where. Errors: WEIR_ERR_MEMORY. */
int rules_keys_org(struct rules_keys_reader *reader, struct weir_bytes org, uint32_t *at)
    __attribute__((warn_unused_result));

/* Adds an owner whose digest is not there yet. Errors: WEIR_ERR_MEMORY. */
int rules_keys_own(struct rules_keys_reader *reader, const struct rules_key_owner *owner,
                   uint32_t line) __attribute__((warn_unused_result));

/* Reads the file as YAML. Errors: WEIR_ERR_RULES with problems added, WEIR_ERR_MEMORY. */
int rules_keys_read_yaml(struct rules_keys_reader *reader, FILE *file)
    __attribute__((warn_unused_result));

#endif
