/* SPDX-License-Identifier: Apache-2.0 */
/* see overlooked.h */
#include "server/net/overlooked.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "rules/unknown_names.h"
#include "server/daemon/log.h"

void weir_overlooked_init(struct weir_overlooked *overlooked)
{
    memset(overlooked, 0, sizeof *overlooked);
    pthread_mutex_init(&overlooked->mutex, NULL);
}

static void format(const struct weir_address *peer, char text[WEIR_ADDRESS_TEXT_MAX])
{
    snprintf(text, WEIR_ADDRESS_TEXT_MAX, "unix");
    if (peer->family)
        weir_address_format(peer, text);
}

static void log_proxy(struct weir_log *log, const struct weir_address *peer, uint64_t count)
{
    char text[WEIR_ADDRESS_TEXT_MAX], advice[160];
    struct weir_log_line line;
    format(peer, text);
    snprintf(advice, sizeof advice,
             "all its requests are refused with 403; if it is your proxy, write `server: { "
             "trusted_proxies: [..., %s] }`",
             text);
    weir_log_begin(&line, log, WEIR_LOG_WARNING, "untrusted_proxy");
    weir_log_text(&line, "peer", text);
    weir_log_number(&line, "count", (int64_t)count);
    weir_log_text(&line, "advice", advice);
    weir_log_end(&line);
}

void weir_overlooked_proxy(struct weir_overlooked *overlooked, struct weir_log *log,
                           const struct weir_address *peer, uint64_t now_ms)
{
    atomic_fetch_add_explicit(&overlooked->untrusted, 1, memory_order_relaxed);
    uint64_t next_ms = atomic_load_explicit(&overlooked->next_ms, memory_order_relaxed);
    if (now_ms < next_ms || !atomic_compare_exchange_strong(&overlooked->next_ms, &next_ms,
                                                            now_ms + WEIR_OVERLOOKED_AGAIN_MS))
        return;
    pthread_mutex_lock(&overlooked->mutex);
    uint64_t total = atomic_load_explicit(&overlooked->untrusted, memory_order_relaxed);
    uint64_t count = total - overlooked->told;
    overlooked->told = total;
    overlooked->peer = *peer;
    pthread_mutex_unlock(&overlooked->mutex);
    log_proxy(log, peer, count);
}

static void log_name(struct weir_log *log, const struct weir_unknown_name *name)
{
    struct weir_log_line line;
    weir_log_begin(&line, log, WEIR_LOG_WARNING, "unknown_attribute");
    weir_log_text(&line, "name", name->name ? name->name : "(others)");
    weir_log_number(&line, "count", (int64_t)name->count);
    if (name->near)
        weir_log_text(&line, "did_you_mean", name->near);
    weir_log_end(&line);
}

const char *weir_overlooked_front_name(enum weir_overlooked_front front)
{
    static const char *const names[WEIR_UNREAD_FRONTS] = {"auth", "ext_authz"};
    return names[front];
}

void weir_overlooked_unread(struct weir_overlooked *overlooked, struct weir_log *log,
                            enum weir_overlooked_front front, const char *reason, uint64_t now_ms)
{
    struct weir_log_line line;
    uint64_t total = 0;
    atomic_fetch_add_explicit(&overlooked->unread[front], 1, memory_order_relaxed);
    uint64_t next_ms = atomic_load_explicit(&overlooked->unread_next_ms, memory_order_relaxed);
    if (now_ms < next_ms || !atomic_compare_exchange_strong(&overlooked->unread_next_ms, &next_ms,
                                                            now_ms + WEIR_OVERLOOKED_AGAIN_MS))
        return;
    for (int i = 0; i < WEIR_UNREAD_FRONTS; i++)
        total += atomic_load_explicit(&overlooked->unread[i], memory_order_relaxed);
    uint64_t told = atomic_exchange(&overlooked->unread_told, total);
    weir_log_begin(&line, log, WEIR_LOG_WARNING, "unreadable_request");
    weir_log_text(&line, "front", weir_overlooked_front_name(front));
    weir_log_number(&line, "count", (int64_t)(total - told));
    weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

void weir_overlooked_names(struct weir_overlooked *overlooked, struct weir_log *log,
                           const struct weir_rules *rules, uint64_t now_ms)
{
    uint64_t total = weir_rules_unknown_total(rules);
    if (total == overlooked->names_told || now_ms < overlooked->names_next_ms)
        return;
    overlooked->names_told = total;
    overlooked->names_next_ms = now_ms + WEIR_OVERLOOKED_AGAIN_MS;
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name name = weir_rules_unknown_news(rules, i);
        if (name.count > 0)
            log_name(log, &name);
    }
}

void weir_overlooked_peer(struct weir_overlooked *overlooked, char text[WEIR_ADDRESS_TEXT_MAX])
{
    pthread_mutex_lock(&overlooked->mutex);
    format(&overlooked->peer, text);
    pthread_mutex_unlock(&overlooked->mutex);
}
