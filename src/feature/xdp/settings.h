/* SPDX-License-Identifier: Apache-2.0 */
/* What `kernel.xdp` of the rules says; docs/xdp.md describes it.
 *
 * The rules own all of it; it is immutable and lives as long as the generation of rules.
 */
#ifndef WEIR_FEATURE_XDP_SETTINGS_H
#define WEIR_FEATURE_XDP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/limit.h>

#include "core/text/address.h"

#define WEIR_XDP_LIMITS_MAX 4   /* each costs every packet that it meets some 30 ns */
#define WEIR_XDP_ALLOW_MAX 1000 /* entries of `allow`: each entry of `ban` is compared with all */
#define WEIR_XDP_BAN_MAX 100000
#define WEIR_XDP_STATES_MIN 1024
#define WEIR_XDP_STATES_MAX (1 << 24) /* 384 MiB */
#define WEIR_XDP_SAMPLE_MAX (1 << 20)
#define WEIR_XDP_PORTS_MAX 4      /* each is compared with the port of a packet */
#define WEIR_XDP_NAME_MAX 63      /* bytes of a limit's name */
#define WEIR_XDP_INTERFACE_MAX 15 /* bytes of an interface's name: IFNAMSIZ less its NUL */

/* How the program is attached. */
enum weir_xdp_mode {
    WEIR_XDP_AUTO,    /* native where the driver can, else generic */
    WEIR_XDP_NATIVE,  /* in the driver, before the kernel allocates anything for the packet */
    WEIR_XDP_GENERIC, /* behind the driver: for every interface, and slower */
};

/* What a limit looks at beside the source. */
enum weir_xdp_protocol { WEIR_XDP_ANY, WEIR_XDP_TCP, WEIR_XDP_UDP, WEIR_XDP_ICMP };

struct weir_xdp_ports {
    uint16_t first, last; /* 1..65535 */
};

struct weir_xdp_limit {
    const char *name;
    struct weir_limit limit; /* gcra */
    uint8_t bits4, bits6;    /* of a source's address that have one count: 1..32, 1..128 */
    uint8_t protocol;        /* enum weir_xdp_protocol */
    bool syn;                /* only packets that open a TCP connection */
    bool bytes;              /* a packet costs its bytes (of the frame), not 1 */
    bool dry_run;            /* count denials, drop nothing */
    uint8_t ports_count;     /* 0: all packets; else those to one of these ports */
    struct weir_xdp_ports ports[WEIR_XDP_PORTS_MAX];
};

struct weir_xdp_settings {
    const char *interface;
    const struct weir_xdp_limit *limits; /* limits_count of them, at most WEIR_XDP_LIMITS_MAX */
    uint32_t limits_count;
    const struct weir_cidr *allow, *ban;
    uint32_t allow_count, ban_count;
    uint32_t states;  /* that have room at one time: a power of two */
    uint32_t sample;  /* of drops one in this many is shown: a power of two */
    uint32_t percent; /* of sources that the filter applies to: 0..100 */
    uint8_t mode;     /* enum weir_xdp_mode */
    bool dry_run;
    bool drop_fragments;
    bool no_room_passes; /* a new source without room passes uncounted; else it is dropped */
};

#endif
