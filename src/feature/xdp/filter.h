/* SPDX-License-Identifier: Apache-2.0 */
/* What the filter in the kernel (filter.bpf.c) and the programs that load and read it share: its
 * settings, states, counters and samples. One compiler lays out both sides alike: all numbers are
 * in the machine's order, and every struct is a multiple of 8 bytes.
 *
 * The settings are constants of a loaded program (.rodata): the verifier removes the branches that
 * they rule out, and an update replaces program and settings in one step.
 *
 * A state is a bucket (core/bucket.h) of one limit and one source. A set holds XDP_WAYS of them. 64
 * bits of the hash of the source, under a secret of the limit, name both: the lowest ones the set,
 * the highest 53 the state, so that at least 42 tell sources of one set apart. Beside them a
 * state's key has the limit's slot and generation: those of another generation are as good as none.
 *
 * A set's first key is its lock as well: the CPU that exchanges it for XDP_LOCKED has the set,
 * until it writes a key back. bpf_spin_lock took 41 ns a packet here, of which this takes 3.
 * Nothing interrupts an XDP program for long, but a machine may take the CPU away from its guest,
 * so one that finds the set locked waits; after XDP_LOCK_TRIES it gives up, and the packet is
 * handled as one for which there is no room.
 */
#ifndef WEIR_FEATURE_XDP_FILTER_H
#define WEIR_FEATURE_XDP_FILTER_H

#include <stdint.h>

#include <weir/limit.h>

#include "core/bucket.h"
#include "feature/xdp/settings.h"

#define XDP_FORMAT 2     /* another layout or meaning of what is shared has another number */
#define XDP_LIMITS_MAX 4 /* each is inlined into the program; a power of two */
#define XDP_WAYS 4

/* Why a packet passed or was dropped. With `dry_run`, XDP_DROP_... count what would be dropped in
 * the counters of dry runs. */
#define XDP_REASONS(X)                                                                             \
    X(PASS_LIMITS, "passed")        /* every limit admitted it */                                  \
    X(PASS_ALLOWED, "allowed")      /* its source is in `allow` */                                 \
    X(PASS_NO_IP, "no_ip")          /* ARP and others */                                           \
    X(PASS_MALFORMED, "malformed")  /* no whole IP header */                                       \
    X(PASS_LINK, "link_local")      /* fe80::/10, :: and 0.0.0.0: no router forwards them */       \
    X(PASS_OUTSIDE, "outside")      /* not in the share of sources that the filter applies to */   \
    X(DROP_BANNED, "banned")        /* its source is in `ban` */                                   \
    X(DROP_LIMIT, "limit")          /* a limit denied it */                                        \
    X(DROP_NO_ROOM, "no_room")      /* no state for a new source, or its set stays locked */       \
    X(DROP_FRAGMENT, "fragment")    /* a fragment, with `fragments: drop` */                       \
    X(DRY_BANNED, "dry_run_banned") /* passed; without dry_run it would have been dropped */       \
    X(DRY_LIMIT, "dry_run_limit")                                                                  \
    X(DRY_NO_ROOM, "dry_run_no_room")                                                              \
    X(DRY_FRAGMENT, "dry_run_fragment")

#define XDP_REASON_VALUE(name, text) XDP_##name,
enum xdp_reason { XDP_REASONS(XDP_REASON_VALUE) XDP_REASON_COUNT };
#define XDP_DRY_OFFSET (XDP_DRY_BANNED - XDP_DROP_BANNED)

/* `share` of all sources. */
#define XDP_SHARE_ALL 10000

/* --- Settings --------------------------------------------------------------------------------- */

