/* SPDX-License-Identifier: Apache-2.0 */
/* see redis_player.h */
#include "redis_player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_rig.h"

#define INPUT_MAX (1024 * 1024)

struct redis_peer {
    struct redis_player *player;
    struct redis_peer *next;
    uv_tcp_t socket;
    uv_idle_t idle; /* sends the next piece, at each turn of the loop */
    uint8_t parts;
    bool closing;
    struct weir_resp_parser parser;
    struct weir_resp_request request;
    char *input, *output;
    size_t input_used, output_used, output_room, sent;
};

static void check(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, uv_strerror(status));
        abort();
    }
}

static void on_peer_closed(uv_handle_t *handle)
{
    struct redis_peer *peer = handle->data;
    if (--peer->parts == 0) {
        free(peer->input);
        free(peer->output);
        free(peer);
    }
}

static void peer_close(struct redis_peer *peer)
{
    if (peer->closing)
        return;
    peer->closing = true;
    for (struct redis_peer **at = &peer->player->peers; *at != NULL; at = &(*at)->next) {
        if (*at == peer) {
            *at = peer->next;
            break;
        }
    }
    uv_close((uv_handle_t *)&peer->idle, on_peer_closed);
    uv_close((uv_handle_t *)&peer->socket, on_peer_closed);
}

/* Sends what it may now, and the rest at the next turn. */
static void peer_send(uv_idle_t *idle)
{
    struct redis_peer *peer = idle->data;
    const struct redis_player *player = peer->player;
    size_t end = peer->output_used;

    if (player->cut != 0 && end > player->cut)
        end = player->cut;
    if (player->piece != 0 && end - peer->sent > player->piece)
        end = peer->sent + player->piece;
    if (end > peer->sent) {
        uv_buf_t bytes = uv_buf_init(peer->output + peer->sent, (unsigned)(end - peer->sent));
        int taken = uv_try_write((uv_stream_t *)&peer->socket, &bytes, 1);
        if (taken < 0 && taken != UV_EAGAIN) {
            peer_close(peer);
            return;
        }
        peer->sent += taken > 0 ? (size_t)taken : 0;
    }
    if (player->cut != 0 && peer->sent >= player->cut)
        peer_close(peer);
    else if (peer->sent == peer->output_used)
        uv_idle_stop(idle);
}

void redis_player_say(struct redis_peer *peer, const char *bytes, size_t size)
{
    while (peer->output_room - peer->output_used < size) {
        peer->output_room = peer->output_room == 0 ? 4096 : 2 * peer->output_room;
        peer->output = realloc(peer->output, peer->output_room);
        check(peer->output == NULL ? UV_ENOMEM : 0, "realloc");
    }
    memcpy(peer->output + peer->output_used, bytes, size);
    peer->output_used += size;
    if (!peer->closing)
        uv_idle_start(&peer->idle, peer_send);
}

void redis_player_say_text(struct redis_peer *peer, const char *text)
{
    redis_player_say(peer, text, strlen(text));
}

