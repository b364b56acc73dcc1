/* SPDX-License-Identifier: Apache-2.0 */
/* see statsd.h */
#include "feature/envoy/server/statsd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/server/metrics.h"

/* What was counted when it was last sent. */
struct snapshot {
    struct weir_envoy_key_counts *keys;
    size_t count;
    struct weir_envoy_totals totals;
};

struct weir_envoy_statsd {
    struct weir_envoy_shared *shared;
    const struct weir_envoy_settings *settings;
    uv_loop_t *loop;
    uv_timer_t timer;
    uv_getaddrinfo_t resolve;
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    uv_udp_t udp;
    struct sockaddr_storage address;
    bool resolving, resolved, stopped;
    bool open, connected, writing; /* TCP */
    char *sending;                 /* the text of a write */
    struct snapshot sent, next;    /* next: what becomes `sent` with the write */
    char tags[(WEIR_ENVOY_TAGS_MAX + 1) * 132];
};

/* --- Text ------------------------------------------------------------------------------------- */

/* Tags as every line has them: behind the name, or at its end. */
static void write_tags(struct weir_envoy_statsd *statsd)
{
    const struct weir_envoy_settings *settings = statsd->settings;
    size_t used = 0;
    for (uint32_t i = 0; i < settings->tag_count; i++) {
        const struct weir_envoy_tag *tag = &settings->tags[i];
        const char *before = !settings->statsd_tags ? ".__" : i == 0 ? "|#" : ",";
        used += (size_t)snprintf(statsd->tags + used, sizeof statsd->tags - used, "%s%s%s%s",
                                 before, tag->name, settings->statsd_tags ? ":" : "=", tag->value);
    }
}

static void put_counter(const struct weir_envoy_statsd *statsd, FILE *out, const char *name,
                        uint64_t value)
{
    if (!value)
        return;
    bool behind = !statsd->settings->statsd_tags;
    fprintf(out, "%s%s:%" PRIu64 "|c%s\n", name, behind ? statsd->tags : "", value,
            behind ? "" : statsd->tags);
}

static void put_keys(const struct weir_envoy_statsd *statsd, FILE *out, const struct snapshot *next)
{
    char name[WEIR_ENVOY_NAME_MAX];
    size_t before = 0;
    for (size_t i = 0; i < next->count; i++) {
        const struct weir_envoy_key_counts *now = &next->keys[i], *then = NULL;
        /* Both are sorted, and no key ever goes. */
        if (before < statsd->sent.count && statsd->sent.keys[before].key.size == now->key.size &&
            !memcmp(statsd->sent.keys[before].key.data, now->key.data, now->key.size))
            then = &statsd->sent.keys[before++];
        for (unsigned j = 0; j < WEIR_ENVOY_COUNT_TOTAL; j++) {
            uint64_t added = now->counts[j] - (then ? then->counts[j] : 0);
            if (!added)
                continue;
            weir_envoy_stat_name(now->key, j, name, sizeof name);
            put_counter(statsd, out, name, added);
        }
    }
}

static void put_time(const struct weir_envoy_statsd *statsd, FILE *out, const struct snapshot *next)
{
    static const char name[] = "ratelimit_server.ShouldRateLimit.response_time";
    uint64_t calls = 0, ns = next->totals.time_ns - statsd->sent.totals.time_ns;
    for (size_t i = 0; i <= WEIR_ENVOY_TIMES; i++)
        calls += next->totals.times[i] - statsd->sent.totals.times[i];
    if (!calls)
        return;
    bool behind = !statsd->settings->statsd_tags;
    fprintf(out, "%s%s:%.6f|ms|@%.9g%s\n", name, behind ? statsd->tags : "",
            (double)ns / (double)calls / 1e6, 1 / (double)calls, behind ? "" : statsd->tags);
}

/* What was counted since the last text, and the counts that it leaves; NULL: no memory. */
static char *make_text(struct weir_envoy_statsd *statsd, struct snapshot *next, size_t *size)
{
    struct weir_envoy_single now[WEIR_ENVOY_SINGLES], then[WEIR_ENVOY_SINGLES];
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out)
        return NULL;
    next->keys = weir_envoy_shared_keys(statsd->shared, &next->count);
    weir_envoy_shared_totals(statsd->shared, &next->totals);
    weir_envoy_singles(&next->totals, now);
    weir_envoy_singles(&statsd->sent.totals, then);
    for (size_t i = 0; i < WEIR_ENVOY_SINGLES; i++)
        put_counter(statsd, out, now[i].name, now[i].value - then[i].value);
    put_keys(statsd, out, next);
    put_time(statsd, out, next);
    if (fclose(out) == 0)
        return text;
    free(next->keys);
    free(text);
    return NULL;
}

static void take_snapshot(struct weir_envoy_statsd *statsd, const struct snapshot *next)
{
    free(statsd->sent.keys);
    statsd->sent = *next;
}

/* --- UDP -------------------------------------------------------------------------------------- */

static void send_datagrams(struct weir_envoy_statsd *statsd, char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t end = size - at > WEIR_STATSD_PACKET ? at + WEIR_STATSD_PACKET : size;
        while (end < size && end > at + 1 && text[end - 1] != '\n')
            end--;
        uv_buf_t packet = uv_buf_init(text + at, (unsigned)(end - at));
        uv_udp_try_send(&statsd->udp, &packet, 1, (struct sockaddr *)&statsd->address);
        at = end;
    }
}

/* --- TCP -------------------------------------------------------------------------------------- */

