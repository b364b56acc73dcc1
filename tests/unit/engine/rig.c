/* SPDX-License-Identifier: Apache-2.0 */
/* see rig.h */
#include "rig.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "engine/open.h"
#include "rules/match/checks.h"
#include "rules/source.h"

static const uint64_t secret[2] = {1, 2};

static void done(void *context, struct weir_decision *decision)
{
    struct rig *rig = context;
    assert_true(rig->done_count < sizeof rig->done / sizeof *rig->done);
    assert_true(decision->verdict == WEIR_ALLOWED || decision->verdict == WEIR_DENIED ||
                rig->holds);
    rig->done[rig->done_count++] = decision;
    if (rig->on_done != NULL)
        rig->on_done(rig, decision);
    if (!rig->keep)
        weir_engine_release(rig->engine, decision);
}

static void open_with(struct rig *rig, struct fake_store *store, uint32_t decisions,
                      bool with_local, struct weir_rules *rules, struct weir_directory *directory,
                      struct weir_store *const *regions)
{
    memset(rig, 0, sizeof *rig);
    rig->store = store;
    rig->local = fake_store_open();
    rig->keep = true;
    struct weir_engine_options options = {
        .store = &rig->store->base,
        .local = with_local ? &rig->local->base : NULL,
        .rules = rules,
        .directory = directory,
        .regions = regions,
        .secret = secret,
        .decisions = decisions != 0 ? decisions : 256,
        .deadline_ns = DEADLINE,
        .lease_seed = 42,
        .done = done,
        .done_context = rig,
    };
    assert_int_equal(weir_engine_open(&rig->engine, &options), 0);
}

void rig_open(struct rig *rig, uint32_t decisions, bool with_local)
{
    open_with(rig, fake_store_open(), decisions, with_local, NULL, NULL, NULL);
}

void rig_open_rules(struct rig *rig, struct weir_rules *rules)
{
    open_with(rig, fake_store_open(), 0, false, rules, NULL, NULL);
}

void rig_open_text(struct rig *rig, const char *text)
{
    struct weir_rules *rules = rig_rules(text);
    rig_open_rules(rig, rules);
    weir_rules_unref(rules); /* the engine has them */
}

void rig_open_elsewhere(struct rig *rig, struct weir_rules *rules)
{
    open_with(rig, fake_store_open_named(), 0, true, rules, NULL, NULL);
}

void rig_open_regions(struct rig *rig, struct weir_rules *rules, struct weir_store *const *regions)
{
    open_with(rig, fake_store_open_named(), 0, true, rules, NULL, regions);
}

void rig_open_directory(struct rig *rig, struct weir_rules *rules, struct weir_directory *directory)
{
    open_with(rig, fake_store_open(), 0, false, rules, directory, NULL);
}

void rig_close(struct rig *rig)
{
    weir_engine_close(rig->engine);
    fake_store_close(rig->store);
    fake_store_close(rig->local);
}

struct weir_rules *rig_rules(const char *text)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    int err = weir_rules_parse(&rules, "rules.yaml", ".", text, strlen(text), &problems);
    if (err < 0 && problems.count > 0)
        print_error("line %u: %s\n", problems.list[0].line, problems.list[0].message);
    assert_int_equal(err, 0);
    weir_problems_free(&problems);
    return rules;
}

struct weir_limit rig_limit(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns)
{
    struct weir_limit_spec spec = {.algorithm = algorithm, .rate = rate, .window_ns = window_ns};
    struct weir_limit limit;
    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    return limit;
}

void rig_request(struct weir_request *request, const struct weir_rules *rules,
                 const char *const *pairs)
{
    weir_request_clear(request, weir_rules_attribute_count(rules));
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        int attribute = weir_rules_source(rules, pairs[i], strlen(pairs[i])).attribute;
        if (attribute == WEIR_ATTR_CLIENT_IP)
            assert_int_equal(
                weir_address_parse(&request->client, pairs[i + 1], strlen(pairs[i + 1])), 0);
        else if (attribute >= 0)
            request->values[attribute] = weir_bytes_of(pairs[i + 1]);
    }
}

struct weir_decision *rig_take(struct rig *rig, uintptr_t owner)
{
    struct weir_decision *decision = weir_engine_take(rig->engine);
    assert_non_null(decision);
    decision->owner = (void *)owner;
    return decision;
}

struct weir_check *rig_check(struct weir_decision *decision, const struct weir_limit *limit,
                             const char *key, uint64_t cost)
{
    assert_true(decision->count < WEIR_CHECKS_MAX);
    struct weir_check *check = &decision->checks[decision->count++];
    *check = (struct weir_check){
        .limit = limit, .cost = cost, .key = {key, strlen(key)}, .rule = UINT32_MAX};
    weir_siphash128(secret, key, strlen(key), check->hash);
    return check;
}

int release_lease(struct weir_engine *engine, uint64_t now_ns, struct weir_bytes token)
{
    struct weir_decision *decision = weir_engine_take(engine);
    assert_non_null(decision);
    int err = weir_engine_apply_lease(engine, decision, token);
    if (err < 0) {
        weir_engine_release(engine, decision);
        return err;
    }
    weir_engine_queue(engine, decision);
    weir_engine_run(engine, now_ns);
    assert_int_equal(decision->error, 0);
    return decision->verdict == WEIR_ALLOWED ? 0 : WEIR_ERR_NOT_FOUND;
}

struct weir_decision *rig_queue(struct rig *rig, uintptr_t owner, const struct weir_limit *limit,
                                const char *key, uint64_t cost)
{
    struct weir_decision *decision = rig_take(rig, owner);
    rig_check(decision, limit, key, cost);
    weir_engine_queue(rig->engine, decision);
    return decision;
}

void rig_expect_key(const struct weir_decision *decision, uint16_t check, const char *text)
{
    char room[WEIR_KEY_TEXT_MAX];
    assert_true(check < decision->count);
    struct weir_bytes key =
        weir_rules_key_text(weir_decision_rules(decision), &decision->checks[check], room);
    assert_int_equal(key.size, strlen(text));
    assert_memory_equal(key.data, text, key.size);
}
