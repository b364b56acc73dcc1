/* SPDX-License-Identifier: Apache-2.0 */
/* Lease tokens: one text for one lease, and nothing else is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/token/caller.h"
#include "engine/token/lease_token.h"
#include "test.h"

static struct weir_lease_fields sample(uint16_t count)
{
    struct weir_lease_fields lease = {.id = UINT64_C(0x0123456789abcdef), .count = count};
    for (uint16_t i = 0; i < count; i++) {
        lease.hash[i][0] = UINT64_C(0xfedcba9876543210) + i;
        lease.hash[i][1] = UINT64_C(0xffffffffffffffff) - i;
    }
    return lease;
}

static int read_text(struct weir_lease_fields *lease, const char *text, size_t size)
{
    return weir_lease_token_read(lease, (struct weir_bytes){text, size});
}

TEST("a lease of any size comes back as it was")
{
    for (uint16_t count = 1; count <= WEIR_CHECKS_MAX; count++) {
        struct weir_lease_fields in = sample(count), out;
        char text[WEIR_LEASE_TOKEN_TEXT_MAX];
        in.place = count % 2 == 0 ? WEIR_LEASE_TOKEN_LOCAL : WEIR_LEASE_TOKEN_TABLE;
        size_t size = weir_lease_token_write(&in, text);
        assert_int_equal(size, ((size_t)(9 + 16 * count) * 4 + 2) / 3);
        assert_int_equal(read_text(&out, text, size), 0);
        assert_true(out.id == in.id && out.place == in.place && out.count == in.count);
        assert_memory_equal(out.hash, in.hash, count * sizeof in.hash[0]);
    }
}

TEST("what learns from a lease comes back as it was")
{
    for (uint16_t count = 1; count <= WEIR_CHECKS_MAX; count++) {
        for (uint8_t learners = 1; learners <= WEIR_LEASE_LEARNERS_MAX; learners++) {
            struct weir_lease_fields in = sample(count), out;
            char text[WEIR_LEASE_TOKEN_TEXT_MAX + 1];
            in.place = count % WEIR_LEASE_TOKEN_PLACES;
            in.begun = (struct weir_lease_begun){.ns = UINT64_C(1) << count, .count = learners};
            for (uint8_t i = 0; i < learners; i++)
                in.begun.learners[i] = (struct weir_lease_learner){UINT32_MAX - i, count * i};
            size_t size = weir_lease_token_write(&in, text);
            assert_in_range(size, 0, WEIR_LEASE_TOKEN_TEXT_MAX);
            assert_int_equal(read_text(&out, text, size), 0);
            assert_true(out.place == in.place && out.count == count);
            assert_int_equal(out.begun.ns, in.begun.ns);
            assert_int_equal(out.begun.count, learners);
            assert_memory_equal(out.begun.learners, in.begun.learners,
                                learners * sizeof in.begun.learners[0]);
            for (size_t cut = 1; cut < 20; cut++) /* whole limits less make another token */
                if ((size - cut) % 2 == 1)
                    assert_true(read_text(&out, text, size - cut) < 0 || out.count < count);
        }
    }
    struct weir_lease_fields four = sample(1), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX + 44];
    four.begun.count = WEIR_LEASE_LEARNERS_MAX;
    size_t size = weir_lease_token_write(&four, text);
    text[0] = 'Q'; /* 4 learners, the first of 6 bits at a time */
    assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
}

/* Beside what learns, where there is room. */
TEST("a caller comes back as it was")
{
    for (uint16_t count = 1; count <= WEIR_CHECKS_MAX; count++) {
        struct weir_lease_fields in = sample(count), out;
        char text[WEIR_LEASE_TOKEN_TEXT_MAX];
        in.place = WEIR_LEASE_TOKEN_REMOTE;
        in.begun = (struct weir_lease_begun){
            .ns = 7, .count = WEIR_LEASE_LEARNERS_MAX, .caller = UINT64_MAX - count};
        size_t size = weir_lease_token_write(&in, text);
        assert_int_equal(read_text(&out, text, size), 0);
        assert_int_equal(out.count, count);
        assert_int_equal(out.begun.caller, count < WEIR_CHECKS_MAX ? in.begun.caller : 0);
        in.begun.count = 0; /* nothing learns of it */
        size = weir_lease_token_write(&in, text);
        assert_int_equal(read_text(&out, text, size), 0);
        assert_int_equal(out.begun.caller, 0);
    }
}

TEST("a caller that is none is refused")
{
    struct weir_lease_fields in = sample(1), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX];
    in.begun = (struct weir_lease_begun){.ns = 7, .count = 1, .caller = 1};
    size_t size = weir_lease_token_write(&in, text);
    assert_int_equal(size, 66); /* 49 bytes */
    assert_int_equal(read_text(&out, text, size), 0);
    text[size - 1] = 'A'; /* 0: it would be another text for no caller */
    text[size - 2] = 'A';
    assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
    size = weir_lease_token_write(&(struct weir_lease_fields){.id = 1, .count = 1}, text);
    text[0] = 'Q'; /* the bit of a caller, and nothing that learns */
    assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
}

