/* SPDX-License-Identifier: Apache-2.0 */
/* What weir-kernel never bans: loopback, own addresses, named networks; and how it reads its
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "draw.h"
#include "feature/kernel/helper/addresses.h"
#include "feature/kernel/helper/protected.h"
#include "test.h"

static struct kernel_protected set;
static struct weir_kernel_message message;

static int open_set(void **state)
{
    set = (struct kernel_protected){.known = false};
    return 0;
}

static int close_set(void **state)
{
    kernel_protected_free(&set);
    return 0;
}

static uint8_t parse(const char *text, uint8_t bytes[16])
{
    memset(bytes, 0, 16);
    uint8_t family = strchr(text, ':') ? 6 : 4;
    assert_int_equal(inet_pton(family == 6 ? AF_INET6 : AF_INET, text, bytes), 1);
    return family;
}

static bool overlaps(const char *text, uint8_t bits)
{
    uint8_t bytes[16];
    uint8_t family = parse(text, bytes);
    return kernel_protected_overlaps(&set, family, bits, bytes);
}

/* Own addresses, ended by NULL. Returns what kernel_protected_own does. */
static int own(const char *const *texts)
{
    struct kernel_ranges ranges = {.list = NULL};
    for (; *texts; texts++) {
        uint8_t bytes[16];
        uint8_t family = parse(*texts, bytes);
        assert_int_equal(kernel_ranges_add(&ranges, family, family == 4 ? 32 : 128, bytes), 0);
    }
    return kernel_protected_own(&set, &ranges);
}

static void name(const char *text, uint8_t bits, uint32_t flags)
{
    weir_kernel_message_begin(&message, WEIR_KERNEL_PROTECT);
    message.head.count = 1;
    message.head.flags = flags;
    memset(message.elements, 0, sizeof *message.elements);
    message.elements[0].family = parse(text, message.elements[0].address);
    message.elements[0].bits = bits;
    message.elements[0].set = WEIR_KERNEL_ALLOW;
    assert_true(weir_kernel_message_valid(&message, weir_kernel_message_size(&message), true));
    assert_int_equal(kernel_protected_name(&set, &message), 0);
}

TEST_WITH(open_set, close_set, "all is protected until the addresses are known")
{
    static const char *const none[] = {NULL};
    assert_true(overlaps("192.0.2.1", 32));
    name("198.51.100.0", 24, WEIR_KERNEL_REPLACE);
    assert_true(overlaps("192.0.2.1", 32));
    assert_int_equal(own(none), 0);
    assert_false(overlaps("192.0.2.1", 32));
    assert_true(overlaps("198.51.100.7", 32));
}

