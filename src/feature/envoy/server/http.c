/* SPDX-License-Identifier: Apache-2.0 */
/* see http.h */
#include "feature/envoy/server/http.h"

#include <stdlib.h>
#include <string.h>

#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/metrics.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "wire/json/envoy_json.h"

static struct weir_envoy_shared *shared_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    return daemon ? weir_daemon_envoy(daemon) : NULL;
}

/* Answers 404 where there is no such service. */
static bool is_there(struct weir_http_call *call)
{
    if (shared_of(call))
        return true;
    weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
    return false;
}

/* --- /json ------------------------------------------------------------------------------------ */

/* What waits for its decisions: the slot's buffer holds it, the body and what was read from it. */
struct json_call {
    struct weir_envoy_call *call; /* NULL: not begun, or it has failed */
    struct weir_envoy_failure failure;
    struct weir_envoy_request request;
};

#define ALIGNED(size) (((size) + 15) & ~(size_t)15)

static const char *text_of(enum weir_http_status status)
{
    static const char bad[] = "Bad Request\n", failed[] = "Internal Server Error\n",
                      busy[] = "Service Unavailable\n";
    return status == WEIR_HTTP_400 ? bad : status == WEIR_HTTP_500 ? failed : busy;
}

static void json_fail(struct weir_http_call *call, enum weir_http_status status)
{
    const char *text = text_of(status);
    weir_http_reply(call, status, NULL, "text/plain; charset=utf-8", text, strlen(text));
}

static enum weir_http_status status_of(const struct weir_envoy_failure *failure)
{
    static const enum weir_http_status statuses[] = {
        [WEIR_ENVOY_FAIL_REQUEST] = WEIR_HTTP_400,
        [WEIR_ENVOY_FAIL_STORE] = WEIR_HTTP_500,
        [WEIR_ENVOY_FAIL_TOO_LARGE] = WEIR_HTTP_400,
        [WEIR_ENVOY_FAIL_OVERLOADED] = WEIR_HTTP_503,
    };
    return statuses[failure->kind];
}

static struct json_call *json_of(const struct weir_slot *slot)
{
    return (struct json_call *)(void *)slot->buffer->data;
}

/* Gives back what a slot holds; its buffer too. */
static void json_drop(struct weir_slot *slot)
{
    struct weir_worker *worker = slot->connection->worker;
    if (json_of(slot)->call)
        weir_envoy_give(json_of(slot)->call);
    weir_buffer_give(&worker->buffers, slot->buffer);
    slot->buffer = NULL;
}

/* The answer in a buffer of its own: it may be of any size. */
static struct weir_buffer *json_body(struct weir_worker *worker,
                                     const struct weir_envoy_response *response)
{
    size_t size = weir_envoy_json_write(response, NULL, 0);
    struct weir_buffer *body = weir_buffer_take(&worker->buffers, size);
    if (body)
        body->used = weir_envoy_json_write(response, body->data, size);
    return body;
}

static void json_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct json_call *json = json_of(slot);
    enum weir_http_status failed = json->call ? WEIR_HTTP_500 : status_of(&json->failure);
    const struct weir_envoy_response *response =
        json->call ? weir_envoy_answer(json->call, &json->failure) : NULL;
    struct weir_buffer *body = response ? json_body(http->worker, response) : NULL;
    bool over = response && response->overall_code == WEIR_ENVOY_OVER_LIMIT;
    json_drop(slot);
    if (!body) {
        const char *text = text_of(failed);
        weir_http_begin(http, output, failed, slot->detail, slot->flags);
        weir_http_end(output, "text/plain; charset=utf-8", strlen(text));
        weir_output_put(output, text, slot->flags & WEIR_HTTP_HEAD ? 0 : strlen(text));
        return;
    }
    weir_http_begin(http, output, over ? WEIR_HTTP_429 : WEIR_HTTP_200, slot->detail, slot->flags);
    weir_http_end(output, "application/json", body->used);
    if (!(slot->flags & WEIR_HTTP_HEAD))
        weir_connection_send(slot->connection, output, body->data, body->used);
    weir_buffer_give(&http->worker->buffers, body);
}

static bool json_begin(struct weir_slot *slot)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct json_call *json = json_of(slot);
    json->call = weir_envoy_begin(http->envoy, &json->request, &json->failure);
    return json->call;
}

/* Whether there was anything left to queue. */
static bool json_queue(struct weir_slot *slot)
{
    struct weir_decision *const *decisions;
    uint32_t count = weir_envoy_next(json_of(slot)->call, &decisions);
    for (uint32_t i = 0; i < count; i++)
        weir_slot_wait(slot, decisions[i]);
    return count > 0;
}

