/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_json.h */
#include "server/admin/limit_json.h"

#include "feature/adaptive/server/controllers.h"
#include "feature/adaptive/server/daemon.h"
#include "feature/priority/rules/priority.h"
#include "feature/score/rules/score.h"
#include "feature/standing/rules/match.h"
#include "feature/standing/settings.h"
#include "rules/actions/reject.h"
#include "rules/actions/steps.h"
#include "rules/match/routes.h"
#include "server/admin/limit_metrics.h"

/* Of a limit that has several rates, or of a candidate. */
static json_t *rates_json(const struct weir_limit *limits, uint32_t count)
{
    json_t *rates = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_limit_spec *spec = &limits[i].spec;
        json_array_append_new(rates, json_pack("{s:I, s:f, s:I}", "rate", (json_int_t)spec->rate,
                                               "window_ms", (double)spec->window_ns / 1000000,
                                               "capacity", (json_int_t)limits[i].capacity));
    }
    return rates;
}

static json_t *candidate_json(const struct weir_rule_info *info)
{
    return json_pack("{s:s, s:o}", "algorithm",
                     weir_algorithm_name(info->candidate->spec.algorithm), "rates",
                     rates_json(info->candidate, info->candidate_count));
}

static json_t *warn_at_json(const struct weir_warn_at *at)
{
    json_t *percent = json_array();
    for (uint8_t i = 0; i < at->count; i++)
        json_array_append_new(percent, json_integer(at->percent[i]));
    return percent;
}

static json_t *step_json(uint8_t percent, uint8_t action)
{
    return json_pack("{s:i, s:s}", "at_percent", (int)percent, "action", weir_action_name(action));
}

static json_t *milliseconds(uint64_t ns)
{
    return json_integer((json_int_t)(ns / 1000000)); /* the file has whole ones */
}

static json_t *steps_json(const struct weir_steps *steps)
{
    json_t *list = json_array();
    for (uint8_t i = 0; i < steps->count; i++) {
        json_t *step = step_json(steps->list[i].percent, steps->list[i].action);
        if (step && steps->list[i].delay_ns > 0)
            json_object_set_new(step, "delay_ms", milliseconds(steps->list[i].delay_ns));
        json_array_append_new(list, step);
    }
    if (steps->challenge != 0)
        json_array_append_new(list, step_json(steps->challenge, WEIR_ACTION_CHALLENGE));
    return list;
}

static json_t *reject_json(const struct weir_reject *reject)
{
    json_t *object =
        json_pack("{s:i, s:i, s:b}", "status", reject->status > 0 ? reject->status : 429, "headers",
                  (int)reject->header_count, "body", reject->body.count > 0);
    if (object && reject->above_status > 0)
        json_object_set_new(object, "above_status", json_integer(reject->above_status));
    if (object && reject->body.count == 0 && reject->form == WEIR_REJECT_JSON)
        json_object_set_new(object, "form", json_string("json"));
    if (object && reject->tarpit_ns > 0)
        json_object_set_new(object, "tarpit_ms", milliseconds(reject->tarpit_ns));
    return object;
}

/* What `steps` and `reject` say, also that of the file. */
static void add_actions(json_t *limit, const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_steps *steps = weir_rules_steps(rules, rule);
    const struct weir_reject *reject = weir_rules_reject_of(rules, rule);
    if (steps)
        json_object_set_new(limit, "steps", steps_json(steps));
    if (reject)
        json_object_set_new(limit, "reject", reject_json(reject));
}

/* What each class may use. */
static void add_classes(json_t *limit, const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_priority *classes = weir_rules_priority(rules);
    const uint8_t *shed = weir_rules_shed(rules, rule);
    if (!shed)
        return;
    json_t *percents = json_object();
    for (uint8_t i = 0; i < classes->class_count; i++)
        json_object_set_new(percents, classes->names[i], json_integer(shed[i]));
    json_object_set_new(limit, "shed_percent", percents);
}

/* The levels of standing that may use less than all of it. */
static void add_levels(json_t *limit, const struct weir_rules *rules, uint32_t rule)
{
    const uint8_t *percents = weir_rules_by_standing(rules, rule);
    if (!percents)
        return;
    json_t *levels = json_object();
    for (uint8_t level = 0; level < WEIR_STANDING_LEVELS; level++)
        if (percents[level] < 100)
            json_object_set_new(levels, weir_standing_level_name(level),
                                json_integer(percents[level]));
    json_object_set_new(limit, "by_standing_percent", levels);
}

/* The classes of the score that may use less than all of it. */
static void add_score_classes(json_t *limit, const struct weir_rules *rules, uint32_t rule)
{
    json_t *classes = json_object();
    for (unsigned class = 0; class < WEIR_CLASSES; class ++) {
        uint8_t percent = weir_rules_by_class(rules, rule, (uint8_t) class);
        if (percent < 100)
            json_object_set_new(classes, weir_class_name((uint8_t) class), json_integer(percent));
    }
    if (json_object_size(classes) > 0)
        json_object_set(limit, "by_class_percent", classes);
    json_decref(classes);
}