TEST_WITH(open_set, close_set, "loopback and own addresses are in no ban")
{
    static const char *const addresses[] = {"192.0.2.5", "2001:db8::5", NULL};
    assert_int_equal(own(addresses), 1);
    static const struct {
        const char *text;
        uint8_t bits;
        bool is;
    } cases[] = {
        {"127.0.0.1", 32, true},    {"127.255.255.255", 32, true},
        {"126.0.0.0", 8, false},    {"128.0.0.0", 8, false},
        {"::1", 128, true},         {"::2", 128, false},
        {"::", 16, true},           {"192.0.2.5", 32, true},
        {"192.0.2.4", 32, false},   {"192.0.2.6", 32, false},
        {"192.0.2.4", 31, true},    {"192.0.0.0", 8, true},
        {"2001:db8::5", 128, true}, {"2001:db8::4", 128, false},
        {"2001:db8::", 32, true},   {"2001:db9::", 32, false},
        {"c000:205::", 32, false}, /* the bytes of 192.0.2.5, of the other family */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(overlaps(cases[i].text, cases[i].bits), cases[i].is);
}

TEST_WITH(open_set, close_set, "a new address is reported and one that goes is not")
{
    static const char *const one[] = {"192.0.2.5", NULL};
    static const char *const two[] = {"192.0.2.6", "192.0.2.5", NULL};
    assert_int_equal(own(one), 1);
    assert_int_equal(own(one), 0);
    assert_int_equal(own(two), 1);
    assert_true(overlaps("192.0.2.6", 32));
    assert_int_equal(own(one), 0);
    assert_false(overlaps("192.0.2.6", 32));
}

TEST_WITH(open_set, close_set, "named networks add up until they are replaced")
{
    static const char *const none[] = {NULL};
    assert_int_equal(own(none), 0);
    name("198.51.100.0", 24, WEIR_KERNEL_REPLACE);
    name("198.51.100.128", 25, 0); /* within the first */
    name("203.0.113.0", 24, 0);
    assert_true(overlaps("198.51.100.1", 32));
    assert_true(overlaps("198.51.0.0", 16));
    assert_true(overlaps("203.0.113.255", 32));
    assert_false(overlaps("203.0.114.0", 24));
    name("192.0.2.0", 24, WEIR_KERNEL_REPLACE);
    assert_false(overlaps("198.51.100.1", 32));
    assert_true(overlaps("192.0.2.1", 32));
    assert_true(overlaps("127.0.0.1", 32));
}

TEST_WITH(open_set, close_set, "more networks than the most are an error and protect all")
{
    static const char *const none[] = {NULL};
    uint8_t bytes[16] = {10};
    int err = 0;
    assert_int_equal(own(none), 0);
    weir_kernel_message_begin(&message, WEIR_KERNEL_PROTECT);
    message.head.count = WEIR_KERNEL_BATCH_MAX;
    memset(message.elements, 0, sizeof message.elements);
    for (int i = 0; i < WEIR_KERNEL_BATCH_MAX; i++) {
        message.elements[i].family = 4;
        message.elements[i].bits = 32;
        memcpy(message.elements[i].address, bytes, 4);
    }
    for (int i = 0; i <= KERNEL_PROTECTED_MAX / WEIR_KERNEL_BATCH_MAX && err == 0; i++)
        err = kernel_protected_name(&set, &message);
    assert_int_equal(err, -E2BIG);
    assert_true(overlaps("192.0.2.1", 32));
}

/* Against a look at each network. */
TEST_WITH(open_set, close_set, "random networks overlap as each alone says")
{
    uint64_t draw = 29;
    for (int round = 0; round < 200; round++) {
        struct weir_cidr networks[20];
        struct kernel_ranges ranges = {.list = NULL};
        for (int i = 0; i < 20; i++) {
            struct weir_cidr *network = &networks[i];
            *network = (struct weir_cidr){{.family = 4}, (uint8_t)(16 + draw_below(&draw, 17))};
            network->address.bytes[0] = 10;
            network->address.bytes[1] = (uint8_t)draw_below(&draw, 4);
            network->address.bytes[3] = (uint8_t)draw_below(&draw, 256);
            weir_address_mask(&network->address, network->bits);
            assert_int_equal(kernel_ranges_add(&ranges, 4, network->bits, network->address.bytes),
                             0);
        }
        assert_true(kernel_protected_own(&set, &ranges) >= 0);
        for (int i = 0; i < 200; i++) {
            struct weir_cidr asked = {{.family = 4, .bytes = {10}},
                                      (uint8_t)(8 + draw_below(&draw, 25))};
            bool is = false;
            asked.address.bytes[1] = (uint8_t)draw_below(&draw, 4);
            asked.address.bytes[3] = (uint8_t)draw_below(&draw, 256);
            weir_address_mask(&asked.address, asked.bits);
            for (int j = 0; j < 20; j++)
                is |= weir_cidr_contains(&networks[j], &asked.address) ||
                      weir_cidr_contains(&asked, &networks[j].address);
            assert_int_equal(kernel_protected_overlaps(&set, 4, asked.bits, asked.address.bytes),
                             is);
        }
    }
}

/* --- Answers of the kernel -------------------------------------------------------------------- */

static size_t put_answer(uint8_t *at, uint16_t type, uint16_t flags, const void *body, size_t size)
{
    struct nlmsghdr head = {.nlmsg_len = (uint32_t)(sizeof head + size),
                            .nlmsg_type = type,
                            .nlmsg_flags = flags,
                            .nlmsg_seq = 7};
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, body, size);
    return NLMSG_ALIGN(sizeof head + size);
}

