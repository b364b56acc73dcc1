/* SPDX-License-Identifier: Apache-2.0 */
/* see include/weir/weir.h */
#include <weir/weir.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/embed.h>

#include "core/bytes.h"
#include "library/library.h"
#include "table/file/access.h"

/* The end of 2261: no sum of a time of the state and a wait passes 64 bits. */
#define TEST_CLOCK_MAX_NS (UINT64_C(9214646400) * UINT64_C(1000000000))

/* --- Rules ------------------------------------------------------------------------------------ */

static int load(struct weir_rules **rules, const char *file, const struct library_say *say,
                struct weir_reason *reason)
{
    struct weir_problems problems = {0};
    int err = library_load(rules, file, &problems, reason);
    if (err == 0) {
        library_say_deprecated(say, &problems);
        library_say_of_reset(say, file, *rules);
    }
    weir_problems_free(&problems);
    return err;
}

struct preparing {
    struct weir_table *table;
    struct weir_reason *reason;
};

static int intern(void *context, struct weir_limit *limit, const char *name)
{
    const struct preparing *preparing = context;
    int err = weir_table_intern(preparing->table, limit);
    if (err < 0)
        snprintf(preparing->reason->text, sizeof preparing->reason->text, "limit %.64s: %s", name,
                 err == WEIR_ERR_FULL ? "no room for it in the state"
                 : err == WEIR_ERR_BUSY
                     ? "a process that shares the state file is stopped, and keeps its list of "
                       "limits locked: let it go on (SIGCONT) or end it"
                     : weir_error_text(err));
    return err;
}

static int unpin(void *context, struct weir_limit *limit, const char *name)
{
    weir_table_unpin(context, limit->id);
    return 0;
}

/* Nobody decides by these rules any more, or yet. */
static void forget(struct weir_rules *rules, struct weir_table *table)
{
    int never = weir_rules_prepare(rules, unpin, table);
    (void)never;
}

int library_prepare(struct weir_rules *rules, struct weir_table *table, struct weir_reason *reason)
{
    struct preparing preparing = {table, reason};
    int err = weir_rules_prepare(rules, intern, &preparing);
    if (err < 0)
        forget(rules, table);
    return err;
}

/* --- Opening ---------------------------------------------------------------------------------- */

struct weir_table_options library_table_options(const struct weir_rules *rules,
                                                const struct weir_options *options)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    uint64_t patience_ns = options->state_patience_ns;
    if (patience_ns == 0)
        patience_ns = WEIR_STATE_PATIENCE_DEFAULT_NS;
    return (struct weir_table_options){
        .bytes = options->state_bytes != 0 ? options->state_bytes : settings->state_bytes,
        .span_percent = settings->state_spans,
        .span_percent_new = weir_rules_span_percent(rules),
        .owner = options->state_owner ? options->state_owner : settings->state_owner,
        .group = options->state_group ? options->state_group : settings->state_group,
        .mode = options->state_mode != 0 ? options->state_mode : settings->state_mode,
        .patience_ns = patience_ns != WEIR_NEVER ? patience_ns : 0,
        .open_patience_ns = options->state_open_patience_ns,
    };
}

static int open_table(struct weir *weir, const struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    struct weir_table_options with = library_table_options(rules, options);
    struct weir_table *table;
    with.path = library_state_file(weir, options, rules);
    with.wall_ns = library_wall_time(weir);
    with.boot_ns = library_boot_time(weir);
    int err = weir_table_open(&table, &with, reason);
    weir->spare = NULL;
    if (err == 0 && with.path) {
        err = weir_table_open_spare(&weir->spare, table, reason);
        if (err < 0)
            weir_table_close(table);
    }
    if (err == 0)
        atomic_store(&weir->table, table);
    return err;
}

static void close_table(struct weir *weir)
{
    weir_table_close(weir->spare);
    if (weir->table != weir->absence.stand_in)
        weir_table_close(weir->table);
    weir->table = weir->spare = NULL;
}

