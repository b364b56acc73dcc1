/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of a webhook: when the receiver is asked again, and when an event is given up.
 *
 * A receiver that fails is left alone for a time that doubles with each failure in a row, whichever
 * event it was asked with: WEIR_WEBHOOK_WAIT_MS to WEIR_WEBHOOK_WAIT_MAX_MS, of which a random half
 * is left out, so that many nodes don't come back together; or for as long as its Retry-After says,
 * up to WEIR_WEBHOOK_RETRY_AFTER_MAX_MS. So a dead one costs an attempt in five minutes. An event
 * whose attempt fails goes to the end of the queue: one that the receiver chokes on does not stop
 * the others.
 *
 * What failed because of the receiver (no connection, a timeout, 408, 425, 429, 5xx) is tried
 * again, WEIR_WEBHOOK_ATTEMPTS_MAX times and within WEIR_WEBHOOK_AGE_MAX_MS; any other answer but
 * 2xx is the receiver's last word on the event (redirects too: the URL is to be changed instead),
 * and 410 on all of them.
 *
 * Threads: one owner. Time is an argument.
 */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_PACE_H
#define WEIR_FEATURE_WEBHOOK_SERVER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_WEBHOOK_WAIT_MS 1000
#define WEIR_WEBHOOK_WAIT_MAX_MS 300000
#define WEIR_WEBHOOK_RETRY_AFTER_MAX_MS 3600000
#define WEIR_WEBHOOK_ATTEMPTS_MAX 12     /* about half an hour of one event alone */
#define WEIR_WEBHOOK_AGE_MAX_MS 21600000 /* 6 h: a warning of yesterday is of no use */

struct weir_webhook_pace {
    uint64_t next_ms; /* no attempt before */
    uint64_t random;
    uint32_t failures; /* in a row */
};

enum weir_webhook_verdict {
    WEIR_WEBHOOK_DELIVERED,
    WEIR_WEBHOOK_AGAIN, /* the receiver failed */
    WEIR_WEBHOOK_REFUSED,
    WEIR_WEBHOOK_GONE, /* it wants no more */
};

/* `status` 0: no answer. */
enum weir_webhook_verdict weir_webhook_judge(long status);

/* An attempt has ended. `retry_after_s` 0: the answer had none. */
void weir_webhook_pace_note(struct weir_webhook_pace *pace, enum weir_webhook_verdict verdict,
                            uint64_t now_ms, uint64_t retry_after_s);

/* Whether an event of this age and this many attempts is to be tried again. */
static inline bool weir_webhook_worth(uint32_t attempts, uint64_t age_ms)
{
    return attempts < WEIR_WEBHOOK_ATTEMPTS_MAX && age_ms < WEIR_WEBHOOK_AGE_MAX_MS;
}

#endif
