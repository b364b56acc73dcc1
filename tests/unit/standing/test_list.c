/* SPDX-License-Identifier: Apache-2.0 */
/* List files: what is a value, and what is an error in which line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/standing/list.h"
#include "standing_test.h"
#include "test.h"

static const struct weir_standing_kind users = {.name = {"user", 4}};
static const struct weir_standing_kind addresses = {
    .name = {"client.ip", 9}, .address = true, .bits4 = 32, .bits6 = 64};

/* Each value as "LINE:VALUE " or "LINE:NETWORK ". */
struct text {
    char data[4096];
    size_t used;
};

static int take_value(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    struct text *text = context;

    text->used +=
        (size_t)snprintf(text->data + text->used, sizeof text->data - text->used, "%u:%.*s ",
                         (unsigned)item->line, (int)item->value.size, item->value.data);
    return 0;
}

static int take_network(void *context, const struct weir_list_item *item,
                        struct weir_reason *reason)
{
    char address[WEIR_ADDRESS_TEXT_MAX];
    struct text *text = context;

    weir_address_format(&item->network.address, address);
    text->used += (size_t)snprintf(text->data + text->used, sizeof text->data - text->used,
                                   "%u:%s/%u ", (unsigned)item->line, address, item->network.bits);
    return 0;
}

static void expect_values(const char *list, const char *values)
{
    struct text text = {.used = 0};

    assert_int_equal(weir_list_parse(&users, "x", weir_bytes_of(list), take_value, &text, NULL), 0);
    assert_string_equal(text.data, values);
}

static const struct weir_standing_kind credentials = {
    .name = {"header.authorization", 20}, .secret = true, .credential = true};

TEST("credentials have one form")
{
    struct text text = {.used = 0};
    const char list[] = "bearer   K\nK # the token\nACME x\n Basic dTpw \n";

    assert_int_equal(
        weir_list_parse(&credentials, "x", weir_bytes_of(list), take_value, &text, NULL), 0);
    assert_string_equal(text.data, "1:Bearer K 2:K 3:acme x 4:Basic dTpw ");
}

static void expect_networks(const char *list, const char *networks)
{
    struct text text = {.used = 0};

    assert_int_equal(
        weir_list_parse(&addresses, "x", weir_bytes_of(list), take_network, &text, NULL), 0);
    assert_string_equal(text.data, networks);
}

static void expect_error(const char *list, const char *where, const char *what)
{
    struct weir_reason reason = {""};
    struct text text = {.used = 0};

    assert_int_equal(
        weir_list_parse(&addresses, "bad.txt", weir_bytes_of(list), take_network, &text, &reason),
        WEIR_ERR_SYNTAX);
    assert_memory_equal(reason.text, where, strlen(where));
    assert_non_null(strstr(reason.text, what));
}

TEST("test values stand one a line without comments and space")
{
    expect_values("", "");
    expect_values("\n\n# nothing\n  \t\n", "");
    expect_values("ada\nbob", "1:ada 2:bob ");
    expect_values("\xef\xbb\xbf"
                  "ada\r\n\r\n  bob smith \t# why\n#x\ncarol#1\n",
                  "1:ada 3:bob smith 5:carol#1 ");
}

TEST("test plain addresses are widened to what the kind keeps")
{
    expect_networks("192.0.2.1\n10.0.0.0/8\n2001:db8::1\n2001:db8::1/128\n0.0.0.0/0 # all\n",
                    "1:192.0.2.1/32 2:10.0.0.0/8 3:2001:db8::/64 4:2001:db8::1/128 5:0.0.0.0/0 ");
}

TEST("test errors name file and line")
{
    expect_error("10.0.0.0/8\n\nnonsense\n", "bad.txt:3: ", "not a network");
    expect_error("10.0.0.1/8", "bad.txt:1: ", "bits set behind");
    expect_error("10.0.0.0/33", "bad.txt:1: ", "too long");
    expect_error("#\n10.0\x01.0.0", "bad.txt:2: ", "control");
}

TEST("test a value may have 1024 bytes")
{
    char list[WEIR_LIST_VALUE_MAX + 2];
    struct weir_reason reason = {""};
    struct text text = {.used = 0};

    memset(list, 'x', sizeof list);
    assert_int_equal(weir_list_parse(&users, "x", (struct weir_bytes){list, WEIR_LIST_VALUE_MAX},
                                     take_value, &text, &reason),
                     0);
    assert_int_equal(weir_list_parse(&users, "x",
                                     (struct weir_bytes){list, WEIR_LIST_VALUE_MAX + 1}, take_value,
                                     &text, &reason),
                     WEIR_ERR_SYNTAX);
}

static int refuse(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    return item->line == 2 ? WEIR_ERR_FULL : 0;
}

TEST("test an error of the taker ends it")
{
    assert_int_equal(weir_list_parse(&users, "x", weir_bytes_of("a\nb\nc\n"), refuse, NULL, NULL),
                     WEIR_ERR_FULL);
}

RUN_TESTS()