static int open_guard(struct weir *weir)
{
    weir->page_size = (size_t)sysconf(_SC_PAGESIZE);
    weir->ours =
        mmap(NULL, weir->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (weir->ours == MAP_FAILED)
        return WEIR_ERR_MEMORY;
    if (madvise(weir->ours, weir->page_size, MADV_WIPEONFORK) != 0) {
        munmap(weir->ours, weir->page_size);
        return WEIR_ERR_UNSUPPORTED;
    }
    *weir->ours = 1;
    return 0;
}

/* Whether the map of standing can be read, or is not there yet. The lanes only take note. */
static int try_standing(const struct weir_rules *rules, struct weir_reason *reason)
{
    struct weir_standing_reader reader = {.map = NULL};
    int err = weir_standing_reader_open(&reader, rules, 0, reason);
    weir_standing_reader_close(&reader);
    return err;
}

int weir_standing_check(struct weir *weir, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    pthread_mutex_lock(&weir->lanes.opening);
    struct weir_rules *rules = weir_rules_ref(weir->lanes.on.rules);
    pthread_mutex_unlock(&weir->lanes.opening);
    int err = try_standing(rules, reason);
    weir_rules_unref(rules);
    return err;
}

/* The state that the rules and the options name, with the rules' limits in it. */
static int open_named(struct weir *weir, struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    int err = open_table(weir, rules, options, reason);
    if (err < 0)
        return err;
    err = library_prepare(rules, weir->table, reason);
    if (err < 0)
        close_table(weir);
    return err;
}

static int open_named_or_absent(struct weir *weir, struct weir_rules *rules,
                                const struct weir_options *options, struct weir_reason *reason)
{
    struct weir_table_options with = library_table_options(rules, options);
    with.path = library_state_file(weir, options, rules);
    int err = open_named(weir, rules, options, reason);
    if (err == 0 || !weir_absence_follows(options, with.path, err))
        return err;
    struct weir_reason why = *reason, unknown = {""};
    if (weir_table_check_access(&with, &unknown) == WEIR_ERR_NOT_FOUND) {
        *reason = unknown; /* an owner or a group that no state will ever have */
        return WEIR_ERR_NOT_FOUND;
    }
    if (why.text[0] == '\0')
        snprintf(why.text, sizeof why.text, "%s", weir_error_text(err));
    return weir_absence_begin(weir, rules, options, err, &why, reason);
}

/* A map that cannot be read is said, and standing.on_store_error decides; or it is an error. */
static int open_standing(struct weir *weir, const struct weir_rules *rules,
                         const struct weir_options *options, struct weir_reason *reason)
{
    int err = options->standing_may_fail ? 0 : try_standing(rules, reason);
    if (err == 0 || options->state_must_open || weir_error_fault(err) != WEIR_FAULT_STATE)
        return err;
    library_say(&weir->say, WEIR_SAY_ERROR,
                "cannot read the map of standing, and looks for it again: %s; on_store_error of "
                "standing decides meanwhile",
                reason->text[0] != '\0' ? reason->text : weir_error_text(err));
    reason->text[0] = '\0';
    return 0;
}

static int open_lanes(struct weir *weir, struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    struct weir_reason absent;
    struct weir_engine_slots_options lanes = {
        .on = {.table = weir->table,
               .spare = weir->spare,
               .absent = weir_absence_why(&weir->absence, &absent) < 0,
               .rules = rules},
        .strikes = &weir->strikes,
        .state_file = weir->strikes.state_file,
        .standing_may_fail = options->standing_may_fail,
        .clock = library_time,
        .clock_context = weir,
        .count = options->threads,
        .own_leases = options->leases_end_with_process,
    };
    int err = weir_standing_lists_open(&lanes.on.lists, rules, reason);
    if (err < 0)
        return err;
    err = open_guard(weir);
    if (err < 0)
        goto close_lists;
    err = weir_engine_slots_open(&weir->lanes, &lanes);
    if (err == 0)
        return 0;
    munmap(weir->ours, weir->page_size);
close_lists:
    weir_standing_close(lanes.on.lists);
    return err;
}

static int open_state(struct weir *weir, struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    int err = weir_library_strikes_open(&weir->strikes, library_state_file(weir, options, rules));
    if (err < 0)
        return err;
    weir_absence_init(&weir->absence);
    err = open_named_or_absent(weir, rules, options, reason);
    if (err == 0)
        err = open_standing(weir, rules, options, reason);
    if (err == 0)
        err = open_lanes(weir, rules, options, reason);
    if (err == 0)
        return 0;
    close_table(weir);
    weir_absence_close(&weir->absence);
    weir_library_strikes_close(&weir->strikes);
    return err;
}

static int open_all(struct weir *weir, const char *rules_file, const struct weir_options *options,
                    struct weir_reason *reason)
{
    struct weir_rules *rules;
    weir->test_ns = options->test_clock_ns;
    if (options->test_clock_ns != 0 && options->state_file) {
        snprintf(reason->text, sizeof reason->text,
                 "a clock for tests needs a state of its own: leave the state file out");
        return WEIR_ERR_UNSUPPORTED;
    }
    if (options->test_clock_ns > TEST_CLOCK_MAX_NS)
        return WEIR_ERR_RANGE;
    weir->rules_file = strdup(rules_file);
    if (!weir->rules_file)
        return WEIR_ERR_MEMORY;
    weir_attributes_open(&weir->attributes);
    weir->say = (struct library_say){options->say, options->say_context};
    weir->names_are_configured = false;
    atomic_init(&weir->unknown_told, 0);
    atomic_init(&weir->unknown_next_ns, 0);
    for (unsigned i = 0; i < LIBRARY_NEWS; i++)
        atomic_init(&weir->news_next_ns[i], 0);
    atomic_init(&weir->table, NULL);
    weir->spare = NULL;
    int err = load(&rules, rules_file, &weir->say, reason);
    if (err == 0) {
        err = weir_attributes_add_rules(&weir->attributes, rules);
        if (err == 0)
            err = open_state(weir, rules, options, reason);
        if (err == 0)
            library_look_for_keeper(weir, rules);
        weir_rules_unref(rules); /* the lanes hold it */
    }
    if (err < 0) {
        weir_attributes_close(&weir->attributes);
        free(weir->rules_file);
    }
    return err;
}

int weir_open_sized(struct weir **weir, const char *rules_file, const struct weir_options *options,
                    size_t options_size, struct weir_reason *reason)
{
    struct weir_options room;
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    *weir = NULL;
    options = library_options(options, options_size, &room);
    if (!options) {
        snprintf(reason->text, sizeof reason->text,
                 "weir_options: an option that this version of libweir does not know");
        return WEIR_ERR_UNSUPPORTED;
    }
    struct weir *w = aligned_alloc(128, (sizeof *w + 127) / 128 * 128);
    int err = WEIR_ERR_MEMORY;
    if (w)
        err = open_all(w, rules_file, options, reason);
    if (err < 0) {
        if (reason->text[0] == '\0')
            snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        free(w);
        return err;
    }
    pthread_mutex_init(&w->reloading, NULL);
    weir_table_owner_generations(w->table, w->generations);
    weir_table_lease_owners(w->table, &w->owners);
    w->looked_at = w->table;
    w->tended = 0;
    if (options->leases_end_with_process)
        library_end_dead(w, UINT64_MAX);
    err = weir_absence_watch(w);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        weir_close(w);
        return err;
    }
    *weir = w;
    return 0;
}

