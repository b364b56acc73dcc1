/* SPDX-License-Identifier: Apache-2.0 */
/* The client and a real server: many calls, passwords, Unix sockets, its end and its return. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_server.h"

static struct redis_server server;
static struct client_rig rig;

static const char *server_url(const char *access)
{
    static char url[256];
    snprintf(url, sizeof url, "redis://%s127.0.0.1:%u", access, server.port);
    return url;
}

static void open_client(const char *url)
{
    client_rig_connect(&rig, url);
}

static int start(void **state)
{
    redis_server_start(&server, NULL);
    return 0;
}

static int stop(void **state)
{
    redis_server_stop(&server);
    return 0;
}

/* --- Calls ------------------------------------------------------------------------------------ */

static void ten_thousand_calls_are_answered_in_order(void **state)
{
    enum { COUNT = 10000 };
    struct rig_call *calls = calloc(COUNT, sizeof *calls);

    open_client(server_url(""));
    for (int i = 0; i < COUNT; i++) {
        rig_call_count(&calls[i], &rig, "many", 1);
        assert_int_equal(redis_client_send(rig.client, &calls[i].call), 0);
    }
    redis_client_flush(rig.client); /* they wait for the connection */
    RIG_UNTIL(&rig, rig.finished == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].type, WEIR_RESP_INTEGER);
        assert_int_equal(calls[i].integer, i + 1);
    }
    assert_true(redis_client_ready(rig.client, 0));
    assert_false(redis_client_is_cluster(rig.client));
    free(calls);
}

static void an_error_reply_is_the_callers_business(void **state)
{
    struct rig_call call;
    open_client(server_url(""));
    rig_call_say(&call, &rig, "SET text abc");
    assert_int_equal(rig_call_run(&call), 0);
    rig_call_say(&call, &rig, "LPUSH text x");
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.type, WEIR_RESP_ERROR);
    assert_non_null(strstr(call.text, "WRONGTYPE"));
}

static void flushed_scripts_are_loaded_again(void **state)
{
    struct rig_call calls[100], flush;
    open_client(server_url(""));
    rig_call_say(&flush, &rig, "SCRIPT FLUSH");
    assert_int_equal(rig_call_run(&flush), 0);
    for (int i = 0; i < 100; i++) {
        rig_call_count(&calls[i], &rig, "flushed", 1);
        assert_int_equal(redis_client_send(rig.client, &calls[i].call), 0);
    }
    redis_client_flush(rig.client);
    RIG_UNTIL(&rig, rig.finished == 101);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].integer, i + 1);
    }
    assert_int_equal(redis_client_counters(rig.client)->reloads, 1);
}

static void forgotten_calls_keep_their_place(void **state)
{
    struct rig_call calls[6], gone;
    open_client(server_url(""));
    rig_call_say(&gone, &rig, "SET forgotten 1");
    assert_int_equal(redis_client_send(rig.client, &gone.call), 0);
    assert_true(redis_client_forget(rig.client, &gone.call)); /* nothing was written yet */
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    for (int i = 0; i < 6; i++) {
        rig_call_count(&calls[i], &rig, "places", 1);
        assert_int_equal(rig_call_send(&calls[i]), 0);
    }
    for (int i = 0; i < 6; i += 2) {
        assert_false(redis_client_forget(rig.client, &calls[i].call));
        memset(&calls[i], 0xee, sizeof calls[i]); /* the memory is the caller's again */
    }
    RIG_UNTIL(&rig, rig.finished == 3);
    for (int i = 1; i < 6; i += 2)
        assert_int_equal(calls[i].integer, i + 1);
    rig_call_say(&gone, &rig, "EXISTS forgotten");
    assert_int_equal(rig_call_run(&gone), 0);
    assert_int_equal(gone.integer, 0);
}

static void no_more_calls_than_reported_are_taken(void **state)
{
    struct rig_call calls[5];
    struct redis_client_options options = client_rig_options(&rig, server_url(""));
    options.calls_max = 4;
    client_rig_open(&rig, &options);
    for (int i = 0; i < 5; i++) {
        rig_call_say(&calls[i], &rig, "PING");
        assert_int_equal(rig_call_send(&calls[i]), i < 4 ? 0 : WEIR_ERR_FULL);
    }
    assert_true(redis_client_forget(rig.client, &calls[0].call));
    assert_int_equal(rig_call_send(&calls[4]), 0);
    RIG_UNTIL(&rig, rig.finished == 4);
    for (int i = 1; i < 5; i++)
        assert_string_equal(calls[i].text, "PONG");
}

