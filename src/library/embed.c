/* SPDX-License-Identifier: Apache-2.0 */
/* see include/weir/embed.h */
#include <weir/embed.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <weir/version.h>

#include "core/bytes.h"
#include "engine/http/denial.h"
#include "engine/token/lease_token.h"
#include "feature/penalties/rules/penalty.h"
#include "feature/reserve/engine/reservation.h"
#include "feature/standing/settings.h"
#include "feature/standing/standing.h"
#include "library/check.h"
#include "library/library.h"
#include "rules/known_names.h"
#include "rules/source.h"
#include "table/file/access.h"
#include "table/file/state_file.h"
#include "wire/http/forwarded.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/socket_address.h"

#define NAME_MESSAGE (3 * WEIR_ATTRIBUTE_NAME_MAX + 128)

/* --- Rules ------------------------------------------------------------------------------------ */

int weir_rules_check_file(const char *rules_file, weir_mistake tell, void *context,
                          struct weir_reason *reason)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    int err = library_load(&rules, rules_file, &problems, reason);
    for (uint32_t i = 0; tell && i < problems.count; i++) {
        const struct weir_problem *problem = &problems.list[i];
        tell(context, problem->file, problem->line, problem->column, problem->message);
    }
    weir_problems_free(&problems);
    if (err == 0)
        weir_rules_unref(rules);
    return err;
}

/* What is wrong with one name; empty: nothing. */
static void judge_name(const struct weir_rules *rules, const char *name, char message[NAME_MESSAGE])
{
    struct weir_bytes bytes = weir_bytes_of(name);
    message[0] = '\0';
    if (bytes.size > WEIR_ATTRIBUTE_NAME_MAX) {
        snprintf(message, NAME_MESSAGE, "the name is longer than %d bytes, so no rule can read it",
                 WEIR_ATTRIBUTE_NAME_MAX);
        return;
    }
    enum weir_name_state state = weir_rules_source(rules, name, bytes.size).state;
    const char *nearest = state == WEIR_NAME_UNKNOWN ? rules_nearest_name(rules, bytes) : NULL;
    if (state == WEIR_NAME_MADE)
        snprintf(message, NAME_MESSAGE, "weir makes `%s` itself, so what is given is ignored",
                 name);
    else if (nearest)
        snprintf(message, NAME_MESSAGE,
                 "`%s` is neither built in nor declared, so it is ignored; did you mean `%s`?",
                 name, nearest);
    else if (state == WEIR_NAME_UNKNOWN)
        snprintf(message, NAME_MESSAGE,
                 "`%s` is neither built in nor declared, so it is ignored; declare it in the rules "
                 "file: `attributes: [%s]`",
                 name, name);
}

int weir_rules_check_names(const char *rules_file, const char *const *names, size_t count,
                           weir_wrong_name tell, void *context)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    struct weir_reason reason = {""};
    char message[NAME_MESSAGE];
    int err = library_load(&rules, rules_file, &problems, &reason);
    weir_problems_free(&problems);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++) {
        judge_name(rules, names[i], message);
        if (message[0] != '\0')
            tell(context, i, message);
    }
    weir_rules_unref(rules);
    return 0;
}

/* --- Before opening --------------------------------------------------------------------------- */

/* What has been found. */
struct findings {
    weir_finding tell;
    void *context;
    int err; /* the first */
};

static void find(struct findings *findings, int err, const struct weir_reason *reason)
{
    if (err == 0)
        return;
    if (findings->err == 0)
        findings->err = err;
    if (findings->tell)
        findings->tell(findings->context,
                       reason->text[0] != '\0' ? reason->text : weir_error_text(err));
}

static void check_state(struct findings *findings, struct weir_rules *rules,
                        const struct weir_options *options)
{
    struct weir_table_options table = library_table_options(rules, options);
    uint32_t limits, specs;
    struct weir_reason reason = {{0}};
    table.path = options->state_file ? options->state_file : weir_rules_settings(rules)->state_file;
    find(findings, weir_table_check_access(&table, &reason), &reason);
    int err = weir_rules_distinct(rules, &limits, &specs);
    reason.text[0] = '\0';
    if (err == 0)
        err = weir_table_check_room(&table, limits, specs, &reason);
    find(findings, err, &reason);
}

