/* SPDX-License-Identifier: Apache-2.0 */
/* `kernel` of the file: what weir does below HTTP.
 *
 *   kernel:
 *     nftables: { table: weir, hook: netdev, interfaces: [eth0], penalties: true }
 *     limits:
 *       - { name: syn, new_connections: 50/s burst 100, prefix4: 24, ports: [80, 443] }
 *     xdp: { interface: eth0, limits: [...] }              see xdp.h
 */
#ifndef WEIR_FEATURE_KERNEL_RULES_SECTION_H
#define WEIR_FEATURE_KERNEL_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_kernel;

/* After `standing`, whose bans it publishes. */
void rules_load_kernel(struct rules_loader *loader, const struct rules_node *node);

#endif
