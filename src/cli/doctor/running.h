/* SPDX-License-Identifier: Apache-2.0 */
/* What a running server of these rules has overlooked in requests: it is asked at its admin
 * listener, if it answers there. */
#ifndef WEIR_CLI_DOCTOR_RUNNING_H
#define WEIR_CLI_DOCTOR_RUNNING_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

void running_examine(struct findings *findings, const struct weir_rules *rules);

#endif
