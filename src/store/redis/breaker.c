/* SPDX-License-Identifier: Apache-2.0 */
/* see breaker.h */
#include "store/redis/breaker.h"

#include "store/redis/jitter.h"

static void breaker_pause(struct redis_breaker *breaker, uint64_t now_ns)
{
    uint64_t half_ns = breaker->pause_ns / 2;

    breaker->state = REDIS_BREAKER_OPEN;
    breaker->probe_at_ns = now_ns + half_ns + redis_jitter(&breaker->random, half_ns);
}

static void breaker_open(struct redis_breaker *breaker, uint64_t now_ns)
{
    breaker->opened_ns = now_ns;
    breaker->pause_ns = REDIS_BREAKER_PAUSE_MIN_NS;
    breaker_pause(breaker, now_ns);
}

static void breaker_close(struct redis_breaker *breaker)
{
    breaker->state = REDIS_BREAKER_CLOSED;
    breaker->failures = 0;
}

void redis_breaker_init(struct redis_breaker *breaker, uint64_t random_seed)
{
    *breaker = (struct redis_breaker){.random = random_seed};
}

bool redis_breaker_call(struct redis_breaker *breaker, uint64_t now_ns, bool answered)
{
    if (breaker->state != REDIS_BREAKER_CLOSED)
        return false;
    if (answered) {
        breaker->failures = 0;
        return false;
    }
    if (breaker->failures++ == 0)
        breaker->first_ns = now_ns;
    if (breaker->failures < REDIS_BREAKER_FAILURES ||
        now_ns - breaker->first_ns < REDIS_BREAKER_SPAN_NS)
        return false;
    breaker_open(breaker, now_ns);
    return true;
}

bool redis_breaker_trip(struct redis_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state != REDIS_BREAKER_CLOSED)
        return false;
    breaker_open(breaker, now_ns);
    return true;
}

void redis_breaker_hurry(struct redis_breaker *breaker, uint64_t now_ns)
{
    uint64_t at_ns = now_ns + redis_jitter(&breaker->random, REDIS_BREAKER_PAUSE_MIN_NS / 2);

    if (breaker->state == REDIS_BREAKER_OPEN && at_ns < breaker->probe_at_ns)
        breaker->probe_at_ns = at_ns;
}

uint64_t redis_breaker_due_ns(const struct redis_breaker *breaker)
{
    return breaker->state == REDIS_BREAKER_OPEN ? breaker->probe_at_ns : UINT64_MAX;
}

bool redis_breaker_probe(struct redis_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state != REDIS_BREAKER_OPEN || now_ns < breaker->probe_at_ns)
        return false;
    breaker->state = REDIS_BREAKER_HALF_OPEN;
    return true;
}

void redis_breaker_probed(struct redis_breaker *breaker, uint64_t now_ns, bool answered)
{
    if (breaker->state != REDIS_BREAKER_HALF_OPEN)
        return;
    if (answered) {
        breaker_close(breaker);
        return;
    }
    breaker->pause_ns *= 2;
    if (breaker->pause_ns > REDIS_BREAKER_PAUSE_MAX_NS)
        breaker->pause_ns = REDIS_BREAKER_PAUSE_MAX_NS;
    breaker_pause(breaker, now_ns);
}