static void commands_and_replies_of_a_megabyte_pass(void **state)
{
    enum { SIZE = 1024 * 1024 };
    struct rig_call call, get;
    static char bytes[SIZE + 64];
    int head = sprintf(bytes, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n", SIZE);

    open_client(server_url(""));
    memset(bytes + head, 'x', SIZE);
    memcpy(bytes + head + SIZE, "\r\n", 2);
    rig_call_say(&call, &rig, "PING");
    call.call.bytes = bytes;
    call.call.size = (size_t)head + SIZE + 2;
    assert_int_equal(rig_call_run(&call), 0);
    assert_string_equal(call.text, "OK");
    rig_call_say(&get, &rig, "GET big");
    assert_int_equal(rig_call_run(&get), 0);
    assert_int_equal(get.type, WEIR_RESP_BULK);
    rig_call_say(&get, &rig, "DEL big");
    assert_int_equal(rig_call_run(&get), 0);
}

static void a_database_is_selected(void **state)
{
    char url[64];
    struct rig_call call;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/9", server.port);
    open_client(url);
    rig_call_say(&call, &rig, "CLIENT LIST");
    assert_int_equal(rig_call_run(&call), 0);
    assert_non_null(strstr(call.text, "name=weir"));
    assert_non_null(strstr(call.text, "db=9"));
}

static void a_unix_socket_will_do(void **state)
{
    char url[160];
    struct rig_call call;
    snprintf(url, sizeof url, "unix:%s?db=3", server.socket);
    open_client(url);
    rig_call_count(&call, &rig, "unix", 7);
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.integer, 7);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_UP, server.socket));
}

static void a_name_is_resolved(void **state)
{
    char url[64];
    struct rig_call call;
    snprintf(url, sizeof url, "redis://localhost:%u", server.port);
    open_client(url);
    rig_call_say(&call, &rig, "PING");
    call.call.give_up_ns = uv_hrtime() + RIG_PATIENCE_NS;
    assert_int_equal(rig_call_run(&call), 0);
}

static void a_name_that_is_none_is_reported(void **state)
{
    open_client("redis://no-such-host.invalid");
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "resolving its name"));
    assert_false(redis_client_ready(rig.client, 0));
}

/* --- Accounts --------------------------------------------------------------------------------- */

static void a_right_password_lets_in_and_a_wrong_one_is_reported(void **state)
{
    static const char *const arguments[] = {"--requirepass", "s3same%/@", NULL};
    struct redis_server closed;
    struct rig_call call, refused;
    char url[160];

    redis_server_start(&closed, arguments);
    snprintf(url, sizeof url, "redis://:s3same%%25%%2F%%40@127.0.0.1:%u", closed.port);
    open_client(url);
    rig_call_say(&call, &rig, "PING");
    assert_int_equal(rig_call_run(&call), 0);
    client_rig_close(&rig);

    snprintf(url, sizeof url, "redis://:wrong-secret@127.0.0.1:%u", closed.port);
    open_client(url);
    rig_call_say(&refused, &rig, "PING"); /* queued: there is good hope as yet */
    assert_int_equal(rig_call_run(&refused), WEIR_ERR_STORE);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "AUTH: WRONGPASS"));
    assert_int_equal(rig_call_send(&refused), WEIR_ERR_STORE); /* none any more */
    client_rig_close(&rig);

    snprintf(url, sizeof url, "redis://127.0.0.1:%u", closed.port);
    open_client(url);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "NOAUTH"));
    for (uint32_t i = 0; i < rig.event_count; i++)
        assert_null(strstr(rig.events[i].text, "secret"));
    redis_server_stop(&closed);
}

static void an_account_needs_no_more_than_the_documented_rights(void **state)
{
    struct redis_link link;
    struct rig_call call;

    redis_link_open(&link, &server);
    redis_link_say(&link, "ACL SETUSER limiter on >pass ~weir:* resetchannels -@all +evalsha "
                          "+script|load +ping +incrby");
    redis_link_close(&link);
    open_client(server_url("limiter:pass@"));
    rig_call_count(&call, &rig, "weir:acl", 5);
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.integer, 5);
    rig_call_count(&call, &rig, "another", 5);
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.type, WEIR_RESP_ERROR);
    assert_non_null(strstr(call.text, "NOPERM"));
}

/* --- Faults ----------------------------------------------------------------------------------- */

