/* SPDX-License-Identifier: Apache-2.0 */
/* The text for nft that `kernel.limits` becomes: a table of its own beside that of the bans, with
 * comments, which replaces itself in one transaction.
 *
 * A limit has a set of its sources for each family, with a rate or a count of connections for each
 * (nft's "meters"; `man nft`, STATEFUL OBJECTS), and a counter of what it has dropped. What a
 * rate's set forgets is as good as new: its timeout is the time in which a full burst comes back.
 *
 * Memory: none beside the stream's. Threads: any.
 */
#ifndef WEIR_FEATURE_KERNEL_RULESET_H
#define WEIR_FEATURE_KERNEL_RULESET_H

#include <stdio.h>

#include "core/text/address.h"
#include "feature/kernel/settings.h"

/* Behind the name of the table of bans, or "weir". */
#define WEIR_KERNEL_RULESET_SUFFIX "_limits"
#define WEIR_KERNEL_RULESET_NAME_MAX (WEIR_KERNEL_TABLE_MAX + sizeof WEIR_KERNEL_RULESET_SUFFIX)

void weir_kernel_ruleset_name(char name[WEIR_KERNEL_RULESET_NAME_MAX],
                              const struct weir_kernel_settings *settings);

/* Writes the text. `proxies` are never limited. The caller looks at ferror(). */
void weir_kernel_ruleset_write(FILE *out, const struct weir_kernel_settings *settings,
                               const struct weir_cidr *proxies, size_t proxies_count);

#endif
