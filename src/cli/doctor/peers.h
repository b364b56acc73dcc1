/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a fleet (`sticky`): whether each can be reached with this node's token and
 * certificates, and decides for others; whether this node listens where its own line says.
 *
 * Each peer is asked to decide nothing (a WEIR.DECIDE without checks), as the server asks it. What
 * the others have in their lists is not known.
 */
#ifndef WEIR_CLI_DOCTOR_PEERS_H
#define WEIR_CLI_DOCTOR_PEERS_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

/* Finds and judges; nothing without `sticky` in the rules. */
void peers_examine(struct findings *findings, const struct weir_rules *rules);

#endif
