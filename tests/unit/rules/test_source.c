/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/source.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/attribute_table.h"
#include "rules/compiled.h"
#include "rules_test.h"

#define RULES                                                                                      \
    "standing: {by: user}\n"                                                                       \
    "limits:\n"                                                                                    \
    "- {name: a, key: [header.x-a, header.cookie, user, org, plan, client.ip, tls.client.cn, "     \
    "tls.ja4],"                                                                                    \
    " rate: 10/s}\n"                                                                               \
    "- {name: b, key: [tenant, host, query.q, standing, header.x-rather-long-name], rate: 10/s}\n"

static struct weir_room no_room = {NULL, 0};

struct asked {
    struct weir_rules *rules;
    struct weir_request request;
    char room[256];
};

static void begin(struct asked *asked, enum weir_fields fields)
{
    weir_request_begin(&asked->request, asked->rules, fields,
                       (struct weir_room){asked->room, sizeof asked->room});
}

static struct asked *asked_open(void)
{
    struct asked *asked = malloc(sizeof *asked);
    assert_non_null(asked);
    asked->rules = test_load(RULES);
    begin(asked, WEIR_FIELDS_NONE);
    return asked;
}

static void asked_close(struct asked *asked)
{
    weir_rules_unref(asked->rules);
    free(asked);
}

static void put(struct asked *asked, const char *name, const char *value, enum weir_trust trust)
{
    struct weir_bytes bytes = {value, value ? strlen(value) : 0};
    weir_request_put_name(&asked->request, weir_bytes_of(name), bytes, trust);
}

static void put_field(struct asked *asked, const char *name, const char *value)
{
    weir_request_put_field(&asked->request, weir_bytes_of(name), weir_bytes_of(value),
                           WEIR_TRUST_CLIENT);
}

/* `expected` NULL: absent. */
static void expect(const struct asked *asked, const char *name, const char *expected)
{
    int attribute = weir_rules_source(asked->rules, name, strlen(name)).attribute;
    assert_in_range(attribute, 0, WEIR_ATTRIBUTES_MAX);
    struct weir_bytes value = asked->request.values[attribute];
    if (!expected) {
        assert_null(value.data);
        return;
    }
    assert_non_null(value.data);
    assert_int_equal(value.size, strlen(expected));
    assert_memory_equal(value.data, expected, value.size);
}

static void expect_end(const struct asked *asked, int err, const char *text)
{
    struct weir_reason reason = {{0}};
    assert_int_equal(weir_request_end(&asked->request, &reason), err);
    assert_string_equal(reason.text, text);
    assert_int_equal(weir_request_end(&asked->request, NULL), err);
}

TEST("a name is read unread made or unknown")
{
    static const struct {
        const char *name;
        enum weir_name_state state;
    } cases[] = {
        {"method", WEIR_NAME_READ},
        {"client.ip", WEIR_NAME_READ},
        {"ip", WEIR_NAME_READ},
        {"header.x-a", WEIR_NAME_READ},
        {"Header.X-A", WEIR_NAME_READ},
        {"header.host", WEIR_NAME_READ},
        {"tenant", WEIR_NAME_READ},
        {"header.x-b", WEIR_NAME_UNREAD},
        {"query.other", WEIR_NAME_UNREAD},
        {"cookie.c", WEIR_NAME_UNREAD},
        {"domain", WEIR_NAME_UNKNOWN},
        {"standing", WEIR_NAME_MADE},
        {"challenge", WEIR_NAME_MADE},
        {"client.score", WEIR_NAME_MADE},
        {"jwt.sub", WEIR_NAME_MADE},
        {"path.id", WEIR_NAME_MADE},
        {"Tenant", WEIR_NAME_UNKNOWN},
        {"paht", WEIR_NAME_UNKNOWN},
        {"", WEIR_NAME_UNKNOWN},
        {"header", WEIR_NAME_UNKNOWN},
        {"connection.requests", WEIR_NAME_UNREAD},
    };
    struct asked *asked = asked_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_attribute_source source =
            weir_rules_source(asked->rules, cases[i].name, strlen(cases[i].name));
        assert_int_equal(source.state, cases[i].state);
        assert_int_equal(source.attribute >= 0, cases[i].state == WEIR_NAME_READ);
    }
    assert_int_equal(weir_rules_field(asked->rules, "X-A", 3).state, WEIR_NAME_READ);
    assert_int_equal(weir_rules_field(asked->rules, "hOsT", 4).attribute, WEIR_ATTR_HOST);
    assert_int_equal(weir_rules_field(asked->rules, "x-b", 3).state, WEIR_NAME_UNREAD);
    assert_int_equal(weir_rules_field(asked->rules, "", 0).state, WEIR_NAME_UNREAD);
    char long_name[400];
    memset(long_name, 'x', sizeof long_name);
    memcpy(long_name, "header.", 7);
    assert_int_equal(weir_rules_source(asked->rules, long_name, sizeof long_name).attribute, -1);
    assert_int_equal(weir_rules_field(asked->rules, long_name, sizeof long_name).attribute, -1);
    asked_close(asked);
}

