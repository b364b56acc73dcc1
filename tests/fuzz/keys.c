/* SPDX-License-Identifier: Apache-2.0 */
/* Keys files: any bytes load or are refused, with problems that fit on a line and are in its
 * order; what is read as plain lines means what the YAML parser makes of it; and each key that is
 * there is found, with rates that belong to the limits they stand for. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rules/compiled.h"
#include "temporary.h"

/* A limit of every kind. */
static const char rules_text[] =
    "identify: header.x-api-key\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: {api: 1/s, month: 9/month}, pro: {api: 5/s burst 9, month: unlimited} }\n"
    "limits:\n"
    "- {name: api, key: [user], algorithm: token_bucket, rate: plan}\n"
    "- {name: month, key: [user], quota: plan, rollover: 20%}\n"
    "- {name: org, key: [org], rate: 60/min, segments: 6}\n"
    "- {name: both, key: [user], rate: [10/s, 500/h]}\n"
    "- {name: slots, key: [user], algorithm: concurrency, limit: 2}\n";

static void check_problems(const struct weir_problems *problems)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        const struct weir_problem *problem = &problems->list[i];
        REQUIRE(problem->message != NULL && problem->message[0] != '\0');
        for (const char *at = problem->message; *at != '\0'; at++)
            REQUIRE((unsigned char)*at >= 0x20);
        REQUIRE(i == 0 || problems->list[i - 1].line <= problem->line);
    }
}

static struct weir_rules *load(const char *folder, const void *before, size_t before_size,
                               const uint8_t *data, size_t size)
{
    char path[64];
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    snprintf(path, sizeof(path), "%s/keys.yaml", folder);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    REQUIRE(fwrite(before, 1, before_size, file) == before_size);
    REQUIRE(fwrite(data, 1, size, file) == size);
    REQUIRE(fclose(file) == 0);
    int err = weir_rules_parse(&rules, "fuzz.yaml", folder, rules_text, sizeof(rules_text) - 1,
                               &problems);
    REQUIRE((err == 0) == (rules != NULL));
    REQUIRE((err == WEIR_ERR_RULES) == (problems.count > 0));
    check_problems(&problems);
    weir_problems_free(&problems);
    unlink(path);
    return rules;
}

static bool same_text(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void check_override(const struct weir_rules *rules, const struct weir_override *own)
{
    const struct rules_rule *rule = &rules->rules[own->rule];
    REQUIRE(own->rule < rules->rule_count && own->count <= WEIR_RATES_MAX);
    REQUIRE(rule->personal && rule->own_count > 0);
    for (uint32_t i = 0; i < own->count; i++) {
        REQUIRE(own->limits[i].spec.algorithm == rule->algorithm);
        REQUIRE(memcmp(own->limits[i].name, rule->name, rule->name_size) == 0);
        for (uint32_t k = 0; k < i; k++)
            REQUIRE(own->states[i] != own->states[k]);
    }
}

/* Whether all owners are found, and the same in both. */
static void compare(const struct weir_rules *a, const struct weir_rules *b)
{
    REQUIRE(a->keys.count == b->keys.count);
    for (uint32_t i = 0; i < a->keys.count; i++) {
        struct weir_caller one, other;
        uint32_t plan = 0, other_plan = 0;
        const uint8_t *digest = a->keys.owners[i].digest;
        REQUIRE(rules_keys_find(&a->keys, digest, &one, &plan));
        REQUIRE(rules_keys_find(&b->keys, digest, &other, &other_plan));
        REQUIRE(same_text(one.user, other.user) && same_text(one.org, other.org));
        REQUIRE(one.user.size > 0 && plan == other_plan);
        REQUIRE(one.override_count == other.override_count);
        for (uint32_t k = 0; k < one.override_count; k++) {
            const struct weir_override *own = &one.overrides[k];
            check_override(a, own);
            REQUIRE(k == 0 || one.overrides[k - 1].rule < own->rule);
            REQUIRE(own->rule == other.overrides[k].rule && own->count == other.overrides[k].count);
            REQUIRE(rules_keys_override(&a->keys, one.user, own->rule) != NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* With a comment in it that no plain line has, the YAML parser reads the same. */
    static const char comment[] = "# \xc3\xa9\n";
    char folder[TEMPORARY_MAX];
    temporary_folder(folder);
    struct weir_rules *rules = load(folder, "", 0, data, size);
    bool marked = size >= 2 && (data[0] >= 0xEF || data[0] == 0 || data[1] == 0); /* by UTF-16 */
    if (rules != NULL && !marked) {
        struct weir_rules *yaml = load(folder, comment, sizeof(comment) - 1, data, size);
        if (yaml != NULL) { /* a directive comes before comments only */
            compare(rules, yaml);
            compare(yaml, rules);
        }
        weir_rules_unref(yaml);
    }
    weir_rules_unref(rules);
    temporary_remove(folder);
    return 0;
}
