/* SPDX-License-Identifier: Apache-2.0 */
/* see retry.h */
#include "client/retry.h"

#include <string.h>

#include "client/instant.h"

bool weir_retry_limited(int status, const struct weir_advice *advice)
{
    return status == 429 || status == 529 ||
           (status == 403 && advice && weir_advice_refuses(advice));
}

bool weir_retry_status(int status, const struct weir_advice *advice, bool named, bool only)
{
    if (only)
        return named;
    return status == 500 || (status >= 502 && status <= 504) ||
           weir_retry_limited(status, advice) || (status >= 400 && named) ||
           (status >= 400 && advice && advice->must_retry);
}

bool weir_retry_method(const char *method)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};

    for (size_t i = 0; i < sizeof idempotent / sizeof *idempotent; i++)
        if (!strcmp(method, idempotent[i]))
            return true;
    return false;
}

/* Why there is no other try; NULL: there may be one. */
static const char *objection(const struct weir_retry_case *one)
{
    if (one->begun)
        return "the answer broke off after its head was handed on";
    if (!one->repeatable)
        return "the method is not idempotent, and the request has no Idempotency-Key";
    if (one->advice && one->advice->must_not_retry)
        return "the server does not want a retry";
    if (one->tries >= one->most)
        return "no try is left";
    if (!one->budget && !weir_retry_limited(one->status, one->advice))
        return "most answers of this host fail: the budget of retries is used up";
    return NULL;
}

static uint64_t wait(const struct weir_retry_case *one, const struct weir_backoff_spec *backoff,
                     uint64_t *seed)
{
    /* The host's pause spreads those with the same wait. */
    if (one->stated_ns > 0)
        return one->stated_ns;
    return weir_backoff_wait(backoff, one->tries, one->previous_wait_ns, seed);
}

void weir_retry_decide(const struct weir_retry_case *one, const struct weir_backoff_spec *backoff,
                       uint64_t *seed, struct weir_retry_verdict *verdict)
{
    bool limited = weir_retry_limited(one->status, one->advice);

    *verdict = (struct weir_retry_verdict){.outcome = WEIR_CLIENT_ANSWERED};
    if (one->status != 0 && !weir_retry_status(one->status, one->advice, one->named, one->only))
        return;
    if (one->status == 0 && !one->transient) {
        verdict->outcome = WEIR_CLIENT_REFUSED;
        verdict->reason = "no other try can help";
        return;
    }
    verdict->outcome = limited ? WEIR_CLIENT_LIMITED : WEIR_CLIENT_GAVE_UP;
    verdict->wait_ns = one->stated_ns;
    verdict->reason = objection(one);
    if (verdict->reason)
        return;
    verdict->wait_ns = wait(one, backoff, seed);
    if (one->now_ns >= one->deadline_ns || verdict->wait_ns >= one->deadline_ns - one->now_ns ||
        verdict->wait_ns >= WEIR_INSTANT_HORIZON_NS) {
        verdict->outcome = limited ? WEIR_CLIENT_LIMITED : WEIR_CLIENT_TIMEOUT;
        verdict->reason = "the next try would come after the request's time";
        return;
    }
    verdict->again = true;
}