TEST("a client says nothing of the caller")
{
    static const char *const names[] = {"user", "org", "plan"};
    struct asked *asked = asked_open();
    for (int i = 0; i < 3; i++) {
        begin(asked, WEIR_FIELDS_NONE);
        put(asked, names[i], "mallory", WEIR_TRUST_CLIENT);
        expect(asked, names[i], NULL);
        put(asked, names[i], "ann", WEIR_TRUST_PROXY);
        expect(asked, names[i], "ann");
        put(asked, names[i], "mallory", WEIR_TRUST_CLIENT); /* nor takes it away */
        put(asked, names[i], NULL, WEIR_TRUST_CLIENT);
        expect(asked, names[i], "ann");
        put(asked, names[i], "bob", WEIR_TRUST_CONFIGURATION);
        put(asked, names[i], "eve", WEIR_TRUST_RECORDED);
        expect(asked, names[i], "eve");
    }
    expect_end(asked, 0, "");
    asked_close(asked);
}

TEST("only a connection tells of certificates")
{
    struct asked *asked = asked_open();
    put(asked, "tls.client.cn", "mallory", WEIR_TRUST_CLIENT);
    put(asked, "tls.client.cn", "mallory", WEIR_TRUST_PROXY);
    expect(asked, "tls.client.cn", NULL);
    weir_request_put(&asked->request, weir_source_fixed(WEIR_ATTR_TLS_CN), weir_bytes_of("ann"),
                     WEIR_TRUST_CONNECTION);
    expect(asked, "tls.client.cn", "ann");
    put(asked, "tls.ja4", "t13d_mallory", WEIR_TRUST_CLIENT);
    expect(asked, "tls.ja4", NULL);
    weir_request_put(&asked->request, weir_source_fixed(WEIR_ATTR_TLS_JA4), weir_bytes_of("seen"),
                     WEIR_TRUST_CONNECTION);
    expect(asked, "tls.ja4", "seen");
    put(asked, "tls.ja4", "said", WEIR_TRUST_PROXY);
    expect(asked, "tls.ja4", "said");
    asked_close(asked);
}

TEST("nobody says what the rules make")
{
    struct asked *asked = asked_open();
    for (int trust = WEIR_TRUST_CLIENT; trust <= WEIR_TRUST_CONNECTION; trust++)
        put(asked, "standing", "trusted", (enum weir_trust)trust);
    assert_null(asked->request.values[WEIR_ATTR_STANDING].data);
    expect_end(asked, 0, "");
    asked_close(asked);
}

TEST("lines of one field are one value")
{
    struct asked *asked = asked_open();
    put_field(asked, "X-A", "1");
    put_field(asked, "Cookie", "a=1");
    put_field(asked, "x-a", "");
    put_field(asked, "COOKIE", "b=2");
    put_field(asked, "X-a", "3");
    expect(asked, "header.x-a", "1, , 3");
    expect(asked, "header.cookie", "a=1; b=2");
    expect_end(asked, 0, "");
    asked_close(asked);
}

TEST("what is given by name goes before fields")
{
    struct asked *asked = asked_open();
    put_field(asked, "x-a", "field");
    put(asked, "header.X-A", "name", WEIR_TRUST_CLIENT);
    put_field(asked, "x-a", "field");
    expect(asked, "header.x-a", "name");
    put(asked, "header.x-a", "later", WEIR_TRUST_CLIENT);
    expect(asked, "header.x-a", "later");
    put(asked, "header.x-a", NULL, WEIR_TRUST_CLIENT);
    put_field(asked, "x-a", "field");
    expect(asked, "header.x-a", NULL);
    asked_close(asked);
}

