/* SPDX-License-Identifier: Apache-2.0 */
/* see pace.h */
#include "feature/webhook/server/pace.h"

#include "base/backoff.h"
#include "base/random.h"

enum weir_webhook_verdict weir_webhook_judge(long status)
{
    if (status >= 200 && status < 300)
        return WEIR_WEBHOOK_DELIVERED;
    if (status == 410)
        return WEIR_WEBHOOK_GONE;
    if (status == 0 || status == 408 || status == 425 || status == 429 || status >= 500)
        return WEIR_WEBHOOK_AGAIN;
    return WEIR_WEBHOOK_REFUSED;
}

void weir_webhook_pace_note(struct weir_webhook_pace *pace, enum weir_webhook_verdict verdict,
                            uint64_t now_ms, uint64_t retry_after_s)
{
    if (verdict != WEIR_WEBHOOK_AGAIN) {
        pace->failures = 0;
        pace->next_ms = now_ms;
        return;
    }
    uint64_t wait_ms =
        weir_backoff_after(pace->failures, WEIR_WEBHOOK_WAIT_MS, WEIR_WEBHOOK_WAIT_MAX_MS);
    wait_ms -= weir_random_up_to(&pace->random, wait_ms / 2);
    uint64_t retry_after_ms = retry_after_s < WEIR_WEBHOOK_RETRY_AFTER_MAX_MS / 1000
                                  ? retry_after_s * 1000
                                  : WEIR_WEBHOOK_RETRY_AFTER_MAX_MS;
    pace->failures += pace->failures < UINT32_MAX;
    pace->next_ms = now_ms + (wait_ms > retry_after_ms ? wait_ms : retry_after_ms);
}