static void on_tcp_closed(uv_handle_t *handle)
{
    struct weir_envoy_statsd *statsd = handle->data;
    statsd->open = statsd->connected = false;
}

static void tcp_close(struct weir_envoy_statsd *statsd)
{
    statsd->connected = false;
    if (!uv_is_closing((uv_handle_t *)&statsd->tcp))
        uv_close((uv_handle_t *)&statsd->tcp, on_tcp_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char nothing[256]; /* statsd says nothing; it is read to learn of the end */
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(nothing, sizeof nothing);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    (void)buffer;
    if (size < 0)
        tcp_close(stream->data);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct weir_envoy_statsd *statsd = connect->data;
    if (status < 0) {
        tcp_close(statsd);
        return;
    }
    statsd->connected = true;
    uv_read_start((uv_stream_t *)&statsd->tcp, on_alloc, on_read);
}

static void tcp_open(struct weir_envoy_statsd *statsd)
{
    if (statsd->open || uv_tcp_init(statsd->loop, &statsd->tcp) < 0)
        return;
    statsd->open = true;
    statsd->tcp.data = statsd->connect.data = statsd;
    if (uv_tcp_connect(&statsd->connect, &statsd->tcp, (struct sockaddr *)&statsd->address,
                       on_connected) < 0)
        tcp_close(statsd);
}

static void on_written(uv_write_t *write, int status)
{
    struct weir_envoy_statsd *statsd = write->data;
    statsd->writing = false;
    free(statsd->sending);
    statsd->sending = NULL;
    if (status == 0) {
        take_snapshot(statsd, &statsd->next);
    } else { /* counted again, in the next text */
        free(statsd->next.keys);
        tcp_close(statsd);
    }
    statsd->next = (struct snapshot){0};
}

static void tcp_send(struct weir_envoy_statsd *statsd, char *text, size_t size,
                     const struct snapshot *next)
{
    uv_buf_t buffer = uv_buf_init(text, (unsigned)size);
    statsd->write.data = statsd;
    if (uv_write(&statsd->write, (uv_stream_t *)&statsd->tcp, &buffer, 1, on_written) < 0) {
        free(text);
        free(next->keys);
        tcp_close(statsd);
        return;
    }
    statsd->writing = true;
    statsd->sending = text;
    statsd->next = *next;
}

/* --- Flushes ---------------------------------------------------------------------------------- */

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct weir_envoy_statsd *statsd = resolve->data;
    statsd->resolving = false;
    if (status == 0 && !statsd->stopped && found->ai_addrlen <= sizeof statsd->address) {
        memcpy(&statsd->address, found->ai_addr, found->ai_addrlen);
        statsd->resolved = true;
        if (statsd->settings->statsd_tcp)
            tcp_open(statsd);
    }
    uv_freeaddrinfo(found);
}

static void start_resolving(struct weir_envoy_statsd *statsd)
{
    const struct weir_envoy_settings *settings = statsd->settings;
    const struct addrinfo hints = {.ai_socktype = settings->statsd_tcp ? SOCK_STREAM : SOCK_DGRAM};
    statsd->resolve.data = statsd;
    statsd->resolving = uv_getaddrinfo(statsd->loop, &statsd->resolve, on_resolved,
                                       settings->statsd_host, settings->statsd_port, &hints) == 0;
}

static void flush(struct weir_envoy_statsd *statsd)
{
    struct snapshot next = {0};
    size_t size;
    char *text = make_text(statsd, &next, &size);
    if (!text)
        return;
    if (!size) {
        free(text);
        free(next.keys);
    } else if (statsd->settings->statsd_tcp) {
        tcp_send(statsd, text, size, &next);
    } else {
        send_datagrams(statsd, text, size);
        free(text);
        take_snapshot(statsd, &next);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct weir_envoy_statsd *statsd = timer->data;
    if (!statsd->resolved) {
        if (!statsd->resolving)
            start_resolving(statsd);
    } else if (!statsd->settings->statsd_tcp || (statsd->connected && !statsd->writing)) {
        flush(statsd);
    } else if (!statsd->open) {
        /* Its address may have changed meanwhile. */
        statsd->resolved = false;
        start_resolving(statsd);
    }
}

int weir_envoy_statsd_open(struct weir_envoy_statsd **statsd, uv_loop_t *loop,
                           struct weir_envoy_shared *shared)
{
    struct weir_envoy_statsd *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    made->shared = shared;
    made->settings = &shared->settings;
    made->loop = loop;
    write_tags(made);
    uv_timer_init(loop, &made->timer);
    made->timer.data = made;
    if (!made->settings->statsd_tcp)
        uv_udp_init(loop, &made->udp);
    start_resolving(made);
    uint64_t interval_ms = made->settings->flush_ns / 1000000;
    uv_timer_start(&made->timer, on_timer, interval_ms, interval_ms);
    *statsd = made;
    return 0;
}

void weir_envoy_statsd_stop(struct weir_envoy_statsd *statsd)
{
    if (!statsd)
        return;
    statsd->stopped = true;
    uv_timer_stop(&statsd->timer);
    if (statsd->resolving)
        uv_cancel((uv_req_t *)&statsd->resolve);
    if (statsd->resolved && !statsd->settings->statsd_tcp)
        flush(statsd);
}

void weir_envoy_statsd_free(struct weir_envoy_statsd *statsd)
{
    if (!statsd)
        return;
    free(statsd->sending);
    free(statsd->sent.keys);
    free(statsd->next.keys);
    free(statsd);
}
