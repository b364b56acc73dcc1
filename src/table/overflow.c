/* SPDX-License-Identifier: Apache-2.0 */
/* see overflow.h */
#include "table/overflow.h"

#include <string.h>

#include "core/cell.h"
#include "core/debit.h"
#include "core/text/siphash.h"
#include "table/owner.h"
#include "table/undo.h"

/* table_param.chunks */
#define CHUNKS_COUNT_BITS 8
_Static_assert(CHUNKS_OF_PARAM_MAX < 1 << CHUNKS_COUNT_BITS, "the count has its own bits");

static uint32_t chunks_first(uint32_t chunks)
{
    return chunks >> CHUNKS_COUNT_BITS;
}

static uint32_t chunks_count(uint32_t chunks)
{
    return chunks & ((1u << CHUNKS_COUNT_BITS) - 1);
}

/* Row 0 has this part of the cells, row 1 the others. A flood of keys from some networks fills row
 * 0 as soon as it has as many keys as that has cells; then only row 1 tells networks apart, and
 * denies a newcomer of another with a probability of networks / cells. */
#define KEY_ROW_PART 4
_Static_assert(CHUNK_CELLS % KEY_ROW_PART == 0, "all cells of a chunk are used");

/* Whether this region has these chunks: its file may have been overwritten. */
static bool chunks_fit(const struct weir_table *table, uint32_t chunks)
{
    uint32_t count = chunks_count(chunks);

    return chunks == 0 || (count > 0 && count <= CHUNKS_OF_PARAM_MAX &&
                           chunks_first(chunks) + count <= table->fixed.chunks);
}

/* The present chunks of parameters; 0 if the region does not have them. */
static uint32_t chunks_of(const struct weir_table *table, const struct table_param *param)
{
    uint32_t chunks = __atomic_load_n(&param->chunks, __ATOMIC_RELAXED);

    return chunks_fit(table, chunks) ? chunks : 0;
}

const struct weir_limit *overflow_limit(const struct weir_limit *limit, struct weir_limit *room)
{
    const struct weir_limit_spec spec = {.algorithm = WEIR_SLIDING_WINDOW,
                                         .rate = limit->spec.rate,
                                         .window_ns = limit->spec.window_ns,
                                         .strict = true};

    if (limit->span_words == 0)
        return limit;
    /* Every N and W of a span limit is valid for a window. */
    return weir_limit_init(room, &spec, NULL) == 0 ? room : limit;
}

void overflow_check(const struct weir_check *check, struct weir_limit *room,
                    struct weir_check *counted)
{
    *counted = *check;
    counted->limit = overflow_limit(check->limit, room);
}

static struct weir_cell *chunk_cells(const struct weir_table *table, uint32_t first)
{
    return (struct weir_cell *)(void *)(table->base + table->fixed.cells_at + first * CHUNK_BYTES);
}

/* A bit for each chunk that some parameters have. */
struct chunk_map {
    uint64_t bits[CHUNKS_MAX / 64];
};

/* Who has which chunks. */
struct survey {
    struct chunk_map map;
    uint32_t held; /* by one account */
};

