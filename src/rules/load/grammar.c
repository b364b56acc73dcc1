/* SPDX-License-Identifier: Apache-2.0 */
/* see grammar.h */
#include "rules/load/grammar.h"
#include "rules/actions/load_reject.h"

#include "feature/adaptive/rules/section.h"
#include "feature/challenge/rules/section.h"
#include "feature/envoy/rules/section.h"
#include "feature/kernel/rules/section.h"
#include "feature/penalties/rules/section.h"
#include "feature/priority/rules/section.h"
#include "feature/region/rules/section.h"
#include "feature/score/rules/section.h"
#include "feature/standing/rules/section.h"
#include "feature/sticky/rules/section.h"
#include "feature/use/rules/section.h"
#include "feature/webhook/rules/section.h"
#include "rules/load/callers.h"
#include "rules/load/jwt.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match.h"
#include "rules/load/limit/when.h"
#include "rules/load/names.h"
#include "rules/load/server/settings.h"
#include "rules/load/server/sharing.h"
#include "rules/load/server/store.h"

static const struct rules_keyword any_rate = {NULL, RULES_TEXT, .many = RULES_SEVERAL,
                                              .doc = "the rate of a limit that says `rate: plan`"};
static const struct rules_section plan_section = {.what = "a plan", .others = &any_rate};
static const struct rules_keyword any_plan = {NULL, RULES_MAPPING, .section = &plan_section,
                                              .doc = "a plan, by its name"};
static const struct rules_section plans_section = {.what = "plans", .others = &any_plan};

#define SECTION(name_, section_) name_, RULES_MAPPING, .section = &rules_section_##section_

