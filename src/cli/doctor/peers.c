/* SPDX-License-Identifier: Apache-2.0 */
/* see peers.h */
#include "cli/doctor/peers.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "feature/sticky/store/peer_message.h"
#include "server/daemon/redis_access.h"
#include "server/net/listener.h"
#include "server/net/seed.h"
#include "store/redis/client/client.h"
#include "wire/resp/write.h"

#define PATIENCE_MS 5000 /* as for Redis */
#define ROUND_TRIPS 21
#define DEADLINE_DEFAULT_NS UINT64_C(20000000)
#define NO_CHECKS_MAX 16 /* bytes of a message without checks */

static const char fix_listener[] =
    "give `server.redis` the address of this node's line in the file of `sticky.peers`";

/* --- Its own line ----------------------------------------------------------------------------- */

static unsigned port_of(const struct weir_endpoint *endpoint)
{
    return ntohs(endpoint->any.sa_family == AF_INET6 ? endpoint->in6.sin6_port
                                                     : endpoint->in.sin_port);
}

static bool is_loopback(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1");
}

/* Whether others that use this URL reach the listener; a name and a public address in front of the
 * machine are not resolved. */
static bool listens_at(const struct weir_endpoint *endpoint, const struct redis_url *url)
{
    if (endpoint->kind == WEIR_ENDPOINT_OFF)
        return false;
    if (endpoint->kind == WEIR_ENDPOINT_UNIX || url->kind == REDIS_UNIX)
        return endpoint->kind == WEIR_ENDPOINT_UNIX && url->kind == REDIS_UNIX &&
               !strcmp(endpoint->un.sun_path, url->path);
    return port_of(endpoint) == url->hosts[0].port &&
           (!endpoint->local || is_loopback(url->hosts[0].name));
}

static void judge_self(struct findings *findings, const struct weir_settings *settings,
                       const struct redis_url *url)
{
    const struct weir_sticky_peer *self = &settings->sticky.peers[settings->sticky.self];
    const struct weir_listener_settings *listener = &settings->redis;
    const char *address = listener->address ? listener->address : "off";
    struct weir_endpoint endpoint;
    struct weir_reason reason;
    if (weir_endpoint_parse(&endpoint, address, &reason) < 0)
        return; /* weir_server_check reports it */
    if (!listens_at(&endpoint, url)) {
        findings_add(findings, FINDING_ERROR, "peer_self", fix_listener,
                     "sticky: other nodes ask this one, %s, at another address than "
                     "server.redis: %s",
                     self->name, address);
        return;
    }
    if (url->tls != (listener->tls.cert_file != NULL))
        findings_add(findings, FINDING_ERROR, "peer_self",
                     "write rediss:// in this node's line and give `server.redis.tls` a "
                     "certificate, or neither",
                     "sticky: other nodes ask this one, %s, %s TLS, and server.redis is %s it",
                     self->name, url->tls ? "with" : "without", url->tls ? "without" : "with");
    if (listener->trusted_set ? !listener->trusted : !endpoint.local)
        findings_add(findings, FINDING_ERROR, "peer_self", "set `trusted: true` in `server.redis`",
                     "sticky: server.redis is not `trusted`, so this node, %s, decides nothing "
                     "for others",
                     self->name);
}

/* --- Other nodes ------------------------------------------------------------------------------ */

struct visit {
    uv_loop_t loop;
    uv_timer_t timer;
    struct redis_client *client;
    struct redis_call call;
    char bytes[NO_CHECKS_MAX + 64];
    uint64_t sent_ns, round_trips[ROUND_TRIPS];
    unsigned answers;
    bool done, refused; /* refused: by the command, not the connection */
    char problem[WEIR_REASON_MAX];
};

static void end_visit(struct visit *visit, const char *problem, size_t size)
{
    if (problem && !visit->problem[0])
        snprintf(visit->problem, sizeof visit->problem, "%.*s", (int)(size < 200 ? size : 200),
                 problem);
    visit->done = true;
    uv_stop(&visit->loop);
}

static void on_time_out(uv_timer_t *timer)
{
    static const char text[] = "no answer within 5 s";
    end_visit(timer->data, text, sizeof text - 1);
}

static void on_event(void *context, enum redis_event event, const char *text)
{
    if (event == REDIS_EVENT_DOWN)
        end_visit(context, text, strlen(text));
}

static void on_reply(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count);

static void ask(struct visit *visit)
{
    static const unsigned char none[1][STICKY_DIGEST];
    static const char lost[] = "it cannot be asked";
    const struct weir_decision decision = {.op = WEIR_OP_PEEK};
    char message[STICKY_MESSAGE_MAX], *out = visit->bytes;
    size_t size = sticky_message_write(message, &decision, none);
    out = weir_resp_write_array(out, 2);
    out = WEIR_RESP_WRITE_WORD(out, "WEIR.DECIDE");
    out = weir_resp_write_bulk(out, message, size);
    visit->call = (struct redis_call){
        .bytes = visit->bytes,
        .size = (size_t)(out - visit->bytes),
        .give_up_ns = uv_hrtime() + (uint64_t)PATIENCE_MS * 1000000,
        .done = on_reply,
    };
    visit->sent_ns = uv_hrtime();
    if (redis_client_send(visit->client, &visit->call) < 0)
        end_visit(visit, lost, sizeof lost - 1);
    else
        redis_client_flush(visit->client);
}

