/* SPDX-License-Identifier: Apache-2.0 */
/* see params.h */
#include "table/params.h"

#include <fcntl.h>
#include <string.h>

#include "base/shared_file.h"
#include "core/cell.h"
#include "core/text/siphash.h"
#include "table/owner.h"
#include "table/sweep.h"
#include "table/undo.h"

/* table_param.live */
enum { PARAM_NONE, PARAM_LIVE, PARAM_DROPPED };

static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    /* The analyzer takes the address of a member for NULL when a table has few parameters. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments &&
           memcmp(&a->strict, &b->strict, sizeof a->strict) == 0 && /* any byte, in a file */
           a->rollover == b->rollover && a->calendar == b->calendar;
}

/* Specs and names are configuration, so that hashing them needs no secret. */
static uint64_t hash_of(const void *data, size_t size)
{
    const uint64_t key[2] = {0, 0};
    uint64_t hash[2];

    weir_siphash128(key, data, size, hash);
    return hash[0];
}

/* Names of accounts that differ from those of all named limits, which are odd. */
#define ACCOUNT_OF_COMMANDS 2
#define ACCOUNT_OF_OTHERS WEIR_TABLE_OTHERS

uint64_t params_account_name(const char *name)
{
    return name ? hash_of(name, strlen(name)) | 1 : ACCOUNT_OF_COMMANDS;
}

bool params_account_is_shared(uint64_t name)
{
    return name % 2 == 0;
}

/* Whether the list is so full that new named limits share places. */
static bool params_is_crowded(const struct weir_table *table)
{
    return weir_table_param_count(table) >= table->fixed.params_max / 4 * 3;
}

/* Where the search for a spec starts. */
static uint32_t first_probe(const struct weir_table *table, const struct weir_limit_spec *spec,
                            uint64_t name)
{
    const uint64_t words[] = {spec->algorithm, spec->rate,     spec->window_ns,
                              spec->burst,     spec->segments, spec->strict,
                              spec->rollover,  spec->calendar, name};

    return (uint32_t)(hash_of(words, sizeof words) % table->fixed.params_max);
}

static bool is_of_account(const struct weir_table *table, const struct table_param *param,
                          uint64_t name)
{
    uint32_t account = __atomic_load_n(&param->account, __ATOMIC_RELAXED);

    return account < table->fixed.params_max && table->accounts[account].name == name;
}

/* The parameters of this spec and account; else NULL, and *vacant is a place for them (NULL: none
 * is free). */
static struct table_param *lookup_spec(const struct weir_table *table,
                                       const struct weir_limit_spec *spec, uint64_t name,
                                       struct table_param **vacant)
{
    uint32_t count = table->fixed.params_max, at = first_probe(table, spec, name);

    *vacant = NULL;
    for (uint32_t tries = 0; tries < count; tries++, at = at + 1 < count ? at + 1 : 0) {
        struct table_param *param = &table->params[at];
        uint32_t live = __atomic_load_n(&param->live, __ATOMIC_ACQUIRE);

        if (live == PARAM_LIVE) {
            if (same_spec(&param->limit.spec, spec) && is_of_account(table, param, name))
                return param;
            continue;
        }
        if (!*vacant)
            *vacant = param;
        if (live == PARAM_NONE)
            break;
    }
    return NULL;
}

/* The account of this name: the existing one, or an empty place. There are as many places as
 * parameters, so that there is one for each. */
static uint32_t find_account(const struct weir_table *table, uint64_t name)
{
    uint32_t count = table->fixed.params_max, at = (uint32_t)(name % count), vacant = count;

    for (uint32_t tries = 0; tries < count; tries++, at = at + 1 < count ? at + 1 : 0) {
        const struct table_account *account = &table->accounts[at];

        if (account->params > 0 && account->name == name)
            return at;
        if (account->params == 0 && vacant == count)
            vacant = at;
        if (account->name == 0)
            break;
    }
    return vacant < count ? vacant : 0;
}

/* Adds parameters to an account. Its count rises before they are added and falls after they are
 * dropped, so that a death in between leaves an account that looks used. */
static void open_account(struct weir_table *table, uint32_t at, uint64_t name)
{
    struct table_account *account = &table->accounts[at];

    if (account->params == 0) {
        *account = (struct table_account){.name = name};
        __atomic_fetch_add(&table->header->accounts, 1, __ATOMIC_RELAXED);
    }
    account->params++;
}

static void close_account(struct weir_table *table, uint32_t at)
{
    if (at < table->fixed.params_max && --table->accounts[at].params == 0)
        __atomic_fetch_sub(&table->header->accounts, 1, __ATOMIC_RELAXED);
}

