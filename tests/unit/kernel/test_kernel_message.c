/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the server and weir-kernel: what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "feature/kernel/message.h"
#include "test.h"

static struct weir_kernel_message message;

static bool valid(bool of_server)
{
    return weir_kernel_message_valid(&message, weir_kernel_message_size(&message), of_server);
}

static void make_open(const char *table, uint8_t hook, const char *interface)
{
    memset(&message, 0, sizeof message);
    weir_kernel_message_begin(&message, WEIR_KERNEL_OPEN);
    message.head.count = 1;
    memcpy(message.open.table, table, strlen(table));
    message.open.hook = hook;
    if (interface) {
        message.open.interfaces_count = 1;
        memcpy(message.open.interfaces[0], interface, strlen(interface));
    }
}

static void make_element(uint8_t family, uint8_t bits, const char *bytes, size_t size)
{
    memset(&message, 0, sizeof message);
    weir_kernel_message_begin(&message, WEIR_KERNEL_APPLY);
    message.head.count = 1;
    message.elements[0].family = family;
    message.elements[0].bits = bits;
    memcpy(message.elements[0].address, bytes, size);
}

TEST("a table needs a name that nft can print")
{
    static const char *const bad[] = {"", "1weir", "we ir", "weir;", "weir\"", "w-eir"};

    make_open("weir", WEIR_KERNEL_INET, NULL);
    assert_true(valid(true));
    assert_false(valid(false));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_open(bad[i], WEIR_KERNEL_INET, NULL);
        assert_false(valid(true));
    }
    make_open("weir", WEIR_KERNEL_INET, NULL);
    memset(message.open.table, 'a', sizeof message.open.table); /* no NUL */
    assert_false(valid(true));
    make_open("weir", WEIR_KERNEL_INET, NULL);
    message.open.table[6] = 'x'; /* behind the NUL */
    assert_false(valid(true));
}

TEST("a netdev hook needs an interface")
{
    make_open("weir", WEIR_KERNEL_NETDEV, NULL);
    assert_false(valid(true));
    make_open("weir", WEIR_KERNEL_NETDEV, "eth0.5");
    assert_true(valid(true));
    make_open("weir", WEIR_KERNEL_NETDEV, "eth 0");
    assert_false(valid(true));
    make_open("weir", 2, "eth0");
    assert_false(valid(true));
    make_open("weir", WEIR_KERNEL_NETDEV, "eth0");
    message.open.interfaces_count = WEIR_KERNEL_INTERFACES_MAX + 1;
    assert_false(valid(true));
}

TEST("a network has no bits behind its prefix")
{
    make_element(4, 24, "\xc0\x00\x02\x00", 4);
    assert_true(valid(true));
    make_element(4, 24, "\xc0\x00\x02\x01", 4);
    assert_false(valid(true));
    make_element(4, 32, "\xc0\x00\x02\x01\x01", 5); /* more than an IPv4 address */
    assert_false(valid(true));
    make_element(4, 33, "\xc0\x00\x02\x01", 4);
    assert_false(valid(true));
    make_element(6, 128, "\x20\x01\x0d\xb8", 4);
    assert_true(valid(true));
    make_element(6, 129, "\x20\x01\x0d\xb8", 4);
    assert_false(valid(true));
    make_element(5, 8, "\x0a", 1);
    assert_false(valid(true));
}

TEST("a ban of a large part of the internet is refused but may be allowed")
{
    make_element(4, WEIR_KERNEL_BITS4_MIN, "\x0a", 1);
    assert_true(valid(true));
    make_element(4, WEIR_KERNEL_BITS4_MIN - 1, "\x0a", 1);
    assert_false(valid(true));
    message.elements[0].set = WEIR_KERNEL_ALLOW;
    assert_true(valid(true));
    make_element(6, WEIR_KERNEL_BITS6_MIN - 1, "\x20", 1);
    assert_false(valid(true));
    make_element(6, WEIR_KERNEL_BITS6_MIN, "\x20\x01", 2);
    assert_true(valid(true));
}

