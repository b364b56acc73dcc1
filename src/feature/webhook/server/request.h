/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to send an event: a signed POST by libcurl.
 *
 * http and https only; no redirect is followed; the receiver's certificate is verified; what it
 * answers, fields included, is not read beyond 64 KiB. Threads: one owner of the multi handle,
 * whose connections are kept from one attempt to the next.
 */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_REQUEST_H
#define WEIR_FEATURE_WEBHOOK_SERVER_REQUEST_H

#include <curl/curl.h>

#include "feature/webhook/server/message.h"

struct weir_webhook_attempt {
    long status;            /* of the answer; 0: there was none */
    const char *reason;     /* then: why; static storage */
    uint64_t retry_after_s; /* 0: the answer had none */
};

/* Tries once, for as long as the settings' timeout, or until is_over says that the process ends:
 * asked every 100 ms, and when curl_multi_wakeup is called. */
void weir_webhook_try(CURLM *multi, const struct weir_webhook_settings *settings,
                      const struct weir_webhook_event *event, bool (*is_over)(void *context),
                      void *context, struct weir_webhook_attempt *attempt);

#endif
