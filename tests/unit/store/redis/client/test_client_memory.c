/* SPDX-License-Identifier: Apache-2.0 */
/* The client and memory that runs out; and that it needs none while calls come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client_rig.h"
#include "failing_memory.h"
#include "redis_server.h"

static struct redis_server server;
static struct client_rig rig;
static char url[64];

static int start(void **state)
{
    redis_server_start(&server, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", server.port);
    return 0;
}

static int stop(void **state)
{
    redis_server_stop(&server);
    return 0;
}

static void any_allocation_may_fail(void **state)
{
    bool failed = true, opened = false;
    for (long n = 0; failed; n++) {
        struct weir_reason reason;
        struct redis_client_options options = client_rig_options(&rig, url);
        failing_memory_after(n);
        int error = redis_client_open(&rig.client, &options, &reason);
        if (error != 0) {
            assert_int_equal(error, WEIR_ERR_MEMORY);
            assert_false(opened); /* more memory is not worse than less */
            failing_memory_stop();
            continue;
        }
        opened = true;
        rig.closing = rig.closed = false;
        client_rig_reach(&rig, "k"); /* what failed was tried again */
        failed = failing_memory_stop() != 0;
        client_rig_close(&rig);
        assert_true(n < 1000);
    }
    assert_true(opened);
}

static uint32_t left;

static void on_done(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                    uint32_t count)
{
    assert_int_equal(error, 0);
    rig.finished++;
    if (left > 0) {
        left--;
        assert_int_equal(redis_client_send(rig.client, call), 0);
    }
}

static void calls_need_no_memory_of_their_own(void **state)
{
    enum { DEPTH = 500 };
    static struct rig_call calls[DEPTH];
    struct redis_client_options options = client_rig_options(&rig, url);

    client_rig_open(&rig, &options);
    client_rig_reach(&rig, "k");
    for (int round = 0; round < 2; round++) {
        rig.finished = 0;
        left = 5000;
        if (round == 1)
            failing_memory_after(0); /* the line and the output are as long as they need be */
        for (int i = 0; i < DEPTH; i++) {
            rig_call_count(&calls[i], &rig, "k", 1);
            calls[i].call.done = on_done;
            assert_int_equal(redis_client_send(rig.client, &calls[i].call), 0);
        }
        redis_client_flush(rig.client);
        RIG_UNTIL(&rig, rig.finished == 5000 + DEPTH);
    }
    assert_false(failing_memory_stop());
}

static void without_memory_for_a_longer_line_the_client_is_full(void **state)
{
    enum { COUNT = 300 };
    static struct rig_call calls[COUNT];
    struct redis_client_options options = client_rig_options(&rig, url);
    int full = 0;

    client_rig_open(&rig, &options);
    client_rig_reach(&rig, "k");
    failing_memory_after(0);
    for (int i = 0; i < COUNT; i++) {
        rig_call_count(&calls[i], &rig, "k", 1);
        full += redis_client_send(rig.client, &calls[i].call) == WEIR_ERR_FULL;
    }
    assert_true(failing_memory_stop());
    assert_int_equal(full, 1); /* the next had memory again */
    rig.finished = 0;
    redis_client_flush(rig.client);
    RIG_UNTIL(&rig, rig.finished == COUNT - 1);
}

int main(void)
{
#define CASE(name) RIG_TEST(name, &rig)
    const struct CMUnitTest tests[] = {
        CASE(any_allocation_may_fail),
        CASE(calls_need_no_memory_of_their_own),
        CASE(without_memory_for_a_longer_line_the_client_is_full),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
