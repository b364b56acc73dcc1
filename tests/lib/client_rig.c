/* SPDX-License-Identifier: Apache-2.0 */
/* see client_rig.h */
#include "client_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/resp/write.h"

#define GUARD_MS 20

#define COUNT_TEXT "return redis.call('INCRBY', KEYS[1], ARGV[1])"
const struct redis_script rig_script = {
    .name = "count",
    .text = COUNT_TEXT,
    .size = sizeof COUNT_TEXT - 1,
    .sha = "8cd00688c05c46bde4a2e60658ef20a2e5c0b248",
};

static const struct redis_script *const rig_scripts[] = {&rig_script};

static void on_guard(uv_timer_t *timer)
{
}

void client_rig_init(struct client_rig *rig)
{
    memset(rig, 0, sizeof *rig);
    signal(SIGPIPE, SIG_IGN); /* libuv writes to sockets that may be closed */
    uv_loop_init(&rig->loop);
    uv_timer_init(&rig->loop, &rig->guard);
    uv_timer_start(&rig->guard, on_guard, GUARD_MS, GUARD_MS);
    rig->closed = true;
}

static void on_event(void *context, enum redis_event event, const char *text)
{
    struct client_rig *rig = context;
    if (rig->event_count < RIG_EVENTS_MAX) {
        struct rig_event *kept = &rig->events[rig->event_count++];
        kept->kind = event;
        snprintf(kept->text, sizeof kept->text, "%s", text);
    }
}

struct redis_client_options client_rig_options(struct client_rig *rig, const char *url)
{
    struct weir_reason reason;
    if (redis_url_parse(&rig->url, url, &reason) != 0) {
        fprintf(stderr, "%s: %s\n", url, reason.text);
        abort();
    }
    return (struct redis_client_options){
        .loop = &rig->loop,
        .url = &rig->url,
        .scripts = rig_scripts,
        .script_count = 1,
        .random_seed = uv_hrtime(),
        .event = on_event,
        .context = rig,
    };
}

void client_rig_open(struct client_rig *rig, const struct redis_client_options *options)
{
    struct weir_reason reason;
    if (redis_client_open(&rig->client, options, &reason) != 0) {
        fprintf(stderr, "redis_client_open: %s\n", reason.text);
        abort();
    }
    rig->closing = rig->closed = false;
}

void client_rig_connect(struct client_rig *rig, const char *url)
{
    struct redis_client_options options = client_rig_options(rig, url);
    client_rig_open(rig, &options);
}

static void on_closed(void *context)
{
    struct client_rig *rig = context;
    rig->closed = true;
}

void client_rig_shut(struct client_rig *rig)
{
    if (!rig->closing && !rig->closed) {
        rig->closing = true;
        redis_client_close(rig->client, on_closed, rig);
    }
}

void client_rig_close(struct client_rig *rig)
{
    client_rig_shut(rig);
    RIG_UNTIL(rig, rig->closed);
}

void client_rig_end(struct client_rig *rig)
{
    client_rig_close(rig);
    uv_close((uv_handle_t *)&rig->guard, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&rig->loop) != 0) {
        uv_print_all_handles(&rig->loop, stderr);
        abort();
    }
}

int client_rig_set_up(void **state)
{
    client_rig_init(*state);
    return 0;
}

int client_rig_tear_down(void **state)
{
    client_rig_end(*state);
    return 0;
}

void client_rig_run_for(struct client_rig *rig, uint64_t ms)
{
    uint64_t until = uv_hrtime() + ms * 1000000;
    while (uv_hrtime() < until)
        uv_run(&rig->loop, UV_RUN_ONCE);
}

void client_rig_fail(struct client_rig *rig, const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: it did not come to %s; events:\n", file, line, condition);
    for (uint32_t i = 0; i < rig->event_count; i++)
        fprintf(stderr, "  %d %s\n", rig->events[i].kind, rig->events[i].text);
    abort();
}