TEST("what is protected is a network to allow without an end")
{
    make_element(4, 24, "\xc0\x00\x02\x00", 4);
    message.head.type = WEIR_KERNEL_PROTECT;
    assert_false(valid(true)); /* a ban */
    message.elements[0].set = WEIR_KERNEL_ALLOW;
    assert_true(valid(true));
    assert_false(valid(false));
    message.head.flags = WEIR_KERNEL_REPLACE;
    assert_true(valid(true));
    message.head.flags = WEIR_KERNEL_MORE;
    assert_false(valid(true));
    message.head.flags = 0;
    message.elements[0].timeout_ms = 1;
    assert_false(valid(true));
    message.elements[0].timeout_ms = 0;
    message.elements[0].removed = 1;
    assert_false(valid(true));
}

TEST("the mark of a set is no element")
{
    make_element(4, 24, "\xff\xff\xff\x00", 4);
    assert_false(valid(true));
    message.elements[0].removed = 1;
    assert_false(valid(true));
    make_element(4, 24, "\xff\xff\xfe\x00", 4);
    assert_true(valid(true));
    make_element(6, 16, "\xff\xff", 2);
    message.elements[0].set = WEIR_KERNEL_ALLOW;
    assert_false(valid(true));
}

TEST("each field has its range")
{
    make_element(4, 8, "\x0a", 1);
    message.elements[0].timeout_ms = WEIR_KERNEL_TIMEOUT_MAX_MS;
    assert_true(valid(true));
    message.elements[0].timeout_ms++;
    assert_false(valid(true));
    make_element(4, 8, "\x0a", 1);
    message.elements[0].removed = 2;
    assert_false(valid(true));
    make_element(4, 8, "\x0a", 1);
    message.elements[0].set = 2;
    assert_false(valid(true));
    make_element(4, 8, "\x0a", 1);
    message.head.flags = WEIR_KERNEL_MORE; /* without REPLACE */
    assert_false(valid(true));
    message.head.flags = WEIR_KERNEL_REPLACE | WEIR_KERNEL_MORE;
    assert_true(valid(true));
    message.head.flags = 4;
    assert_false(valid(true));
}

TEST("a size that is not that of its items is refused")
{
    size_t size;

    make_element(4, 8, "\x0a", 1);
    size = weir_kernel_message_size(&message);
    assert_false(weir_kernel_message_valid(&message, size - 1, true));
    assert_false(weir_kernel_message_valid(&message, size + 1, true));
    assert_false(weir_kernel_message_valid(&message, sizeof message.head - 1, true));
    message.head.count = WEIR_KERNEL_BATCH_MAX + 1;
    assert_false(valid(true));
    make_element(4, 8, "\x0a", 1);
    message.head.magic++;
    assert_false(valid(true));
}

TEST("the helper says only what is its to say")
{
    memset(&message, 0, sizeof message);
    weir_kernel_message_begin(&message, WEIR_KERNEL_DONE);
    message.head.count = 1;
    assert_true(valid(false));
    assert_false(valid(true));
    message.done.result = -1;
    assert_false(valid(false));
    message.done.result = 1;
    memset(message.done.text, 'x', sizeof message.done.text);
    assert_false(valid(false));
    weir_kernel_message_begin(&message, WEIR_KERNEL_LOST);
    assert_false(valid(false)); /* it says why */
    message.head.count = 1;
    message.loss = (struct weir_kernel_loss){.cause = WEIR_KERNEL_LOST_ADDRESS};
    assert_true(valid(false));
    assert_false(valid(true));
    message.loss.error = 5;
    assert_false(valid(false));
    message.loss.cause = WEIR_KERNEL_LOST_UNREAD;
    assert_true(valid(false));
    message.loss.cause++;
    assert_false(valid(false));
    weir_kernel_message_begin(&message, WEIR_KERNEL_COUNTS);
    message.head.count = 1;
    message.counters[0] = (struct weir_kernel_counter){.family = 4, .bits = 33};
    assert_false(valid(false));
    message.counters[0].bits = 32;
    assert_true(valid(false));
    message.head.type = 99;
    message.head.count = 0;
    assert_false(valid(false));
    assert_false(valid(true));
}

RUN_TESTS()