TEST("the number of a caller is that of its user or network")
{
    static const uint64_t secret[2] = {1, 2}, other[2] = {1, 3};
    struct weir_address v4 = {4, {192, 0, 2, 1}}, v6 = {6, {0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 1}},
                        near = v6, far = v6, none = {0};
    const struct weir_bytes nobody = {NULL, 0}, ann = {"ann", 3}, bob = {"bob", 3};
    near.bytes[8] = 9;
    far.bytes[7] = 8;
    uint64_t number = weir_caller_number(secret, ann, &v4);
    assert_true(number == weir_caller_number(secret, ann, &v6));
    assert_true(number != weir_caller_number(secret, bob, &v4));
    assert_true(number != weir_caller_number(other, ann, &v4));
    assert_true(number != weir_caller_number(secret, nobody, &v4));
    assert_true(weir_caller_number(secret, nobody, &v6) ==
                weir_caller_number(secret, nobody, &near));
    assert_true(weir_caller_number(secret, nobody, &v6) !=
                weir_caller_number(secret, nobody, &far));
    assert_int_equal(weir_caller_number(secret, nobody, &none), 0);
    assert_true(weir_caller_number_holds(secret, number));
    assert_false(weir_caller_number_holds(other, number));
    for (int bit = 0; bit < 64; bit++)
        assert_false(weir_caller_number_holds(secret, number ^ UINT64_C(1) << bit));
}

TEST("the text is base64url without padding")
{
    struct weir_lease_fields lease = sample(1);
    char text[WEIR_LEASE_TOKEN_TEXT_MAX];
    size_t size = weir_lease_token_write(&lease, text);
    /* python3: base64.urlsafe_b64encode(bytes.fromhex("00" "0123456789abcdef"
     * "fedcba9876543210" "ffffffffffffffff")).rstrip(b"=") */
    static const char expected[] = "AAEjRWeJq83v_ty6mHZUMhD__________w";
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(text, expected, size);
}

TEST("every prefix and every longer text is refused")
{
    struct weir_lease_fields lease = sample(2), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX + 1];
    size_t size = weir_lease_token_write(&lease, text);
    for (size_t cut = 0; cut < size; cut++)
        if (cut != 34) /* that is the lease of one limit, when its spare bits are 0 */
            assert_int_equal(read_text(&out, text, cut), WEIR_ERR_SYNTAX);
    text[size] = 'A';
    assert_int_equal(read_text(&out, text, size + 1), WEIR_ERR_SYNTAX);
    text[size] = '=';
    assert_int_equal(read_text(&out, text, size + 1), WEIR_ERR_SYNTAX);
}

TEST("bytes outside the alphabet are refused wherever they stand")
{
    struct weir_lease_fields lease = sample(1), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX];
    size_t size = weir_lease_token_write(&lease, text);
    static const char bad[] = {'+', '/', '=', ' ', '\n', '\0', '\x80', '\xff', '.', '~'};
    for (size_t at = 0; at < size; at++)
        for (size_t b = 0; b < sizeof bad; b++) {
            char saved = text[at];
            text[at] = bad[b];
            assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
            text[at] = saved;
        }
}

TEST("bits that say nothing must be zero")
{
    struct weir_lease_fields lease = sample(1), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX];
    size_t size = weir_lease_token_write(&lease, text);
    assert_int_equal(text[size - 1], 'w'); /* 48: 11 0000, of which two bits count */
    text[size - 1] = 'x';
    assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
}

TEST("a lease must have an id a known kind and no limit twice")
{
    struct weir_lease_fields lease = sample(2), out;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX];
    lease.id = 0;
    assert_int_equal(read_text(&out, text, weir_lease_token_write(&lease, text)), WEIR_ERR_SYNTAX);
    lease = sample(2);
    memcpy(lease.hash[1], lease.hash[0], sizeof lease.hash[0]);
    assert_int_equal(read_text(&out, text, weir_lease_token_write(&lease, text)), WEIR_ERR_SYNTAX);
    lease = sample(1);
    size_t size = weir_lease_token_write(&lease, text);
    text[1] = 'g'; /* the first byte becomes 2 */
    assert_int_equal(read_text(&out, text, size), WEIR_ERR_SYNTAX);
}

TEST("random texts are either refused or written back the same")
{
    static const char some[] = "ABab01-_zw";
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        char text[80], again[WEIR_LEASE_TOKEN_TEXT_MAX];
        size_t size = i % 2 == 0 ? 34 : (size_t)(i % 79);
        for (size_t at = 0; at < size; at++) {
            random = random * 1664525 + 1013904223;
            text[at] = at == 0 ? 'A' : some[(random >> 16) % (sizeof some - 1)];
        }
        struct weir_lease_fields lease;
        if (read_text(&lease, text, size) < 0)
            continue;
        assert_int_equal(weir_lease_token_write(&lease, again), size);
        assert_memory_equal(again, text, size);
    }
}

TEST("ids are never zero and do not repeat")
{
    const uint64_t secret[2] = {1, 2};
    uint64_t counter = 0, ids[1000];
    for (int i = 0; i < 1000; i++) {
        ids[i] = weir_lease_draw(secret, &counter);
        assert_true(ids[i] != 0);
        for (int j = 0; j < i; j++)
            assert_true(ids[i] != ids[j]);
    }
}

TEST("ids depend on the secret")
{
    const uint64_t one[2] = {1, 2}, other[2] = {1, 3};
    uint64_t a = 7, b = 7, c = 7;
    uint64_t id = weir_lease_draw(one, &a);
    assert_true(id != weir_lease_draw(other, &b));
    assert_true(id == weir_lease_draw(one, &c));
}

RUN_TESTS()