void weir_close(struct weir *weir)
{
    if (!weir || !library_is_ours(weir))
        return;
    weir_absence_end(&weir->absence);
    weir_engine_slots_close(&weir->lanes);
    weir_library_strikes_close(&weir->strikes);
    close_table(weir);
    weir_absence_close(&weir->absence);
    munmap(weir->ours, weir->page_size);
    pthread_mutex_destroy(&weir->reloading);
    weir_attributes_close(&weir->attributes);
    free(weir->rules_file);
    free(weir);
}

int weir_advance(struct weir *weir, uint64_t ns)
{
    if (!library_is_ours(weir) || weir->test_ns == 0)
        return WEIR_ERR_UNSUPPORTED;
    uint64_t before = atomic_load(&weir->test_ns);
    do
        if (ns > TEST_CLOCK_MAX_NS - before)
            return WEIR_ERR_RANGE;
    while (!atomic_compare_exchange_weak(&weir->test_ns, &before, before + ns));
    return 0;
}

uint64_t weir_memory(const struct weir *weir)
{
    /* The same from weir_open to weir_close, also when the file takes the place of a stand-in. */
    return weir_table_bytes(weir->absence.stand_in ? weir->absence.stand_in : weir->table);
}

/* Gives the lanes other rules. `before`: those that they have. */
static int change_rules(struct weir *weir, struct weir_rules *rules, struct weir_rules *before,
                        struct weir_reason *reason)
{
    struct weir_standing *lists;
    int err = weir_attributes_add_rules(&weir->attributes, rules);
    if (err == 0)
        err = library_prepare(rules, weir->table, reason);
    if (err < 0)
        return err;
    err = weir_standing_lists_open(&lists, rules, reason);
    if (err < 0) {
        forget(rules, weir->table);
        return err;
    }
    weir_rules_inherit(rules, before);
    err = weir_engine_slots_set_rules(&weir->lanes, rules, lists);
    if (err == 0) /* else some lane has them still */
        forget(before, weir->table);
    return err;
}