static void publish(struct weir_table *table, struct table_param *param,
                    const struct weir_limit *limit, uint64_t name)
{
    uint32_t account = find_account(table, name);

    open_account(table, account, name);
    memset(&param->limit, 0, sizeof param->limit);
    param->limit = *limit;
    param->limit.id = (uint16_t)(param - table->params + 1);
    /* Pointers of this process have no meaning to others. */
    param->limit.name = NULL;
    param->limit.local = NULL;
    param->limit.spec.bounds = NULL;
    param->limit.spec.bound_count = 0;
    param->account = account;
    param->chunks = 0;
    param->until_ns = 0;
    memset(param->cell, 0, sizeof param->cell);
    param->check = layout_param_check(param);
    param->pinned = param->swept = 0;
    UNDO_BARRIER();
    __atomic_store_n(&param->live, PARAM_LIVE, __ATOMIC_RELEASE);
    table->header->params_live++;
}

/* A holder may walk the whole list, which takes longer than other locks are held. */
#define PATIENCES 10
#define NAP_NS 1000000

int params_lock(const struct weir_table *table)
{
    uint64_t patience_ns = table->patience_ns == 0 ? UINT64_MAX : PATIENCES * table->patience_ns;

    return table->fd < 0 ? 0 : weir_file_lock_within(table->fd, LOCK_INTERN, patience_ns, NAP_NS);
}

void params_unlock(const struct weir_table *table)
{
    if (table->fd >= 0)
        (void)weir_file_lock(table->fd, LOCK_INTERN, F_UNLCK);
}

static uint64_t *pins_of(const struct weir_table *table, uint32_t owner)
{
    return &table->pins[owner * layout_pin_words(&table->fixed)];
}

void params_pin(struct weir_table *table, uint16_t id)
{
    uint32_t index = id - 1u;

    table->params[index].pinned++;
    params_set_swept(&table->params[index], 0); /* a sweep that runs leaves it */
    table->pinned[index]++;
    pins_of(table, table->service->index)[index / 64] |= UINT64_C(1) << index % 64;
}

void params_unpin(struct weir_table *table, uint16_t id)
{
    uint32_t index = id - 1u;

    if (table->pinned[index] > 0 && --table->pinned[index] == 0)
        pins_of(table, table->service->index)[index / 64] &= ~(UINT64_C(1) << index % 64);
}

void weir_table_unpin(struct weir_table *table, uint16_t id)
{
    if (id == 0 || id > table->fixed.params_max)
        return;
    pthread_mutex_lock(&table->mutex);
    params_unpin(table, id);
    pthread_mutex_unlock(&table->mutex);
}

void params_forget_pins(struct weir_table *table, uint32_t owner)
{
    memset(pins_of(table, owner), 0, layout_pin_words(&table->fixed) * 8);
}

void params_pinned(const struct weir_table *table, struct params_set *pinned)
{
    uint64_t words = layout_pin_words(&table->fixed);

    memset(pinned, 0, sizeof *pinned);
    for (uint32_t owner = 0; owner < table->fixed.owners_max; owner++) {
        const uint64_t *pins = pins_of(table, owner);
        uint64_t any = 0;

        for (uint64_t i = 0; i < words; i++)
            any |= pins[i];
        if (any == 0 || !owner_is_alive(table, owner))
            continue;
        for (uint64_t i = 0; i < words; i++)
            pinned->words[i] |= pins[i];
    }
}

/* Finds or adds parameters, under the locks. When limits have taken most of the list, new ones
 * share parameters with all others of the same numbers, and one account. */
static struct table_param *intern(struct weir_table *table, const struct weir_limit *limit,
                                  uint64_t name)
{
    struct table_param *vacant, *param = lookup_spec(table, &limit->spec, name, &vacant);

    if (!param && name != ACCOUNT_OF_COMMANDS && params_is_crowded(table)) {
        name = ACCOUNT_OF_OTHERS;
        param = lookup_spec(table, &limit->spec, name, &vacant);
    }
    if (param || limit->span_words > SPAN_WORDS_MAX || !vacant)
        return param;
    publish(table, vacant, limit, name);
    return vacant;
}

int params_intern(struct weir_table *table, struct weir_limit *limit, uint64_t name)
{
    struct table_param *param = intern(table, limit, name);

    if (!param)
        return WEIR_ERR_FULL;
    limit->id = (uint16_t)(param - table->params + 1);
    return 0;
}

bool params_are(const struct weir_table *table, const struct weir_limit *limit)
{
    const struct table_param *param = &table->params[limit->id - 1];

    return __atomic_load_n(&param->live, __ATOMIC_ACQUIRE) == PARAM_LIVE &&
           same_spec(&param->limit.spec, &limit->spec);
}

void params_place(struct weir_table *table, const struct weir_limit *limit)
{
    publish(table, &table->params[limit->id - 1], limit, params_account_name(limit->name));
}

