/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for a test of the library: its rules file and, where it has one, its state file.
 * Threads: one. */
#ifndef LIBRARY_PLACE_H
#define LIBRARY_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "temporary.h"

#include <weir/weir.h>

struct place {
    char folder[TEMPORARY_MAX], rules[96], state[96];
};

/* Writes the rules file: `text` behind its version. */
static inline void write_rules(const struct place *place, const char *text)
{
    FILE *file = fopen(place->rules, "w");
    assert_non_null(file);
    fprintf(file, "version: 1\n%s", text);
    assert_int_equal(fclose(file), 0);
}

static inline int place_setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    temporary_folder(place->folder);
    snprintf(place->rules, sizeof place->rules, "%s/rules.yaml", place->folder);
    snprintf(place->state, sizeof place->state, "%s/state", place->folder);
    *state = place;
    return 0;
}

static inline int place_teardown(void **state)
{
    struct place *place = *state;
    temporary_remove(place->folder);
    free(place);
    return 0;
}

/* Opens the library on the rules file, without a warning. */
static inline struct weir *open_weir(const struct place *place, const struct weir_options *options)
{
    struct weir *weir;
    struct weir_reason reason;
    int err = weir_open(&weir, place->rules, options, &reason);
    if (err < 0)
        fail_msg("%s", reason.text);
    assert_string_equal(reason.text, "");
    return weir;
}

#endif
