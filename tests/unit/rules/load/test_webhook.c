/* SPDX-License-Identifier: Apache-2.0 */
/* `webhook`: what it becomes, and what is wrong with it. */
#include <unistd.h>

#include "rules_test.h"
#include "temporary.h"
#include "test.h"

/* 24 bytes of zeros, 64 of them, 23, 65. */
#define ZEROS_24 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define ZEROS_64                                                                                   \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
#define ZEROS_23 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define ZEROS_65                                                                                   \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static const char wrong_secret[] =
    "a webhook's secret is base64 of 24 to 64 bytes, as `openssl rand -base64 32` prints it, with "
    "or without `whsec_` before it\n";

TEST("there is none unless the file says so")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_settings(rules)->webhook.url);
    weir_rules_unref(rules);
}

TEST("everything is read")
{
    struct weir_rules *rules =
        test_load("webhook: {url: 'https://u:p@hooks.example.com/weir?x=1', secret: [whsec_"
                  "/+8BAgMEBQYHCAkKCwwNDg8QERITFBUW, " ZEROS_64 "], timeout: 10s, ca: ca.pem}\n"
                  "limits: []\n");
    const struct weir_webhook_settings *webhook = &weir_rules_settings(rules)->webhook;
    assert_string_equal(webhook->url, "https://u:p@hooks.example.com/weir?x=1");
    assert_int_equal(webhook->secret_count, 2);
    assert_int_equal(webhook->secrets[0].size, 24);
    assert_int_equal(webhook->secrets[0].bytes[0], 0xff);
    assert_int_equal(webhook->secrets[0].bytes[23], 0x16);
    assert_int_equal(webhook->secrets[1].size, 64);
    assert_int_equal(webhook->timeout_ns, UINT64_C(10000000000));
    assert_string_equal(webhook->ca_file, "ca.pem");
    weir_rules_unref(rules);
    rules = test_load("webhook: {url: 'http://h', secret: " ZEROS_24 "}\nlimits: []\n");
    webhook = &weir_rules_settings(rules)->webhook;
    assert_int_equal(webhook->timeout_ns, UINT64_C(5000000000));
    assert_null(webhook->ca_file);
    weir_rules_unref(rules);
}

TEST("a secret may be in a file")
{
    char path[TEMPORARY_MAX], text[256];
    int file = temporary_file(path);
    assert_int_equal(write(file, "whsec_" ZEROS_24 "\n", 39), 39);
    close(file);
    snprintf(text, sizeof(text), "webhook: {url: 'http://h', secret_file: %s}\nlimits: []\n", path);
    struct weir_rules *rules = test_load(text);
    assert_int_equal(weir_rules_settings(rules)->webhook.secrets[0].size, 24);
    weir_rules_unref(rules);
    temporary_remove(path);
}

TEST("what is missing or given twice is reported")
{
    test_refused("webhook: {}\nlimits: []\n",
                 "1:10: `webhook` needs `url`, where warnings are sent to\n"
                 "1:10: `webhook` needs `secret` or `secret_file`: receivers verify the signature "
                 "of a message\n");
    test_refused("webhook: {url: 'http://h', secret: " ZEROS_24 ", secret_file: x}\nlimits: []\n",
                 "1:70: `secret` and `secret_file` are the same; give one\n");
    test_refused("webhook: yes\nlimits: []\n", "1:10: webhook must be a mapping, not a text\n");
    test_refused("webhook: {url: 'http://h', secret: []}\nlimits: []\n",
                 "1:36: `secret` must be one secret, or two in a list\n");
}

TEST("a url is of http with a host and never quoted")
{
    static const char *const wrong[] = {
        "ftp://u:p@h", "file:///etc/passwd", "https://",  "https:///x", "http://:80/", "//h/x", "h",
        "http//h",     "http://h/ x",        "HTTPS://h",
    };
    char text[256];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "webhook: {url: '%s', secret: %s}\nlimits: []\n", wrong[i],
                 ZEROS_24);
        test_refused(text, "1:16: the URL of a webhook begins with https:// or http:// and a host, "
                           "and has at most 2048 bytes of plain ASCII\n");
    }
}

TEST("a secret is base64 of its length")
{
    static const char *const wrong[] = {
        "hunter2",
        "whsec_",
        ZEROS_23,
        ZEROS_65,
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA*",
        "AAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAA===",
    };
    char text[256], expected[256];
    snprintf(expected, sizeof(expected), "1:36: %s", wrong_secret);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "webhook: {url: 'http://h', secret: '%s'}\nlimits: []\n",
                 wrong[i]);
        test_refused(text, expected);
    }
}

TEST("a timeout has its range")
{
    test_refused("webhook: {url: 'http://h', secret: " ZEROS_24 ", timeout: 31s}\nlimits: []\n",
                 "1:79: `timeout` must be 100ms to 30s, not `31s`\n");
}

RUN_TESTS()
