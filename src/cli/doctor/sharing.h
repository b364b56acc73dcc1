/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all that share a state can use it: the group of its folder, the file in it, and the map
 * of standing that nginx and programs with libweir read.
 *
 * Nothing is created or changed.
 */
#ifndef WEIR_CLI_DOCTOR_SHARING_H
#define WEIR_CLI_DOCTOR_SHARING_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

void sharing_judge(struct findings *findings, const struct weir_rules *rules);

#endif
