/* SPDX-License-Identifier: Apache-2.0 */
/* see absence.h */
#include "library/absence.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "library/library.h"
#include "library/standing_reader.h"

#define TRY_EVERY_S 1
#define SAY_EVERY 60 /* tries */
/* While another process opens the file; weir_close waits for it. */
#define PATIENCE_NS UINT64_C(1000000000)

void weir_absence_init(struct weir_absence *absence)
{
    pthread_condattr_t attributes;
    *absence = (struct weir_absence){.err = 0};
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&absence->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&absence->lock, NULL);
}

bool weir_absence_follows(const struct weir_options *options, const char *path, int err)
{
    return path && !options->state_must_open && weir_error_fault(err) == WEIR_FAULT_STATE;
}

/* --- Beginning -------------------------------------------------------------------------------- */

static int keep_text(struct weir_absence *absence, unsigned place, const char **text)
{
    if (!*text)
        return 0;
    *text = absence->texts[place] = strdup(*text);
    return *text ? 0 : WEIR_ERR_MEMORY;
}

static int keep_options(struct weir *weir, const struct weir_rules *rules,
                        const struct weir_options *options)
{
    struct weir_absence *absence = &weir->absence;
    absence->file = library_table_options(rules, options);
    absence->file.path = library_state_file(weir, options, rules);
    absence->file.open_patience_ns = PATIENCE_NS;
    int err = keep_text(absence, 0, &absence->file.path);
    if (err == 0)
        err = keep_text(absence, 1, &absence->file.owner);
    return err == 0 ? keep_text(absence, 2, &absence->file.group) : err;
}

/* The rules once more. What is deprecated in them was said before. */
static int read_rules(struct weir *weir, struct weir_reason *reason)
{
    struct weir_problems problems = {0};
    int err = library_load(&weir->absence.rules, weir->rules_file, &problems, reason);
    weir_problems_free(&problems);
    if (err < 0)
        weir->absence.rules = NULL;
    return err;
}

int weir_absence_begin(struct weir *weir, struct weir_rules *rules,
                       const struct weir_options *options, int err, const struct weir_reason *why,
                       struct weir_reason *reason)
{
    struct weir_absence *absence = &weir->absence;
    struct weir_table *table;
    absence->err = err;
    absence->why = *why;
    reason->text[0] = '\0';
    err = keep_options(weir, rules, options);
    if (err == 0)
        err = read_rules(weir, reason);
    if (err < 0)
        return err;
    struct weir_table_options stand_in = {
        .bytes = absence->file.bytes,
        .span_percent = absence->file.span_percent,
        .span_percent_new = absence->file.span_percent_new,
        .sparse = true,
        .wall_ns = library_wall_time(weir),
        .boot_ns = library_boot_time(weir),
    };
    err = weir_table_open(&table, &stand_in, reason);
    if (err < 0)
        return err;
    absence->stand_in = table;
    weir->spare = NULL;
    atomic_store(&weir->table, table);
    return library_prepare(rules, table, reason);
}

/* --- Trying again ----------------------------------------------------------------------------- */

static void say_absent(struct weir *weir, const struct weir_reason *why)
{
    library_say(&weir->say, WEIR_SAY_ERROR,
                "cannot open the state, and tries again every second: %s; on_store_error of the "
                "limits decides meanwhile (local: by counts of this process alone)",
                why->text);
}

/* Before anybody decides on it, as weir_open does. */
static int end_dead(const struct weir *weir, struct weir_table *table)
{
    struct weir_table_owner *owner;
    uint64_t at = 0;
    if (!weir->lanes.own_leases)
        return 0;
    int err = weir_table_attach(table, &owner);
    if (err < 0)
        return err;
    (void)weir_table_end_dead(owner, &at, UINT64_MAX);
    weir_table_detach(owner);
    return 0;
}

static int open_file(struct weir *weir, struct weir_lanes_state *to, struct weir_reason *reason)
{
    struct weir_table_options file = weir->absence.file;
    file.wall_ns = library_wall_time(weir);
    file.boot_ns = library_boot_time(weir);
    *to = (struct weir_lanes_state){.absent = false};
    int err = weir_table_open(&to->table, &file, reason);
    if (err < 0)
        return err;
    err = weir_table_open_spare(&to->spare, to->table, reason);
    if (err == 0)
        err = end_dead(weir, to->table);
    if (err < 0) {
        weir_table_close(to->spare);
        weir_table_close(to->table);
    }
    return err;
}

