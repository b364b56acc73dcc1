/* SPDX-License-Identifier: Apache-2.0 */
/* The client over TLS, with a real server: whom it trusts, and that all goes through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_server.h"
#include "tls_certificates.h"

#define PATH_MAX_TEST 256

static struct redis_server server;
static struct client_rig rig;
static char *folder;
static char tls_port[8], cert[PATH_MAX_TEST], key[PATH_MAX_TEST], ca[PATH_MAX_TEST],
    other_ca[PATH_MAX_TEST];

static int start(void **state)
{
    static const char *arguments[12];
    const struct certificate_options authority = {.common_name = "authority", .authority = true};
    const struct certificate_options stranger = {.common_name = "stranger", .authority = true};
    const struct certificate_options leaf = {
        .common_name = "redis", .names = "DNS:redis.example,IP:127.0.0.1", .signer = "ca"};

    folder = certificate_folder_make();
    certificate_make(folder, "ca", &authority);
    certificate_make(folder, "other", &stranger);
    certificate_make(folder, "redis", &leaf);
    snprintf(cert, sizeof cert, "%s/redis.pem", folder);
    snprintf(key, sizeof key, "%s/redis.key", folder);
    snprintf(ca, sizeof ca, "%s/ca.pem", folder);
    snprintf(other_ca, sizeof other_ca, "%s/other.pem", folder);
    redis_server_prepare(&server);
    /* The bus port is known to be free, and is of no use to a single server. */
    snprintf(tls_port, sizeof tls_port, "%u", server.port + 10000);
    const char *const words[] = {"--tls-port",
                                 tls_port,
                                 "--tls-cert-file",
                                 cert,
                                 "--tls-key-file",
                                 key,
                                 "--tls-auth-clients",
                                 "no",
                                 NULL};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        arguments[i] = words[i];
    redis_server_run(&server, arguments);
    return 0;
}

static int stop(void **state)
{
    redis_server_stop(&server);
    certificate_folder_remove(folder);
    return 0;
}

static void open_client(const char *ca_file, const char *server_name, bool insecure)
{
    char url[64];
    snprintf(url, sizeof url, "rediss://127.0.0.1:%s", tls_port);
    struct redis_client_options options = client_rig_options(&rig, url);
    rig.url.ca_file = ca_file;
    rig.url.server_name = server_name;
    rig.url.insecure = insecure;
    client_rig_open(&rig, &options);
}

static void expect_calls(void)
{
    enum { COUNT = 3000 };
    struct rig_call *calls = calloc(COUNT, sizeof *calls);
    for (int i = 0; i < COUNT; i++) {
        rig_call_say(&calls[i], &rig, "ECHO hello");
        assert_int_equal(redis_client_send(rig.client, &calls[i].call), 0);
    }
    redis_client_flush(rig.client);
    RIG_UNTIL(&rig, rig.finished == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_string_equal(calls[i].text, "hello");
    }
    free(calls);
}

static void commands_and_replies_of_megabytes_pass(void **state)
{
    enum { COUNT = 40, SIZE = 512 * 1024 };
    struct rig_call *calls = calloc(COUNT, sizeof *calls);
    static char bytes[SIZE + 64];
    int head = sprintf(bytes, "*2\r\n$4\r\nECHO\r\n$%d\r\n", SIZE);

    memset(bytes + head, 'x', SIZE);
    memcpy(bytes + head + SIZE, "\r\n", 2);
    open_client(ca, NULL, false);
    for (int i = 0; i < COUNT; i++) {
        rig_call_say(&calls[i], &rig, "PING");
        calls[i].call.bytes = bytes;
        calls[i].call.size = (size_t)head + SIZE + 2;
        assert_int_equal(rig_call_send(&calls[i]), 0);
    }
    RIG_UNTIL(&rig, rig.finished == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].type, WEIR_RESP_BULK);
        assert_memory_equal(calls[i].text, bytes + head, sizeof calls[i].text - 1);
    }
    free(calls);
}

static void an_address_in_the_certificate_is_trusted(void **state)
{
    open_client(ca, NULL, false);
    expect_calls();
}

static void a_name_in_the_certificate_is_trusted(void **state)
{
    open_client(ca, "redis.example", false);
    expect_calls();
}

static void another_name_is_not(void **state)
{
    open_client(ca, "other.example", false);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "127.0.0.1"));
    assert_false(redis_client_ready(rig.client, 0));
}

static void another_authority_is_not(void **state)
{
    open_client(other_ca, NULL, false);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "127.0.0.1"));
    assert_false(redis_client_ready(rig.client, 0));
}

static void nothing_is_checked_where_that_is_said(void **state)
{
    open_client(other_ca, "other.example", true);
    expect_calls();
}

static void a_server_without_tls_is_reported(void **state)
{
    char url[64];
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u", server.port);
    struct redis_client_options options = client_rig_options(&rig, url);
    options.connect_ms = 300;
    client_rig_open(&rig, &options);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, ""));
    assert_false(redis_client_ready(rig.client, 0));
}

static void a_missing_file_is_named(void **state)
{
    struct weir_reason reason;
    struct redis_client_options options = client_rig_options(&rig, "rediss://127.0.0.1:1");
    rig.url.ca_file = "no/such/file.pem";
    assert_int_equal(redis_client_open(&rig.client, &options, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "no/such/file.pem"));
}

int main(void)
{
#define CASE(name) RIG_TEST(name, &rig)
    const struct CMUnitTest tests[] = {
        CASE(an_address_in_the_certificate_is_trusted),
        CASE(a_name_in_the_certificate_is_trusted),
        CASE(another_name_is_not),
        CASE(another_authority_is_not),
        CASE(commands_and_replies_of_megabytes_pass),
        CASE(nothing_is_checked_where_that_is_said),
        CASE(a_server_without_tls_is_reported),
        CASE(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
