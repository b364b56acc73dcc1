/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of tokens: what it remembers, for how long, and what it takes. */
#include "core/bytes.h"
#include "rules_test.h"

#include <jansson.h>
#include <openssl/crypto.h>

#include "feature/identity/rules/jwks.h"
#include "feature/identity/rules/jwt.h"
#include "rules/compiled.h"
#include "tokens_test.h"

#define NS_PER_S UINT64_C(1000000000)
#define NOW_NS (UINT64_C(1700000000) * NS_PER_S)

static char token[TOKEN_TEXT_MAX], claims_text[TOKEN_TEXT_MAX];

struct fixture {
    struct rules_arena arena;
    struct rules_jwt jwt;
    struct rules_claims claims;
    struct weir_token_counters counters;
    struct weir_tokens *tokens;
};

/* What OpenSSL and jansson have allocated: nothing else in here does. */
static uint64_t allocated;

static void *count_malloc(size_t size)
{
    allocated++;
    return malloc(size);
}

static void *count_openssl(size_t size, const char *file, int line)
{
    return count_malloc(size);
}

static void *count_realloc(void *memory, size_t size, const char *file, int line)
{
    allocated++;
    return realloc(memory, size);
}

static void free_openssl(void *memory, const char *file, int line)
{
    free(memory);
}

static struct fixture *open_fixture(void)
{
    static struct fixture fixture;
    char set[TOKEN_SET_MAX];
    struct rules_jwt *jwt = &fixture.jwt;
    memset(&fixture, 0, sizeof(fixture));
    token_maker_set(&maker, 1, set);
    int count = rules_jwks_read(weir_bytes_of(set), &fixture.arena, jwt->keys, RULES_JWT_KEYS_MAX);
    assert_int_equal(count, 3);
    jwt->key_count = (uint8_t)count;
    jwt->require_exp = true;
    memset(jwt->algorithms, true, sizeof(jwt->algorithms));
    jwt->claims[0] = (struct weir_bytes){"sub", 3};
    jwt->claims[1] = (struct weir_bytes){"none", 4};
    jwt->claims[2] = (struct weir_bytes){"n", 1};
    jwt->claim_count = 3;
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_int_equal(weir_tokens_open(&fixture.tokens, &fixture.counters), 0);
    return &fixture;
}

static void close_fixture(struct fixture *fixture)
{
    weir_tokens_close(fixture->tokens);
    rules_jwt_free(&fixture->jwt);
    rules_arena_free(&fixture->arena);
}

static const char *seen_at(struct fixture *fixture, const char *text, uint64_t now_ns)
{
    memset(&fixture->claims, 0xA5, sizeof(fixture->claims));
    return weir_token_names[rules_tokens_verify(fixture->tokens, &fixture->jwt, weir_bytes_of(text),
                                                now_ns, &fixture->claims)];
}

static const char *seen(struct fixture *fixture, const char *text)
{
    return seen_at(fixture, text, NOW_NS);
}

/* The token of a user, valid for a minute. */
static const char *of_user(const char *user, int number)
{
    snprintf(claims_text, sizeof(claims_text), "{\"exp\":1700000060,\"sub\":\"%s\",\"n\":%d}", user,
             number);
    return token_of(&maker, TOKEN_HS256, claims_text, token);
}

static void expect_user(const struct fixture *fixture, const char *user, const char *number)
{
    const struct weir_bytes *values = fixture->claims.values;
    assert_int_equal(values[0].size, strlen(user));
    assert_memory_equal(values[0].data, user, values[0].size);
    assert_null(values[1].data);
    assert_int_equal(values[2].size, strlen(number));
    assert_memory_equal(values[2].data, number, values[2].size);
}

static void a_token_is_verified_once_and_then_known_with_its_claims(void **state)
{
    struct fixture *fixture = open_fixture();
    const char *text = of_user("alice", 7);
    assert_string_equal(seen(fixture, text), "valid");
    expect_user(fixture, "alice", "7");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(seen(fixture, text), "cached");
        expect_user(fixture, "alice", "7");
        assert_int_equal(fixture->claims.until_ns, NOW_NS + 60 * NS_PER_S);
    }
    assert_int_equal(fixture->counters.results[WEIR_TOKEN_VALID], 1);
    assert_int_equal(fixture->counters.results[WEIR_TOKEN_CACHED], 3);
    assert_string_equal(seen(fixture, of_user("", 0)), "valid"); /* an empty claim is there */
    assert_string_equal(seen(fixture, of_user("", 0)), "cached");
    assert_non_null(fixture->claims.values[0].data);
    assert_int_equal(fixture->claims.values[0].size, 0);
    close_fixture(fixture);
}

