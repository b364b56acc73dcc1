/* SPDX-License-Identifier: Apache-2.0 */
/* `kernel.xdp` of the file: feature/xdp/settings.h.
 *
 *   xdp:
 *     interface: eth0
 *     allow: [10.0.0.0/8]
 *     ban: [192.0.2.0/24]
 *     limits:
 *       - { name: packets, packets: 10000/s burst 20000 }
 *       - { name: dns, bytes: 1000000/s, prefix4: 24, protocol: udp, ports: [53] }
 *       - { name: syn, new_connections: 100/s, ports: [80, 443, 8000-8100] }
 */
#ifndef WEIR_FEATURE_XDP_RULES_SECTION_H
#define WEIR_FEATURE_XDP_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_xdp;

void rules_load_xdp(struct rules_loader *loader, const struct rules_node *node);

#endif
