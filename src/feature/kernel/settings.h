/* SPDX-License-Identifier: Apache-2.0 */
/* What the section `kernel:` of the rules says.
 *
 * The rules own all of it; it is immutable and lives as long as the generation of rules.
 */
#ifndef WEIR_FEATURE_KERNEL_SETTINGS_H
#define WEIR_FEATURE_KERNEL_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_KERNEL_TABLE_MAX 31     /* bytes of a table's name */
#define WEIR_KERNEL_INTERFACE_MAX 15 /* bytes of an interface's name: IFNAMSIZ less its NUL */
#define WEIR_KERNEL_INTERFACES_MAX 16
#define WEIR_KERNEL_LIMITS_MAX 32
#define WEIR_KERNEL_PORTS_MAX 16

enum weir_kernel_hook {
    WEIR_KERNEL_NETDEV, /* as a frame arrives at an interface: the cheapest */
    WEIR_KERNEL_INET,   /* before connection tracking, on all interfaces */
};

/* `kernel.nftables`: where bans are dropped. */
struct weir_kernel_nftables {
    bool on;
    bool penalties; /* bans of penalties, too: `from` names them */
    uint8_t hook;   /* enum weir_kernel_hook */
    uint8_t interfaces_count;
    const char *table;
    const char *interfaces[WEIR_KERNEL_INTERFACES_MAX];
    const char *helper; /* the socket of a helper that runs already; NULL: weir starts one */
};

/* What one of `kernel.limits` counts. */
enum weir_kernel_count {
    WEIR_KERNEL_COUNT_NEW,     /* new TCP connections: packets with SYN alone */
    WEIR_KERNEL_COUNT_OPEN,    /* connections that are open at one time */
    WEIR_KERNEL_COUNT_PACKETS, /* packets */
    WEIR_KERNEL_COUNT_ICMP,    /* packets of ICMP and ICMPv6 that ask for an answer */
};

struct weir_kernel_limit {
    const char *name;
    uint8_t count;            /* enum weir_kernel_count */
    bool dry_run;             /* it counts what it would drop */
    uint8_t prefix4, prefix6; /* sources that share one count: their first bits */
    uint32_t most;            /* a rate's number, or connections that are open */
    uint32_t per_s;           /* a rate's time in seconds: 1, 60, 3600 or 86400; 0 of `open` */
    uint32_t burst;           /* of a rate */
    uint32_t sources;         /* that are counted at one time */
    uint16_t ports[WEIR_KERNEL_PORTS_MAX];
    uint8_t ports_count; /* 0: all */
};

struct weir_kernel_settings {
    struct weir_kernel_nftables nftables;
    const struct weir_kernel_limit *limits;
    uint32_t limits_count;
};

#endif
