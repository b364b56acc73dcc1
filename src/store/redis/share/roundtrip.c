/* SPDX-License-Identifier: Apache-2.0 */
/* see roundtrip.h */
#include "store/redis/share/roundtrip.h"

/* The smoothed one without its floor. */
static uint64_t aged(const struct share_roundtrip *trip, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns > trip->noted_ns ? now_ns - trip->noted_ns : 0;
    uint64_t halvings = passed_ns / SHARE_ROUNDTRIP_OLD_NS;

    return halvings < 64 ? trip->smoothed_ns >> halvings : 0;
}

uint64_t share_roundtrip(const struct share_roundtrip *trip, uint64_t now_ns)
{
    uint64_t ns = aged(trip, now_ns);

    return ns > trip->least_ns ? ns : trip->least_ns;
}

void share_roundtrip_note(struct share_roundtrip *trip, uint64_t sent_ns, uint64_t now_ns)
{
    if (now_ns < sent_ns)
        return;

    uint64_t ns = now_ns - sent_ns, before_ns = aged(trip, now_ns);

    if (trip->smoothed_ns != 0)
        ns = before_ns - before_ns / 8 + ns / 8;
    trip->smoothed_ns = ns > 0 ? ns : 1;
    trip->noted_ns = now_ns;
}
