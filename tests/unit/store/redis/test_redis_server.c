/* SPDX-License-Identifier: Apache-2.0 */
/* The harness that other tests use: a private server starts, answers, ends and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "redis_server.h"

static void a_server_answers_and_comes_back_empty(void **unused)
{
    struct redis_server server;
    struct redis_link link;

    redis_server_start(&server, NULL);
    redis_link_open(&link, &server);
    assert_int_equal(redis_link_say(&link, "SET k v")->type, WEIR_RESP_SIMPLE);
    assert_int_equal(redis_link_say(&link, "GET k")->type, WEIR_RESP_BULK);
    redis_link_close(&link);
    redis_server_end(&server);
    redis_server_restart(&server);
    redis_link_open(&link, &server);
    assert_int_equal(redis_link_say(&link, "GET k")->type, WEIR_RESP_NULL);
    redis_link_close(&link);
    redis_server_stop(&server);
    assert_int_not_equal(access(server.socket, F_OK), 0);
}

static void a_password_and_settings_are_passed_on(void **unused)
{
    static const char *const arguments[] = {"--requirepass", "secret", "--maxmemory", "3mb", NULL};
    struct redis_server server;
    struct redis_link link;

    redis_server_start(&server, arguments);
    redis_link_open(&link, &server);
    assert_int_equal(redis_link_say(&link, "CONFIG GET maxmemory")->count, 2);
    assert_memory_equal(link.nodes[2].text.data, "3145728", 7);
    redis_link_close(&link);
    redis_server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_answers_and_comes_back_empty),
        cmocka_unit_test(a_password_and_settings_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
