/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of keywords (keyword.h) say, for others: JSON Schema (draft 7) for editors, and a
 * table for the scripts that write the documentation.
 *
 * A schema has the bounds that the loader applies: of durations, sizes and percentages as
 * expressions of their digits. It knows one keyword at a time, so that it is laxer than the loader
 * and never stricter. Texts that name variables of the environment are texts for it.
 *
 * Threads: any; the tables are constant.
 */
#ifndef WEIR_RULES_LOAD_SCHEMA_H
#define WEIR_RULES_LOAD_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The schema of rules files, or of keys files, without keywords of features that the program lacks
 * (`has` as in struct weir_problems; NULL: with all). NULL when memory is out. The caller frees it.
 */
json_t *rules_schema(bool keys, bool (*has)(const char *feature));

/* Prints a line for every keyword of rules files: its place ("store.redis.lease"), kind, least and
 * most value (of numbers), what else it may be, its default as one would write it and in words,
 * what it is, why that is its default. Fields are separated by tabs. */
void rules_print_keywords(FILE *out);

#endif