/* One that is not there yet is as good as an empty one. */
static void check_map(struct findings *findings, const struct weir_rules *rules)
{
    const char *path = weir_rules_settings(rules)->standing->map;
    struct weir_standing *map = NULL;
    struct weir_reason reason = {{0}};
    int err = path ? weir_standing_open(&map, path, &reason) : 0;
    weir_standing_close(map);
    if (err != WEIR_ERR_NOT_FOUND)
        find(findings, err, &reason);
}

int weir_open_check_sized(const char *rules_file, const struct weir_options *options,
                          size_t options_size, weir_finding tell, void *context)
{
    struct weir_options room;
    options = library_options(options, options_size, &room);
    struct findings findings = {tell, context, 0};
    struct weir_problems problems = {0};
    struct weir_reason reason = {{0}};
    struct weir_rules *rules;
    if (!options)
        find(&findings, WEIR_ERR_UNSUPPORTED, &reason);
    if (!options)
        return findings.err;
    int err = library_load(&rules, rules_file, &problems, &reason);
    weir_problems_free(&problems);
    find(&findings, err, &reason);
    if (err < 0)
        return err;
    check_state(&findings, rules, options);
    check_map(&findings, rules);
    weir_rules_unref(rules);
    return findings.err;
}

/* --- Attributes ------------------------------------------------------------------------------- */

enum weir_on_store_error weir_rules_on_store_error(const char *rules_file)
{
    static const enum weir_on_store_error words[] = {
        [WEIR_FAIL_LOCAL] = WEIR_ON_STORE_ERROR_LOCAL,
        [WEIR_FAIL_OPEN] = WEIR_ON_STORE_ERROR_OPEN,
        [WEIR_FAIL_CLOSED] = WEIR_ON_STORE_ERROR_CLOSED,
    };
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    enum weir_on_store_error says = WEIR_ON_STORE_ERROR_NONE;
    if (weir_rules_load(&rules, rules_file, &problems) == 0) {
        const struct weir_settings *settings = weir_rules_settings(rules);
        if (settings->on_store_error_given)
            says = words[settings->on_store_error];
        weir_rules_unref(rules);
    }
    weir_problems_free(&problems);
    return says;
}

const char *weir_headers_warning(const char *rules_file)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    const char *warning = NULL;
    if (weir_rules_load(&rules, rules_file, &problems) == 0) {
        warning = weir_rules_reset_warning(rules);
        weir_rules_unref(rules);
    }
    weir_problems_free(&problems);
    return warning;
}

bool weir_passes(int err, enum weir_on_store_error rules, bool open_before)
{
    if (weir_error_fault(err) != WEIR_FAULT_STATE)
        return false;
    if (rules == WEIR_ON_STORE_ERROR_NONE)
        return open_before && weir_still_takes(WEIR_REFUSED_FROM);
    return rules == WEIR_ON_STORE_ERROR_OPEN;
}

const char *weir_on_store_error_warning(enum weir_on_store_error rules, bool open_before)
{
    if (rules != WEIR_ON_STORE_ERROR_NONE || !open_before || !weir_still_takes(WEIR_REFUSED_FROM))
        return NULL;
    return "the rules file does not say what happens to requests while the state cannot be opened: "
           "they pass, and from weir " WEIR_REFUSED_FROM
           " on each process decides by its own counts; write `on_store_error: open`, "
           "`on_store_error: local` or `on_store_error: closed`";
}

int weir_state_check(struct weir *weir, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    return library_is_ours(weir) ? weir_absence_why(&weir->absence, reason) : WEIR_ERR_UNSUPPORTED;
}

int weir_penalties_check(struct weir *weir, uint64_t *lost, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    if (lost)
        *lost = atomic_load_explicit(&weir->strikes.lost, memory_order_relaxed);
    return weir_library_strikes_check(&weir->strikes, reason);
}

int weir_attribute(struct weir *weir, const char *name)
{
    return weir_attributes_add(&weir->attributes, name);
}