TEST("the host goes before the field of this name")
{
    struct asked *asked = asked_open();
    put_field(asked, "Host", "field");
    expect(asked, "host", "field");
    weir_request_put(&asked->request, weir_source_fixed(WEIR_ATTR_HOST), weir_bytes_of("line"),
                     WEIR_TRUST_CLIENT);
    expect(asked, "host", "line");
    put(asked, "host", "name", WEIR_TRUST_CLIENT);
    put(asked, "header.host", "field", WEIR_TRUST_CLIENT);
    expect(asked, "host", "name");
    asked_close(asked);
}

TEST("a field says that fields are known")
{
    struct asked *asked = asked_open();
    put(asked, "tenant", "t", WEIR_TRUST_CLIENT);
    assert_int_equal(asked->request.fields, WEIR_FIELDS_NONE);
    put(asked, "header.unread", NULL, WEIR_TRUST_CLIENT);
    assert_int_equal(asked->request.fields, WEIR_FIELDS_ALL);
    begin(asked, WEIR_FIELDS_LOG);
    put_field(asked, "x-a", "1");
    assert_int_equal(asked->request.fields, WEIR_FIELDS_LOG);
    asked_close(asked);
}

TEST("an address is parsed and the connection s goes first")
{
    struct asked *asked = asked_open();
    const struct weir_address peer = {.family = 4, .bytes = {10, 0, 0, 1}};
    put(asked, "ip", "192.0.2.1", WEIR_TRUST_CLIENT);
    assert_int_equal(asked->request.client.family, 4);
    assert_int_equal(asked->request.client.bytes[0], 192);
    put(asked, "client.ip", "2001:db8::1", WEIR_TRUST_CLIENT);
    assert_int_equal(asked->request.client.family, 6);
    weir_request_put_client(&asked->request, &peer);
    assert_int_equal(asked->request.client.family, 4);
    expect_end(asked, 0, "");
    put(asked, "ip", "nowhere", WEIR_TRUST_CLIENT);
    put(asked, "client.ip", "nowhere either", WEIR_TRUST_CLIENT);
    expect_end(asked, WEIR_ERR_SYNTAX, "ip: not an IP address"); /* the first counts */
    begin(asked, WEIR_FIELDS_NONE);
    weir_request_put(&asked->request, weir_source_fixed(WEIR_ATTR_CLIENT_IP),
                     weir_bytes_of("10.0.0.1:80"), WEIR_TRUST_CLIENT);
    expect_end(asked, WEIR_ERR_SYNTAX, "ip: not an IP address");
    assert_int_equal(asked->request.client.family, 0);
    asked_close(asked);
}

TEST("of two attributes the last counts or they are an error")
{
    struct asked *asked = asked_open();
    put(asked, "tenant", "a", WEIR_TRUST_CLIENT);
    put(asked, "tenant", "b", WEIR_TRUST_CLIENT);
    expect(asked, "tenant", "b");
    expect_end(asked, 0, "");
    begin(asked, WEIR_FIELDS_NONE);
    weir_request_once(&asked->request);
    put(asked, "ip", "192.0.2.1", WEIR_TRUST_CLIENT);
    put(asked, "client.ip", "192.0.2.2", WEIR_TRUST_CLIENT);
    expect_end(asked, WEIR_ERR_SYNTAX, "client.ip is given twice");
    asked_close(asked);
}

TEST("fields without room are too large")
{
    struct asked *asked = asked_open();
    char value[128];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    put_field(asked, "x-a", value);
    put_field(asked, "x-a", "b");
    expect_end(asked, 0, "");
    put_field(asked, "x-a", value);
    expect_end(asked, WEIR_ERR_TOO_LARGE,
               "header.x-a: repeated header fields are too large together");
    weir_request_begin(&asked->request, asked->rules, WEIR_FIELDS_ALL, no_room);
    put_field(asked, "x-a", "1");
    expect_end(asked, 0, "");
    put_field(asked, "x-a", "");
    expect_end(asked, WEIR_ERR_TOO_LARGE,
               "header.x-a: repeated header fields are too large together");
    asked_close(asked);
}

