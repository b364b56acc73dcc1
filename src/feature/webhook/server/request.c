/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "feature/webhook/server/request.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/daemon/clock.h"
#include "server/net/authority.h"

#define NS_PER_MS 1000000
/* How often the thread checks whether the process ends. */
#define LOOK_MS 100
/* Of an answer, which is not used: more of it ends the attempt. */
#define ANSWER_MAX 65536
/* A field's name and its value. */
#define FIELD_MAX (64 + WEIR_WEBHOOK_SIGNATURE_MAX)

/* Counts the bytes of an answer, its fields and trailers among them: libcurl keeps those. */
static size_t on_answer(char *bytes, size_t size, size_t times, void *context)
{
    size_t *answered = context;
    (void)bytes;
    *answered += size * times;
    return *answered <= ANSWER_MAX ? size * times : 0;
}

static bool add_field(struct curl_slist **fields, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool add_field(struct curl_slist **fields, const char *format, ...)
{
    char text[FIELD_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct curl_slist *longer = curl_slist_append(*fields, text);
    if (!longer)
        return false;
    *fields = longer;
    return true;
}

/* The fields of an attempt; NULL: no memory. */
static struct curl_slist *make_fields(const struct weir_webhook_settings *settings,
                                      const struct weir_webhook_event *event, const char *body,
                                      size_t size)
{
    struct curl_slist *fields = NULL;
    char signature[WEIR_WEBHOOK_SIGNATURE_MAX];
    uint64_t now_s = weir_clock_wall_s();
    if (weir_webhook_sign(settings->secrets, settings->secret_count, event, now_s, body, size,
                          signature) < 0)
        return NULL;
    bool good = add_field(&fields, "Content-Type: application/json") &&
                add_field(&fields, "Expect:") &&
                add_field(&fields, "webhook-id: %.*s", WEIR_WEBHOOK_ID_SIZE, event->id) &&
                add_field(&fields, "webhook-timestamp: %llu", (unsigned long long)now_s) &&
                add_field(&fields, "webhook-signature: %s", signature);
    if (good)
        return fields;
    curl_slist_free_all(fields);
    return NULL;
}

static CURL *make_request(const struct weir_webhook_settings *settings,
                          const struct curl_slist *fields, const char *body, size_t size,
                          size_t *answered)
{
    CURL *request = curl_easy_init();
    if (!request)
        return NULL;
    *answered = 0;
    bool good = curl_easy_setopt(request, CURLOPT_URL, settings->url) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_TIMEOUT_MS,
                                 (long)(settings->timeout_ns / NS_PER_MS)) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_USERAGENT, "weir/" WEIR_VERSION) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_HTTPHEADER, fields) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_POSTFIELDSIZE, (long)size) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, on_answer) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_WRITEDATA, answered) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_HEADERFUNCTION, on_answer) == CURLE_OK &&
                curl_easy_setopt(request, CURLOPT_HEADERDATA, answered) == CURLE_OK &&
                weir_curl_trust(request, settings->ca_file);
    if (good)
        return request;
    curl_easy_cleanup(request);
    return NULL;
}

/* Runs a request to its end; CURLE_ABORTED_BY_CALLBACK: the process ends before. */
static CURLcode run_request(CURLM *multi, CURL *request, bool (*is_over)(void *context),
                            void *context)
{
    CURLcode result = CURLE_OUT_OF_MEMORY;
    bool done = curl_multi_add_handle(multi, request) != CURLM_OK;
    while (!done) {
        int running, left;
        curl_multi_perform(multi, &running);
        CURLMsg *message = curl_multi_info_read(multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            result = message->data.result;
            done = true;
        } else if (is_over(context)) {
            result = CURLE_ABORTED_BY_CALLBACK;
            done = true;
        } else {
            curl_multi_poll(multi, NULL, 0, LOOK_MS, NULL);
        }
    }
    curl_multi_remove_handle(multi, request);
    return result;
}

void weir_webhook_try(CURLM *multi, const struct weir_webhook_settings *settings,
                      const struct weir_webhook_event *event, bool (*is_over)(void *context),
                      void *context, struct weir_webhook_attempt *attempt)
{
    char body[WEIR_WEBHOOK_BODY_MAX];
    size_t size = weir_webhook_body(event, body), answered = 0;
    struct curl_slist *fields = make_fields(settings, event, body, size);
    CURL *request = fields ? make_request(settings, fields, body, size, &answered) : NULL;
    CURLcode result = CURLE_OUT_OF_MEMORY;
    curl_off_t retry_after_s = 0;
    long status = 0;
    if (request) {
        result = run_request(multi, request, is_over, context);
        if (result == CURLE_OK || (result == CURLE_WRITE_ERROR && answered > ANSWER_MAX)) {
            curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
            curl_easy_getinfo(request, CURLINFO_RETRY_AFTER, &retry_after_s);
        }
        curl_easy_cleanup(request);
    }
    curl_slist_free_all(fields);
    attempt->status = status;
    attempt->reason = curl_easy_strerror(result);
    attempt->retry_after_s = retry_after_s > 0 ? (uint64_t)retry_after_s : 0;
}
