/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer's header fields say about rate limits.
 *
 * Give weir_advice_field every field of an answer, in any order, and then call weir_advice_finish.
 * Fields that are malformed, or values that cannot be true, are ignored: a server that lies in one
 * field may still be believed in another.
 *
 * Understood are:
 *
 *   RateLimit, RateLimit-Policy     draft-ietf-httpapi-ratelimit-headers-08 to -11:
 *                                   "name";r=9;t=30 and "name";q=100;w=60;qu="requests"
 *                                   -07: limit=100, remaining=9, reset=30 and 100;w=60
 *   RateLimit-Limit, -Remaining,    drafts -00 to -06: 100, 100;w=60, 1000;w=3600
 *   -Reset, -Policy
 *   X-RateLimit-Limit, -Remaining,  the same, also spelled X-Rate-Limit-*: GitHub, Twitter, Envoy
 *   -Reset, -Reset-After            (10;w=1;name="x"), Discord, Okta
 *   …-Second, -Minute, -Hour, -Day, Kong: X-RateLimit-Remaining-Minute. One policy for each
 *   -Month                          window
 *   …-Requests, …-Tokens            OpenAI: x-ratelimit-reset-requests: 6m0s
 *   Anthropic-RateLimit-Requests-*, with RFC 3339 dates
 *   -Tokens-*, -Input-Tokens-*,
 *   -Output-Tokens-*
 *   X-HubSpot-RateLimit-*           -Max, -Remaining, -Interval-Milliseconds
 *   X-Shopify-Shop-Api-Call-Limit   32/40, a bucket
 *   Retry-After, Date; Stripe-Should-Retry, X-Should-Retry
 *   Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After, Grpc-Retry-Pushback-Ms: milliseconds,
 *                                   which count before Retry-After. A push-back that is negative or
 *                                   malformed forbids retries (gRPC A6)
 *
 * No request says how many tokens it will cost, so limits of tokens are read only once they are
 * used up: a policy with `tokens` has nothing left, and a reset.
 *
 * A reset is read as: a duration ("1.5s", "6m0s"), a date (RFC 9110, RFC 3339), or a number: 10^17
 * and up cannot be true; from 10^14 microseconds, from 10^11 milliseconds, from 10^8 seconds since
 * 1970; else seconds, or milliseconds where seconds would be longer than the policy's window. A
 * time since 1970 counts from the server's Date field where there is one, since its clock may be
 * wrong. A reset in the past, or further away than the horizon of instant.h, is not known.
 *
 * Of several Retry-After the largest counts, in one field ("1, 3") or in several.
 *
 * Bounds: WEIR_ADVICE_MAX policies, fields of WEIR_ADVICE_FIELD_MAX bytes; longer ones are ignored.
 * Threads: no state. No allocation.
 */
#ifndef WEIR_CLIENT_ADVICE_H
#define WEIR_CLIENT_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_ADVICE_MAX 8
#define WEIR_ADVICE_NAME_MAX 32 /* with its NUL; longer names are cut */
#define WEIR_ADVICE_FIELD_MAX 4096
#define WEIR_ADVICE_UNKNOWN UINT64_MAX
/* Larger numbers are no limit at all, and larger ones than this overflow. */
#define WEIR_ADVICE_UNITS_MAX UINT64_C(1000000000000)

struct weir_advice_policy {
    char name[WEIR_ADVICE_NAME_MAX];
    uint64_t limit, remaining; /* units, or WEIR_ADVICE_UNKNOWN */
    uint64_t window_ns;        /* or WEIR_ADVICE_UNKNOWN */
    uint64_t reset_ns;         /* from the server's time of the answer; or UNKNOWN */
    uint64_t granule_ns;       /* reset_ns was rounded up by less than this */
    bool concurrency;          /* units are requests in flight */
    bool ignored;              /* its units are neither requests nor tokens */
    bool tokens;               /* its units are tokens; nothing is left */
};

/* A reset before Date and the window are known. */
struct weir_advice_reset {
    enum { WEIR_RESET_NONE, WEIR_RESET_NUMBER, WEIR_RESET_DURATION, WEIR_RESET_DATE } kind;
    uint64_t value; /* the number, nanoseconds, or seconds since 1970 */
    uint32_t billionths;
};

struct weir_advice {
    struct weir_advice_policy policies[WEIR_ADVICE_MAX];
    struct weir_advice_reset resets[WEIR_ADVICE_MAX];
    uint32_t count;
    bool has_date, has_retry_after;
    bool must_not_retry; /* the server does not want a retry */
    bool must_retry;     /* it wants one, whatever the status */
    bool has_exact;      /* exact_ns is Retry-After in milliseconds */
    uint64_t exact_ns;
    int64_t date_s;          /* the server's Date */
    uint64_t retry_after_ns; /* 0: a date in the past */
    char retry_after[128];   /* until weir_advice_finish; Date may come later */
    uint8_t retry_after_size;
};

void weir_advice_begin(struct weir_advice *advice);

/* Takes one field; the name in any case. */
void weir_advice_field(struct weir_advice *advice, struct weir_bytes name, struct weir_bytes value);

/* Resolves resets and Retry-After. `now_s` is this machine's wall clock, in seconds since 1970. */
void weir_advice_finish(struct weir_advice *advice, int64_t now_s);

/* Whether a finished advice says that a limit is used up. */
bool weir_advice_refuses(const struct weir_advice *advice);

#endif