/* Under weir->reloading. */
static int move_lanes(struct weir *weir, struct weir_lanes_state *to, struct weir_reason *reason)
{
    struct weir_absence *absence = &weir->absence;
    to->rules = absence->rules;
    int err = library_prepare(to->rules, to->table, reason);
    if (err == 0)
        err = weir_standing_lists_open(&to->lists, to->rules, reason);
    if (err < 0)
        return err;
    weir_rules_inherit(to->rules, weir->lanes.on.rules); /* which only a reload changes */
    err = weir_engine_slots_move(&weir->lanes, to);
    if (err < 0) {
        weir_standing_close(to->lists);
        return err;
    }
    weir->spare = to->spare;
    atomic_store(&weir->table, to->table);
    weir_rules_unref(absence->rules);
    absence->rules = NULL;
    return 0;
}

static void note(struct weir_absence *absence, int err, const struct weir_reason *why)
{
    pthread_mutex_lock(&absence->lock);
    absence->err = err;
    absence->why = *why;
    if (err < 0 && why->text[0] == '\0')
        snprintf(absence->why.text, sizeof absence->why.text, "%s", weir_error_text(err));
    pthread_mutex_unlock(&absence->lock);
}

/* Under weir->reloading, because a reload prepares its rules for the table that it finds. */
static int try_move(struct weir *weir, struct weir_lanes_state *to, struct weir_reason *reason)
{
    pthread_mutex_lock(&weir->reloading);
    int err = move_lanes(weir, to, reason);
    note(&weir->absence, err, reason);
    pthread_mutex_unlock(&weir->reloading);
    if (err < 0) {
        weir_table_close(to->spare);
        weir_table_close(to->table);
    }
    return err;
}

static int try_once(struct weir *weir)
{
    struct weir_lanes_state to;
    struct weir_reason reason = {""};
    int err = open_file(weir, &to, &reason);
    if (err == 0)
        return try_move(weir, &to, &reason);
    note(&weir->absence, err, &reason);
    return err;
}

/* Returns whether the weir is open still. */
static bool wait_for_next(struct weir_absence *absence)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += TRY_EVERY_S;
    pthread_mutex_lock(&absence->lock);
    while (!absence->ending &&
           pthread_cond_timedwait(&absence->changed, &absence->lock, &until) != ETIMEDOUT)
        ;
    bool ending = absence->ending;
    pthread_mutex_unlock(&absence->lock);
    return !ending;
}

static void *watch(void *context)
{
    struct weir *weir = context;
    for (unsigned tries = 1; wait_for_next(&weir->absence); tries++) {
        struct weir_reason why;
        if (try_once(weir) == 0) {
            weir_engine_slots_renew_edge(&weir->lanes);
            library_say(&weir->say, WEIR_SAY_INFO, "the state can be used again");
            break;
        }
        if (tries % SAY_EVERY == 0 && weir_absence_why(&weir->absence, &why) < 0)
            say_absent(weir, &why);
    }
    return NULL;
}

/* The program's threads are those that its signals are for. */
static int start(struct weir *weir)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&weir->absence.thread, NULL, watch, weir);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? WEIR_ERR_MEMORY : 0;
}

int weir_absence_watch(struct weir *weir)
{
    struct weir_reason why;
    if (weir_absence_why(&weir->absence, &why) == 0)
        return 0;
    say_absent(weir, &why);
    int err = start(weir);
    weir->absence.watched = err == 0;
    return err;
}

/* --- The rest --------------------------------------------------------------------------------- */

void weir_absence_set_rules(struct weir_absence *absence, struct weir_rules *rules)
{
    weir_rules_unref(absence->rules);
    absence->rules = rules;
}

int weir_absence_why(struct weir_absence *absence, struct weir_reason *reason)
{
    pthread_mutex_lock(&absence->lock);
    int err = absence->err;
    if (err < 0)
        *reason = absence->why;
    pthread_mutex_unlock(&absence->lock);
    return err;
}

void weir_absence_end(struct weir_absence *absence)
{
    if (!absence->watched)
        return;
    pthread_mutex_lock(&absence->lock);
    absence->ending = true;
    pthread_cond_signal(&absence->changed);
    pthread_mutex_unlock(&absence->lock);
    pthread_join(absence->thread, NULL);
}

void weir_absence_close(struct weir_absence *absence)
{
    weir_table_close(absence->stand_in);
    weir_rules_unref(absence->rules);
    for (unsigned i = 0; i < sizeof absence->texts / sizeof absence->texts[0]; i++)
        free(absence->texts[i]);
    pthread_cond_destroy(&absence->changed);
    pthread_mutex_destroy(&absence->lock);
}