static const struct rules_keyword keywords[] = {
    [TOP_VERSION] = {"version", RULES_CHOICE, RULES_WORDS("1"), .otherwise = "1", .absent = "1",
                     .doc = "`1`"},
    [TOP_LIMITS] = {"limits", RULES_MAPPING, .many = RULES_LISTED, .section = &rules_section_limit,
                    .flags = RULES_REQUIRED,
                    .absent = "required; `[]` is legal (only limits given in commands)",
                    .doc = "list of [limits](#limits)"},
    [TOP_ATTRIBUTES] = {"attributes", RULES_TEXT, .many = RULES_SEVERAL, .absent = "none",
                        .load = rules_load_declared,
                        .doc = "list of [names of your own](#names-of-your-own), each declared "
                               "before it is used"},
    [TOP_IDENTIFY] = {"identify", RULES_TEXT, .many = RULES_SEVERAL,
                      .absent = "`user`, `org` and `plan` are what a trusted request says",
                      .doc = "list of [sources](#who-is-calling)"},
    [TOP_KEYS] = {"keys", RULES_FILE, .absent = "no API keys are known",
                  .doc = "path of the [keys file](#keys), relative to this file's folder"},
    [TOP_STRICT_ATTRIBUTES] = {"strict_attributes", RULES_FLAG, .otherwise = "false",
                               .doc = "`true`: an [unknown name in a "
                                      "request](#names-of-your-own) of a program is an error"},
    [TOP_ON_STORE_ERROR] = {"on_store_error", RULES_CHOICE, .words = rules_failure_words,
                            .absent = "`local`",
                            .doc = "`local`, `open`, `closed`: what happens to requests [while a "
                                   "store or a state "
                                   "fails](library.md#where-nothing-can-be-decided), where "
                                   "`store`, `sticky` and a limit do not say"},
    [TOP_IDENTITIES] = {"identities", RULES_PLACE, .feature = "identities",
                        .section = &rules_section_identities, .absent = "none",
                        .server_only = "callers in Redis", .load = rules_load_identities,
                        .doc = "[callers kept in Redis](identities.md)"},
    [TOP_REPEATED_CREDENTIALS] = {"repeated_credentials", RULES_CHOICE,
                                  .words = rules_repeated_words, .otherwise = "deny",
                                  .doc = "`deny`, `first` or `last`: [several lines of a header "
                                         "that says who is calling](#repeated-credentials)"},
    [TOP_ON_UNKNOWN] = {"on_unknown", RULES_CHOICE, .words = rules_unknown_words,
                        .otherwise = "pass", .load = rules_load_on_unknown,
                        .doc = "`deny`: requests whose credentials [no source "
                               "knows](#unknown-credentials) are denied; or `pass`"},
    [TOP_JWT] = {SECTION("jwt", jwt), .absent = "no token is read", .load = rules_load_jwt,
                 .doc = "[keys and claims of JSON Web Tokens](jwt.md#settings)"},
    [TOP_PLANS] = {"plans", RULES_MAPPING, .section = &plans_section, .absent = "no plans",
                   .doc = "mapping of [plans](#plans)"},
    [TOP_DEFAULT_PLAN] = {"default_plan", RULES_NAME, .absent = "a caller may have no plan",
                          .doc = "one of `plans`"},
    [TOP_PRIORITY] = {SECTION("priority", priority), .absent = "requests have no class",
                      .load = rules_load_priority,
                      .doc = "[the class of a request](priorities.md), for the `shed` of limits"},
    [TOP_PATHS] = {SECTION("paths", paths),
                   .absent = "parameters are cut off; case and a trailing slash count",
                   .load = rules_load_paths, .doc = "[how paths are compared](#paths)"},
    [TOP_SERVER] = {SECTION("server", server), .absent = "see there", .load = rules_load_server,
                    .doc = "[listeners and workers](#the-servers-settings)"},
    [TOP_STATE] = {SECTION("state", state), .absent = "see there", .load = rules_load_state,
                   .doc = "[where counts are](#the-servers-settings)"},
    [TOP_HEADERS] = {"headers", RULES_CHOICE, .many = RULES_SEVERAL, .words = rules_header_words,
                     .otherwise = "[draft, x-epoch]", .load = rules_load_headers,
                     .doc = "of `draft`, `draft-03`, `x-epoch`, `x-delta`, `cost`, `standing`, "
                            "`dimension`; `[]` for none: [header fields of "
                            "answers](#the-servers-settings)",
                     .why = "the current draft of the IETF, and what the clients of most APIs "
                            "read: a Unix time"},
    [TOP_REJECT] = {SECTION("reject", reject_all),
                    .absent = "[problem details](http-api.md#v1auth)",
                    .load = rules_load_reject_all,
                    .doc = "[one body for all denials](actions.md#reject): form, status, header "
                           "fields, documentation"},
    [TOP_STORE] = {SECTION("store", store), .feature = "store", .absent = "this machine's memory",
                   .server_only = "counts in Redis",
                   .doc = "[the store that several machines share](distributed.md#settings)"},
    [TOP_STICKY] = {SECTION("sticky", sticky), .feature = "sticky", .absent = "one node",
                    .server_only = "counts at other nodes",
                    .doc = "[nodes without a shared store, of which one counts each "
                           "key](distributed.md#sticky-nodes)"},
    [TOP_REGIONS] = {SECTION("regions", regions), .feature = "regions", .absent = "one region",
                     .server_only = "counts in Redis",
                     .doc = "[regions that share budgets, each with its own "
                            "Redis](distributed.md#regions)"},
    [TOP_TIMEZONE] = {"timezone", RULES_TEXT, .absent = "UTC", .load = rules_load_timezone,
                      .doc = "zone of [quotas](algorithms/quota.md) and [schedules](#when) that "
                             "name none, such as `Europe/Zurich`"},
    [TOP_IDEMPOTENCY] = {SECTION("idempotency", idempotency), .absent = "10 minutes",
                         .load = rules_load_idempotency,
                         .doc =
                             "`{ life: 10min }`: how long a [repeated "
                             "request](distributed.md#requests-that-are-repeated) is recognised, "
                             "1s to 30d"},
    [TOP_SCORE] = {SECTION("score", score), .feature = "score", .absent = "clients have no class",
                   .server_only = "how clients behave", .load = rules_load_score,
                   .doc = "[what speaks against a client, added up to a class](score.md)"},
    [TOP_STANDING] = {SECTION("standing", standing), .feature = "standing",
                      .absent = "everybody is good", .load = rules_load_standing,
                      .doc = "[who is banned, throttled or trusted](standing.md)"},
    [TOP_KERNEL] = {SECTION("kernel", kernel), .feature = "kernel", .absent = "nothing",
                    .load = rules_load_kernel,
                    .doc = "[bans in the packet filter, limits of packets and "
                           "connections](kernel.md), [packets before any program](xdp.md)"},
    [TOP_PENALTIES] = {"penalties", RULES_MAPPING, .feature = "penalties", .many = RULES_LISTED,
                       .section = &rules_section_penalty, .absent = "nothing",
                       .doc = "[what repeated abuse does to a caller's standing](penalties.md)"},
    [TOP_ADAPTIVE] = {SECTION("adaptive", adaptive), .feature = "adaptive", .absent = "none",
                      .server_only = "limits that follow health", .load = rules_load_adaptive,
                      .doc = "[controllers of limits that follow health](adaptive.md)"},
    [TOP_WEBHOOK] = {SECTION("webhook", webhook), .feature = "webhook", .absent = "none",
                     .load = rules_load_webhook,
                     .doc = "[where warnings are sent](webhooks.md#the-webhook)"},
    [TOP_CHALLENGE] = {SECTION("challenge", challenge), .feature = "challenge", .absent = "none",
                       .load = rules_load_challenge,
                       .doc = "[proof of work](challenge.md#settings) for clients that have proved "
                              "nothing"},
    [TOP_ENVOY] = {SECTION("envoy", envoy), .feature = "envoy", .absent = "none",
                   .load = rules_load_envoy,
                   .doc = "[Envoy's rate limit service](envoy.md#envoy-in-the-rules-file)"},
    [TOP_DENIALS] = {SECTION("denials", denials), .feature = "use", .absent = "memory only",
                     .load = rules_load_denials,
                     .doc = "[what is kept of denied requests](use.md#the-denial-log)"},
};
const struct rules_section rules_section_file = RULES_SECTION("a rules file", keywords);

bool weir_rules_server_only(const struct weir_rules *rules, const char **key, const char **why)
{
    if (!rules->server_only)
        return false;
    *key = rules->server_only->name;
    *why = rules->server_only->server_only;
    return true;
}

const struct rules_keyword *rules_server_only(const struct rules_field fields[TOP_FIELDS])
{
    for (int i = 0; i < TOP_FIELDS; i++) {
        const struct rules_node *value = fields[i].value;
        bool empty = value && value->kind == RULES_MAP && value->size == 0;
        if (value && !empty && keywords[i].server_only)
            return &keywords[i];
    }
    return NULL;
}
