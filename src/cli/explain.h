/* SPDX-License-Identifier: Apache-2.0 */
/* `weir explain`: which limits a request meets, why the others do not apply, and what they would
 * say. This header is what explain.c (the command line) asks of explain_run.c (the answer). */
#ifndef WEIR_CLI_EXPLAIN_H
#define WEIR_CLI_EXPLAIN_H

#include "wire/json/check.h"

struct explain_options {
    const char *config;
    const char *state;            /* a state file to peek into; NULL: fresh states */
    struct weir_check_json check; /* the request; its values are borrowed */
};

/* Explains and prints. Returns the exit status. */
int explain_run(const struct explain_options *options);

#endif