static void map_set(struct chunk_map *map, uint32_t chunks)
{
    uint32_t end = chunks_first(chunks) + chunks_count(chunks);

    for (uint32_t i = chunks_first(chunks); i < end; i++)
        map->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool map_has(const struct chunk_map *map, uint32_t chunk)
{
    return map->bits[chunk / 64] >> chunk % 64 & 1;
}

/* Frees the chunks of parameters whose cells are all fresh. */
static void take_back(struct weir_table_owner *owner, struct table_param *param, uint64_t now_ns)
{
    if (!owner_try_stale(owner, &param->lock))
        return;
    if (param->until_ns <= now_ns)
        __atomic_store_n(&param->chunks, 0, __ATOMIC_RELAXED);
    owner_unlock(&param->lock);
}

static void set_holder(struct weir_table *table, uint32_t index, bool holds)
{
    uint64_t *word = &table->chunk_holders[index / 64], bit = UINT64_C(1) << index % 64;

    *word = holds ? *word | bit : *word & ~bit;
}

void overflow_list_holders(struct weir_table *table)
{
    for (uint32_t i = 0; i < table->fixed.params_max; i++)
        set_holder(table, i, table->params[i].chunks != 0);
}

/* Maps the chunks that some parameters have, and counts those of the account of `mine`. */
static void survey_one(struct weir_table_owner *owner, uint32_t index,
                       const struct table_param *mine, uint64_t now_ns, struct survey *survey)
{
    struct weir_table *table = owner->table;
    struct table_param *param = &table->params[index];

    if (!overflow_is_live(param, now_ns))
        take_back(owner, param, now_ns);
    if (__atomic_load_n(&param->chunks, __ATOMIC_RELAXED) == 0) {
        set_holder(table, index, false);
        return;
    }

    uint32_t chunks = chunks_of(table, param);

    map_set(&survey->map, chunks);
    survey->held += param->account == mine->account ? chunks_count(chunks) : 0;
}

/* Maps all chunks that are taken. */
static void survey_all(struct weir_table_owner *owner, const struct table_param *mine,
                       uint64_t now_ns, struct survey *survey)
{
    const struct weir_table *table = owner->table;
    uint32_t count = table->fixed.params_max;

    memset(survey, 0, sizeof *survey);
    for (uint32_t i = 0; i < count; i += 64)
        for (uint64_t bits = table->chunk_holders[i / 64]; bits != 0; bits &= bits - 1) {
            uint32_t index = i + (uint32_t)__builtin_ctzll(bits);

            if (index < count && &table->params[index] != mine)
                survey_one(owner, index, mine, now_ns, survey);
        }
}

/* The longest run of free chunks, up to `most`; the first one of that length. */
static uint32_t longest_run(const struct weir_table *table, const struct chunk_map *map,
                            uint32_t most)
{
    uint32_t best = 0, best_length = 0, length = 0;

    for (uint32_t i = 0; i < table->fixed.chunks && best_length < most; i++) {
        if (i % 64 == 0 && map->bits[i / 64] == UINT64_MAX) {
            length = 0;
            i += 63;
            continue;
        }
        length = map_has(map, i) ? 0 : length + 1;
        if (length > best_length) {
            best_length = length;
            best = i + 1 - length;
        }
    }
    return best << CHUNKS_COUNT_BITS | best_length;
}

/* How many chunks one account may have: an equal share, at least one. */
static uint32_t chunk_share(const struct weir_table *table)
{
    uint32_t accounts = __atomic_load_n(&table->header->accounts, __ATOMIC_RELAXED);
    uint32_t share = table->fixed.chunks / (accounts > 0 ? accounts : 1);

    return share > CHUNKS_OF_PARAM_MAX ? CHUNKS_OF_PARAM_MAX : share > 0 ? share : 1;
}

/* An owner that dies between two of these stores leaves fresh rows of one cell. */
bool overflow_open(struct weir_table_owner *owner, struct table_param *param, uint64_t now_ns)
{
    struct weir_table *table = owner->table;
    struct survey survey;
    uint32_t share = chunk_share(table);

    if (overflow_is_live(param, now_ns))
        return true;
    __atomic_store_n(&param->chunks, 0, __ATOMIC_RELAXED);
    memset(param->cell, 0, sizeof param->cell);
    if (!owner_lock(owner, &table->header->chunks_lock))
        return false;
    survey_all(owner, param, now_ns, &survey);

    uint32_t chunks =
        longest_run(table, &survey.map, survey.held < share ? share - survey.held : 1);

    memset(chunk_cells(table, chunks_first(chunks)), 0, chunks_count(chunks) * CHUNK_BYTES);
    UNDO_BARRIER();
    set_holder(table, (uint32_t)(param - table->params), chunks_count(chunks) > 0);
    UNDO_BARRIER();
    if (chunks_count(chunks) > 0)
        __atomic_store_n(&param->chunks, chunks, __ATOMIC_RELAXED);
    owner_unlock(&table->header->chunks_lock);
    return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A number below `cells` from 64 random bits. */
static uint64_t scale(uint64_t random, uint64_t cells)
{
    return wide_multiply(random, cells).hi;
}

/* The finalizer of MurmurHash3: another hash from one, as good as random. */
static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

void overflow_find(const struct weir_table *table, struct table_param *param,
                   const struct weir_check *check, uint32_t network,
                   struct weir_cell *cells[OVERFLOW_ROWS])
{
    struct weir_cell *row = param->cell;
    uint64_t sizes[OVERFLOW_ROWS] = {1, 1}, network_hash[2] = {mix(check->hash[0]), 0};
    uint32_t chunks = chunks_of(table, param);

    if (chunks != 0) {
        row = chunk_cells(table, chunks_first(chunks));
        sizes[0] = chunks_count(chunks) * (uint64_t)CHUNK_CELLS / KEY_ROW_PART;
        sizes[1] = (KEY_ROW_PART - 1) * sizes[0];
    } else if (param->chunks != 0) { /* the file was overwritten */
        memset(param->cell, 0, sizeof param->cell);
        __atomic_store_n(&param->chunks, 0, __ATOMIC_RELAXED);
    }
    if (network != 0) {
        const uint32_t words[2] = {network, param->limit.id};

        weir_siphash128(table->fixed.secret, words, sizeof words, network_hash);
    }
    cells[0] = &row[scale(check->hash[1] ^ mix(check->hash[0] + 1), sizes[0])];
    cells[1] = &row[sizes[0] + scale(network_hash[0], sizes[1])];
}

bool overflow_holds(const struct weir_limit *limit, struct weir_cell *const cells[OVERFLOW_ROWS],
                    uint64_t now_ns)
{
    return cell_fresh_at(limit, cells[0]) > now_ns && cell_fresh_at(limit, cells[1]) > now_ns;
}

bool overflow_test(const struct weir_check *check, struct weir_cell *const cells[OVERFLOW_ROWS],
                   uint64_t now_ns, const struct scale_load *load, uint64_t *delay_ns)
{
    bool admits = false;
    uint64_t delay;

    *delay_ns = 0;
    for (uint32_t row = 0; row < OVERFLOW_ROWS; row++) {
        if (!scale_cell_test(check, cells[row], now_ns, load, &delay))
            continue;
        if (!admits || delay < *delay_ns)
            *delay_ns = delay;
        admits = true;
    }
    return admits;
}

static void write_cell(struct weir_table_owner *owner, struct weir_cell *cell,
                       const struct weir_cell *value)
{
    if (undo_save64(owner, &cell->a) && undo_save64(owner, &cell->b))
        *cell = *value;
}

uint64_t overflow_debit_room(const struct weir_check *check,
                             struct weir_cell *const cells[OVERFLOW_ROWS], uint64_t now_ns,
                             uint64_t debt)
{
    uint64_t rooms[OVERFLOW_ROWS];

    for (uint32_t row = 0; row < OVERFLOW_ROWS; row++)
        rooms[row] = weir_check_debit_room(check, cells[row], now_ns, debt);
    return rooms[0] > rooms[1] ? rooms[0] : rooms[1];
}

/* A cell whose rest is kept from this check by a scale still counts all that the check is charged
 * with. Filling a bucket charges what fits. */
static void charge_cell(const struct overflow_charge *charge, struct weir_cell *cell)
{
    struct weir_check check = *charge->check;
    uint64_t now_ns = charge->now_ns, delay_ns;

    if (charge->debit) {
        if (charge->debt != WEIR_NEVER)
            check.cost =
                least(check.cost, weir_check_debit_room(&check, cell, now_ns, charge->debt));
        scale_cell_charge(&check, cell, now_ns);
    } else if (!scale_is_weighed(&check) &&
               cell_test(check.limit, cell, now_ns, check.cost, &delay_ns)) {
        cell_charge(check.limit, cell, now_ns, check.cost);
    } else {
        scale_cell_fill(&check, cell, now_ns);
    }
}

bool overflow_charge(struct weir_table_owner *owner, struct table_param *param,
                     struct weir_cell *const cells[OVERFLOW_ROWS],
                     const struct overflow_charge *charge)
{
    bool changed = false;

    for (uint32_t row = 0; row < OVERFLOW_ROWS; row++) {
        struct weir_cell cell = *cells[row];

        charge_cell(charge, &cell);
        if (cell.a == cells[row]->a && cell.b == cells[row]->b)
            continue;

        uint64_t fresh_at_ns = cell_fresh_at(charge->check->limit, &cell);

        /* Written before the cell, so that no death leaves a live cell in rows that count as fresh.
         */
        if (fresh_at_ns > param->until_ns)
            __atomic_store_n(&param->until_ns, fresh_at_ns, __ATOMIC_RELAXED);
        UNDO_BARRIER();
        write_cell(owner, cells[row], &cell);
        changed = true;
    }
    return changed;
}

void overflow_describe(const struct weir_check *check, struct weir_cell *const cells[OVERFLOW_ROWS],
                       uint64_t now_ns, struct weir_outcome *outcome)
{
    const struct weir_use use = {.now_ns = now_ns, .cost = check->cost};
    const struct weir_use one_use = {.now_ns = now_ns, .cost = 1};
    struct weir_report wholes[OVERFLOW_ROWS], reports[OVERFLOW_ROWS], ones[OVERFLOW_ROWS];
    struct weir_report *report = &outcome->report;
    bool allowed = outcome->verdict == WEIR_ALLOWED;

    for (uint32_t row = 0; row < OVERFLOW_ROWS; row++) {
        weir_cell_report(check->limit, cells[row], &use, allowed, &wholes[row]);
        scale_cell_report(check, cells[row], &use, allowed, &reports[row]);
        scale_cell_report(check, cells[row], &one_use, false, &ones[row]);
    }
    *report = wholes[wholes[1].remaining > wholes[0].remaining];
    report->retry_after_ns = least(reports[0].retry_after_ns, reports[1].retry_after_ns);
    report->reset_after_ns = least(reports[0].reset_after_ns, reports[1].reset_after_ns);
    outcome->next_ns = least(ones[0].retry_after_ns, ones[1].retry_after_ns);
    outcome->reported = true;
}

static bool cells_valid(const struct weir_table *table, const struct table_param *param,
                        const struct weir_limit *of)
{
    struct weir_limit room;
    const struct weir_limit *limit = overflow_limit(of, &room);
    const struct weir_cell *cells = param->cell;
    uint32_t count = OVERFLOW_ROWS;

    if (param->chunks != 0) {
        cells = chunk_cells(table, chunks_first(param->chunks));
        count = chunks_count(param->chunks) * CHUNK_CELLS;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!weir_cell_valid(limit, &cells[i]) || cell_fresh_at(limit, &cells[i]) > param->until_ns)
            return false;
    return true;
}

bool overflow_consistent(const struct weir_table *table)
{
    struct chunk_map map = {{0}};

    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        const struct table_param *param = &table->params[i];
        uint32_t first = chunks_first(param->chunks), count = chunks_count(param->chunks);
        struct weir_limit room;
        const struct weir_limit *limit = region_limit(table, (uint16_t)(i + 1), &room);

        if (!limit)
            continue;
        if (!chunks_fit(table, param->chunks))
            return false;
        for (uint32_t chunk = first; chunk < first + count; chunk++)
            if (map_has(&map, chunk))
                return false;
        map_set(&map, param->chunks);
        if (!cells_valid(table, param, limit))
            return false;
    }
    return true;
}
