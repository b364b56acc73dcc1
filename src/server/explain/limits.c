/* SPDX-License-Identifier: Apache-2.0 */
/* see limits.h */
#include "server/explain/limits.h"

#include <inttypes.h>

#include "engine/effect/warning.h"
#include "engine/engine.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/reject.h"
#include "rules/actions/steps.h"
#include "server/explain/caller.h"
#include "server/explain/home.h"
#include "server/text/durations.h"

/* A key's text is cut here. */
#define KEY_TEXT_MAX 400

/* Where a limit's state is, and which of its key's attributes choose its place in a cluster. */
static void print_store(FILE *out, const struct weir_rules *rules, uint32_t rule)
{
    struct weir_rule_info info;
    weir_rules_info(rules, rule, &info);
    if (!weir_rules_settings(rules)->store.redis.url)
        return;
    fprintf(out, "\n    store  redis, %s", info.leased ? "leased" : "exact");
    for (uint32_t i = 0; i < info.tag_count; i++)
        fprintf(out, "%s%s", i == 0 ? ", placed by " : ", ", info.tag[i]);
}

/* "10 in 1 s: ", of a limit that has several rates. */
static void print_rate(FILE *out, const struct weir_limit_spec *spec)
{
    char window[WEIR_DURATION_MAX];
    fprintf(out, "%" PRIu64 " in %s: ", spec->rate, weir_duration_exact(window, spec->window_ns));
}

/* What one rate of a limit says. */
static void print_report(FILE *out, const struct weir_decision *decision, uint16_t i)
{
    struct weir_report report;
    weir_decision_report(decision, i, &report);
    fprintf(out, "%" PRIu64 " of %" PRIu64 " remaining", report.remaining, report.limit);
    weir_explain_wait(out, "retry after", report.retry_after_ns);
    weir_explain_wait(out, "fresh after", report.reset_after_ns);
    weir_explain_wait(out, "delayed by", decision->outcomes[i].delay_ns);
}

/* What the limit whose checks are [i, end) warns at, and the highest threshold that is reached. */
static void print_warnings(FILE *out, const struct weir_decision *decision, uint16_t i,
                           uint16_t end)
{
    const struct weir_warn_at *at =
        weir_rules_warn_at(weir_decision_rules(decision), decision->checks[i].rule);
    struct weir_warn_use use;
    uint8_t reached = weir_decision_warns(decision, i, end, at, &use);
    for (uint8_t t = 0; t < at->count; t++)
        fprintf(out, "%s%u%%", t == 0 ? "    warns  at " : ", ", (unsigned)at->percent[t]);
    if (reached > 0)
        fprintf(out, ": %" PRIu64 " of %" PRIu64 " used, %u%% reached", use.used, use.capacity,
                (unsigned)at->percent[reached - 1]);
    if (at->count > 0)
        fputc('\n', out);
}

/* What the request may use of a limit, and which keywords say so. */
static void print_scale(const struct weir_explained *explained, uint32_t rule,
                        const struct weir_check *check)
{
    FILE *out = explained->to.out;
    const struct weir_explanation *explanation = &explained->explanations[rule];
    const uint8_t *scales = explanation->scales;
    const char *standing = weir_standing_level_name(explained->caller.entry.level);
    const char *before = ": ";
    bool any = false;
    for (int cause = 0; cause < WEIR_SCALE_CAUSES; cause++)
        any = any || scales[cause] != 0;
    if (!any)
        return;
    fprintf(out, "\n    scale  %u%%", check->scale > 0 ? (unsigned)check->scale : 100U);
    if (scales[WEIR_SCALE_BY_PRIORITY] != 0) {
        fprintf(out, "%spriority %s %u%%", before, explanation->class,
                (unsigned)scales[WEIR_SCALE_BY_PRIORITY]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_ADAPTIVE] != 0) {
        fprintf(out, "%sadaptive %s (its scale: weir top)", before, explanation->controller);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_STANDING] != 0) {
        fprintf(out, "%sstanding %s %u%%", before, standing,
                (unsigned)scales[WEIR_SCALE_BY_STANDING]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_CLASS] != 0) {
        fprintf(out, "%sclass %s %u%%", before, weir_class_name(explained->score.class),
                (unsigned)scales[WEIR_SCALE_BY_CLASS]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_CHALLENGE] != 0)
        fprintf(out, "%schallenge not passed %u%%", before,
                (unsigned)scales[WEIR_SCALE_BY_CHALLENGE]);
}

/* How its denials are shaped, by the limit or by the file. */
static void print_reject(FILE *out, const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_reject *reject = weir_rules_reject_of(rules, rule);
    char duration[WEIR_DURATION_MAX];
    if (!reject)
        return;
    fprintf(out, "    reject %u", reject->status != 0 ? (unsigned)reject->status : 429U);
    if (reject->tarpit_ns != 0)
        fprintf(out, " after %s", weir_duration_exact(duration, reject->tarpit_ns));
    if (reject->above_status != 0)
        fprintf(out, ", %u for a cost above the limit", (unsigned)reject->above_status);
    if (reject->header_count > 0)
        fprintf(out, ", with %u header fields", (unsigned)reject->header_count);
    if (reject->body.count > 0)
        fprintf(out, ", with a body of %s", reject->content_type);
    else if (reject->form == WEIR_REJECT_JSON)
        fputs(", with a body of application/json", out);
    fputc('\n', out);
}

