/* see params.h */
#include "table/params.h"

#include <fcntl.h>
#include <string.h>

#include "core/cell.h"
#include "core/siphash.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/undo.h"

/* table_param.live */
enum { PARAM_NONE, PARAM_LIVE, PARAM_DROPPED };

static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    /* The analyzer takes the address of a member for NULL when a table has few parameters. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments && a->strict == b->strict &&
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

/* The name of an account; never 0. */
static uint64_t account_name(const char *name)
{
    return name != NULL ? hash_of(name, strlen(name)) | 1 : 2;
}

/* Where the search for a spec starts. */
static uint32_t first_probe(const struct weir_table *table, const struct weir_limit_spec *spec,
                            uint64_t name)
{
    const uint64_t words[] = {spec->algorithm, spec->rate,     spec->window_ns,
                              spec->burst,     spec->segments, spec->strict,
                              spec->rollover,  spec->calendar, name};

    return (uint32_t)(hash_of(words, sizeof words) % table->header->params_max);
}

static bool is_of_account(const struct weir_table *table, const struct table_param *param,
                          uint64_t name)
{
    return param->account < table->header->params_max &&
           table->accounts[param->account].name == name;
}

/* The parameters of this spec and account; else NULL and *vacant is where they may go (NULL:
 * nowhere). */
static struct table_param *lookup_spec(const struct weir_table *table,
                                       const struct weir_limit_spec *spec, uint64_t name,
                                       struct table_param **vacant)
{
    uint32_t count = table->header->params_max, at = first_probe(table, spec, name);

    *vacant = NULL;
    for (uint32_t tries = 0; tries < count; tries++, at = at + 1 < count ? at + 1 : 0) {
        struct table_param *param = &table->params[at];
        uint32_t live = __atomic_load_n(&param->live, __ATOMIC_ACQUIRE);

        if (live == PARAM_LIVE) {
            if (same_spec(&param->limit.spec, spec) && is_of_account(table, param, name))
                return param;
            continue;
        }
        if (*vacant == NULL)
            *vacant = param;
        if (live == PARAM_NONE)
            break;
    }
    return NULL;
}

/* The account of this name: the one that is there, or an empty place for it. There are as many
 * places as parameters, so that there is one for the last parameters too. */
static uint32_t find_account(const struct weir_table *table, uint64_t name)
{
    uint32_t count = table->header->params_max, at = (uint32_t)(name % count), vacant = count;

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

/* Adds parameters to an account. Its count comes before them and goes after them, so that whoever
 * dies in between leaves an account that looks used. */
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
    if (--table->accounts[at].params == 0)
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
    /* What is this process' own has no meaning to others. */
    param->limit.name = NULL;
    param->limit.local = NULL;
    param->limit.spec.bounds = NULL;
    param->limit.spec.bound_count = 0;
    param->account = account;
    param->chunks = 0;
    param->until_ns = 0;
    memset(param->cell, 0, sizeof param->cell);
    param->check = layout_param_check(param);
    UNDO_BARRIER();
    __atomic_store_n(&param->live, PARAM_LIVE, __ATOMIC_RELEASE);
}

static int file_lock(const struct weir_table *table, short type)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)LOCK_INTERN, .l_len = 1};

    return table->fd < 0 ? 0 : fcntl(table->fd, F_OFD_SETLKW, &lock);
}

int params_intern(struct weir_table *table, struct weir_limit *limit, uint64_t name)
{
    struct table_param *vacant, *param = lookup_spec(table, &limit->spec, name, &vacant);

    if (param == NULL) {
        pthread_mutex_lock(&table->mutex);
        if (file_lock(table, F_WRLCK) != 0) {
            pthread_mutex_unlock(&table->mutex);
            return WEIR_ERR_IO;
        }
        param = lookup_spec(table, &limit->spec, name, &vacant); /* another may have been faster */
        if (param == NULL && limit->span_words <= SPAN_WORDS_MAX && vacant != NULL) {
            publish(table, vacant, limit, name);
            param = vacant;
        }
        file_lock(table, F_UNLCK);
        pthread_mutex_unlock(&table->mutex);
    }
    if (param == NULL)
        return WEIR_ERR_FULL;
    limit->id = param->limit.id;
    return 0;
}

