/* SPDX-License-Identifier: Apache-2.0 */
/* The store's secret: made once, taken over when it is replaced, kept when it is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "core/bytes.h"
#include "store/redis/secret.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)

/* The `i`-th secret, or zeros. */
struct words {
    uint64_t of[2];
};
static struct words at(struct redis_secret *secret, unsigned i, uint64_t now_ns)
{
    struct words words = {{0, 0}};
    (void)redis_secret_at(secret, i, now_ns, words.of);
    return words;
}

static bool same(struct words a, struct words b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool known(struct redis_secret *secret, unsigned i, uint64_t now_ns)
{
    uint64_t words[2];
    return redis_secret_at(secret, i, now_ns, words);
}

static const uint64_t seed[2] = {UINT64_C(0x0123456789abcdef), 7}, other_seed[2] = {1, 2};

static enum redis_secret_result tell(struct redis_secret *secret, const char *text, uint64_t now_ns)
{
    return redis_secret_take(secret, weir_bytes_of(text), now_ns);
}

/* What one proposes is in Redis. */
static enum redis_secret_result tell_of(struct redis_secret *secret,
                                        const struct redis_secret *from, uint64_t now_ns)
{
    return redis_secret_take(secret, (struct weir_bytes){from->text, from->size}, now_ns);
}

TEST("test none is known before it is reported")
{
    char text[REDIS_SECRET_TEXT_MAX];
    struct redis_secret secret;
    redis_secret_init(&secret, seed);
    assert_false(known(&secret, 0, 0));
    assert_int_equal(redis_secret_text(&secret, text), 32);
    assert_memory_equal(text, "0123456789abcdef0000000000000007", 32);
    redis_secret_end(&secret);
}

TEST("test nodes that read one text have one secret")
{
    struct redis_secret one, two;
    redis_secret_init(&one, seed);
    redis_secret_init(&two, other_seed);
    assert_int_equal(tell_of(&two, &one, 5), REDIS_SECRET_FIRST);
    assert_int_equal(tell_of(&one, &one, 6), REDIS_SECRET_FIRST);
    assert_true(same(at(&one, 0, 6), at(&two, 0, 5)));
    assert_false(known(&one, 1, 6));
    assert_int_equal(tell_of(&one, &one, 7), REDIS_SECRET_SAME);
    /* and either would put back the same text */
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.text, two.text, one.size);
    redis_secret_end(&one);
    redis_secret_end(&two);
}

TEST("test another secret is accepted at once and signs when all know it")
{
    struct redis_secret secret;
    uint64_t result = 100 * SECOND, adopted = result + REDIS_SECRET_ADOPT_NS;
    redis_secret_init(&secret, seed);
    assert_int_equal(tell_of(&secret, &secret, SECOND), REDIS_SECRET_FIRST);
    struct words before = at(&secret, 0, SECOND);
    assert_int_equal(tell(&secret, "another secret text", result), REDIS_SECRET_OTHER);
    assert_true(same(at(&secret, 0, adopted - 1), before));
    assert_false(same(at(&secret, 1, adopted - 1), before));
    assert_false(same(at(&secret, 0, adopted), before));
    assert_true(same(at(&secret, 1, adopted), before));
    assert_false(known(&secret, 2, adopted));
    redis_secret_end(&secret);
}

TEST("test the last but one is forgotten")
{
    struct redis_secret secret;
    redis_secret_init(&secret, seed);
    assert_int_equal(tell(&secret, "the first secret of all", 0), REDIS_SECRET_FIRST);
    struct words first = at(&secret, 0, 0);
    assert_int_equal(tell(&secret, "the second secret text", 0), REDIS_SECRET_OTHER);
    struct words second = at(&secret, 0, SECOND * 100);
    assert_int_equal(tell(&secret, "the third secret text", 0), REDIS_SECRET_OTHER);
    assert_true(same(at(&secret, 1, SECOND * 100), second));
    for (unsigned i = 0; i < 2; i++)
        assert_false(same(at(&secret, i, 0), first));
    redis_secret_end(&secret);
}

TEST("test texts that are too short or too long are none")
{
    char text[REDIS_SECRET_TEXT_MAX + 2];
    struct redis_secret secret;
    memset(text, 'x', sizeof text);
    for (size_t size = 0; size < sizeof text; size++) {
        bool good = size >= REDIS_SECRET_TEXT_MIN && size <= REDIS_SECRET_TEXT_MAX;
        redis_secret_init(&secret, seed);
        assert_int_equal(redis_secret_take(&secret, (struct weir_bytes){text, size}, 1),
                         good ? REDIS_SECRET_FIRST : REDIS_SECRET_NONE);
        assert_int_equal(known(&secret, 0, 1), good);
        redis_secret_end(&secret);
    }
}

RUN_TESTS()