/* The scale that its controller gives it now, and what each signal asks for. */
static void add_scale(json_t *limit, const struct weir_daemon *daemon, uint32_t rule)
{
    struct weir_scale_view view;
    int place = weir_rules_scale_of(daemon->rules, rule);
    if (place < 0)
        return;
    json_object_set_new(limit, "scale_percent",
                        json_integer(weir_rules_scale(daemon->rules, (uint32_t)place)));
    if (!weir_controllers_look(weir_daemon_controllers(daemon), daemon->rules, rule, &view))
        return;
    json_t *causes = json_object();
    for (int signal = 0; signal < WEIR_SIGNALS; signal++)
        if (view.causes[signal] != 0)
            json_object_set_new(causes, weir_signal_names[signal],
                                json_integer(view.causes[signal]));
    json_object_set_new(limit, "controller", json_string(view.adaptive->name));
    json_object_set_new(limit, "lowest_percent_of_hour", json_integer(view.lowest));
    if (view.number > 0)
        json_object_set_new(limit, "number", json_integer(view.number));
    if (json_object_size(causes) > 0)
        json_object_set(limit, "scale_causes_percent", causes);
    json_decref(causes);
}

json_t *weir_priority_json(const struct weir_rules *rules)
{
    static const char *const sources[] = {[RULES_PRIORITY_HEADER] = "header",
                                          [RULES_PRIORITY_PLAN] = "plan",
                                          [RULES_PRIORITY_ROUTES] = "routes"};
    const struct rules_priority *priority = weir_rules_priority(rules);
    json_t *classes = json_array();
    for (uint8_t i = 0; i < priority->class_count; i++)
        json_array_append_new(classes, json_string(priority->names[i]));
    return json_pack("{s:s, s:o, s:s}", "from", sources[priority->source], "classes", classes,
                     "default", priority->names[priority->fallback]);
}

/* What each plan admits, of a limit with `rate: plan`. */
static json_t *plans_json(const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_limit *limits;
    uint32_t count;
    json_t *plans = json_array();
    for (uint32_t plan = 0; weir_rules_rates(rules, rule, plan, &limits, &count); plan++) {
        struct weir_bytes name = weir_rules_plan_name(rules, plan);
        json_array_append_new(plans, json_pack("{s:s%, s:b, s:o}", "plan", name.data, name.size,
                                               "unlimited", count == 0, "rates",
                                               rates_json(limits, count)));
    }
    return plans;
}

json_t *weir_limit_json(struct weir_daemon *daemon, uint32_t rule)
{
    struct weir_rule_info info;
    weir_rules_info(daemon->rules, rule, &info);
    json_t *key = json_array();
    for (uint32_t i = 0; i < info.key_count; i++)
        json_array_append_new(key, json_string(info.key[i]));
    json_t *limit = json_pack("{s:s, s:s, s:o, s:b, s:b, s:b}", "name", info.name, "algorithm",
                              weir_algorithm_name(info.algorithm), "key", key, "shadow",
                              info.shadow, "by_plan", info.by_plan, "unlimited", info.unlimited);
    if (limit && info.enforce < 100)
        json_object_set_new(limit, "enforce_percent", json_integer(info.enforce));
    if (limit && info.pool)
        json_object_set_new(limit, "pool", json_string(info.pool));
    if (limit && info.candidate)
        json_object_set_new(limit, "candidate", candidate_json(&info));
    if (limit)
        weir_limit_totals_json(daemon, rule, limit);
    if (limit && info.overrides)
        json_object_set_new(limit, "overrides", json_integer(info.overrides));
    const struct weir_warn_at *warn_at = weir_rules_warn_at(daemon->rules, rule);
    if (limit && warn_at->count > 0)
        json_object_set_new(limit, "warn_at_percent", warn_at_json(warn_at));
    if (limit) {
        add_actions(limit, daemon->rules, rule);
        add_classes(limit, daemon->rules, rule);
        add_levels(limit, daemon->rules, rule);
        add_score_classes(limit, daemon->rules, rule);
        add_scale(limit, daemon, rule);
    }
    if (limit && info.by_plan)
        json_object_set_new(limit, "plans", plans_json(daemon->rules, rule));
    if (limit && info.when)
        json_object_set_new(limit, "when", json_string(info.when));
    if (limit && info.limit) {
        const struct weir_limit_spec *spec = &info.limit->spec;
        json_object_set_new(limit, "rate", json_integer((json_int_t)spec->rate));
        json_object_set_new(limit, "window_ms",
                            json_real((double)spec->window_ns / 1000000)); /* exact below 2^53 */
        json_object_set_new(limit, "capacity", json_integer((json_int_t)info.limit->capacity));
        if (info.limit_count > 1)
            json_object_set_new(limit, "rates", rates_json(info.limit, info.limit_count));
    }
    return limit;
}

json_t *weir_standing_limit_json(const struct weir_daemon *daemon)
{
    const struct weir_standing_settings *standing = weir_rules_settings(daemon->rules)->standing;
    uint64_t suspended, revoked;
    json_t *key = json_array();
    for (size_t i = 0; i < standing->kinds_count; i++)
        json_array_append_new(
            key, json_stringn(standing->kinds[i].name.data, standing->kinds[i].name.size));
    weir_daemon_standing_refusals(daemon, &suspended, &revoked);
    return json_pack("{s:s, s:s, s:o, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
                     WEIR_ANSWER_BY_STANDING, "algorithm", WEIR_ANSWER_BY_STANDING, "key", key,
                     "shadow", false, "by_plan", false, "unlimited", false, "allowed",
                     (json_int_t)0, "denied", (json_int_t)suspended + (json_int_t)revoked,
                     "suspended", (json_int_t)suspended, "revoked", (json_int_t)revoked,
                     "shadow_denied", (json_int_t)0, "evictions", (json_int_t)0, "overflows",
                     (json_int_t)0);
}
