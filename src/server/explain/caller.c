/* SPDX-License-Identifier: Apache-2.0 */
/* see caller.h */
#include "server/explain/caller.h"

#include <string.h>

#include "core/text/hex.h"
#include "engine/engine.h"
#include "feature/identity/rules/identify.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/steps.h"
#include "rules/match/path.h"
#include "server/explain/given.h"
#include "server/text/durations.h"

/* A text is cut here. */
#define TEXT_MAX 400

void weir_explain_wait(FILE *out, const char *what, uint64_t wait_ns)
{
    char text[WEIR_DURATION_MAX];
    if (wait_ns == WEIR_NEVER)
        fprintf(out, ", %s: never", what);
    else if (wait_ns > 0)
        fprintf(out, ", %s %s", what, weir_duration_ns(text, wait_ns));
}

static void print_identity(const struct weir_explained *explained, const char *name,
                           struct weir_bytes value)
{
    FILE *out = explained->to.out;
    if (!value.data)
        return;
    fprintf(out, "%s ", name);
    weir_print_bytes(&explained->to, value.data, value.size, TEXT_MAX);
    fputc('\n', out);
}

/* Nothing of the token itself is printed. */
static void print_token(const struct weir_explained *explained)
{
    FILE *out = explained->to.out;
    const char *state =
        weir_rules_token_state(explained->rules, &explained->request, explained->query.now_ns);
    if (state && strcmp(state, "valid") == 0)
        fputs("token valid\n", out);
    else if (state)
        fprintf(out, "token refused: %s\n", state);
}

/* Where the caller's standing comes from, and when it ends. */
static void print_standing(const struct weir_explained *explained)
{
    FILE *out = explained->to.out;
    const struct weir_standing_entry *entry = &explained->caller.entry;
    if (!explained->query.map || entry->level == WEIR_STANDING_GOOD)
        return;
    fprintf(out, "standing %s, of ", weir_standing_level_name(entry->level));
    weir_print_key_bytes(&explained->to, explained->caller.by.data, explained->caller.by.size,
                         TEXT_MAX);
    fprintf(out, ", by %s",
            entry->origin == WEIR_STANDING_BY_LIST      ? "a list"
            : entry->origin == WEIR_STANDING_BY_PENALTY ? "a penalty"
                                                        : "an operator");
    if (entry->until_ns != WEIR_NEVER)
        weir_explain_wait(out, "ends after", entry->until_ns - explained->query.now_ns);
    if (entry->reason_size > 0) {
        fputs(": ", out);
        weir_print_bytes(&explained->to, entry->reason, entry->reason_size, TEXT_MAX);
    }
    fputc('\n', out);
}

/* The score, and what each signal that holds adds to it. */
static void print_score(const struct weir_explained *explained)
{
    FILE *out = explained->to.out;
    const struct weir_score_info *info = weir_rules_score(explained->rules);
    const struct weir_caller_score *score = &explained->score;
    if (!info || (explained->query.map && explained->caller.refused))
        return;
    fprintf(out, "score %u, %s\n", (unsigned)score->score, weir_class_name(score->class));
    for (uint8_t i = 0; i < info->signal_count; i++)
        if ((score->held >> i & 1) != 0)
            fprintf(out, "    %-12.*s +%u\n", (int)info->signals[i].name.size,
                    info->signals[i].name.data, (unsigned)info->signals[i].add);
    if (info->behaviour)
        fputs("    (its earlier requests are not known here: `regular`, `same_route` and "
              "`new_connections` never hold)\n",
              out);
}

/* The path as the rules see it, where that is another text than was given. */
static void print_path(const struct weir_explained *explained)
{
    struct weir_bytes raw = explained->request.values[WEIR_ATTR_PATH], path;
    char room[WEIR_PATH_MAX];
    if (!raw.data || weir_path_normalise(&path, raw, weir_rules_path_options(explained->rules),
                                         room, sizeof room, NULL) < 0)
        return;
    if (path.size != raw.size || memcmp(path.data, raw.data, path.size) != 0)
        print_identity(explained, "path", path);
}

/* What a server finds there may make all the rest different. */
static void print_looked_up(const struct weir_explained *explained)
{
    FILE *out = explained->to.out;
    char text[2 * WEIR_DIGEST_BYTES + 1];
    for (uint32_t i = 0; i < explained->looked_up.count; i++) {
        *weir_hex_write(text, explained->looked_up.digests[i], WEIR_DIGEST_BYTES) = '\0';
        fprintf(out, "a server looks up its key in Redis, which explain does not: %s%s\n",
                weir_rules_settings(explained->rules)->identities.prefix, text);
    }
}

/* What `steps` and `reject` make of the request. */
static void print_action(const struct weir_explained *explained)
{
    const struct weir_answer *answer = &explained->answer;
    FILE *out = explained->to.out;
    if (answer->action == WEIR_ACTION_NONE)
        return;
    fprintf(out, "action %s", weir_action_name(answer->action));
    if (weir_action_holds(answer->action))
        weir_explain_wait(out, "by", answer->delay_ns);
    fputc('\n', out);
}

void weir_explain_caller(const struct weir_explained *explained)
{
    weir_explain_given(explained);
    print_looked_up(explained);
    print_path(explained);
    print_identity(explained, "user", explained->identity.user);
    print_identity(explained, "org ", explained->identity.org);
    print_identity(explained, "plan", explained->identity.plan);
    print_token(explained);
    print_standing(explained);
    print_score(explained);
}

void weir_explain_strikes(const struct weir_explained *explained)
{
    weir_explain_penalties(&explained->to, &explained->query, &explained->strikes,
                           explained->decision);
}

/* The caller is suspended or revoked. */
static void print_refused(const struct weir_explained *explained)
{
    FILE *out = explained->to.out;
    const struct weir_standing_entry *entry = &explained->caller.entry;
    bool ends = entry->level != WEIR_STANDING_REVOKED && entry->until_ns != WEIR_NEVER;
    fputs("The request is denied by the caller's standing", out);
    weir_explain_wait(out, "retry after",
                      ends ? entry->until_ns - explained->query.now_ns : WEIR_NEVER);
    fputs(".\n", out);
}

void weir_explain_verdict(const struct weir_explained *explained)
{
    const struct weir_decision *decision = explained->decision;
    FILE *out = explained->to.out;
    if (explained->query.map && explained->caller.refused) {
        print_refused(explained);
        return;
    }
    print_action(explained);
    uint64_t retry_ns = 0;
    uint16_t blamed = weir_decision_blame(decision, &retry_ns);
    if (decision->verdict == WEIR_ALLOWED || blamed == UINT16_MAX) {
        fprintf(out, "The request is %s.\n",
                decision->verdict == WEIR_ALLOWED ? "allowed" : "denied");
        return;
    }
    struct weir_rule_info info;
    weir_rules_info(explained->rules, decision->checks[blamed].rule, &info);
    fprintf(out, "The request is denied by %s", info.name);
    weir_explain_wait(out, "retry after", retry_ns);
    fputs(".\n", out);
}
