/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting the problems of a file, and helpers for their messages.
 *
 * A file is checked to its end, so that one run reports all its problems. Values that are
 * quoted in a message are cut and escaped first: a message is always one line of printable text.
 */
#ifndef WEIR_RULES_PROBLEMS_H
#define WEIR_RULES_PROBLEMS_H

#include <stdbool.h>

#include "rules/rules.h"

/* Adds one problem; line and column count from 1 (0: none). Past WEIR_PROBLEMS_MAX it is only
 * counted. Returns false when memory is out. */
bool rules_problem_add(struct weir_problems *problems, const char *file, uint32_t line,
                       uint32_t column, const char *message);

/* The same for what is deprecated: taken today, because earlier versions took it, and refused from
 * the version `refused_from` on (a constant), because it switches something off in silence. Whether
 * it is refused already depends on nothing but the version of this build (weir_still_takes) and
 * `strict`. Where it still is taken, *refused is false, and the message says how long. */
bool rules_problem_deprecated(struct weir_problems *problems, const char *file, uint32_t line,
                              uint32_t column, const char *refused_from, const char *message,
                              bool *refused);

/* How the problem that was added last can be fixed; false when memory is out. Does nothing where
 * that problem was only counted. */
bool rules_problem_fix(struct weir_problems *problems, enum weir_fix fix, const char *text,
                       size_t size, uint32_t at);

/* Puts the problems of each file in the order of line and column; files stay in the order in which
 * they first came. */
void rules_problems_sort(struct weir_problems *problems);

/* A value quoted for a message: in backquotes, at most 60 bytes of it, escaped. */
#define RULES_QUOTE_MAX 272
struct rules_quote {
    char text[RULES_QUOTE_MAX];
};
const char *rules_quote(struct rules_quote *quote, const char *text, size_t size);

/* The word of `words` (count of them) that `text` may be a mistyping of, or NULL: at most a third
 * of its letters, and at most 3, inserted, removed, changed or swapped (Damerau, 1964). */
const char *rules_nearest(const char *text, size_t size, const char *const *words, size_t count);

/* What a message about an unknown word ends with: "; did you mean `nearest`?", or nothing. The word
 * has 32 bytes at most (problems.c). */
#define RULES_HINT_MAX 64
struct rules_hint {
    char text[RULES_HINT_MAX];
};
const char *rules_hint(struct rules_hint *hint, const char *text, size_t size,
                       const char *const *words, size_t count);

#endif
