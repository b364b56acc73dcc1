/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets to names of several addresses, some of which do not answer. libuv's resolver is played:
 * the linker leads uv_getaddrinfo here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_player.h"
#include "store/redis/client/socket.h"
#include "test.h"

static struct client_rig rig; /* its loop only */
static struct redis_player player;
static struct redis_socket sock;
static int status; /* of the end of connecting; 1: not yet */
static bool gone;

/* What the name resolves to, when `answer` is called. */
static struct sockaddr_in addresses[12];
static struct addrinfo list[12];
static int address_count, resolve_status;
static uv_getaddrinfo_t *asked;
static uv_getaddrinfo_cb asked_done;

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *name, const char *port, const struct addrinfo *hints);
void __wrap_uv_freeaddrinfo(struct addrinfo *freed);
int __wrap_uv_cancel(uv_req_t *request);

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *name, const char *port, const struct addrinfo *hints)
{
    asked = request;
    asked_done = done;
    return 0;
}

void __wrap_uv_freeaddrinfo(struct addrinfo *freed)
{
}

int __wrap_uv_cancel(uv_req_t *request)
{
    return UV_EBUSY; /* as libuv, when a thread is at it already */
}

static void answer(void)
{
    for (int i = 0; i < address_count; i++) {
        list[i] = (struct addrinfo){
            .ai_family = AF_INET,
            .ai_addr = (struct sockaddr *)&addresses[i],
            .ai_addrlen = sizeof addresses[i],
            .ai_next = i + 1 < address_count ? &list[i + 1] : NULL,
        };
    }
    asked_done(asked, resolve_status, address_count > 0 ? list : NULL);
}

/* An address that takes connections, or one that refuses them (port 1 of a machine under test). */
static void add_address(bool good)
{
    uv_ip4_addr("127.0.0.1", good ? player.port : 1, &addresses[address_count++]);
}

static void on_connected(struct redis_socket *result, int connect_status)
{
    assert_ptr_equal(result, &sock);
    assert_int_equal(status, 1); /* once */
    status = connect_status;
}

static void on_gone(struct redis_socket *result)
{
    assert_ptr_equal(result, &sock);
    assert_false(gone);
    gone = true;
}

static void open_socket(const char *name, uint32_t first)
{
    struct redis_host host = {.port = player.port};
    strcpy(host.name, name);
    sock = (struct redis_socket){.loop = &rig.loop, .connected = on_connected, .gone = on_gone};
    status = 1;
    gone = false;
    assert_int_equal(redis_socket_open(&sock, &host, NULL, first), 0);
}

static void close_socket(void)
{
    assert_true(redis_socket_close(&sock));
    RIG_UNTIL(&rig, gone);
}

static int begin(void **state)
{
    client_rig_init(&rig);
    redis_player_open(&player, &rig.loop);
    address_count = resolve_status = 0;
    asked = NULL;
    return 0;
}

static int end(void **state)
{
    redis_player_close(&player);
    client_rig_end(&rig);
    return 0;
}

TEST_WITH(begin, end, "an address is not resolved")
{
    open_socket("127.0.0.1", 0);
    RIG_UNTIL(&rig, status != 1);
    assert_int_equal(status, 0);
    assert_null(asked);
    close_socket();
}

TEST_WITH(begin, end, "the next address is tried")
{
    add_address(false);
    add_address(false);
    add_address(true);
    open_socket("name", 0);
    answer();
    RIG_UNTIL(&rig, status != 1);
    assert_int_equal(status, 0);
    assert_int_equal(sock.tried, 3);
    close_socket();
}

TEST_WITH(begin, end, "it begins with the address that is reported")
{
    add_address(false);
    add_address(true);
    open_socket("name", 1);
    answer();
    RIG_UNTIL(&rig, status != 1);
    assert_int_equal(status, 0);
    assert_int_equal(sock.tried, 1);
    close_socket();
}

TEST_WITH(begin, end, "when all refuse that is reported")
{
    for (int i = 0; i < 10; i++)
        add_address(false);
    open_socket("name", 3);
    answer();
    RIG_UNTIL(&rig, status != 1);
    assert_int_equal(status, UV_ECONNREFUSED);
    assert_int_equal(sock.tried, REDIS_ADDRESSES_MAX); /* no more of them */
    close_socket();
}

TEST_WITH(begin, end, "a name without addresses is reported")
{
    open_socket("name", 0);
    answer();
    assert_int_equal(status, UV_EAI_NODATA);
    assert_false(redis_socket_close(&sock)); /* nothing is left of it */
    resolve_status = UV_EAI_AGAIN;
    open_socket("name", 0);
    answer();
    assert_int_equal(status, UV_EAI_AGAIN);
    assert_false(redis_socket_close(&sock));
}

TEST_WITH(begin, end, "it may be closed at any time")
{
    add_address(false);
    add_address(true);
    for (int turns = 0; turns < 6; turns++) {
        open_socket("name", 0);
        if (turns == 0) { /* the answer comes after the end */
            assert_true(redis_socket_close(&sock));
            answer();
        } else {
            answer();
            for (int i = 1; i < turns; i++)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
            assert_true(redis_socket_close(&sock));
        }
        int before = status;
        RIG_UNTIL(&rig, gone);
        assert_int_equal(status, before); /* nothing is reported after the end */
    }
}

RUN_TESTS()
