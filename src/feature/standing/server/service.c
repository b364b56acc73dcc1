/* SPDX-License-Identifier: Apache-2.0 */
/* see service.h */
#include "feature/standing/server/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "core/text/hex.h"
#include "core/text/reason.h"
#include "feature/identity/rules/keys.h"
#include "feature/standing/rescue.h"
#include "feature/standing/server/sharing.h"
#include "server/daemon/state/state_guard.h"

/* How long a start waits for the history. */
#define START_MS 5000

#define HIDDEN "sha256:"
#define HIDDEN_SIZE (sizeof HIDDEN - 1)

/* --- Start and end ---------------------------------------------------------------------------- */

bool weir_standing_value_hidden(struct weir_bytes text)
{
    if (text.size != HIDDEN_SIZE + 64 || memcmp(text.data, HIDDEN, HIDDEN_SIZE) != 0)
        return false;
    for (size_t i = HIDDEN_SIZE; i < text.size; i++)
        if (!memchr("0123456789abcdef", text.data[i], 16))
            return false;
    return true;
}

static void log_map(struct weir_standing_service *service, enum weir_log_level level,
                    const char *event, const char *reason)
{
    struct weir_log_line line;

    weir_log_begin(&line, service->log, level, event);
    weir_log_text(&line, "file", service->settings->map);
    if (reason)
        weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

/* Makes the file of the map anew where it is not as it should be, and tells the processes that
 * share the state. */
static void tend_map(struct weir_standing_service *service)
{
    struct weir_reason reason = {""};
    const char *cause;
    int err = weir_standing_tend(service->map, &cause, &reason);

    if (err == 0 && cause) {
        service->tally.remakes++;
        log_map(service, WEIR_LOG_WARNING, "standing_map_made", cause);
    }
    if (err < 0 && !service->map_down)
        log_map(service, WEIR_LOG_ERROR, "standing_map_failed", reason.text);
    service->map_down = err < 0;
    if (service->table && service->settings->map)
        weir_table_expect_standing(service->table, weir_standing_generation(service->map));
}

int weir_standing_service_open_map(struct weir_standing_service *service, const uint64_t secret[2],
                                   struct weir_reason *reason)
{
    const struct weir_standing_options options = {
        .entries_max = service->settings->entries_max,
        .secret = {secret[0], secret[1]},
        .path = service->settings->map,
        .generation = service->table ? weir_table_standing(service->table) : 0,
        .remake = service->history, /* which has all that operators and penalties have set */
    };
    int err = weir_standing_create(&service->map, &options, reason);

    if (err < 0)
        return err;
    reason->text[0] = '\0';
    weir_state_guard_standing(service->map, service->log);
    return 0;
}

bool weir_standing_service_has_map(const struct weir_standing_service *service)
{
    struct weir_standing *map;
    struct weir_reason unwanted;
    bool has;

    has = weir_standing_open(&map, service->settings->map, &unwanted) == 0;
    weir_standing_close(has ? map : NULL);
    return has;
}

/* A value of the history or of Redis. Ids of secret kinds are known only with the secret that they
 * were made with; others are made of the text. */
static int value_of(const struct weir_standing_service *service,
                    const struct weir_history_entry *entry, struct weir_standing_kind *kind,
                    struct weir_standing_value *value)
{
    size_t size = entry->value.size < WEIR_LIST_VALUE_MAX ? entry->value.size : WEIR_LIST_VALUE_MAX;

    memset(value, 0, sizeof *value);
    *kind = (struct weir_standing_kind){.name = entry->kind, .address = entry->network};
    value->kind = kind;
    memcpy(value->shown, entry->value.data, size);
    if (entry->network)
        return weir_cidr_parse(&value->network, entry->value.data, entry->value.size);
    memcpy(value->id, entry->id, sizeof value->id);
    if (!service->sharing || !service->sharing->foreign)
        return 0;
    if (weir_standing_value_hidden(entry->value))
        return WEIR_ERR_NOT_FOUND;
    weir_standing_id(service->map, entry->kind, entry->value, value->id);
    return 0;
}

static int put_in_force(struct weir_standing_service *service,
                        const struct weir_standing_value *value,
                        const struct weir_standing_entry *entry)
{
    return value->kind->address ? weir_standing_set_network(service->map, &value->network, entry)
                                : weir_standing_set(service->map, value->id, entry);
}

int weir_standing_service_restore(struct weir_standing_service *service,
                                  const struct weir_history_entry *entry)
{
    struct weir_standing_value value;
    struct weir_standing_kind kind;
    int err = value_of(service, entry, &kind, &value);

    return err < 0 ? err : put_in_force(service, &value, &entry->entry);
}

/* What the history holds of one entry, in the map. */
struct restore {
    struct weir_standing_service *service;
    uint64_t lost;
};

static void restore_entry(void *context, const struct weir_history_entry *entry)
{
    struct restore *restore = context;

    restore->lost += weir_standing_service_restore(restore->service, entry) < 0;
}

static void log_lost(struct weir_standing_service *service, const char *what, uint64_t lost)
{
    struct weir_log_line line;

    if (lost == 0)
        return;
    weir_log_begin(&line, service->log, WEIR_LOG_WARNING, "standing_incomplete");
    weir_log_text(&line, "reason", what);
    weir_log_number(&line, "entries", (int64_t)lost);
    weir_log_end(&line);
}

static int restore(struct weir_standing_service *service, uint64_t now_ns,
                   struct weir_reason *reason)
{
    const struct weir_history_filter filter = {.level = -1, .now_ns = now_ns, .count = UINT64_MAX};
    struct restore restore = {service, 0};
    int err;

    if (!service->history)
        return 0;
    err = weir_history_entries(service->history, &filter, restore_entry, &restore, reason);
    log_lost(service, "entries of the history that the map has no room for", restore.lost);
    return err;
}

static void log_history(struct weir_standing_service *service, enum weir_log_level level,
                        const char *event, const char *reason)
{
    struct weir_log_line line;

    weir_log_begin(&line, service->log, level, event);
    weir_log_text(&line, "file", service->settings->file);
    if (reason)
        weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

/* Whether weir can start without the history: for now it cannot be read, and the map of the last
 * run says what is in force. */
static bool can_do_without(const struct weir_standing_service *service, int err)
{
    return (err == WEIR_ERR_IO || err == WEIR_ERR_BUSY) && weir_standing_service_has_map(service);
}

static int open_history(struct weir_standing_service *service, struct weir_reason *reason)
{
    const struct weir_history_options options = {.path = service->settings->file};
    int err = weir_history_open_within(&service->history, &options, START_MS, reason);

    if (!can_do_without(service, err))
        return err;
    service->kept.down = true;
    log_history(service, WEIR_LOG_ERROR, "standing_history_down", reason->text);
    reason->text[0] = '\0';
    return 0;
}

/* The history and the map of this node alone. */
static int open_alone(struct weir_standing_service *service, uint64_t now_ns,
                      struct weir_reason *reason)
{
    uint64_t secret[2] = {0, 0};
    int err = service->settings->file ? open_history(service, reason) : 0;

    if (err == 0 && service->history)
        weir_history_secret(service->history, secret);
    if (err == 0)
        err = weir_standing_service_open_map(service, secret, reason);
    return err == 0 ? restore(service, now_ns, reason) : err;
}

int weir_standing_service_open(struct weir_standing_service **out, struct weir_rules *rules,
                               struct weir_log *log, struct weir_table *table, uint64_t now_ns,
                               struct weir_reason *reason)
{
    struct weir_standing_service *service = calloc(1, sizeof *service);
    int err = WEIR_ERR_MEMORY;

    *out = NULL;
    if (service) {
        service->log = log;
        service->table = table;
        service->rules = weir_rules_ref_settings(rules);
        service->settings = weir_rules_settings(rules)->standing;
        err = weir_bans_open(&service->bans);
    }
    if (err == 0)
        err = weir_rules_settings(rules)->store.redis.url
                  ? weir_standing_sharing_open(service, rules, reason)
                  : open_alone(service, now_ns, reason);
    if (err < 0) {
        if (!reason->text[0])
            reason_text(reason, weir_error_text(err));
        weir_standing_service_close(service);
        return err;
    }
    tend_map(service);
    *out = service;
    return 0;
}

int weir_standing_service_join(struct weir_standing_service *service, uv_loop_t *loop,
                               struct weir_reason *reason)
{
    if (service->sharing)
        return weir_standing_sharing_join(service, loop, reason);
    if (!service->settings->file)
        return 0;
    struct weir_history *history = service->history;
    service->history = NULL;
    return weir_keeper_open(&service->keeper, history, service->settings->file, loop);
}

bool weir_standing_service_keeps(const struct weir_standing_service *service)
{
    return service->settings->file || service->sharing;
}

/* One line for each, however many there are: nobody else knows them any more. */
static void log_lost_change(void *context, const struct weir_keeper_job *job)
{
    const struct weir_standing_service *service = context;
    const struct weir_standing_entry *entry = &job->entry.entry;
    bool clears = job->op == WEIR_KEEPER_CLEAR;
    struct weir_log_line line;
    struct weir_log form; /* without the rate of the log */

    weir_log_init(&form, service->log->fd, service->log->format);
    weir_log_begin(&line, &form, WEIR_LOG_ERROR, "standing_change_lost");
    weir_log_text(&line, "change", clears ? "clear" : "set");
    weir_log_bytes(&line, "kind", job->entry.kind.data, job->entry.kind.size);
    weir_log_bytes(&line, "value", job->entry.value.data, job->entry.value.size);
    if (!clears)
        weir_log_text(&line, "standing", weir_standing_level_name(entry->level));
    if (!clears && entry->until_ns != WEIR_NEVER)
        weir_log_number(&line, "until_ms", (int64_t)(entry->until_ns / 1000000));
    if (job->put)
        weir_log_text(&line, "penalty", job->put->penalty);
    weir_log_bytes(&line, "reason", entry->reason, entry->reason_size);
    weir_log_bytes(&line, "by", job->entry.by.data, job->entry.by.size);
    weir_log_end(&line);
}

void weir_standing_service_stop(struct weir_standing_service *service)
{
    if (!service)
        return;
    if (service->sharing)
        weir_standing_sharing_stop(service);
    weir_keeper_stop(service->keeper);
    if (service->keeper && !service->sharing)
        weir_keeper_each_lost(service->keeper, log_lost_change, service);
}

void weir_standing_service_close(struct weir_standing_service *service)
{
    if (!service)
        return;
    weir_keeper_close(service->keeper);
    weir_standing_sharing_close(service);
    weir_history_close(service->history);
    weir_state_guard_forget_standing();
    weir_standing_close(service->map);
    weir_bans_close(service->bans);
    weir_standing_service_forget_lists(service);
    weir_rules_unref_settings(service->rules);
    free(service);
}

/* --- Lists ------------------------------------------------------------------------------------ */

void weir_standing_service_forget_lists(struct weir_standing_service *service)
{
    if (service->listed.rules)
        weir_rules_unref(service->listed.rules);
    service->listed.rules = NULL;
}

void weir_standing_service_set_lists(struct weir_standing_service *service,
                                     struct weir_rules *rules, struct weir_standing_lists *lists,
                                     uint64_t now_ns, uint64_t wall_ns)
{
    struct weir_standing_lost lost = weir_standing_lists_set(lists, service->map, now_ns);
    size_t count = weir_rules_settings(rules)->standing->lists_count;

    weir_standing_service_forget_lists(service);
    service->listed.rules = weir_rules_ref(rules);
    service->listed.read_ms = (int64_t)(wall_ns / 1000000);
    for (size_t i = 0; i < count; i++)
        service->listed.files[i] = *weir_standing_lists_file(lists, i);
    service->network_moves++;
    log_lost(service, "values of lists that the map has no room for", lost.count);
}

/* --- Values ----------------------------------------------------------------------------------- */

static const struct weir_standing_kind *find_kind(const struct weir_standing_settings *settings,
                                                  struct weir_bytes name)
{
    for (size_t i = 0; i < settings->kinds_count; i++)
        if (weir_bytes_equal(settings->kinds[i].name, name))
            return &settings->kinds[i];
    return NULL;
}

static void refuse_kind(const struct weir_standing_settings *settings, struct weir_bytes name,
                        struct weir_reason *reason)
{
    reason_text(reason, "kind: not one of standing.by: ");
    for (size_t i = 0; i < settings->kinds_count; i++) {
        char text[WEIR_STANDING_KIND_MAX + 3];

        snprintf(text, sizeof text, "%s%.*s", i > 0 ? ", " : "", (int)settings->kinds[i].name.size,
                 settings->kinds[i].name.data);
        reason_text(reason, text);
    }
}

int weir_standing_kind_check(const struct weir_standing_settings *settings, struct weir_bytes kind,
                             struct weir_reason *reason)
{
    if (find_kind(settings, kind))
        return 0;
    reason->text[0] = '\0';
    refuse_kind(settings, kind, reason);
    return WEIR_ERR_RANGE;
}

static void show_network(struct weir_standing_value *value)
{
    char address[WEIR_ADDRESS_TEXT_MAX];

    weir_address_format(&value->network.address, address);
    snprintf(value->shown, sizeof value->shown, "%s/%u", address, value->network.bits);
}

static int read_network(struct weir_standing_value *value, struct weir_bytes text,
                        struct weir_reason *reason)
{
    if (weir_standing_network(value->kind, text, &value->network) < 0) {
        reason_text(reason, "value: not a network or an address: write 192.0.2.1, 10.0.0.0/8 or "
                            "2001:db8::/32, without bits behind the prefix");
        return WEIR_ERR_SYNTAX;
    }
    show_network(value);
    return 0;
}

static void hide(struct weir_standing_value *value, struct weir_bytes text)
{
    uint8_t digest[WEIR_DIGEST_BYTES];

    rules_sha256(text, digest);
    memcpy(value->shown, HIDDEN, HIDDEN_SIZE);
    *weir_hex_write(value->shown + HIDDEN_SIZE, digest, sizeof digest) = '\0';
}

int weir_standing_value_read(const struct weir_standing_service *service,
                             const struct weir_standing_settings *settings, struct weir_bytes kind,
                             struct weir_bytes text, struct weir_standing_value *value,
                             struct weir_reason *reason)
{
    char room[WEIR_LIST_VALUE_MAX];

    memset(value, 0, sizeof *value);
    value->kind = find_kind(settings, kind);
    if (!value->kind) {
        refuse_kind(settings, kind, reason);
        return WEIR_ERR_RANGE;
    }
    if (value->kind->credential && text.size <= sizeof room && !weir_standing_value_hidden(text))
        text = weir_credential_form(text, room);
    if (text.size == 0 || text.size > WEIR_LIST_VALUE_MAX || memchr(text.data, '\0', text.size)) {
        reason_text(reason, "value: 1 to 1024 bytes without a NUL");
        return WEIR_ERR_SYNTAX;
    }
    if (value->kind->address)
        return read_network(value, text, reason);
    value->hidden = value->kind->secret && weir_standing_value_hidden(text);
    if (value->kind->secret && !value->hidden)
        hide(value, text);
    else
        memcpy(value->shown, text.data, text.size);
    if (!value->hidden)
        weir_standing_id(service->map, kind, text, value->id);
    return 0;
}

bool weir_standing_value_make(const struct weir_standing_kind *kind,
                              const struct weir_cidr *network, const uint64_t id[2],
                              struct weir_bytes bytes, bool hidden,
                              struct weir_standing_value *value)
{
    memset(value, 0, sizeof *value);
    value->kind = kind;
    if (kind->address) {
        value->network = *network;
        show_network(value);
        return true;
    }
    memcpy(value->id, id, sizeof value->id);
    if (bytes.size > WEIR_LIST_VALUE_MAX || (!kind->secret && memchr(bytes.data, '\0', bytes.size)))
        return false;
    if (kind->secret && !hidden)
        hide(value, bytes);
    else
        memcpy(value->shown, bytes.data, bytes.size);
    return true;
}

/* --- Changes ---------------------------------------------------------------------------------- */

static bool is_ban(const struct weir_standing_entry *entry)
{
    return entry->level == WEIR_STANDING_SUSPENDED || entry->level == WEIR_STANDING_REVOKED;
}

bool weir_standing_service_proves(const struct weir_standing_service *service,
                                  const struct weir_cidr *network,
                                  const struct weir_standing_entry *entry)
{
    return entry->origin != WEIR_STANDING_BY_PENALTY ||
           (service->penalties_proven && !weir_bans_is_shared(service->bans, network));
}

/* Tells the layer below what counts for a network after a change: entries of other origins may be
 * there, too, so a warning lifts no ban of an operator's. */
static void publish(struct weir_standing_service *service, const struct weir_standing_value *value,
                    uint64_t now_ns, bool named)
{
    struct weir_standing_entry entry;
    bool any, ban;

    if (!value->kind->address)
        return;
    any = weir_standing_find_network(service->map, &value->network, now_ns, &entry);
    ban = any && is_ban(&entry);
    service->network_moves += !ban;
    weir_bans_publish(service->bans, &value->network, ban ? entry.until_ns : 0,
                      named ||
                          (any && weir_standing_service_proves(service, &value->network, &entry)));
}

/* One line for each change: who, whom, what, until when and why. */
static void log_clear(struct weir_standing_service *service,
                      const struct weir_standing_value *value, struct weir_bytes by,
                      struct weir_bytes why)
{
    struct weir_log_line line;

    weir_log_begin(&line, service->log, WEIR_LOG_INFO, "standing_cleared");
    weir_log_bytes(&line, "kind", value->kind->name.data, value->kind->name.size);
    weir_log_text(&line, "value", value->shown);
    weir_log_bytes(&line, "reason", why.data, why.size);
    weir_log_bytes(&line, "by", by.data, by.size);
    weir_log_end(&line);
}

static void log_set(struct weir_standing_service *service, const struct weir_standing_value *value,
                    const struct weir_standing_entry *entry, struct weir_bytes by)
{
    struct weir_log_line line;

    weir_log_begin(&line, service->log, WEIR_LOG_INFO, "standing_set");
    weir_log_bytes(&line, "kind", value->kind->name.data, value->kind->name.size);
    weir_log_text(&line, "value", value->shown);
    weir_log_text(&line, "standing", weir_standing_level_name(entry->level));
    weir_log_text(&line, "origin", weir_standing_origin_name(entry->origin));
    if (entry->until_ns != WEIR_NEVER)
        weir_log_number(&line, "until_ms", (int64_t)(entry->until_ns / 1000000));
    weir_log_bytes(&line, "reason", entry->reason, entry->reason_size);
    weir_log_bytes(&line, "by", by.data, by.size);
    weir_log_end(&line);
}

int weir_standing_service_set(struct weir_standing_service *service,
                              const struct weir_standing_value *value,
                              const struct weir_standing_entry *entry, struct weir_bytes by)
{
    int err = put_in_force(service, value, entry);

    service->tally.full += err == WEIR_ERR_FULL;
    if (err < 0)
        return err;
    service->tally.sets++;
    /* What an operator names needs no proof; what a penalty does comes with its own. */
    publish(service, value, entry->since_ns, entry->origin == WEIR_STANDING_BY_OPERATOR);
    if (entry->origin != WEIR_STANDING_BY_PENALTY)
        log_set(service, value, entry, by);
    return 0;
}

static bool clear_origin(struct weir_standing_service *service,
                         const struct weir_standing_value *value, enum weir_standing_origin origin)
{
    return value->kind->address ? weir_standing_clear_network(service->map, &value->network, origin)
                                : weir_standing_clear(service->map, value->id, origin);
}

void weir_standing_service_forget(struct weir_standing_service *service,
                                  const struct weir_standing_value *value)
{
    if (clear_origin(service, value, WEIR_STANDING_BY_PENALTY)) {
        service->tally.clears++;
        publish(service, value, 0, true);
    }
}

/* Counts, publishes and logs what was cleared. */
static void note_clear(struct weir_standing_service *service,
                       const struct weir_standing_value *value, struct weir_bytes by,
                       struct weir_bytes why)
{
    service->tally.clears++;
    publish(service, value, 0, true);
    log_clear(service, value, by, why);
}

bool weir_standing_service_clear(struct weir_standing_service *service,
                                 const struct weir_standing_value *value, struct weir_bytes by,
                                 struct weir_bytes why)
{
    bool penalty = clear_origin(service, value, WEIR_STANDING_BY_PENALTY);
    bool cleared = clear_origin(service, value, WEIR_STANDING_BY_OPERATOR) || penalty;

    if (cleared)
        note_clear(service, value, by, why);
    return cleared;
}

int weir_standing_service_reported(struct weir_standing_service *service,
                                   const struct weir_history_entry *entry, bool removed)
{
    struct weir_standing_value value;
    struct weir_standing_kind kind;
    int err = value_of(service, entry, &kind, &value);

    if (err < 0)
        return err;
    if (!removed)
        return weir_standing_service_set(service, &value, &entry->entry, entry->by);
    if (clear_origin(service, &value, (enum weir_standing_origin)entry->entry.origin))
        note_clear(service, &value, entry->by,
                   (struct weir_bytes){entry->entry.reason, entry->entry.reason_size});
    return 0;
}

bool weir_standing_service_find(const struct weir_standing_service *service,
                                const struct weir_standing_value *value, uint64_t now_ns,
                                struct weir_standing_entry *entry)
{
    if (value->hidden)
        return false;
    return value->kind->address
               ? weir_standing_find_around(service->map, &value->network, now_ns, entry)
               : weir_standing_find(service->map, value->id, now_ns, entry);
}

bool weir_standing_service_stale(const struct weir_standing_service *service)
{
    return service->sharing && service->sharing->shared &&
           !weir_standing_sharing_fresh(service->sharing);
}

void weir_standing_service_reopen(struct weir_standing_service *service)
{
    weir_keeper_reopen(service->keeper);
}

/* Logs what has become of the history since the last second. */
static void watch_history(struct weir_standing_service *service)
{
    struct weir_keeper_state *kept = &service->kept, now;

    weir_keeper_state(service->keeper, &now);
    if (now.down && !kept->down)
        log_history(service, WEIR_LOG_ERROR, "standing_history_down", now.reason.text);
    if (!now.down && kept->down)
        log_history(service, WEIR_LOG_INFO, "standing_history_up", NULL);
    if (now.reopened != kept->reopened)
        log_history(service, WEIR_LOG_WARNING, "standing_history_reopened",
                    "the file was gone from its path, or another one had taken its place");
    *kept = now;
}

void weir_standing_service_tick(struct weir_standing_service *service, uint64_t now_ns)
{
    if (service->keeper && !service->sharing)
        watch_history(service);
    tend_map(service);
    weir_standing_sweep(service->map, now_ns, WEIR_STANDING_SWEEP_MAX);
}
