/* SPDX-License-Identifier: Apache-2.0 */
/* About what a call takes: smoothed as in TCP (RFC 6298, section 2: the first call counts in full,
 * later ones by an eighth).
 *
 * A table that lends asks for nothing where calls take too long for a limit (share_terms_lend), and
 * then measures nothing either. So an estimate gets old: without an answer it is halved every
 * SHARE_ROUNDTRIP_OLD_NS, until a call is made again and shows what it takes. One slow answer
 * cannot end the lending of a limit for good.
 *
 * Memory: 24 bytes. Threads: one owner.
 */
#ifndef WEIR_STORE_REDIS_SHARE_ROUNDTRIP_H
#define WEIR_STORE_REDIS_SHARE_ROUNDTRIP_H

#include <stdint.h>

#define SHARE_ROUNDTRIP_OLD_NS UINT64_C(10000000000)

struct share_roundtrip {
    uint64_t least_ns;    /* the estimate is never less; before the first answer it is this */
    uint64_t smoothed_ns; /* as of the last answer; 0: there was none */
    uint64_t noted_ns;    /* when that came */
};

/* The estimate at a time of the caller's clock. */
uint64_t share_roundtrip(const struct share_roundtrip *trip, uint64_t now_ns);

/* A call that was sent at `sent_ns` was answered now. Of no effect where now is before that. */
void share_roundtrip_note(struct share_roundtrip *trip, uint64_t sent_ns, uint64_t now_ns);

#endif
