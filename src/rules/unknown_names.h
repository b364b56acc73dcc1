/* SPDX-License-Identifier: Apache-2.0 */
/* Names of attributes in requests that are neither built in nor declared (known_names.h).
 *
 * Such a name is ignored, so that a limit by the name that was meant does not apply. Every door
 * comes here with it (source.h), once for each value. It is counted by name, in a table that the
 * rules own: weir serve logs it once a minute, with the name that may have been meant, and shows it
 * in metrics and to `weir doctor`; libweir says it by weir_options.say.
 *
 * Memory: RULES_UNKNOWN_MAX names of at most RULES_UNKNOWN_SIZE bytes; those that come later are
 * counted together. A byte that is not a letter, a digit or one of ._-:/@[] is kept as "?", so that
 * a name is safe in a log, a label and JSON. Threads: any; no lock.
 */
#ifndef WEIR_RULES_UNKNOWN_NAMES_H
#define WEIR_RULES_UNKNOWN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_rules;

#define RULES_UNKNOWN_MAX 64
#define RULES_UNKNOWN_SIZE 63

/* All zero is empty. */
struct rules_unknown_names {
    _Atomic uint64_t total; /* of all names, others included */
    _Atomic uint64_t others;
    struct rules_unknown_name {
        _Atomic uint8_t state; /* free, being written, there */
        uint8_t size;
        char text[RULES_UNKNOWN_SIZE + 1]; /* NUL-terminated */
        _Atomic uint64_t count;
    } names[RULES_UNKNOWN_MAX];
    uint64_t told[RULES_UNKNOWN_MAX + 1]; /* weir_rules_unknown_news: by place */
};

/* Counts a name. */
void rules_unknown_name(const struct weir_rules *rules, const char *name, size_t size);

/* How often any unknown name has come. */
uint64_t weir_rules_unknown_total(const struct weir_rules *rules);

/* One unknown name; `count` 0: there is none in this place. Texts live as long as the rules. */
struct weir_unknown_name {
    const char *name; /* NULL: all names beyond RULES_UNKNOWN_MAX */
    const char *near; /* the name that may have been meant; NULL: none is like it */
    uint64_t count;
};

/* What is in place `index`, 0 to RULES_UNKNOWN_MAX, which is that of the others. */
struct weir_unknown_name weir_rules_unknown(const struct weir_rules *rules, uint32_t index);

/* The same for who logs: `count` is since the last call for this place. One thread at a time. */
struct weir_unknown_name weir_rules_unknown_news(const struct weir_rules *rules, uint32_t index);

/* Takes over the counts of rules that are replaced, of names that are unknown still. Before the new
 * ones are used. */
void rules_unknown_inherit(struct weir_rules *rules, const struct weir_rules *before);

#endif
