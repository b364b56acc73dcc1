/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that a remote store keeps: their overrides are compiled while weir runs, and a directory
 * is asked after the keys file. */
#include "keys_test.h"
#include "test.h"

/* --- Compiled while running: weir_rules_override ---------------------------------------------- */

TEST("an override is compiled while running")
{
    struct weir_rules *rules =
        load_text("identities: redis://h\n"
                  "store: {redis: 'redis://h', nodes: 4}\n"
                  "identify: header.x-api-key\n"
                  "limits:\n- {name: api, key: [user], algorithm: gcra, rate: 100/min}\n"
                  "- {name: both, key: [user], rate: [10/s, 500/h]}\n"
                  "- {name: alone, key: [user], rate: 10/s, on_store_error: closed}\n",
                  "");
    struct weir_override *override;
    struct weir_reason reason = {{0}};
    assert_int_equal(
        weir_rules_override(rules, BYTES("api"), BYTES("5000/min burst 200"), &override, &reason),
        0);
    assert_int_equal(override->rule, 0);
    assert_int_equal(override->count, 1);
    assert_int_equal(override->limits[0].spec.algorithm, WEIR_GCRA);
    assert_int_equal(override->limits[0].spec.rate, 5000);
    assert_int_equal(override->limits[0].id, 0);
    assert_int_equal(override->states[0], 0);
    assert_string_equal(override->limits[0].name, "api");
    assert_int_equal(override->limits[0].local->spec.rate, 1250); /* of four nodes */
    assert_int_equal(override->limits[0].local->spec.burst, 50);
    free(override);
    assert_int_equal(
        weir_rules_override(rules, BYTES("both"), BYTES("900/h , 20/s"), &override, &reason), 0);
    assert_int_equal(override->rule, 1);
    assert_int_equal(override->count, 2);
    assert_int_equal(override->states[0], 1);
    assert_string_equal(override->limits[0].name, "both#2");
    assert_int_equal(override->states[1], 0);
    assert_int_equal(override->limits[1].local->spec.rate, 5);
    free(override);
    assert_int_equal(
        weir_rules_override(rules, BYTES("both"), BYTES("unlimited"), &override, &reason), 0);
    assert_int_equal(override->count, 0);
    free(override);
    assert_int_equal(weir_rules_override(rules, BYTES("alone"), BYTES("20/s"), &override, &reason),
                     0);
    assert_null(override->limits[0].local);
    free(override);
    assert_int_equal(weir_rules_override(rules, BYTES("none"), BYTES("1/s"), &override, &reason),
                     WEIR_ERR_NOT_FOUND);
    assert_string_equal(reason.text, "no limit is called `none`");
    assert_int_equal(weir_rules_override(rules, BYTES("api"), BYTES("x"), &override, &reason),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(weir_rules_override(rules, BYTES("api"), BYTES(""), &override, &reason),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(
        weir_rules_override(rules, BYTES("api"), BYTES("unlimited, 5/s"), &override, &reason),
        WEIR_ERR_SYNTAX);
    assert_int_equal(weir_rules_override(rules, BYTES("api"), BYTES("5/1000d"), &override, &reason),
                     WEIR_ERR_RANGE);
    weir_rules_unref(rules);
}

/* --- A directory ------------------------------------------------------------------------------ */

/* Knows one key, and finds the others out later, or never. */
struct fake_directory {
    struct weir_directory base;
    uint8_t digest[WEIR_DIGEST_BYTES];
    struct weir_caller caller;
    int answer, asked;
};

static int fake_find(struct weir_directory *directory, const struct weir_rules *rules,
                     const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller)
{
    struct fake_directory *fake = (struct fake_directory *)(void *)directory;
    fake->asked++;
    memcpy(fake->digest, digest, WEIR_DIGEST_BYTES);
    if (fake->answer > 0)
        *caller = fake->caller;
    return fake->answer;
}

static const struct weir_directory_ops fake_ops = {.find = fake_find};

static struct test_request *ask_directory(struct weir_rules *rules, struct fake_directory *fake,
                                          const char *path, const char *key)
{
    struct test_request *test = ASK(rules, "path", path, "header.x-api-key", key);
    test->query.directory = &fake->base;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}

TEST("a directory is asked after the file")
{
    static const char text[] =
        "identify: [header.x-api-key, client.ip]\n"
        "keys: keys.yaml\n"
        "identities: redis://h\n"
        "default_plan: free\n"
        "plans: { free: {api: 1/s}, pro: {api: 5/s} }\n"
        "limits:\n"
        "- {name: api, match: {path: /api}, key: [user], rate: plan}\n"
        "- {name: other, match: {path: /other}, key: [client.ip], on_missing: shared, rate: 1/s}\n"
        "- {name: none, match: {path: /none}, key: [user], on_missing: shared, rate: unlimited}\n";
    struct fake_directory fake = {.base = {.ops = &fake_ops}, .answer = WEIR_ERR_PENDING};
    struct weir_rules *rules = load_text(text, ALICE ": { user: alice, plan: pro }\n");
    struct test_request *test = ask_directory(rules, &fake, "/api", "alice-key");
    test_expect(test, "api{user=alice}");
    assert_int_equal(fake.asked, 0);
    test = ask_directory(rules, &fake, "/api", "bob-key");
    assert_int_equal(test->count, WEIR_ERR_PENDING);
    assert_int_equal(fake.asked, 1);
    /* 9b94dc1a… is bob's. */
    assert_int_equal(fake.digest[0], 0x9b);
    assert_int_equal(fake.digest[31], 0x98);
    /* Limits that may be anyone's own ask, as any that the caller plays a part in. */
    assert_int_equal(ask_directory(rules, &fake, "/other", "bob-key")->count, WEIR_ERR_PENDING);
    assert_int_equal(ask_directory(rules, &fake, "/none", "bob-key")->count, WEIR_ERR_PENDING);
    fake.answer = WEIR_ERR_STORE;
    assert_int_equal(ask_directory(rules, &fake, "/api", "bob-key")->count, WEIR_ERR_STORE);
    fake.answer = 0;
    test_expect(ask_directory(rules, &fake, "/api", "bob-key"), "");
    fake.asked = 0;
    fake.answer = 1;
    fake.caller =
        (struct weir_caller){.user = BYTES("bob"), .org = BYTES("o"), .plan = BYTES("pro")};
    test = ask_directory(rules, &fake, "/api", "bob-key");
    test_expect(test, "api{user=bob}");
    assert_int_equal(test->checks[0].limit->spec.rate, 5);
    assert_int_equal(fake.asked, 1); /* once a request */
    assert_memory_equal(test->identity.org.data, "o", 1);
    fake.caller.plan = BYTES("gold"); /* unknown: matched as it is, limited as the default */
    test = ask_directory(rules, &fake, "/api", "bob-key");
    assert_int_equal(test->checks[0].limit->spec.rate, 1);
    assert_memory_equal(test->identity.plan.data, "gold", 4);
    struct weir_override *override;
    assert_int_equal(
        weir_rules_override(rules, BYTES("api"), BYTES("9/s"), &override, &test->reason), 0);
    fake.caller.overrides = override;
    fake.caller.override_count = 1;
    test = ask_directory(rules, &fake, "/api", "bob-key");
    assert_int_equal(test->checks[0].limit->spec.rate, 9);
    free(override);
    weir_rules_unref(rules);
}

RUN_TESTS_WITH(make_folder, remove_folder)