struct xdp_limit {
    struct weir_limit limit;  /* a bucket: gcra, token_bucket or leaky_bucket; no name */
    struct bucket_time slack; /* a state that owes more than this denies */
    uint64_t id;              /* of its name and numbers */
    uint64_t secret[2];       /* of the hash; made of the filter's and the id */
    uint32_t mask[2][4];      /* of IPv4, of IPv6; as struct xdp_packet has the source */
    struct weir_xdp_ports ports[WEIR_XDP_PORTS_MAX]; /* the first one is 0: any */
    uint8_t used;                                    /* else this entry is none */
    uint8_t bytes;                                   /* the cost is the frame's bytes, not 1 */
    uint8_t dry_run;
    uint8_t transport;   /* 0: any; XDP_ICMP stands for ICMPv6 as well */
    uint8_t syn;         /* only packets that open a TCP connection */
    uint8_t score_shift; /* owed_ns >> this is the part used, in 1/65536 */
    uint8_t generation;  /* of the slot: another limit, or none, has another one */
    uint8_t long6;       /* more than 64 bits of an IPv6 source count */
    uint8_t unused[4];
    char name[64]; /* for `weir xdp status` */
};

struct xdp_filter {
    uint64_t secret[2];
    struct xdp_limit limits[XDP_LIMITS_MAX];
    uint32_t sets_mask;   /* sets - 1 */
    uint32_t share;       /* of sources that the filter applies to, in 1/10000 */
    uint32_t sample;      /* of drops one in this many is sampled: a power of two */
    uint32_t sample_last; /* UINT32_MAX / sample */
    uint8_t dry_run;
    uint8_t lists;     /* there are entries in `allow` or `ban` */
    uint8_t transport; /* a limit looks behind the IP header */
    uint8_t drop_fragments;
    uint8_t no_room_passes;
    uint8_t virtual_clock; /* tests: time is what the map of the clock says */
    uint8_t format;        /* XDP_FORMAT */
    uint8_t only;          /* the slot of the only limit; XDP_LIMITS_MAX: there are others */
    uint8_t remainders;    /* some limit is not plain: struct xdp_rems */
    uint8_t unused[7];
    uint32_t spread; /* benchmarks: a number up to this changes the source; 0: none */
};

/* --- Maps ---------------------------------------------------------------------------------------
 */

#define XDP_WAY_SLOT (XDP_LIMITS_MAX - 1)
#define XDP_WAY_GENERATION_SHIFT 2
#define XDP_WAY_GENERATION (0xffULL << XDP_WAY_GENERATION_SHIFT)
#define XDP_WAY_USED (1ULL << 10)

/* A key is 53 bits of the hash, XDP_WAY_USED, 8 bits of the generation, 2 of the limit's slot. 0:
 * no state. A set is one cache line: maps whose memory can be mapped begin at a page. */
struct xdp_set {
    uint64_t keys[XDP_WAYS];
    uint64_t tats_ns[XDP_WAYS]; /* a of weir_cell */
};

/* b of weir_cell of two sets, for limits that are not plain (weir/limit.h): behind the sets, in the
 * same map. */
struct xdp_rems {
    uint64_t of[2][XDP_WAYS];
};

#define XDP_LOCKED 1ULL /* no key: XDP_WAY_USED is missing */
/* A locked set is tried XDP_LOCK_TURNS^4 times: loops of four functions. It takes some 10 ms. */
#define XDP_LOCK_TURNS 32

/* Per CPU. */
struct xdp_count {
    uint64_t packets, bytes;
};

/* Counters: those of reasons, then, for each limit, what it denied. */
#define XDP_COUNTS (XDP_REASON_COUNT + XDP_LIMITS_MAX)

/* Of the tries: a prefix in network order (IPv4: below ::ffff:0:0/96), and the verdict. */
struct xdp_list_key {
    uint32_t bits;
    uint32_t address[4];
};
enum xdp_list_verdict { XDP_LIST_NONE, XDP_LIST_ALLOW, XDP_LIST_BAN };

/* A dropped packet, or, in a dry run, one that would have been dropped. */
struct xdp_sample {
    uint64_t time_ns; /* of CLOCK_MONOTONIC */
    uint32_t source[4];
    uint32_t size_bytes;
    uint16_t port;
    uint8_t reason; /* enum xdp_reason */
    uint8_t slot;   /* of the limit, for XDP_..._LIMIT and XDP_..._NO_ROOM */
    uint8_t family, transport;
    uint8_t unused[6];
};

#endif