/* As params_intern, and pins. */
static int intern_and_pin(struct weir_table *table, struct weir_limit *limit, uint64_t name)
{
    int err = params_lock(table);

    if (err < 0)
        return err;
    err = params_intern(table, limit, name);
    if (err == 0)
        params_pin(table, limit->id);
    params_unlock(table);
    return err;
}

/* Frees unused places; `pressure`: also those of unpinned limits that have states, which are
 * evicted. */
static void sweep_all(struct weir_table *table, bool pressure)
{
    uint64_t now_ns = __atomic_load_n(&table->header->mark_ns, __ATOMIC_RELAXED);

    sweep_close(table);
    while (sweep_step(table, now_ns, table->fixed.buckets, pressure))
        continue;
}

int weir_table_intern(struct weir_table *table, struct weir_limit *limit)
{
    uint64_t name = params_account_name(limit->name);
    int err;

    if (limit->span_words > SPAN_WORDS_MAX)
        return WEIR_ERR_FULL;
    pthread_mutex_lock(&table->mutex);
    err = intern_and_pin(table, limit, name);
    for (int pressure = 0; pressure < 2 && err == WEIR_ERR_FULL; pressure++) {
        sweep_all(table, pressure);
        err = intern_and_pin(table, limit, name);
    }
    pthread_mutex_unlock(&table->mutex);
    return err;
}

bool weir_table_tidy(struct weir_table *table, uint64_t now_ns, uint64_t buckets)
{
    uint32_t live = weir_table_param_count(table), most = table->fixed.params_max;
    bool more = false;

    pthread_mutex_lock(&table->mutex);
    if (table->sweep || live > most / 2)
        more = sweep_step(table, now_ns, buckets, live > most - most / 8);
    pthread_mutex_unlock(&table->mutex);
    return more;
}

bool weir_table_knows(const struct weir_table *table, const struct weir_limit *limit)
{
    struct table_param *vacant;

    return lookup_spec(table, &limit->spec, params_account_name(limit->name), &vacant);
}

void weir_table_limit_stats(const struct weir_table *table, const char *name,
                            struct weir_table_limit_stats *stats)
{
    uint64_t wanted = params_account_name(name);
    const struct table_account *account = &table->accounts[find_account(table, wanted)];

    *stats = (struct weir_table_limit_stats){0, 0};
    if (account->name != wanted)
        return;
    stats->evictions = __atomic_load_n(&account->evictions, __ATOMIC_RELAXED);
    stats->overflows = __atomic_load_n(&account->overflows, __ATOMIC_RELAXED);
}

uint32_t weir_table_accounts(const struct weir_table *table)
{
    return table->fixed.params_max;
}

void weir_table_account(const struct weir_table *table, uint32_t number,
                        struct weir_table_account *account)
{
    const struct table_account *at = &table->accounts[number];

    account->name = __atomic_load_n(&at->name, __ATOMIC_RELAXED);
    account->stats.evictions = __atomic_load_n(&at->evictions, __ATOMIC_RELAXED);
    account->stats.overflows = __atomic_load_n(&at->overflows, __ATOMIC_RELAXED);
}

uint64_t weir_table_account_name(const char *name)
{
    return params_account_name(name);
}

uint32_t weir_table_param_count(const struct weir_table *table)
{
    return __atomic_load_n(&table->header->params_live, __ATOMIC_RELAXED);
}

void params_drop(struct weir_table *table, struct table_param *param)
{
    __atomic_store_n(&param->chunks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&param->live, PARAM_DROPPED, __ATOMIC_RELEASE);
    table->header->params_live--;
    close_account(table, __atomic_load_n(&param->account, __ATOMIC_RELAXED));
}

bool params_is_dropped(const struct weir_table *table, uint16_t id)
{
    return id > 0 && id <= table->fixed.params_max && table->params[id - 1].live == PARAM_DROPPED;
}

void params_count(struct weir_table *table)
{
    struct table_header *header = table->header;

    for (uint32_t i = 0; i < table->fixed.params_max; i++)
        table->accounts[i].params = 0;
    header->accounts = header->params_live = 0;
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        uint32_t account = __atomic_load_n(&table->params[i].account, __ATOMIC_RELAXED);

        if (table->params[i].live != PARAM_LIVE || account >= table->fixed.params_max)
            continue;
        header->accounts += table->accounts[account].params++ == 0;
        header->params_live++;
    }
}

bool params_consistent(const struct weir_table *table)
{
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        const struct table_param *param = &table->params[i];
        struct weir_limit compiled;

        if (param->live == PARAM_NONE || param->live == PARAM_DROPPED)
            continue;
        if (param->live != PARAM_LIVE || param->check != layout_param_check(param) ||
            !limit_copy_compile(param, (uint16_t)(i + 1), &compiled))
            return false;
        if (param->account >= table->fixed.params_max)
            return false;
    }
    return true;
}