int weir_table_intern(struct weir_table *table, struct weir_limit *limit)
{
    return params_intern(table, limit, account_name(limit->name));
}

bool weir_table_knows(const struct weir_table *table, const struct weir_limit *limit)
{
    struct table_param *vacant;

    return lookup_spec(table, &limit->spec, account_name(limit->name), &vacant) != NULL;
}

void weir_table_limit_stats(const struct weir_table *table, const char *name,
                            struct weir_table_limit_stats *stats)
{
    uint64_t wanted = account_name(name);
    const struct table_account *account = &table->accounts[find_account(table, wanted)];

    *stats = (struct weir_table_limit_stats){0, 0};
    if (account->name != wanted)
        return;
    stats->evictions = __atomic_load_n(&account->evictions, __ATOMIC_RELAXED);
    stats->overflows = __atomic_load_n(&account->overflows, __ATOMIC_RELAXED);
}

uint32_t weir_table_param_count(const struct weir_table *table)
{
    uint32_t live = 0;

    for (uint32_t i = 0; i < table->header->params_max; i++)
        live += __atomic_load_n(&table->params[i].live, __ATOMIC_RELAXED) == PARAM_LIVE;
    return live;
}

/* Counts what each account has anew: whoever died while adding parameters has counted them. */
static void count_accounts(struct weir_table *table)
{
    uint32_t count = table->header->params_max;

    for (uint32_t i = 0; i < count; i++)
        table->accounts[i].params = 0;
    table->header->accounts = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (table->params[i].live != PARAM_LIVE)
            continue;

        struct table_account *account = &table->accounts[table->params[i].account];

        table->header->accounts += account->params++ == 0;
    }
}

/* Whether more than half of the parameters are taken: sweeping walks the whole table. */
static bool crowded(const struct weir_table *table)
{
    return weir_table_param_count(table) > table->header->params_max / 2;
}

void params_sweep(struct weir_table *table, uint64_t now_ns)
{
    uint64_t used[(WEIR_TABLE_PARAMS_MAX + 63) / 64 + 1] = {0};

    count_accounts(table);
    if (!crowded(table))
        return;
    for (uint64_t b = 0; b < table->header->buckets; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            uint32_t id = table->buckets[b].param[i];

            if (id <= WEIR_TABLE_PARAMS_MAX)
                used[id / 64] |= UINT64_C(1) << id % 64;
        }
    for (uint32_t i = 0; i < table->header->params_max; i++) {
        struct table_param *param = &table->params[i];
        uint32_t id = i + 1;

        if (param->live != PARAM_LIVE || (used[id / 64] >> id % 64 & 1) ||
            overflow_is_live(param, now_ns))
            continue;
        param->chunks = 0;
        param->live = PARAM_DROPPED;
        close_account(table, param->account);
    }
}

/* Whether these parameters are what was once compiled. */
static bool compiles(const struct weir_limit *limit)
{
    static const uint64_t any_calendar[WEIR_BOUNDS_MIN] = {0, 1};
    struct weir_limit_spec spec = limit->spec;
    struct weir_limit compiled;

    if (limit->name != NULL || limit->local != NULL || spec.bounds != NULL || spec.bound_count != 0)
        return false;
    if (spec.algorithm == WEIR_QUOTA) {
        spec.bounds = any_calendar;
        spec.bound_count = WEIR_BOUNDS_MIN;
    }
    return weir_limit_init(&compiled, &spec, NULL) == 0 && compiled.span_words == limit->span_words;
}

bool params_consistent(const struct weir_table *table)
{
    for (uint32_t i = 0; i < table->header->params_max; i++) {
        const struct table_param *param = &table->params[i];

        if (param->live == PARAM_NONE || param->live == PARAM_DROPPED)
            continue;
        if (param->live != PARAM_LIVE || param->check != layout_param_check(param) ||
            param->limit.id != i + 1 || !compiles(&param->limit))
            return false;
        if (param->account >= table->header->params_max)
            return false;
    }
    return true;
}