bool client_rig_reported(const struct client_rig *rig, uint32_t from, enum redis_event kind,
                         const char *part)
{
    for (uint32_t i = from; i < rig->event_count; i++)
        if (rig->events[i].kind == kind && strstr(rig->events[i].text, part) != NULL)
            return true;
    return false;
}

static void on_done(struct redis_call *base, int error, const struct weir_resp_node *nodes,
                    uint32_t count)
{
    struct rig_call *call = (struct rig_call *)(void *)base;
    call->done = true;
    call->error = error;
    call->rig->finished++;
    if (error == 0) {
        size_t size =
            nodes[0].text.size < sizeof call->text - 1 ? nodes[0].text.size : sizeof call->text - 1;
        call->type = nodes[0].type;
        call->integer = nodes[0].integer;
        if (size > 0)
            memcpy(call->text, nodes[0].text.data, size);
        call->text[size] = '\0';
    }
}

static void call_init(struct rig_call *call, struct client_rig *rig, const char *end)
{
    call->rig = rig;
    call->done = false;
    call->text[0] = '\0';
    call->call = (struct redis_call){
        .bytes = call->bytes,
        .size = (size_t)(end - call->bytes),
        .give_up_ns = uv_hrtime() + RIG_PATIENCE_NS,
        .done = on_done,
    };
}

void rig_call_count(struct rig_call *call, struct client_rig *rig, const char *key, int amount)
{
    char number[16];
    char *at = weir_resp_write_array(call->bytes, 5);
    at = WEIR_RESP_WRITE_WORD(at, "EVALSHA");
    at = weir_resp_write_bulk(at, rig_script.sha, REDIS_SHA_HEX);
    at = WEIR_RESP_WRITE_WORD(at, "1");
    at = weir_resp_write_bulk(at, key, strlen(key));
    at = weir_resp_write_bulk(at, number, (size_t)snprintf(number, sizeof number, "%d", amount));
    call_init(call, rig, at);
    call->call.script = &rig_script;
    call->call.cluster_slot = redis_cluster_slot(key, strlen(key));
}

void rig_call_say(struct rig_call *call, struct client_rig *rig, const char *command)
{
    uint32_t words = 1;
    for (const char *at = command; *at != '\0'; at++)
        words += *at == ' ';
    char *out = weir_resp_write_array(call->bytes, words);
    for (const char *at = command;; at++) {
        size_t size = strcspn(at, " ");
        out = weir_resp_write_bulk(out, at, size);
        at += size;
        if (*at == '\0')
            break;
    }
    call_init(call, rig, out);
}

int rig_call_send(struct rig_call *call)
{
    int error = redis_client_send(call->rig->client, &call->call);
    redis_client_flush(call->rig->client);
    return error;
}

int rig_call_run(struct rig_call *call)
{
    int error = rig_call_send(call);
    if (error != 0)
        return error;
    RIG_UNTIL(call->rig, call->done);
    return call->error;
}

void client_rig_reach(struct client_rig *rig, const char *key)
{
    struct rig_call call;
    uint64_t deadline = uv_hrtime() + RIG_PATIENCE_NS;
    do {
        if (uv_hrtime() > deadline)
            client_rig_fail(rig, "an answer", __FILE__, __LINE__);
        uv_run(&rig->loop, UV_RUN_ONCE);
        rig_call_count(&call, rig, key, 1);
    } while (rig_call_run(&call) != 0);
}

void client_rig_close_after(struct client_rig *rig, int turns)
{
    struct rig_call calls[3];
    for (int i = 0; i < 3; i++) {
        rig_call_count(&calls[i], rig, "k", 1);
        if (rig_call_send(&calls[i]) != 0)
            client_rig_fail(rig, "a call that is sent", __FILE__, __LINE__);
    }
    for (int i = 0; i < turns; i++)
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    client_rig_close(rig);
}