/* What Redis answers. */
static void answer_as_redis(struct redis_peer *peer)
{
    struct redis_player *player = peer->player;
    const struct weir_resp_request *request = &peer->request;
    char text[64];

    if (weir_resp_is(request->args[0], "EVALSHA")) {
        snprintf(text, sizeof text, ":%u\r\n", player->calls);
        redis_player_say_text(peer, text);
    } else if (weir_resp_is(request->args[0], "SCRIPT")) {
        snprintf(text, sizeof text, "$40\r\n%s\r\n", rig_script.sha);
        redis_player_say_text(peer, text);
    } else if (weir_resp_is(request->args[0], "ROLE")) {
        redis_player_say_text(peer, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    } else if (weir_resp_is(request->args[0], "PING")) {
        redis_player_say_text(peer, "+PONG\r\n");
    } else if (weir_resp_is(request->args[0], "AUTH") || weir_resp_is(request->args[0], "CLIENT") ||
               weir_resp_is(request->args[0], "SELECT") ||
               weir_resp_is(request->args[0], "ASKING")) {
        redis_player_say_text(peer, "+OK\r\n");
    } else {
        redis_player_say_text(peer, "-ERR unknown command\r\n");
    }
}

static void peer_answer(struct redis_peer *peer)
{
    struct redis_player *player = peer->player;
    const struct weir_resp_request *request = &peer->request;

    player->calls += weir_resp_is(request->args[0], "EVALSHA");
    player->loads += weir_resp_is(request->args[0], "SCRIPT");
    player->asked += weir_resp_is(request->args[0], "ASKING");
    player->questions +=
        weir_resp_is(request->args[0], "CLUSTER") ||
        (request->count > 1 && weir_resp_is(request->args[1], "GET-MASTER-ADDR-BY-NAME"));
    if (!player->deaf && (player->answer == NULL || !player->answer(player, peer, request)))
        answer_as_redis(peer);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct redis_peer *peer = handle->data;
    *buffer = uv_buf_init(peer->input + peer->input_used, (unsigned)(INPUT_MAX - peer->input_used));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct redis_peer *peer = stream->data;
    size_t at = 0;
    long taken = 0;

    if (size < 0) {
        peer_close(peer);
        return;
    }
    peer->input_used += (size_t)size;
    while (at < peer->input_used && !peer->closing &&
           (taken = weir_resp_parse(&peer->parser, peer->input + at, peer->input_used - at,
                                    &peer->request)) > 0) {
        at += (size_t)taken;
        peer_answer(peer);
    }
    if (taken < 0) {
        fprintf(stderr, "the client sent no command: %s\n", peer->parser.problem);
        abort();
    }
    peer->input_used -= at;
    memmove(peer->input, peer->input + at, peer->input_used);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct redis_player *player = listener->data;
    struct redis_peer *peer = calloc(1, sizeof *peer);

    check(status, "listen");
    player->connections++;
    peer->player = player;
    peer->input = malloc(INPUT_MAX);
    peer->parts = 2;
    peer->next = player->peers;
    player->peers = peer;
    check(uv_tcp_init(player->loop, &peer->socket), "tcp");
    check(uv_idle_init(player->loop, &peer->idle), "idle");
    peer->socket.data = peer->idle.data = peer;
    check(uv_accept(listener, (uv_stream_t *)&peer->socket), "accept");
    if (player->hangs_up) {
        peer_close(peer);
        return;
    }
    check(uv_read_start((uv_stream_t *)&peer->socket, on_alloc, on_read), "read");
    if (player->greeting != NULL)
        redis_player_say_text(peer, player->greeting);
}

void redis_player_open(struct redis_player *player, uv_loop_t *loop)
{
    struct sockaddr_in address;
    int size = sizeof address;

    memset(player, 0, sizeof *player);
    player->loop = loop;
    check(uv_tcp_init(loop, &player->listener), "tcp");
    player->listener.data = player;
    check(uv_ip4_addr("127.0.0.1", 0, &address), "address");
    check(uv_tcp_bind(&player->listener, (const struct sockaddr *)&address, 0), "bind");
    check(uv_listen((uv_stream_t *)&player->listener, 64, on_connection), "listen");
    check(uv_tcp_getsockname(&player->listener, (struct sockaddr *)&address, &size), "name");
    player->port = (uint16_t)(address.sin_port << 8 | address.sin_port >> 8);
    snprintf(player->url, sizeof player->url, "redis://127.0.0.1:%u", player->port);
}

void redis_player_drop(struct redis_player *player)
{
    while (player->peers != NULL)
        peer_close(player->peers);
}

void redis_player_close(struct redis_player *player)
{
    redis_player_drop(player);
    uv_close((uv_handle_t *)&player->listener, NULL);
}