static void on_reply(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    static const char nonsense[] = "its reply is no answer to WEIR.DECIDE";
    struct visit *visit = (struct visit *)(void *)((char *)call - offsetof(struct visit, call));
    struct weir_decision decision = {.op = WEIR_OP_PEEK};
    if (error < 0) {
        end_visit(visit, "it did not answer", sizeof "it did not answer" - 1);
        return;
    }
    visit->refused = true;
    if (count > 0 && nodes[0].type == WEIR_RESP_ERROR) {
        end_visit(visit, nodes[0].text.data, nodes[0].text.size);
    } else if (count != 1 || nodes[0].type != WEIR_RESP_BULK ||
               sticky_answer_read(nodes[0].text, &decision) < 0) {
        end_visit(visit, nonsense, sizeof nonsense - 1);
    } else {
        visit->refused = false;
        visit->round_trips[visit->answers++] = uv_hrtime() - visit->sent_ns;
        if (visit->answers < ROUND_TRIPS)
            ask(visit);
        else
            end_visit(visit, NULL, 0);
    }
}

static bool has_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static void add_problem(struct findings *findings, const char *name, const struct visit *visit)
{
    static const char *const token[] = {"NOAUTH", "WRONGPASS", "NOPERM", "password"};
    static const char *const tls[] = {"certificate", "TLS", "SSL", "tls", "ssl", "wrong version"};
    if (has_any(visit->problem, token, sizeof token / sizeof *token))
        findings_add(findings, FINDING_ERROR, "peer_token",
                     "give `sticky` the `token` that `server.redis` of that node has",
                     "sticky: %s refuses this node: %s", name, visit->problem);
    else if (visit->refused && strstr(visit->problem, "trusted"))
        findings_add(findings, FINDING_ERROR, "peer_untrusted",
                     "set `trusted: true` in `server.redis` of that node",
                     "sticky: %s decides nothing for others: %s", name, visit->problem);
    else if (visit->refused)
        findings_add(findings, FINDING_ERROR, "peer_refuses",
                     "correct the URL in the file of `sticky.peers`; give that node `sticky`, and "
                     "the same version of weir",
                     "sticky: %s is asked and does not decide: %s", name, visit->problem);
    else if (has_any(visit->problem, tls, sizeof tls / sizeof *tls))
        findings_add(findings, FINDING_ERROR, "peer_tls",
                     "correct `sticky.tls`: the authority of that node's certificate as `ca`, and "
                     "the name in it as `server_name`; if it speaks no TLS, write redis:// in its "
                     "line",
                     "sticky: %s cannot be asked over TLS: %s", name, visit->problem);
    else
        findings_add(findings, FINDING_ERROR, "peer_unreachable",
                     "check the URL in the file of `sticky.peers` (rediss:// where that node has "
                     "TLS), that weir runs there, and the firewall",
                     "sticky: %s cannot be reached: %s", name, visit->problem);
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void judge_answers(struct findings *findings, const char *name, struct visit *visit,
                          uint64_t deadline_ns)
{
    qsort(visit->round_trips, ROUND_TRIPS, sizeof *visit->round_trips, compare);
    uint64_t median_ns = visit->round_trips[ROUND_TRIPS / 2];
    if (median_ns > deadline_ns / 2)
        findings_add(findings, FINDING_WARNING, "peer_latency",
                     "raise `sticky.deadline`, or move the nodes nearer to each other",
                     "sticky: a round trip to %s takes %" PRIu64
                     " us, more than half of the deadline of %" PRIu64 " us",
                     name, median_ns / 1000, deadline_ns / 1000);
}

static void visit_peer(struct findings *findings, const char *name, const struct redis_url *url,
                       uint64_t deadline_ns)
{
    struct weir_reason reason = {{0}};
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        return;
    const struct redis_client_options options = {
        .loop = &visit->loop,
        .url = url,
        .random_seed = weir_seed_draw(2),
        .event = on_event,
        .context = visit,
    };
    uv_loop_init(&visit->loop);
    uv_timer_init(&visit->loop, &visit->timer);
    visit->timer.data = visit;
    uv_timer_start(&visit->timer, on_time_out, PATIENCE_MS, 0);
    if (redis_client_open(&visit->client, &options, &reason) < 0)
        end_visit(visit, reason.text, strlen(reason.text));
    else
        ask(visit);
    while (!visit->done)
        uv_run(&visit->loop, UV_RUN_DEFAULT);
    if (visit->answers == ROUND_TRIPS)
        judge_answers(findings, name, visit, deadline_ns);
    else
        add_problem(findings, name, visit);
    if (visit->client)
        redis_client_close(visit->client, NULL, NULL);
    uv_close((uv_handle_t *)&visit->timer, NULL);
    while (uv_run(&visit->loop, UV_RUN_DEFAULT) != 0)
        ;
    uv_loop_close(&visit->loop);
    free(visit);
}

void peers_examine(struct findings *findings, const struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    const struct weir_sticky_settings *sticky = &settings->sticky;
    uint64_t deadline_ns = settings->store.deadline_ns;
    for (uint32_t i = 0; sticky->by && i < sticky->count; i++) {
        struct weir_redis_access access = sticky->access;
        struct weir_reason reason;
        struct redis_url url;
        access.url = sticky->peers[i].url;
        if (weir_redis_access_url(&url, &access, "sticky.peers", &reason) < 0)
            findings_add(findings, FINDING_ERROR, "peer_unreachable",
                         "correct the URL in the file of `sticky.peers`", "%s (%s)", reason.text,
                         sticky->peers[i].name);
        else if (i == sticky->self)
            judge_self(findings, settings, &url);
        else
            visit_peer(findings, sticky->peers[i].name, &url,
                       deadline_ns > 0 ? deadline_ns : DEADLINE_DEFAULT_NS);
    }
}
