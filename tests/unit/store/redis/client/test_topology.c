/* SPDX-License-Identifier: Apache-2.0 */
/* Where the masters are, read from replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/client/topology.h"
#include "test.h"

#define NODES 65536

static struct weir_resp_node nodes[NODES];
static uint32_t count;
static struct redis_topology topology;
static struct weir_reason reason;
static const struct redis_host asked = {.name = "10.0.0.9", .port = 7009};

static void reply(const char *text)
{
    struct weir_resp_reader reader = {0};
    assert_int_equal(weir_resp_reply_parse(&reader, text, strlen(text), nodes, NODES, &count),
                     strlen(text));
    assert_true(count <= NODES);
}

static int read_slots(const char *text)
{
    reply(text);
    return redis_topology_read(&topology, &asked, nodes, count, &reason);
}

static const char *owner(uint16_t slot)
{
    static char text[300];
    uint16_t master = topology.owners[slot];
    if (master == REDIS_NO_MASTER)
        return "nobody";
    snprintf(text, sizeof text, "%s:%u", topology.masters[master].name,
             topology.masters[master].port);
    return text;
}

TEST("slots as redis 7 tells them")
{
    assert_int_equal(read_slots("*3\r\n"
                                "*4\r\n:0\r\n:5460\r\n"
                                "*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n"
                                "*4\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n*0\r\n"
                                "*3\r\n:5461\r\n:5461\r\n"
                                "*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n*2\r\n"
                                "$8\r\nhostname\r\n$1\r\nh\r\n"
                                "*3\r\n:10923\r\n:16383\r\n"
                                "*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n"),
                     0);
    assert_int_equal(topology.count, 2);
    assert_string_equal(owner(0), "127.0.0.1:7000");
    assert_string_equal(owner(5460), "127.0.0.1:7000");
    assert_string_equal(owner(5461), "127.0.0.1:7001");
    assert_string_equal(owner(5462), "nobody");
    assert_string_equal(owner(16383), "127.0.0.1:7000");
}

TEST("slots as redis 6 tells them")
{
    assert_int_equal(
        read_slots("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$3\r\n::1\r\n:7000\r\n$2\r\nid\r\n"), 0);
    assert_string_equal(owner(7), "::1:7000");
}

TEST("an unknown host is the one that was asked")
{
    static const char *const hosts[] = {"$0\r\n\r\n", "$-1\r\n", "$1\r\n?\r\n"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char text[128];
        snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n%s:7000\r\n", hosts[i]);
        assert_int_equal(read_slots(text), 0);
        assert_string_equal(owner(1), "10.0.0.9:7000");
    }
}

TEST("what is no map is reported")
{
    static const struct {
        const char *text;
        int error;
        const char *reason;
    } cases[] = {
        {"-ERR This instance has cluster support disabled\r\n", WEIR_ERR_STORE, "disabled"},
        {"-NOPERM no\x01\r\n", WEIR_ERR_STORE, "NOPERM no."},
        {"*0\r\n", WEIR_ERR_SYNTAX, "names no master"},
        {"+OK\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*-1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*2\r\n:0\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:1\r\n:0\r\n*2\r\n$1\r\nh\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:0\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:65536\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$3\r\na b\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n*0\r\n*0\r\n*0\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n*1\r\n*1\r\n*1\r\n:1\r\n:1\r\n:1\r\n", WEIR_ERR_SYNTAX, "not an answer"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n*0\r\n*0\r\n", WEIR_ERR_SYNTAX, "not an answer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int error = read_slots(cases[i].text);
        if (error != cases[i].error || strstr(reason.text, cases[i].reason) == NULL)
            fail_msg("%s: %d, %s", cases[i].text, error, reason.text);
    }
}

/* One slot a master. */
static int read_many(uint32_t masters)
{
    static char text[(REDIS_MASTERS_MAX + 2) * 64];
    char *at = text;
    at += sprintf(at, "*%u\r\n", masters);
    for (uint32_t i = 0; i < masters; i++)
        at += sprintf(at, "*3\r\n:%u\r\n:%u\r\n*2\r\n$1\r\nh\r\n:%u\r\n", i, i, i + 1);
    return read_slots(text);
}

TEST("masters have a bound")
{
    assert_int_equal(read_many(REDIS_MASTERS_MAX), 0);
    assert_int_equal(topology.count, REDIS_MASTERS_MAX);
    assert_string_equal(owner(1023), "h:1024");
    assert_int_equal(read_many(REDIS_MASTERS_MAX + 1), WEIR_ERR_TOO_LARGE);
}

TEST("sentinels answers")
{
    struct redis_host master;
    reply("*2\r\n$8\r\n10.1.2.3\r\n$4\r\n6380\r\n");
    assert_int_equal(redis_master_read(&master, &asked, nodes, count, &reason), 0);
    assert_string_equal(master.name, "10.1.2.3");
    assert_int_equal(master.port, 6380);
    reply("*-1\r\n");
    assert_int_equal(redis_master_read(&master, &asked, nodes, count, &reason), WEIR_ERR_NOT_FOUND);
    reply("-ERR unknown command 'SENTINEL'\r\n");
    assert_int_equal(redis_master_read(&master, &asked, nodes, count, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "unknown command"));
    static const char *const wrong[] = {"+OK\r\n",
                                        "*1\r\n$1\r\nh\r\n",
                                        "*0\r\n",
                                        "*2\r\n$1\r\nh\r\n$1\r\nx\r\n",
                                        "*2\r\n*0\r\n*0\r\n",
                                        "*2\r\n*1\r\n:1\r\n:1\r\n",
                                        "*2\r\n$1\r\nh\r\n$20\r\n99999999999999999999\r\n",
                                        "*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n1\r\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reply(wrong[i]);
        assert_int_equal(redis_master_read(&master, &asked, nodes, count, &reason),
                         WEIR_ERR_SYNTAX);
    }
}

TEST("epochs")
{
    reply(
        "*6\r\n$4\r\nname\r\n$1\r\ng\r\n$12\r\nconfig-epoch\r\n$2\r\n17\r\n$1\r\na\r\n$1\r\nb\r\n");
    assert_int_equal(redis_epoch_read(nodes, count), 17);
    static const char *const none[] = {"-ERR No such master\r\n",
                                       "*0\r\n",
                                       "*-1\r\n",
                                       "+OK\r\n",
                                       "*1\r\n$12\r\nconfig-epoch\r\n",
                                       "*2\r\n$12\r\nconfig-epoch\r\n$1\r\nx\r\n",
                                       "*2\r\n*1\r\n$12\r\nconfig-epoch\r\n$1\r\n5\r\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        reply(none[i]);
        assert_int_equal(redis_epoch_read(nodes, count), 0);
    }
}

TEST("roles")
{
    reply("*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), 0);
    reply("*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:1\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "its role is slave"));
    reply("*2\r\n$8\r\nsentinel\r\n*0\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), WEIR_ERR_STORE);
    reply("-NOPERM this user has no permissions\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), WEIR_ERR_STORE);
    reply("*0\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), WEIR_ERR_SYNTAX);
    reply("*1\r\n*0\r\n");
    assert_int_equal(redis_role_read(nodes, count, &reason), WEIR_ERR_SYNTAX);
}

RUN_TESTS()