TEST("a credential that was joined of several lines is several lines")
{
    static const char rules[] =
        "limits:\n- {name: a, key: [header.authorization, header.x-a], rate: 10/s}\n";
    static const struct {
        const char *how, *value, *expected; /* expected NULL: it is unreadable */
    } cases[] = {
        {"deny", "Bearer K,Bearer x", NULL},
        {"deny", "Bearer K,Bearer K", "Bearer K"},
        {"deny", "Digest a=b, c=\"d,e\"", "Digest a=b, c=\"d,e\""},
        {"first", "Bearer K,Bearer x", "Bearer K"},
        {"last", "Bearer K,Bearer x", "Bearer x"},
        {"deny", ",", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct asked *asked = malloc(sizeof *asked);
        assert_non_null(asked);
        snprintf(text, sizeof text, "repeated_credentials: %s\n%s", cases[i].how, rules);
        asked->rules = test_load(text);
        begin(asked, WEIR_FIELDS_NONE);
        put_field(asked, "authorization", cases[i].value);
        put_field(asked, "x-a", "1, 2"); /* no credential */
        expect(asked, "header.x-a", "1, 2");
        if (cases[i].expected)
            expect(asked, "header.authorization", cases[i].expected);
        expect_end(asked, cases[i].expected ? 0 : WEIR_ERR_SYNTAX,
                   cases[i].expected
                       ? ""
                       : "header.authorization: given more than once, with different values");
        asked_close(asked);
    }
}

TEST("trust is of each value")
{
    struct asked *asked = asked_open();
    uint16_t a = (uint16_t)weir_rules_source(asked->rules, "header.x-a", 10).attribute;
    uint16_t tenant = (uint16_t)weir_rules_source(asked->rules, "tenant", 6).attribute;
    put_field(asked, "x-a", "1");
    put(asked, "tenant", "t", WEIR_TRUST_PROXY);
    assert_false(weir_request_trusts(&asked->request, a));
    assert_true(weir_request_trusts(&asked->request, tenant));
    put(asked, "tenant", "t", WEIR_TRUST_CLIENT);
    put(asked, "header.x-a", "2", WEIR_TRUST_CONFIGURATION);
    assert_true(weir_request_trusts(&asked->request, a));
    assert_false(weir_request_trusts(&asked->request, tenant));
    asked_close(asked);
}

struct model {
    char text[256];
    size_t used, lines;
};

static void model_add(struct model *model, const char *value, const char *between)
{
    int size = snprintf(model->text + model->used, sizeof model->text - model->used, "%s%s",
                        model->lines++ > 0 ? between : "", value);
    assert_in_range(size, 0, sizeof model->text - model->used - 1);
    model->used += (size_t)size;
}

/* Lines of two fields in random order, by names of any case, against a model that joins texts. */
TEST("random lines are joined as a model does")
{
    static const char *const names[] = {"x-a", "X-A", "cookie", "Cookie"};
    static const char *const values[] = {"", "a", "b, c", "d=1"};
    struct asked *asked = asked_open();
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        struct model fields = {{0}, 0, 0}, cookies = {{0}, 0, 0};
        begin(asked, WEIR_FIELDS_ALL);
        for (int line = 0; line < 12; line++) {
            random = random * 1664525 + 1013904223;
            uint32_t name = random >> 16 & 3, value = random >> 24 & 3;
            put_field(asked, names[name], values[value]);
            if (name < 2)
                model_add(&fields, values[value], ", ");
            else
                model_add(&cookies, values[value], "; ");
        }
        expect_end(asked, 0, "");
        expect(asked, "header.x-a", fields.lines > 0 ? fields.text : NULL);
        expect(asked, "header.cookie", cookies.lines > 0 ? cookies.text : NULL);
    }
    asked_close(asked);
}

TEST("every row is found by its name")
{
    uint32_t count;
    const struct rules_attribute_row *rows = rules_attribute_rows(&count);
    for (uint32_t i = 0; i < count; i++) {
        assert_ptr_equal(rules_attribute_row_of(rows[i].name, strlen(rows[i].name)), &rows[i]);
        assert_true(i >= WEIR_ATTR_FIRST_NAMED ? rows[i].number == -1 : rows[i].number == (int)i);
        assert_true(rows[i].same_as || rows[i].from);
        /* What no request can say, the rules make; from a path, a capture does. */
        assert_true(rows[i].may_set != 0 || rows[i].same_as || rows[i].value ||
                    strcmp(rows[i].name, "path.") == 0);
    }
}

RUN_TESTS()
