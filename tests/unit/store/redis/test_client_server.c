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
    struct redis_client_options options = client_rig_options(&rig, url);
    client_rig_open(&rig, &options);
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

static int begin(void **state)
{
    client_rig_init(&rig);
    return 0;
}

static int end(void **state)
{
    client_rig_end(&rig);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ten_thousand_calls_are_answered_in_order, begin, end),
        cmocka_unit_test_setup_teardown(an_error_reply_is_the_callers_business, begin, end),
        cmocka_unit_test_setup_teardown(flushed_scripts_are_loaded_again, begin, end),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
