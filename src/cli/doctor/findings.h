/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir doctor` has found: a list of findings, as text and as JSON.
 *
 * A finding has a name that stays the same between versions, so that scripts and alerts can use
 * it; a text, which says what is wrong and where; and a way to fix it.
 *
 * Memory: the list is of fixed size; findings beyond FINDINGS_MAX are counted. Threads: one owner.
 */
#ifndef WEIR_CLI_DOCTOR_FINDINGS_H
#define WEIR_CLI_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#define FINDINGS_MAX 64 /* a broken rules file brings up to 20 */
#define FINDING_TEXT_MAX 512

enum finding_level {
    FINDING_WARNING, /* weir runs, but loses counts, refuses connections, or shows a secret */
    FINDING_ERROR,   /* weir does not start, or a listener or the store does not work */
};

struct finding {
    enum finding_level level;
    const char *name; /* static */
    const char *fix;  /* static */
    char text[FINDING_TEXT_MAX];
};

struct findings {
    struct finding list[FINDINGS_MAX];
    uint32_t count, errors, warnings; /* errors and warnings count what the list has no room for */
};

/* Adds one; a longer text is cut. `name` and `fix` are static. */
void findings_add(struct findings *findings, enum finding_level level, const char *name,
                  const char *fix, const char *format, ...) __attribute__((format(printf, 5, 6)));

bool findings_have(const struct findings *findings, const char *name);

/* Prints them on stdout. `subject` is the rules file, or NULL. */
void findings_print(const struct findings *findings, const char *subject);
/* The same as one JSON object. Returns false when memory is out. */
bool findings_print_json(const struct findings *findings, const char *subject);

#endif