int weir_front(struct weir *weir, const char *name)
{
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    bool nginx = strcmp(name, "nginx") == 0;
    if (!nginx && strcmp(name, "library") != 0)
        return WEIR_ERR_RANGE;
    weir->names_are_configured = nginx;
    weir_engine_slots_set_front(&weir->lanes, nginx ? WEIR_EDGE_NGINX : WEIR_EDGE_LIBRARY);
    return 0;
}

static bool is_handle(const struct weir *weir, int attribute)
{
    return attribute >= 0 && (unsigned)attribute < weir->attributes.count;
}

const char *weir_attribute_name(const struct weir *weir, int attribute)
{
    return is_handle(weir, attribute) ? weir->attributes.names[attribute] : NULL;
}

bool weir_attribute_is_read(const struct weir *weir, int attribute)
{
    if (!is_handle(weir, attribute) || !library_is_ours(weir))
        return false;
    struct weir *shared = (struct weir *)(uintptr_t)weir; /* a lane is internally locked */
    struct weir_lane *lane = weir_engine_slots_enter(&shared->lanes);
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    const char *name = weir->attributes.names[attribute];
    bool read = weir_rules_source(rules, name, strlen(name)).state == WEIR_NAME_READ;
    weir_engine_slots_leave(lane);
    return read;
}

int weir_lane_keep(struct weir_lane **lane, struct weir *weir)
{
    *lane = NULL;
    return library_is_ours(weir) ? weir_engine_slots_keep(&weir->lanes, lane)
                                 : WEIR_ERR_UNSUPPORTED;
}

void weir_lane_give(struct weir_lane *lane)
{
    if (lane)
        weir_engine_slots_give(lane);
}

bool weir_gives_back(struct weir *weir)
{
    if (!library_is_ours(weir))
        return false;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    bool refunds = weir_rules_refunds(weir_engine_rules(lane->engine));
    weir_engine_slots_leave(lane);
    return refunds;
}

/* --- After the request ------------------------------------------------------------------------ */

static struct weir_bytes text_of(const struct weir_reservation_token *reservation)
{
    return (struct weir_bytes){reservation->text,
                               strnlen(reservation->text, sizeof reservation->text)};
}

static int settle(struct weir *weir, const struct weir_reservation_token *reservation,
                  const struct weir_settle *how)
{
    struct weir_settled settled;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_settle(lane->engine, decision, text_of(reservation), how,
                                       library_now(weir, lane));
    if (err == 0) {
        library_decide(weir, lane, decision);
        weir_engine_settled(decision, &settled);
        if (settled.failed)
            err = WEIR_ERR_BUSY;
    }
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err;
}

int weir_settle(struct weir *weir, const struct weir_reservation_token *reservation, uint64_t cost)
{
    const struct weir_settle how = {.how = WEIR_SETTLE_COST, .cost = cost};
    return settle(weir, reservation, &how);
}

/* Most outcomes change nothing, and then no record of them is made. */
static bool gives_back(struct weir *weir, unsigned status)
{
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    uint32_t count = weir_rules_count(rules), i = 0;
    while (i < count && !weir_rules_gives_back(rules, i, status))
        i++;
    weir_engine_slots_leave(lane);
    return i < count;
}

/* Whether it is a token of this state, be its life over or not: else an outcome that changes
 * nothing would hide that a program reports what it never reserved. */
static int check_token(struct weir *weir, const struct weir_reservation_token *reservation,
                       const struct weir_settle *how)
{
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_settle(lane->engine, decision, text_of(reservation), how,
                                       library_now(weir, lane));
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err == WEIR_ERR_SYNTAX ? err : 0;
}

int weir_report(struct weir *weir, const struct weir_reservation_token *reservation,
                unsigned status)
{
    const struct weir_settle how = {.how = WEIR_SETTLE_STATUS, .status = status};
    if (status < WEIR_STATUS_MIN || status > WEIR_STATUS_MAX)
        return WEIR_ERR_RANGE;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    return gives_back(weir, status) ? settle(weir, reservation, &how)
                                    : check_token(weir, reservation, &how);
}

