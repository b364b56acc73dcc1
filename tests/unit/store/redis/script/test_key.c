/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in Redis: the forms, and that different states have different keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/script/key.h"

static struct weir_limit limit_of(enum weir_algorithm algorithm, const char *name)
{
    struct weir_limit_spec spec = {.algorithm = algorithm, .rate = 5, .window_ns = 1000000000};
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = name;
    return limit;
}

static struct weir_check check_of(const struct weir_limit *limit, const char *text)
{
    return (struct weir_check){.limit = limit, .cost = 1, .key = {text, strlen(text)}};
}

/* Writes the key into exactly as much room as it says that it takes. */
static const char *key_text(const struct weir_check *check)
{
    static char text[512];
    size_t size = redis_key_size("weir:", check);

    memset(text, 0, sizeof text);
    assert_true(size < sizeof text);
    assert_int_equal(redis_key_write(text, "weir:", check) - text, size);
    return text;
}

static void a_key_has_prefix_tag_name_and_text(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_GCRA, "login");
    struct weir_check check = check_of(&limit, "user=alice");

    check.tag = 0x0123456789abcdef;
    assert_string_equal(key_text(&check), "weir:{0123456789abcdef}login:user=alice");
}

static void the_limit_of_a_command_has_no_name(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_GCRA, NULL);
    struct weir_check check = check_of(&limit, "k");

    check.tag = 1;
    assert_string_equal(key_text(&check), "weir:{0000000000000001}!k");
    check.limit = NULL;
    assert_string_equal(key_text(&check), "weir:{0000000000000001}!k");
}

static void limits_with_one_text_share_a_tag(void **unused)
{
    struct weir_limit a = limit_of(WEIR_GCRA, "a"), b = limit_of(WEIR_FIXED_WINDOW, "b");
    struct weir_check first = check_of(&a, "user=alice"), second = check_of(&b, "user=alice");
    struct weir_check other = check_of(&b, "user=bob");

    assert_int_equal(redis_key_tag(&first), redis_key_tag(&second));
    assert_true(redis_key_tag(&first) != redis_key_tag(&other));
}

static void an_idempotency_record_has_a_mark_of_its_own(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_GCRA, "once");
    struct weir_check check = check_of(&limit, "k");

    check.tag = 1;
    check.flags = WEIR_CHECK_IDEMPOTENCY;
    assert_string_equal(key_text(&check), "weir:{0000000000000001}=k");
}

static void a_lease_is_found_again_by_tag_and_digest(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_CONCURRENCY, "jobs");
    struct weir_check check = check_of(&limit, "user=alice");
    unsigned char digest[REDIS_DIGEST];
    char by_check[512];

    strcpy(by_check, key_text(&check));
    /* echo -n jobs:user=alice | sha256sum */
    assert_non_null(strstr(by_check, "}~ba2bbb8e85c4b1034cc68110a729a19d"));
    redis_key_digest(&check, digest);

    char by_token[REDIS_KEY_DIGEST_SIZE(5) + 1] = "";

    assert_int_equal(redis_key_write_digest(by_token, "weir:", redis_key_tag(&check), digest) -
                         by_token,
                     REDIS_KEY_DIGEST_SIZE(5));
    assert_string_equal(by_token, by_check);
}

static void a_state_that_other_regions_see_is_a_digest(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_GCRA, "jobs");
    struct weir_check check = check_of(&limit, "user=alice");

    assert_non_null(strstr(key_text(&check), "}jobs:user=alice"));
    limit.digest = true;
    assert_non_null(strstr(key_text(&check), "}~ba2bbb8e85c4b1034cc68110a729a19d"));
    assert_null(strstr(key_text(&check), "alice"));
}

static void a_name_and_a_text_cannot_be_taken_for_others(void **unused)
{
    struct weir_limit a = limit_of(WEIR_CONCURRENCY, "a"), none = limit_of(WEIR_CONCURRENCY, NULL);
    struct weir_check first = check_of(&a, "b"), second = check_of(&none, "a:b");
    unsigned char one[REDIS_DIGEST], two[REDIS_DIGEST];

    redis_key_digest(&first, one);
    redis_key_digest(&second, two);
    assert_memory_not_equal(one, two, sizeof one);
}

static void a_long_text_stands_whole(void **unused)
{
    struct weir_limit limit = limit_of(WEIR_GCRA, "n");
    char text[401] = "";
    struct weir_check check;

    memset(text, 'x', 400);
    check = check_of(&limit, text);
    assert_non_null(strstr(key_text(&check), text));
}

static void a_reservation_is_called_by_its_id(void **unused)
{
    char text[REDIS_KEY_RESERVATION_MAX(5) + 1] = "";

    assert_int_equal(redis_key_write_reservation(text, "weir:", 1, 0xab) - text,
                     REDIS_KEY_RESERVATION_MAX(5));
    assert_string_equal(text, "weir:{0000000000000001}?00000000000000ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_prefix_tag_name_and_text),
        cmocka_unit_test(the_limit_of_a_command_has_no_name),
        cmocka_unit_test(limits_with_one_text_share_a_tag),
        cmocka_unit_test(an_idempotency_record_has_a_mark_of_its_own),
        cmocka_unit_test(a_lease_is_found_again_by_tag_and_digest),
        cmocka_unit_test(a_state_that_other_regions_see_is_a_digest),
        cmocka_unit_test(a_name_and_a_text_cannot_be_taken_for_others),
        cmocka_unit_test(a_long_text_stands_whole),
        cmocka_unit_test(a_reservation_is_called_by_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