static void what_is_known_expires_when_the_token_does(void **state)
{
    struct fixture *fixture = open_fixture();
    const char *text = of_user("alice", 7);
    uint64_t end_ns = NOW_NS + 60 * NS_PER_S;
    assert_string_equal(seen(fixture, text), "valid");
    assert_string_equal(seen_at(fixture, text, end_ns - 1), "cached");
    assert_string_equal(seen_at(fixture, text, end_ns), "expired");
    assert_string_equal(seen_at(fixture, text, end_ns + NS_PER_S), "expired");
    close_fixture(fixture);
}

static void other_settings_know_nothing_of_it_and_the_same_ones_do(void **state)
{
    struct fixture *fixture = open_fixture();
    struct rules_jwt *jwt = &fixture->jwt;
    const char *text = of_user("alice", 7);
    assert_string_equal(seen(fixture, text), "valid");
    assert_int_equal(rules_jwt_seal(jwt), 0); /* a reload that changed nothing */
    assert_string_equal(seen(fixture, text), "cached");
    jwt->audiences[0] = (struct weir_bytes){"api", 3};
    jwt->audience_count = 1;
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_string_equal(seen(fixture, text), "audience");
    jwt->audience_count = 0;
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_string_equal(seen(fixture, text), "cached");
    jwt->claims[1] = (struct weir_bytes){"other", 5}; /* other claims are read */
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_string_equal(seen(fixture, text), "valid");
    struct rules_jwt_key hs = jwt->keys[2];
    jwt->key_count = 2; /* the key is gone */
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_string_equal(seen(fixture, text), "key");
    char secret[] = "another secret of thirty-two byt";
    jwt->keys[2].secret = (struct weir_bytes){secret, 32};
    jwt->key_count = 3; /* or is another */
    assert_int_equal(rules_jwt_seal(jwt), 0);
    assert_string_equal(seen(fixture, text), "signature");
    jwt->keys[2] = hs;
    close_fixture(fixture);
}

static void every_setting_makes_a_fingerprint_of_its_own(void **state)
{
    struct fixture *fixture = open_fixture();
    struct rules_jwt *jwt = &fixture->jwt;
    uint64_t seen_so_far[16];
    for (uint32_t i = 0; i < 12; i++) {
        jwt->leeway_ns = i == 1;
        jwt->max_age_ns = i == 2;
        jwt->require_exp = i != 3;
        jwt->algorithms[RULES_RS256] = i != 4;
        jwt->issuer_count = i == 5;
        jwt->issuers[0] = (struct weir_bytes){"x", 1};
        jwt->audience_count = i == 6;
        jwt->audiences[0] = (struct weir_bytes){"x", 1};
        jwt->claim_count = i == 7 ? 2 : 3;
        jwt->claims[0].size = i == 8 ? 2 : 3;
        jwt->key_count = i == 9 ? 2 : 3;
        jwt->keys[0].id.size = i == 10 ? 2 : 3;
        jwt->keys[2].secret.size = i == 11 ? 31 : 32;
        assert_int_equal(rules_jwt_seal(jwt), 0);
        seen_so_far[i] = jwt->fingerprint;
        for (uint32_t j = 0; j < i; j++)
            assert_true(seen_so_far[j] != seen_so_far[i]);
    }
    jwt->keys[2].secret.size = 32;
    close_fixture(fixture);
}

static void why_a_token_is_bad_is_remembered_for_a_minute(void **state)
{
    static const char *const bad[] = {"x", "a.b.c", "..", ""};
    struct fixture *fixture = open_fixture();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_string_equal(seen(fixture, bad[i]), "malformed");
        assert_string_equal(seen(fixture, bad[i]), "malformed");
    }
    char text[TOKEN_TEXT_MAX];
    strcpy(text, of_user("alice", 7));
    char *last = text + strlen(text) - 2;
    *last = *last == 'A' ? 'B' : 'A'; /* base64url still */
    assert_string_equal(seen(fixture, text), "signature");
    /* It is not asked for again, so that other keys would go unnoticed … */
    struct rules_jwt_key key = fixture->jwt.keys[2];
    fixture->jwt.key_count = 2;
    assert_string_equal(seen(fixture, text), "signature");
    assert_string_equal(seen_at(fixture, text, NOW_NS + 60 * NS_PER_S - 1), "signature");
    /* … except for the end of the minute, and for their fingerprint. */
    assert_string_equal(seen_at(fixture, text, NOW_NS + 60 * NS_PER_S), "key");
    fixture->jwt.keys[2] = key;
    fixture->jwt.key_count = 3;
    close_fixture(fixture);
}

