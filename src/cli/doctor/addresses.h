/* SPDX-License-Identifier: Apache-2.0 */
/* Where the rules listen: whether a server could listen there, and who would reach it.
 *
 * A TCP address is bound and closed again, without listening. A Unix socket is not bound, since
 * that would create a file: its folder and path are looked at. An address in use is no finding
 * where a running weir answers on the admin listener of these rules.
 */
#ifndef WEIR_CLI_DOCTOR_ADDRESSES_H
#define WEIR_CLI_DOCTOR_ADDRESSES_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

/* `rules` NULL: the addresses of a server without rules. */
void addresses_judge(struct findings *findings, const struct weir_rules *rules);

#endif
