/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1.Health: whether a service can be asked, now and from now on. See grpc.h. */
#include "server/grpc/health.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/envoy/server/call.h"
#include "feature/envoy/server/daemon.h"
#include "server/daemon/readiness.h"
#include "server/grpc/reply.h"
#include "wire/grpc/descriptors.h"
#include "wire/grpc/health.h"

/* A stream of Watch. */
struct weir_grpc_watch {
    struct weir_grpc_stream *stream;
    struct weir_grpc_watch *previous, *next;
    struct weir_bytes service;
    uint8_t sent; /* enum weir_grpc_health */
};

static struct weir_readiness readiness_of(const struct weir_grpc *grpc)
{
    struct weir_readiness readiness;
    weir_daemon_readiness(grpc->daemon, weir_worker_rules(grpc->worker), &readiness);
    return readiness;
}

/* Each service by its name. Beside them:
 *   ""           limits of the rules can be decided. Envoy's are not asked about: a kubelet that is
 *                given no name takes this for liveness, and the original always serves it
 *   "ratelimit"  the original's name of its service: liveness, as /healthcheck */
static enum weir_grpc_health health_of(const struct weir_grpc *grpc, struct weir_bytes service)
{
    static const char rate_limit[] = "envoy.service.ratelimit.v3.RateLimitService";
    const struct weir_envoy_shared *envoy = weir_daemon_envoy(grpc->daemon);
    bool known = service.size == 0, serving = true;
    if (service.size == 0) {
        serving = readiness_of(grpc).limits;
    } else if (weir_bytes_are(service, rate_limit)) {
        known = true;
        serving = envoy && weir_envoy_healthy(envoy) && readiness_of(grpc).envoy;
    } else if (envoy && weir_bytes_are(service, "ratelimit")) {
        known = true;
        serving = weir_envoy_healthy(envoy);
    }
    for (unsigned i = 0; i < weir_grpc_service_count && !known; i++)
        known = weir_bytes_are(service, weir_grpc_services[i]);
    if (!known)
        return WEIR_GRPC_SERVICE_UNKNOWN;
    return serving && !grpc->worker->draining ? WEIR_GRPC_SERVING : WEIR_GRPC_NOT_SERVING;
}

void weir_grpc_health_check_read(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_bytes *service = weir_grpc_arena_take(&stream->arena, sizeof *service);
    int err =
        service ? weir_grpc_health_read(service, message, &stream->arena) : WEIR_ERR_TOO_LARGE;
    if (err < 0)
        weir_grpc_fail_read(stream, err);
    stream->request = service;
}

void weir_grpc_health_check_begin(struct weir_grpc_stream *stream)
{
    const struct weir_bytes *service = stream->request;
    struct weir_grpc *grpc = weir_grpc_of(stream);
    enum weir_grpc_health health = health_of(grpc, *service);
    if (grpc->envoy)
        weir_envoy_count_check(grpc->envoy);
    if (health == WEIR_GRPC_SERVICE_UNKNOWN)
        weir_grpc_fail(stream, WEIR_GRPC_NOT_FOUND, "unknown service");
    else
        weir_grpc_reply(stream, weir_grpc_health_response(health));
}

static void watch_tell(struct weir_grpc *grpc, struct weir_grpc_watch *watch)
{
    enum weir_grpc_health health = health_of(grpc, watch->service);
    bool read = watch->stream->out_sent == watch->stream->out_size;
    if (health == watch->sent || !read) /* a client that does not read hears the last state only */
        return;
    watch->sent = (uint8_t)health;
    weir_grpc_push(watch->stream, weir_grpc_health_response(health));
}

void weir_grpc_health_watch_read(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    if (stream->messages > 1) {
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED, "more than one request to Watch");
        return;
    }
    struct weir_grpc_watch *watch = weir_grpc_arena_take(&stream->arena, sizeof *watch);
    int err = watch ? weir_grpc_health_read(&watch->service, message, &stream->arena)
                    : WEIR_ERR_TOO_LARGE;
    if (err < 0) {
        weir_grpc_fail_read(stream, err);
        return;
    }
    watch->stream = stream;
    watch->previous = NULL;
    watch->next = grpc->watches;
    watch->sent = WEIR_GRPC_HEALTH_UNKNOWN;
    if (watch->next)
        watch->next->previous = watch;
    grpc->watches = watch;
    stream->call = watch;
    watch_tell(grpc, watch);
}

void weir_grpc_health_watch_drop(struct weir_grpc_stream *stream)
{
    struct weir_grpc_watch *watch = stream->call;
    if (!watch)
        return;
    if (watch->previous)
        watch->previous->next = watch->next;
    else
        weir_grpc_of(stream)->watches = watch->next;
    if (watch->next)
        watch->next->previous = watch->previous;
}

void weir_grpc_health_tell(struct weir_grpc *grpc)
{
    for (struct weir_grpc_watch *at = grpc->watches; at; at = at->next)
        watch_tell(grpc, at);
}