/* An address with what attributes; `local`: IFA_LOCAL, beside the peer in IFA_ADDRESS. */
static size_t put_address(uint8_t *at, uint8_t family, const char *address, const char *local)
{
    uint8_t body[64] = {0}, bytes[16];
    struct ifaddrmsg head = {.ifa_family = family};
    size_t size = sizeof head;
    memcpy(body, &head, sizeof head);
    for (int i = 0; i < 2; i++) {
        const char *text = i ? local : address;
        if (!text)
            continue;
        uint16_t width = parse(text, bytes) == 4 ? 4 : 16;
        const uint16_t attribute[2] = {(uint16_t)(4 + width), i ? IFA_LOCAL : IFA_ADDRESS};
        memcpy(body + size, attribute, sizeof attribute);
        memcpy(body + size + 4, bytes, width);
        size += 4u + width;
    }
    return put_answer(at, RTM_NEWADDR, 0, body, size);
}

TEST_WITH(open_set, close_set, "answers of the kernel are read")
{
    static _Alignas(8) uint8_t bytes[1024];
    struct kernel_ranges ranges = {.list = NULL};
    size_t size = put_address(bytes, AF_INET, "192.0.2.1", "192.0.2.1");
    size += put_address(bytes + size, AF_INET, "198.51.100.9", "198.51.100.1"); /* a peer's */
    size += put_address(bytes + size, AF_INET6, "2001:db8::1", NULL);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), 1);
    assert_int_equal(ranges.count, 3);
    assert_int_equal(addresses_take(bytes, size, 8, &ranges), 1); /* of another request */
    assert_int_equal(ranges.count, 3);
    size += put_answer(bytes + size, NLMSG_DONE, 0, "\0\0\0", 4);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), 0);
    assert_int_equal(kernel_protected_own(&set, &ranges), 1);
    assert_true(overlaps("198.51.100.1", 32) && overlaps("2001:db8::1", 128));
    assert_false(overlaps("198.51.100.9", 32));
}

TEST_WITH(open_set, close_set, "answers that are cut or wrong are errors")
{
    static _Alignas(8) uint8_t bytes[256];
    const int32_t refused = -EPERM;
    struct kernel_ranges ranges = {.list = NULL};
    size_t size = put_address(bytes, AF_INET, "2001:db8::1", NULL); /* 16 bytes of IPv4 */
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EPROTO);
    size = put_address(bytes, AF_INET, "192.0.2.1", NULL);
    assert_int_equal(addresses_take(bytes, size - 4, 7, &ranges), -EPROTO);
    size = put_answer(bytes, RTM_NEWADDR, 0, "\2", 2);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EPROTO);
    size = put_answer(bytes, NLMSG_ERROR, 0, &refused, sizeof refused);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EPERM);
    size = put_answer(bytes, RTM_NEWADDR, NLM_F_DUMP_INTR, "\2\0\0\0\0\0\0", 8);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EAGAIN);
    size = put_answer(bytes, NLMSG_DONE, NLM_F_DUMP_INTR, "\0\0\0", 4);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EAGAIN);
    size = put_answer(bytes, NLMSG_DONE, 0, &refused, sizeof refused);
    assert_int_equal(addresses_take(bytes, size, 7, &ranges), -EPERM);
    assert_int_equal(ranges.count, 0);
    free(ranges.list);
}

RUN_TESTS()