/* What the limit of a check answers below 100 %. */
static void print_steps(FILE *out, const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_steps *steps = weir_rules_steps(rules, rule);
    char duration[WEIR_DURATION_MAX];
    const char *before = "    steps  ";
    for (uint8_t i = 0; steps && i < steps->count; i++, before = ", ") {
        const struct weir_step *step = &steps->list[i];
        fprintf(out, "%s%s", before, weir_action_name(step->action));
        if (step->delay_ns != 0)
            fprintf(out, " by %s", weir_duration_exact(duration, step->delay_ns));
        fprintf(out, " from %u%%", (unsigned)step->percent);
    }
    if (steps && steps->challenge != 0)
        fprintf(out, "%schallenge from %u%%", before, (unsigned)steps->challenge);
    if (steps)
        fputc('\n', out);
}

/* A worker's decision may have the values of the key in place of its text. */
static void print_key(const struct weir_explained *explained, const struct weir_check *check)
{
    char room[WEIR_KEY_TEXT_MAX];
    struct weir_bytes key = weir_rules_key_text(explained->rules, check, room);
    weir_print_key_bytes(&explained->to, key.data, key.size, KEY_TEXT_MAX);
}

/* What a limit that applies says; its checks are [i, end). */
static void print_check(const struct weir_explained *explained, uint16_t i, uint16_t end)
{
    const struct weir_decision *decision = explained->decision;
    FILE *out = explained->to.out;
    const struct weir_check *check = &decision->checks[i];
    bool allowed = true;
    for (uint16_t rate = i; rate < end; rate++)
        allowed = allowed && decision->outcomes[rate].verdict == WEIR_ALLOWED;
    fprintf(out, "    key    ");
    print_key(explained, check);
    print_store(out, explained->rules, check->rule);
    weir_explain_home(out, explained->rules, check);
    print_scale(explained, check->rule, check);
    fprintf(out, "\n    cost   %" PRIu64 "\n    now    %s", check->cost,
            allowed ? "allows" : "denies");
    if (!weir_check_has_state(check)) {
        bool missing =
            !check->limit; /* else its floor is nothing: see feature/region/rules/region.h */
        fprintf(out, "%s\n",
                check->flags & WEIR_CHECK_UNLIMITED ? ": unlimited"
                : missing ? ": an attribute of its key is missing (on_missing: deny)"
                          : ": the floor is 0; a server asks the key's home");
        return;
    }
    for (uint16_t rate = i; rate < end; rate++) {
        fputs(rate == i ? ": " : "\n           ", out);
        if (end - i > 1)
            print_rate(out, &decision->checks[rate].limit->spec);
        print_report(out, decision, rate);
    }
    if (check->flags & WEIR_CHECK_SHADOW)
        fprintf(out, " (shadow: denies nobody)");
    fputc('\n', out);
    print_warnings(out, decision, i, end);
    print_steps(out, explained->rules, check->rule);
    print_reject(out, explained->rules, check->rule);
}

/* What the candidate of a limit says. */
static void print_candidate(FILE *out, const struct weir_decision *decision)
{
    fprintf(out, "    candidate %s", decision->verdict == WEIR_ALLOWED ? "allows" : "denies");
    for (uint16_t rate = 0; rate < decision->count; rate++) {
        fputs(rate == 0 ? ": " : "\n           ", out);
        print_rate(out, &decision->checks[rate].limit->spec);
        print_report(out, decision, rate);
    }
    fputc('\n', out);
}

/* What a limit says: by itself, or as the pool of another. */
static void print_details(const struct weir_explained *explained, uint32_t rule)
{
    const struct weir_decision *decision = explained->decision;
    FILE *out = explained->to.out;
    int16_t own = explained->explanations[rule].check;
    uint16_t i = weir_explained_find(explained, rule);
    struct weir_rule_info info;
    weir_rules_info(explained->rules, rule, &info);
    if (i != UINT16_MAX) {
        if (own < 0)
            fputs("    lends  to a limit that denies\n", out);
        print_check(explained, i, weir_decision_limit_end(decision, i));
    } else if (own >= 0 && info.pool) {
        const struct weir_check *check = &explained->checks[own];
        fprintf(out, "    key    ");
        print_key(explained, check);
        fprintf(out, "\n    cost   %" PRIu64 "\n    now    denies; its pool %s decides instead\n",
                check->cost, info.pool);
    }
    if (own >= 0 && explained->candidates[own])
        print_candidate(out, explained->candidates[own]);
}

void weir_explain_limit(const struct weir_explained *explained, uint32_t rule)
{
    struct weir_rule_info info;
    char text[WEIR_EXPLANATION_TEXT_MAX];
    struct weir_explanation shown = explained->explanations[rule];
    weir_rules_info(explained->rules, rule, &info);
    if (explained->hides && shown.secret)
        shown.wanted = "(hidden)";
    weir_explanation_text(explained->rules, &shown, text);
    fprintf(explained->to.out, "%s: %s\n", info.name, text);
    print_details(explained, rule);
}