bool weir_is_strike(struct weir *weir, unsigned status)
{
    if (!library_is_ours(weir))
        return false;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    bool strikes = weir_rules_strikes(weir_engine_rules(lane->engine), status);
    weir_engine_slots_leave(lane);
    return strikes;
}

/* Whether the request of this place is the last in its queue. */
static bool is_last(struct weir *weir, struct weir_lane *lane, const struct weir_queue_place *place)
{
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    decision->checks[0] =
        (struct weir_check){.hash = {place->hash[0], place->hash[1]}, .rule = UINT32_MAX};
    decision->count = 1;
    decision->op = WEIR_OP_LOOK;
    library_decide(weir, lane, decision);
    bool last = decision->error == 0 && decision->verdict == WEIR_ALLOWED &&
                decision->now_ns + decision->outcomes[0].report.reset_after_ns == place->until_ns;
    weir_engine_release(lane->engine, decision);
    return last;
}

int weir_cancel(struct weir *weir, const struct weir_reservation_token *reservation)
{
    struct weir_settle how = {.how = WEIR_SETTLE_RELEASE};
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    for (unsigned i = 0; i < reservation->place_count && i < WEIR_LIMITS_MAX; i++)
        if (!is_last(weir, lane, &reservation->places[i]))
            how.keep |= UINT32_C(1) << reservation->places[i].part % WEIR_LIMITS_MAX;
    weir_engine_slots_leave(lane);
    return settle(weir, reservation, &how);
}

/* --- Leases that live with their process -------------------------------------------------------
 */

int weir_renew(struct weir *weir, const struct weir_lease_token *lease)
{
    struct weir_lease_fields fields;
    struct weir_bytes token = {lease->text, strnlen(lease->text, sizeof lease->text)};
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    int err = weir_lease_token_read(&fields, token);
    if (err < 0)
        return err;
    if (fields.place != WEIR_LEASE_TOKEN_TABLE) /* of the memory that decides while it is stopped */
        return WEIR_ERR_NOT_FOUND;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_table_owner *owner = weir_store_embedded_owner(lane->store);
    uint64_t now_ns = library_now(weir, lane);
    for (uint16_t i = 0; i < fields.count; i++) {
        int one = weir_table_renew(owner, now_ns, fields.hash[i], fields.id);
        if (err == 0)
            err = one;
    }
    weir_engine_slots_leave(lane);
    return err;
}

/* About 3 ms: a call is to hold up nobody. */
#define TEND_BUCKETS 65536

/* Whether an owner of a slot has died since the last look, at which `before` was alive (0: none
 * was) and `generation` was the slot's: one of then, or one that has come and gone meanwhile. */
static bool has_died(uint64_t before, uint32_t generation, uint64_t alive, uint32_t last)
{
    if (before != 0 && before != alive)
        return true;
    return last != generation && (alive == 0 || last != generation + 1);
}

/* Notes who is alive. Returns whether an owner is no more. The generations are read first: who
 * attaches meanwhile is new at the next look, too. */
static bool has_lost_owner(struct weir *weir)
{
    struct weir_lease_owners now;
    uint32_t generations[WEIR_LEASE_OWNERS];
    const struct weir_table *table = weir->table;
    bool lost = false, same = table == weir->looked_at;
    weir->looked_at = table;
    weir_table_owner_generations(table, generations);
    weir_table_lease_owners(table, &now);
    for (unsigned i = 0; i < WEIR_LEASE_OWNERS; i++) {
        if (now.id[i] != 0)
            generations[i] = (uint32_t)(now.id[i] / WEIR_LEASE_OWNERS);
        lost |=
            same && has_died(weir->owners.id[i], weir->generations[i], now.id[i], generations[i]);
        weir->generations[i] = generations[i];
    }
    weir->owners = now;
    return lost;
}

/* A death begins the walk anew: what it has left behind may be in front of it. */
long weir_tend(struct weir *weir)
{
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    weir_engine_slots_renew_edge(&weir->lanes);
    bool lost = has_lost_owner(weir);
    if (!lost && weir->tended == 0)
        return 0;
    if (lost)
        weir->tended = 0;
    return (long)library_end_dead(weir, TEND_BUCKETS);
}