static void a_server_that_was_killed_is_used_when_it_is_back(void **state)
{
    struct redis_server mortal;
    struct rig_call lost;
    char url[64];

    redis_server_start(&mortal, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", mortal.port);
    open_client(url);
    client_rig_reach(&rig, "k");
    redis_server_signal(&mortal, SIGSTOP);
    rig_call_count(&lost, &rig, "k", 1);
    assert_int_equal(rig_call_send(&lost), 0);
    redis_server_end(&mortal);
    RIG_UNTIL(&rig, lost.done);
    assert_int_equal(lost.error, WEIR_ERR_IO); /* its bytes were written: perhaps executed */
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, ""));
    redis_server_restart(&mortal);
    client_rig_reach(&rig, "k");
    assert_int_equal(rig.events[0].kind, REDIS_EVENT_UP);
    assert_int_equal(rig.events[1].kind, REDIS_EVENT_DOWN);
    assert_int_equal(rig.events[rig.event_count - 1].kind, REDIS_EVENT_UP);
    redis_server_stop(&mortal);
}

static void a_server_that_stands_still_is_noticed_and_used_again(void **state)
{
    struct redis_server still;
    struct rig_call lost, pushed;
    char url[64];

    redis_server_start(&still, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", still.port);
    open_client(url);
    client_rig_reach(&rig, "k");
    redis_server_signal(&still, SIGSTOP);
    rig_call_count(&lost, &rig, "k", 1);
    assert_int_equal(rig_call_run(&lost), WEIR_ERR_IO);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "not answered for a second"));
    rig_call_count(&pushed, &rig, "k", 1);
    assert_int_equal(rig_call_send(&pushed), WEIR_ERR_STORE); /* no queue for who is dead */
    assert_int_equal(redis_client_counters(rig.client)->connects, 1);
    redis_server_signal(&still, SIGCONT);
    client_rig_reach(&rig, "k");
    assert_int_equal(redis_client_counters(rig.client)->connects, 2);
    redis_server_stop(&still);
}

static void what_the_socket_does_not_take_waits_its_turn(void **state)
{
    enum { COUNT = 300, SIZE = 64 * 1024 }; /* far more than the sockets' buffers */
    struct redis_server slow;
    struct rig_call *calls = calloc(COUNT, sizeof *calls);
    static char bytes[SIZE + 64];
    char url[64];
    int head = sprintf(bytes, "*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$%d\r\n", SIZE);

    memset(bytes + head, 'x', SIZE);
    memcpy(bytes + head + SIZE, "\r\n", 2);
    redis_server_start(&slow, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", slow.port);
    open_client(url);
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    redis_server_signal(&slow, SIGSTOP);
    for (int i = 0; i < COUNT; i++) {
        rig_call_say(&calls[i], &rig, "PING");
        calls[i].call.bytes = bytes;
        calls[i].call.size = (size_t)head + SIZE + 2;
        assert_int_equal(rig_call_send(&calls[i]), 0);
    }
    for (int i = 0; i < 5; i++) /* what is found to be stuck */
        uv_run(&rig.loop, UV_RUN_ONCE);
    assert_true(redis_client_forget(rig.client, &calls[COUNT - 1].call)); /* far from written */
    redis_server_signal(&slow, SIGCONT);
    RIG_UNTIL(&rig, rig.finished == COUNT - 1);
    for (int i = 0; i < COUNT - 1; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].integer, (int64_t)(i + 1) * SIZE);
    }
    redis_server_stop(&slow);
    free(calls);
}

static void an_idle_connection_is_kept_and_watched(void **state)
{
    struct redis_server still;
    char url[64];

    redis_server_start(&still, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", still.port);
    open_client(url);
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    redis_server_signal(&still, SIGSTOP); /* nobody calls */
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "not answered for a second"));
    redis_server_stop(&still);
}

int main(void)
{
#define CASE(name) RIG_TEST(name, &rig)
    const struct CMUnitTest tests[] = {
        CASE(ten_thousand_calls_are_answered_in_order),
        CASE(an_error_reply_is_the_callers_business),
        CASE(flushed_scripts_are_loaded_again),
        CASE(forgotten_calls_keep_their_place),
        CASE(no_more_calls_than_reported_are_taken),
        CASE(commands_and_replies_of_a_megabyte_pass),
        CASE(a_database_is_selected),
        CASE(a_unix_socket_will_do),
        CASE(a_name_is_resolved),
        CASE(a_name_that_is_none_is_reported),
        CASE(a_right_password_lets_in_and_a_wrong_one_is_reported),
        CASE(an_account_needs_no_more_than_the_documented_rights),
        CASE(a_server_that_was_killed_is_used_when_it_is_back),
        CASE(a_server_that_stands_still_is_noticed_and_used_again),
        CASE(what_the_socket_does_not_take_waits_its_turn),
        CASE(an_idle_connection_is_kept_and_watched),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