/* Under weir->reloading. Without a state the rules are read twice: see absence.h. */
static int reload(struct weir *weir, struct weir_problems *problems, struct weir_reason *reason)
{
    struct weir_rules *rules, *again = NULL, *before;
    struct weir_problems said = {0};
    struct weir_reason why;
    bool absent = weir_absence_why(&weir->absence, &why) < 0;
    int err = library_load(&rules, weir->rules_file, problems, reason);
    if (err < 0)
        return err;
    if (absent)
        err = library_load(&again, weir->rules_file, &said, reason);
    weir_problems_free(&said);
    if (err < 0)
        again = NULL;
    before = weir_rules_ref(weir->lanes.on.rules); /* which only a reload changes */
    if (err == 0)
        err = change_rules(weir, rules, before, reason);
    if (err == 0)
        library_look_for_keeper(weir, rules);
    if (err == 0 && absent)
        weir_absence_set_rules(&weir->absence, again);
    else
        weir_rules_unref(again);
    weir_rules_unref(before);
    weir_rules_unref(rules);
    return err;
}

int weir_reload(struct weir *weir, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_problems problems = {0};
    pthread_mutex_lock(&weir->reloading);
    int err = reload(weir, &problems, reason);
    pthread_mutex_unlock(&weir->reloading);
    if (err == 0)
        library_say_deprecated(&weir->say, &problems);
    weir_problems_free(&problems);
    if (err < 0 && reason->text[0] == '\0')
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

/* --- Leases ----------------------------------------------------------------------------------- */

int weir_release(struct weir *weir, const struct weir_lease_token *lease)
{
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_bytes token = {lease->text, strnlen(lease->text, sizeof lease->text)};
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_lease(lane->engine, decision, token);
    if (err == 0) {
        weir_engine_decide(lane->engine, decision, library_now(weir, lane));
        err = decision->error != 0                ? decision->error
              : decision->verdict == WEIR_ALLOWED ? 0
                                                  : WEIR_ERR_NOT_FOUND;
    }
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err;
}
