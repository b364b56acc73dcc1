/* SPDX-License-Identifier: Apache-2.0 */
/* see webhook.h */
#include "feature/webhook/server/webhook.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/webhook/server/pace.h"
#include "feature/webhook/server/request.h"
#include "server/daemon/clock.h"
#include "server/net/seed.h"

#define NS_PER_MS 1000000
#define IDLE_MS 60000 /* of a wait that only a wake ends */

struct weir_webhook {
    struct weir_log *log;
    struct weir_webhook_stats stats;
    _Atomic bool wanted; /* there is a URL */

    pthread_mutex_t lock; /* of all up to `random` */
    struct weir_webhook_event *ring;
    uint32_t first, count;
    bool overflowed; /* since it was empty */
    bool changed;    /* `next` is to be taken over */
    bool ending;
    uint64_t end_ms;
    struct weir_webhook_settings next; /* its texts are own copies */
    uint64_t random, posted;

    /* From here on the thread's. */
    pthread_t thread;
    bool started;
    CURLM *multi;
    struct weir_webhook_settings settings;
    struct weir_webhook_pace pace;
    bool gone;
    char host[256];
};

static uint64_t clock_ms(void)
{
    return weir_clock_boot_ns() / NS_PER_MS;
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- The ring, under the lock ----------------------------------------------------------------- */

/* Room at the end; NULL: full. */
static struct weir_webhook_event *ring_add(struct weir_webhook *webhook)
{
    if (webhook->count == WEIR_WEBHOOK_QUEUE_MAX)
        return NULL;
    uint32_t at = (webhook->first + webhook->count++) % WEIR_WEBHOOK_QUEUE_MAX;
    atomic_store_explicit(&webhook->stats.queued, webhook->count, memory_order_relaxed);
    return &webhook->ring[at];
}

static bool ring_take(struct weir_webhook *webhook, struct weir_webhook_event *event)
{
    if (webhook->count == 0)
        return false;
    *event = webhook->ring[webhook->first];
    webhook->first = (webhook->first + 1) % WEIR_WEBHOOK_QUEUE_MAX;
    if (--webhook->count == 0)
        webhook->overflowed = false;
    return true;
}

/* One of the two is not NULL. */
static void post(struct weir_webhook *webhook, const struct weir_warning *warning,
                 const struct weir_penalty_move *move)
{
    bool first = false, overflow = false;
    if (!atomic_load_explicit(&webhook->wanted, memory_order_acquire))
        return;
    pthread_mutex_lock(&webhook->lock);
    struct weir_webhook_event *event = ring_add(webhook);
    if (event) {
        webhook->posted++;
        if (warning)
            weir_webhook_event_set(event, warning, webhook->random, webhook->posted);
        else
            weir_webhook_event_set_move(event, move, webhook->random, webhook->posted);
        event->queued_ns = weir_clock_boot_ns();
        first = webhook->count == 1;
    } else {
        overflow = !webhook->overflowed;
        webhook->overflowed = true;
    }
    pthread_mutex_unlock(&webhook->lock);
    if (!event)
        count(&webhook->stats.dropped);
    if (overflow)
        weir_log_event(webhook->log, WEIR_LOG_WARNING, "webhook_queue_full", NULL, NULL);
    if (first)
        curl_multi_wakeup(webhook->multi);
}

void weir_webhook_post(struct weir_webhook *webhook, const struct weir_warning *warning)
{
    post(webhook, warning, NULL);
}

void weir_webhook_post_move(struct weir_webhook *webhook, const struct weir_penalty_move *move)
{
    post(webhook, NULL, move);
}

/* Whether an attempt has to end now. */
static bool is_over(void *context)
{
    struct weir_webhook *webhook = context;
    pthread_mutex_lock(&webhook->lock);
    bool over = webhook->ending && clock_ms() >= webhook->end_ms;
    pthread_mutex_unlock(&webhook->lock);
    return over;
}

/* --- The thread ------------------------------------------------------------------------------- */

static void log_attempt(const struct weir_webhook *webhook, const char *event,
                        const struct weir_webhook_attempt *attempt)
{
    struct weir_log_line line;
    weir_log_begin(&line, webhook->log, WEIR_LOG_WARNING, event);
    weir_log_text(&line, "host", webhook->host);
    if (attempt->status)
        weir_log_number(&line, "status", attempt->status);
    else
        weir_log_text(&line, "reason", attempt->reason);
    weir_log_end(&line);
}

/* To the end of the ring, unless it is to be given up. */
static void send_again(struct weir_webhook *webhook, struct weir_webhook_event *event)
{
    uint64_t age_ms = (weir_clock_boot_ns() - event->queued_ns) / NS_PER_MS;
    event->attempts++;
    if (!weir_webhook_worth(event->attempts, age_ms)) {
        count(&webhook->stats.failed);
        return;
    }
    pthread_mutex_lock(&webhook->lock);
    struct weir_webhook_event *room = ring_add(webhook);
    if (room)
        *room = *event;
    pthread_mutex_unlock(&webhook->lock);
    if (!room)
        count(&webhook->stats.dropped);
}

static void send_event(struct weir_webhook *webhook, struct weir_webhook_event *event)
{
    struct weir_webhook_attempt attempt;
    bool failing = webhook->pace.failures > 0;
    count(&webhook->stats.attempts);
    weir_webhook_try(webhook->multi, &webhook->settings, event, is_over, webhook, &attempt);
    enum weir_webhook_verdict verdict = weir_webhook_judge(attempt.status);
    weir_webhook_pace_note(&webhook->pace, verdict, clock_ms(), attempt.retry_after_s);
    switch (verdict) {
    case WEIR_WEBHOOK_DELIVERED:
        count(&webhook->stats.delivered);
        if (failing)
            weir_log_event(webhook->log, WEIR_LOG_INFO, "webhook_recovered", "host", webhook->host);
        break;
    case WEIR_WEBHOOK_AGAIN:
        if (!failing) /* one line until it recovers */
            log_attempt(webhook, "webhook_failing", &attempt);
        send_again(webhook, event);
        break;
    case WEIR_WEBHOOK_GONE:
        webhook->gone = true;
        log_attempt(webhook, "webhook_gone", &attempt);
        count(&webhook->stats.failed);
        break;
    default:
        log_attempt(webhook, "webhook_refused", &attempt);
        count(&webhook->stats.failed);
        break;
    }
}

static void settings_free(struct weir_webhook_settings *settings)
{
    free((char *)settings->url);
    free((char *)settings->ca_file);
    memset(settings, 0, sizeof *settings);
}

/* The host of a URL, without the rest. */
static void set_host(struct weir_webhook *webhook)
{
    CURLU *url = curl_url();
    char *host = NULL;
    if (url && webhook->settings.url && !curl_url_set(url, CURLUPART_URL, webhook->settings.url, 0))
        curl_url_get(url, CURLUPART_HOST, &host, 0);
    snprintf(webhook->host, sizeof webhook->host, "%s", host ? host : "");
    curl_free(host);
    curl_url_cleanup(url);
}

/* Under the lock: new settings, and what the thread is to do next: an event, or how long to wait.
 * Returns false when the thread is to end. */
static bool next_step(struct weir_webhook *webhook, struct weir_webhook_event *event, bool *ready,
                      uint64_t *wait_ms)
{
    uint64_t now_ms = clock_ms();
    *ready = false;
    *wait_ms = IDLE_MS;
    if (webhook->changed) {
        webhook->changed = false;
        settings_free(&webhook->settings);
        webhook->settings = webhook->next;
        memset(&webhook->next, 0, sizeof webhook->next);
        webhook->pace.failures = 0;
        webhook->pace.next_ms = now_ms;
        webhook->gone = false;
        set_host(webhook);
    }
    while ((!webhook->settings.url || webhook->gone) && ring_take(webhook, event))
        count(&webhook->stats.dropped);
    if (webhook->ending &&
        (webhook->count == 0 || webhook->pace.failures > 0 || now_ms >= webhook->end_ms))
        return false;
    if (now_ms >= webhook->pace.next_ms)
        *ready = ring_take(webhook, event);
    else if (webhook->count > 0)
        *wait_ms = webhook->pace.next_ms - now_ms;
    return true;
}

static void *thread_main(void *context)
{
    struct weir_webhook *webhook = context;
    struct weir_webhook_event event;
    bool goes_on = true;
    while (goes_on) {
        uint64_t wait_ms;
        bool ready;
        pthread_mutex_lock(&webhook->lock);
        goes_on = next_step(webhook, &event, &ready, &wait_ms);
        atomic_store_explicit(&webhook->stats.queued, webhook->count, memory_order_relaxed);
        pthread_mutex_unlock(&webhook->lock);
        if (ready)
            send_event(webhook, &event);
        else if (goes_on)
            curl_multi_poll(webhook->multi, NULL, 0, (int)wait_ms, NULL);
    }
    return NULL;
}

/* --- From the main thread --------------------------------------------------------------------- */

int weir_webhook_open(struct weir_webhook **webhook, struct weir_log *log)
{
    struct weir_webhook *w = calloc(1, sizeof *w);
    if (!w)
        return WEIR_ERR_MEMORY;
    w->log = log;
    pthread_mutex_init(&w->lock, NULL);
    *webhook = w;
    return 0;
}

/* The ring, libcurl and the thread. Signals are the main thread's business. */
static int start(struct weir_webhook *webhook)
{
    sigset_t all, old;
    if (webhook->started)
        return 0;
    if (!webhook->ring)
        webhook->ring = calloc(WEIR_WEBHOOK_QUEUE_MAX, sizeof *webhook->ring);
    if (!webhook->multi && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        webhook->multi = curl_multi_init();
    if (!webhook->ring || !webhook->multi)
        return WEIR_ERR_MEMORY;
    webhook->random = weir_seed_draw(weir_clock_wall_ns() << 20);
    webhook->pace.random = webhook->random ^ weir_clock_boot_ns();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    webhook->started = pthread_create(&webhook->thread, NULL, thread_main, webhook) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return webhook->started ? 0 : WEIR_ERR_IO;
}

static int copy_text(const char **copy, const char *text)
{
    *copy = text ? strdup(text) : NULL;
    return text && !*copy ? WEIR_ERR_MEMORY : 0;
}

int weir_webhook_configure(struct weir_webhook *webhook,
                           const struct weir_webhook_settings *settings)
{
    struct weir_webhook_settings next = *settings;
    next.url = next.ca_file = NULL;
    if (!settings->url && !webhook->started)
        return 0;
    int err = copy_text(&next.url, settings->url);
    if (err == 0)
        err = copy_text(&next.ca_file, settings->ca_file);
    if (err == 0)
        err = start(webhook);
    if (err < 0) {
        settings_free(&next);
        return err;
    }
    pthread_mutex_lock(&webhook->lock);
    settings_free(&webhook->next);
    webhook->next = next;
    webhook->changed = true;
    pthread_mutex_unlock(&webhook->lock);
    atomic_store_explicit(&webhook->wanted, settings->url, memory_order_release);
    curl_multi_wakeup(webhook->multi);
    return 0;
}

const struct weir_webhook_stats *weir_webhook_stats(const struct weir_webhook *webhook)
{
    return &webhook->stats;
}

static void stop(struct weir_webhook *webhook)
{
    pthread_mutex_lock(&webhook->lock);
    webhook->ending = true;
    webhook->end_ms = clock_ms() + WEIR_WEBHOOK_GOODBYE_MS;
    pthread_mutex_unlock(&webhook->lock);
    curl_multi_wakeup(webhook->multi);
    pthread_join(webhook->thread, NULL);
    if (webhook->count == 0)
        return;
    struct weir_log_line line;
    weir_log_begin(&line, webhook->log, WEIR_LOG_WARNING, "webhook_undelivered");
    weir_log_text(&line, "host", webhook->host);
    weir_log_number(&line, "events", webhook->count);
    weir_log_end(&line);
}

void weir_webhook_close(struct weir_webhook *webhook)
{
    if (!webhook)
        return;
    if (webhook->started)
        stop(webhook);
    if (webhook->multi) {
        curl_multi_cleanup(webhook->multi);
        curl_global_cleanup();
    }
    settings_free(&webhook->next);
    settings_free(&webhook->settings);
    pthread_mutex_destroy(&webhook->lock);
    free(webhook->ring);
    free(webhook);
}
