/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the rules: the state, keys and certificates; who may read and write them.
 *
 * Permissions are those of the user who runs `weir doctor`. Nothing is created or changed.
 */
#ifndef WEIR_CLI_DOCTOR_FILES_H
#define WEIR_CLI_DOCTOR_FILES_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

/* `config`: the rules file. `now_s`: the clock, for the terms of certificates. */
void files_judge(struct findings *findings, const char *config, const struct weir_rules *rules,
                 uint64_t now_s);

#endif