/* A piece of a long request. */
static void json_more(struct weir_slot *slot)
{
    struct json_call *json = json_of(slot);
    if (!json->call && json_begin(slot))
        weir_envoy_begun(slot, &json->request);
    else if (json->call && json_queue(slot))
        weir_envoy_queued(slot);
    else
        weir_slot_end(slot);
}

void weir_envoy_json_handle(struct weir_http_call *call)
{
    struct weir_worker *worker = call->worker;
    struct weir_bytes body = call->request->body;
    struct weir_reason reason;
    if (!is_there(call))
        return;
    size_t text = ALIGNED(sizeof(struct json_call)), room = text + ALIGNED(body.size);
    struct weir_buffer *buffer =
        weir_buffer_take(&worker->buffers, room + weir_envoy_json_room(body.data, body.size));
    if (!buffer) {
        json_fail(call, WEIR_HTTP_503);
        return;
    }
    struct json_call *json = (struct json_call *)(void *)buffer->data;
    if (body.size)
        memcpy(buffer->data + text, body.data, body.size);
    if (weir_envoy_json_read(&json->request, buffer->data + text, body.size, buffer->data + room,
                             &reason) < 0) {
        weir_buffer_give(&worker->buffers, buffer);
        json_fail(call, WEIR_HTTP_400);
        return;
    }
    struct weir_slot *slot = weir_http_slot(call);
    if (!slot) {
        weir_buffer_give(&worker->buffers, buffer);
        return;
    }
    json->call = NULL;
    slot->buffer = buffer;
    slot->detail = call->route;
    slot->write = json_write;
    slot->drop = json_drop;
    if (weir_envoy_is_long(&json->request))
        weir_slot_begin(slot, json_more);
    else if (json_begin(slot))
        while (json_queue(slot))
            ;
}

/* --- What can be looked at -------------------------------------------------------------------- */

void weir_envoy_healthcheck_handle(struct weir_http_call *call)
{
    if (!is_there(call))
        return;
    if (weir_envoy_healthy(shared_of(call)))
        weir_http_reply(call, WEIR_HTTP_200, NULL, "text/plain; charset=utf-8", "OK", 2);
    else
        weir_http_reply(call, WEIR_HTTP_500, NULL, NULL, "", 0);
}

/* Answers with a text that is freed; NULL: there was no memory for it. */
static void reply_text(struct weir_http_call *call, char *text, size_t size, const char *type)
{
    if (text)
        weir_http_reply(call, WEIR_HTTP_200, NULL, type, text, size);
    else
        weir_http_problem(call, WEIR_HTTP_503, NULL, "no memory");
    free(text);
}

static void rlconfig_handle(struct weir_http_call *call)
{
    uint64_t version;
    if (!is_there(call))
        return;
    struct weir_envoy *envoy = weir_envoy_shared_current(shared_of(call), &version);
    size_t size = envoy ? weir_envoy_dump(envoy, NULL, 0) : 0;
    char *text = malloc(size + 1);
    if (text && envoy)
        weir_envoy_dump(envoy, text, size + 1);
    weir_envoy_unref(envoy);
    reply_text(call, text, size, "text/plain; charset=utf-8");
}

static void stats_handle(struct weir_http_call *call)
{
    size_t size = 0;
    if (!is_there(call))
        return;
    char *text = weir_envoy_stats_text(shared_of(call), &size);
    reply_text(call, text, size, "text/plain; charset=utf-8");
}

void weir_envoy_prometheus_handle(struct weir_http_call *call)
{
    size_t size = 0;
    if (!is_there(call) || !weir_http_allow(call, "GET", "HEAD"))
        return;
    char *text = weir_envoy_prometheus_text(shared_of(call), &size);
    reply_text(call, text, size, "text/plain; version=0.0.4; charset=utf-8");
}

void weir_envoy_root_handle(struct weir_http_call *call)
{
    static const char text[] = "/rlconfig: the configuration in use\n"
                               "/stats: what is counted\n"
                               "/metrics: the same for Prometheus, and weir's own\n"
                               "/healthz, /readyz: weir's health\n"
                               "/v1/limits: limits of the rules file\n";
    if (is_there(call))
        weir_http_reply(call, WEIR_HTTP_200, NULL, "text/plain; charset=utf-8", text,
                        sizeof text - 1);
}

const struct weir_http_route weir_envoy_routes[] = {
    {"/rlconfig", "rlconfig", "GET, HEAD", "the configuration of Envoy's service in use",
     rlconfig_handle, 0},
    {"/stats", "stats", "GET, HEAD", "every counter of Envoy's service", stats_handle, 0},
    {.path = NULL},
};
