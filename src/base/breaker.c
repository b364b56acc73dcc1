/* SPDX-License-Identifier: Apache-2.0 */
/* see breaker.h */
#include "base/breaker.h"

#include "base/backoff.h"
#include "base/random.h"

static void breaker_pause(struct weir_breaker *breaker, uint64_t now_ns)
{
    uint64_t half_ns = breaker->pause_ns / 2;

    breaker->state = WEIR_BREAKER_OPEN;
    breaker->probe_at_ns = now_ns + half_ns + weir_random_up_to(&breaker->random, half_ns);
}

static void breaker_open(struct weir_breaker *breaker, uint64_t now_ns)
{
    breaker->opened_ns = now_ns;
    breaker->pause_ns = WEIR_BREAKER_PAUSE_MIN_NS;
    breaker_pause(breaker, now_ns);
}

static void breaker_close(struct weir_breaker *breaker)
{
    breaker->state = WEIR_BREAKER_CLOSED;
    breaker->failures = 0;
}

void weir_breaker_init(struct weir_breaker *breaker, uint64_t random_seed)
{
    *breaker = (struct weir_breaker){.random = random_seed};
}

bool weir_breaker_call(struct weir_breaker *breaker, uint64_t now_ns, bool answered)
{
    if (breaker->state != WEIR_BREAKER_CLOSED)
        return false;
    if (answered) {
        breaker->failures = 0;
        return false;
    }
    if (breaker->failures++ == 0)
        breaker->first_ns = now_ns;
    if (breaker->failures < WEIR_BREAKER_FAILURES ||
        now_ns - breaker->first_ns < WEIR_BREAKER_SPAN_NS)
        return false;
    breaker_open(breaker, now_ns);
    return true;
}

bool weir_breaker_trip(struct weir_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state != WEIR_BREAKER_CLOSED)
        return false;
    breaker_open(breaker, now_ns);
    return true;
}

void weir_breaker_hurry(struct weir_breaker *breaker, uint64_t now_ns)
{
    uint64_t at_ns = now_ns + weir_random_up_to(&breaker->random, WEIR_BREAKER_PAUSE_MIN_NS / 2);

    if (breaker->state == WEIR_BREAKER_OPEN && at_ns < breaker->probe_at_ns)
        breaker->probe_at_ns = at_ns;
}

uint64_t weir_breaker_due_ns(const struct weir_breaker *breaker)
{
    return breaker->state == WEIR_BREAKER_OPEN ? breaker->probe_at_ns : UINT64_MAX;
}

bool weir_breaker_probe(struct weir_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state != WEIR_BREAKER_OPEN || now_ns < breaker->probe_at_ns)
        return false;
    breaker->state = WEIR_BREAKER_HALF_OPEN;
    return true;
}

void weir_breaker_probed(struct weir_breaker *breaker, uint64_t now_ns, bool answered)
{
    if (breaker->state != WEIR_BREAKER_HALF_OPEN)
        return;
    if (answered) {
        breaker_close(breaker);
        return;
    }
    breaker->pause_ns = weir_backoff_longer(breaker->pause_ns, WEIR_BREAKER_PAUSE_MAX_NS);
    breaker_pause(breaker, now_ns);
}