static void a_token_that_comes_early_is_valid_when_its_time_has_come(void **state)
{
    struct fixture *fixture = open_fixture();
    token_of(&maker, TOKEN_HS256, "{\"exp\":1700000060,\"nbf\":1700000005,\"sub\":\"a\",\"n\":1}",
             token);
    assert_string_equal(seen(fixture, token), "expired");
    assert_string_equal(seen_at(fixture, token, NOW_NS + 5 * NS_PER_S - 1), "expired");
    assert_string_equal(seen_at(fixture, token, NOW_NS + 5 * NS_PER_S), "valid");
    assert_string_equal(seen_at(fixture, token, NOW_NS + 5 * NS_PER_S), "cached");
    assert_string_equal(seen_at(fixture, token, NOW_NS), "expired"); /* time does not go back */
    close_fixture(fixture);
}

static void claims_that_are_too_long_are_verified_each_time(void **state)
{
    static char user[2048];
    struct fixture *fixture = open_fixture();
    const char *last = "";
    for (size_t size = 400; size < 500; size++) { /* 448 bytes, of which sizes take 6 */
        memset(user, 'u', size);
        user[size] = '\0';
        const char *text = of_user(user, 1);
        assert_string_equal(seen(fixture, text), "valid");
        last = seen(fixture, text);
        assert_string_equal(last, size + 1 + 6 <= 448 ? "cached" : "valid");
        expect_user(fixture, user, "1");
    }
    assert_string_equal(last, "valid");
    close_fixture(fixture);
}

static void thousands_of_tokens_are_known_and_a_flood_of_bad_ones_costs_none(void **state)
{
    struct fixture *fixture = open_fixture();
    int known = 0, users = WEIR_TOKENS_MAX / 2;
    for (int i = 0; i < users; i++)
        assert_string_equal(seen(fixture, of_user("u", i)), "valid");
    for (int i = 0; i < 3 * WEIR_TOKENS_MAX; i++) {
        snprintf(claims_text, sizeof(claims_text), "no.token.%d", i);
        assert_string_equal(seen(fixture, claims_text), "malformed");
    }
    for (int i = 0; i < users; i++)
        known += strcmp(seen(fixture, of_user("u", i)), "cached") == 0;
    /* Sets of 8 at half load: 2 % of them get more than 8. */
    assert_true(known > users * 97 / 100);
    close_fixture(fixture);
}

static void of_a_full_set_the_expired_and_the_longest_unused_go_first(void **state)
{
    struct fixture *fixture = open_fixture();
    static char favourite[TOKEN_TEXT_MAX];
    strcpy(favourite, of_user("favourite", 0));
    assert_string_equal(seen(fixture, favourite), "valid");
    for (int i = 0; i < 4 * WEIR_TOKENS_MAX; i++) {
        uint64_t now_ns = NOW_NS + (uint64_t)i + 1;
        assert_string_equal(seen_at(fixture, of_user("u", i), now_ns), "valid");
        if (i % 64 == 0) /* a set gets one in 512 */
            assert_string_equal(seen_at(fixture, favourite, now_ns), "cached");
    }
    close_fixture(fixture);
}

static void without_a_memory_each_token_is_verified(void **state)
{
    struct fixture *fixture = open_fixture();
    const char *text = of_user("alice", 7);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            rules_tokens_verify(NULL, &fixture->jwt, weir_bytes_of(text), NOW_NS, &fixture->claims),
            WEIR_TOKEN_VALID);
    }
    close_fixture(fixture);
}

static void finding_a_known_token_allocates_nothing(void **state)
{
    struct fixture *fixture = open_fixture();
    static char good[TOKEN_TEXT_MAX];
    strcpy(good, of_user("alice", 7));
    assert_string_equal(seen(fixture, good), "valid");
    assert_string_equal(seen(fixture, "bad"), "malformed");
    uint64_t before = allocated;
    assert_true(before > 0);
    assert_string_equal(seen(fixture, good), "cached");
    assert_string_equal(seen(fixture, "bad"), "malformed");
    assert_int_equal(allocated, before);
    close_fixture(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_verified_once_and_then_known_with_its_claims),
        cmocka_unit_test(what_is_known_expires_when_the_token_does),
        cmocka_unit_test(other_settings_know_nothing_of_it_and_the_same_ones_do),
        cmocka_unit_test(every_setting_makes_a_fingerprint_of_its_own),
        cmocka_unit_test(why_a_token_is_bad_is_remembered_for_a_minute),
        cmocka_unit_test(a_token_that_comes_early_is_valid_when_its_time_has_come),
        cmocka_unit_test(claims_that_are_too_long_are_verified_each_time),
        cmocka_unit_test(thousands_of_tokens_are_known_and_a_flood_of_bad_ones_costs_none),
        cmocka_unit_test(of_a_full_set_the_expired_and_the_longest_unused_go_first),
        cmocka_unit_test(without_a_memory_each_token_is_verified),
        cmocka_unit_test(finding_a_known_token_allocates_nothing),
    };
    if (CRYPTO_set_mem_functions(count_openssl, count_realloc, free_openssl) != 1)
        return 1;
    json_set_alloc_funcs(count_malloc, free);
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
