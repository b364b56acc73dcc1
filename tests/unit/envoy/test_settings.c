/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a configuration of Envoy's. */
#include "host.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#include "envoy/request.h"
#include "envoy/settings.h"

static struct weir_evy_settings *read(const char *text, bool route)
{
    struct weir_evy_settings *settings;
    struct weir_reason reason;
    if (weir_evy_settings_read(&settings, (struct weir_evy_text){text, strlen(text)}, route,
                               &reason) < 0)
        fail_msg("%s: %s", text, reason.text);
    return settings;
}

static void expect_error(const char *text, bool route, const char *part)
{
    struct weir_evy_settings *settings;
    struct weir_reason reason;
    assert_true(weir_evy_settings_read(&settings, (struct weir_evy_text){text, strlen(text)}, route,
                                       &reason) < 0);
    assert_null(settings);
    if (!strstr(reason.text, part))
        fail_msg("%s: \"%s\" is not in \"%s\"", text, part, reason.text);
}

TEST("all keys of a filter are read")
{
    struct weir_evy_settings *settings =
        read("{\"rules\": \"/r.yaml\", \"state\": \"/s\", \"on_error\": \"closed\", "
             "\"fields\": \"denials\", \"trusted_proxies\": true, \"trusted\": true, "
             "\"dry_run\": false, \"cost\": 7.0, \"attributes\": {\"a\": \"b\", \"c\": "
             "{\"key\": \"k\", \"namespace\": \"n\"}}, \"settle\": {\"namespace\": \"x\", "
             "\"key\": \"y\"}}",
             false);
    assert_string_equal(settings->rules, "/r.yaml");
    assert_string_equal(settings->state, "/s");
    assert_int_equal(settings->on_error, WEIR_EVY_CLOSED);
    assert_int_equal(settings->fields, WEIR_EVY_FIELDS_DENIALS);
    assert_true(settings->trusted_proxies);
    assert_int_equal(settings->trusted, WEIR_EVY_YES);
    assert_int_equal(settings->dry_run, WEIR_EVY_NO);
    assert_int_equal(settings->cost, 7);
    assert_int_equal(settings->attribute_count, 2);
    assert_string_equal(settings->attributes[0].name, "a");
    assert_memory_equal(settings->attributes[0].text.data, "b", 1);
    assert_string_equal(settings->attributes[1].name, "c");
    assert_string_equal(settings->attributes[1].of.space.data, "n");
    assert_string_equal(settings->settle.key.data, "y");
    weir_evy_settings_free(settings);
}

TEST("a word alone is the rules file of a filter, and `off` of a route")
{
    struct weir_evy_settings *filter = read("/etc/weir.yaml", false), *route = read("off", true);
    assert_string_equal(filter->rules, "/etc/weir.yaml");
    assert_int_equal(route->off, WEIR_EVY_YES);
    weir_evy_settings_free(filter);
    weir_evy_settings_free(route);
}

TEST("an error says what is wrong")
{
    expect_error("", false, "names no rules file");
    expect_error("{}", false, "names no rules file");
    expect_error("{\"rules\": \"\"}", false, "rules: is empty");
    expect_error("{\"rules\": 3}", false, "rules: ");
    expect_error("{\"rule\": \"x\"}", false, "unknown key \"rule\"");
    expect_error("{\"rules\": \"x\"", false, "at byte");
    expect_error("{\"rules\": \"x\"} x", false, "at byte");
    expect_error("{\"rules\": \"x\", \"on_error\": \"maybe\"}", false, "on_error: unknown word");
    expect_error("{\"rules\": \"x\", \"cost\": -1}", false, "cost: ");
    expect_error("{\"rules\": \"x\", \"settle\": {\"key\": \"k\"}}", false,
                 "settle: needs `namespace` and `key`");
    expect_error("{\"rules\": \"x\", \"settle\": {\"what\": \"k\"}}", false,
                 "settle: unknown key \"what\"");
    expect_error("{\"rules\": \"x\", \"attributes\": {\"\": \"k\"}}", false, "has no name");
    expect_error("{\"rules\": \"x\"}", true, "rules: belongs to the filter");
    expect_error("on", true, "the word off");
    expect_error("\n\t\n\003off\022\002 \001", true, "StringValue");
}

TEST("more than 64 attributes, or 64 KiB, are refused")
{
    static char text[WEIR_EVY_CONFIG_MAX + 2];
    size_t size = (size_t)sprintf(text, "{\"rules\": \"x\", \"attributes\": {");
    for (unsigned i = 0; i < 65; i++)
        size += (size_t)sprintf(text + size, "%s\"a%u\": \"b\"", i > 0 ? ", " : "", i);
    sprintf(text + size, "}}");
    expect_error(text, false, "more than 64 members");
    memset(text, ' ', sizeof text - 1);
    expect_error(text, false, "larger than 64 KiB");
}

TEST("addresses are those of Envoy's source.address")
{
    static const struct {
        const char *text;
        int family; /* 0: none */
    } cases[] = {
        {"192.0.2.1:443", AF_INET},
        {"[2001:db8::1]:443", AF_INET6},
        {"[::1]:1", AF_INET6},
        {"[fe80::1%eth0]:443", AF_INET6},
        {"[fe80::1%2]:443", AF_INET6},
        {"192.0.2.1%eth0:443", 0},
        {"/run/envoy.sock", 0},
        {"", 0},
        {"192.0.2.1", 0},
        {"192.0.2.256:1", 0},
        {"[::1", 0},
        {":1", 0},
        {"[]:1", 0},
        {"[%eth0]:1", 0},
        {"envoy://internal/x", 0},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sockaddr_storage address;
        struct weir_evy_text text = {cases[i].text, strlen(cases[i].text)};
        assert_int_equal(weir_evy_address(text, &address), cases[i].family != 0);
        if (cases[i].family != 0)
            assert_int_equal(address.ss_family, cases[i].family);
    }
    struct sockaddr_storage address;
    assert_false(weir_evy_address((struct weir_evy_text){NULL, 0}, &address));
}

RUN_TESTS()
