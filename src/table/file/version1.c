/* SPDX-License-Identifier: Apache-2.0 */
/* see version1.h */
#include "table/file/version1.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/cell.h"
#include "core/span/span.h"
#include "core/text/reason.h"
#include "core/text/siphash.h"
#include "table/file/copy.h"

#define V1_MAGIC UINT64_C(0x6c62617472696577)
#define V1_VERSION 1
#define V1_LAYOUT UINT32_C(0x8d1255a0) /* a checksum of the sizes of all that follows */
#define V1_BYTES_MIN (UINT64_C(1) << 18)
#define V1_BYTES_MAX (UINT64_C(1) << 42)
#define V1_PARAMS_MAX 16384
#define V1_OWNERS_MAX 256
#define V1_TIME_MAX (UINT64_C(1) << 62)

#define V1_PAGE 4096
#define V1_PAGE_WORDS (V1_PAGE / 8)
#define V1_SLOTS 6
#define V1_TAG_BITS 52
#define V1_SHARED 0x8000u
#define V1_UNDO_OWN 160
#define V1_UNDO_SPILL 2560
#define V1_RUNS_MAX 2560
#define V1_NARROW 1u
#define V1_CLASSES 17

union v1_slot {
    struct {
        uint32_t state[3], tag_lo;
    };
    uint64_t words[2];
};

struct v1_bucket {
    uint32_t lock, marks;
    uint16_t tag_hi[V1_SLOTS], param[V1_SLOTS];
    union v1_slot slot[V1_SLOTS];
};

struct v1_spec {
    uint32_t algorithm;
    uint64_t rate, window_ns, burst;
    uint32_t segments;
    uint8_t strict;
    uint64_t rollover, calendar, bounds;
    uint32_t bound_count;
};

struct v1_limit {
    struct v1_spec spec;
    uint64_t capacity;
    uint32_t span_words;
    uint16_t id;
    uint8_t packs, index_bits, count_bits;
    uint64_t denom, period_ns, period_rem, depth_ns, depth_rem, segment_ns, name, local;
};

struct v1_param {
    uint32_t live, lock; /* live: 1; 0 and 2: not in use */
    uint64_t check;
    struct v1_limit limit;
    uint64_t cell[2], span;
} __attribute__((aligned(64)));

struct v1_undo {
    uint64_t where, old;
};

struct v1_owner {
    uint32_t generation, undo_count, attached, pid;
    uint64_t counters[6];
    struct v1_undo undo[V1_UNDO_OWN];
};

enum { V1_FREE, V1_CUT, V1_RUN, V1_RUN_REST };
struct v1_page {
    uint8_t kind, span_class;
    uint16_t used;
    uint32_t run;
    uint64_t bitmap[4];
};

struct v1_header {
    uint64_t magic;
    uint32_t version, layout;
    uint64_t bytes, params_at, owners_at, spill_at, pages_at, buckets_at, spans_at, buckets, pages;
    uint32_t params_max, owners_max, identity_bits, reserved;
    uint64_t secret[2], check;
    uint64_t t0_ns __attribute__((aligned(64))), boot_ns;
    uint64_t mark_ns __attribute__((aligned(64)));
    uint32_t heap_lock __attribute__((aligned(64)));
};

_Static_assert(sizeof(struct v1_bucket) == 128, "as it was");
_Static_assert(sizeof(struct v1_limit) == 160, "as it was");
_Static_assert(sizeof(struct v1_param) == 256, "as it was");
_Static_assert(sizeof(struct v1_owner) == 2624, "as it was");
_Static_assert(sizeof(struct v1_page) == 40, "as it was");
_Static_assert(offsetof(struct v1_header, check) == 120, "as it was");
_Static_assert(offsetof(struct v1_header, mark_ns) == 192, "as it was");
_Static_assert(offsetof(struct v1_header, heap_lock) == 256, "as it was");

struct version1 {
    uint8_t *base;
    uint64_t bytes;
    struct v1_header *header;
    struct v1_param *params;
    struct v1_owner *owners;
    struct v1_undo *spill;
    struct v1_page *pages;
    struct v1_bucket *buckets;
    struct position_map map;
    uint64_t now_ns;
    struct weir_limit *limits; /* the parameters compiled again, by id - 1; id 0: none */
    uint64_t *log;             /* a log in the present format: room for the largest */
};

bool version1_is(const void *bytes, size_t size)
{
    struct v1_header header;

    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    return header.magic == V1_MAGIC && header.version == V1_VERSION && header.layout == V1_LAYOUT;
}

const uint64_t *version1_secret(const struct version1 *old)
{
    return old->header->secret;
}

static uint64_t checksum(const void *data, size_t size)
{
    static const uint64_t key[2] = {V1_MAGIC, V1_VERSION};
    uint64_t hash[2];

    weir_siphash128(key, data, size, hash);
    return hash[0];
}

static uint64_t spill_entries(const struct v1_header *header)
{
    return V1_UNDO_SPILL + 2 * (header->pages < V1_RUNS_MAX ? header->pages : V1_RUNS_MAX);
}

/* Whether the parts are at the offsets that follow from the counts. */
static bool header_fits(const struct v1_header *header, uint64_t size)
{
    if (header->check != checksum(header, offsetof(struct v1_header, check)) ||
        header->bytes != size || size < V1_BYTES_MIN || size > V1_BYTES_MAX ||
        size % V1_PAGE != 0 || header->params_max == 0 || header->params_max > V1_PARAMS_MAX ||
        header->owners_max == 0 || header->owners_max > V1_OWNERS_MAX || header->pages == 0 ||
        header->pages >= size / V1_PAGE || header->mark_ns >= V1_TIME_MAX)
        return false;

    uint64_t owners_at = V1_PAGE + header->params_max * sizeof(struct v1_param);
    uint64_t spill_at = owners_at + header->owners_max * sizeof(struct v1_owner);
    uint64_t pages_at = spill_at + spill_entries(header) * sizeof(struct v1_undo);
    uint64_t end = pages_at + header->pages * sizeof(struct v1_page);
    uint64_t buckets_at = (end + V1_PAGE - 1) / V1_PAGE * V1_PAGE;
    uint64_t spans_at = size - header->pages * V1_PAGE;

    return header->params_at == V1_PAGE && header->owners_at == owners_at &&
           header->spill_at == spill_at && header->pages_at == pages_at &&
           header->buckets_at == buckets_at && header->spans_at == spans_at &&
           buckets_at < spans_at && header->buckets > 0 &&
           header->buckets == (spans_at - buckets_at) / sizeof(struct v1_bucket) &&
           header->identity_bits >= V1_TAG_BITS &&
           header->identity_bits <= V1_TAG_BITS + 63 - (uint32_t)__builtin_clzll(header->buckets);
}

/* Undoes what an owner left unfinished, newest first. */
static bool take_back(struct version1 *old, struct v1_owner *owner)
{
    if (owner->undo_count > V1_UNDO_OWN + spill_entries(old->header))
        return false;
    for (uint32_t i = owner->undo_count; i > 0; i--) {
        struct v1_undo undo =
            i - 1 < V1_UNDO_OWN ? owner->undo[i - 1] : old->spill[i - 1 - V1_UNDO_OWN];
        bool narrow = undo.where & V1_NARROW;
        uint64_t at = undo.where & ~(uint64_t)V1_NARROW;

        if (at % (narrow ? 4 : 8) != 0 || at < offsetof(struct v1_header, heap_lock) ||
            at > old->bytes - 8)
            return false;
        memcpy(old->base + at, &undo.old, narrow ? 4 : 8);
    }
    return true;
}

/* The words of the span at an offset; NULL: it is not a span of at least `words` words. */
static const uint64_t *span_at(const struct version1 *old, uint64_t offset, uint32_t words)
{
    const struct v1_header *header = old->header;

    if (offset < header->spans_at || offset >= old->bytes)
        return NULL;

    uint64_t page = (offset - header->spans_at) / V1_PAGE;
    uint64_t inside = (offset - header->spans_at) % V1_PAGE;
    const struct v1_page *how = &old->pages[page];
    const uint64_t *span = (const uint64_t *)(const void *)(old->base + offset);

    if (how->kind == V1_RUN && how->run <= header->pages - page)
        return inside == 0 && words < how->run * (uint64_t)V1_PAGE_WORDS ? span + 1 : NULL;
    if (how->kind != V1_CUT || how->span_class >= V1_CLASSES)
        return NULL;

    uint32_t size = (how->span_class % 2 == 0 ? 2u : 3u) << how->span_class / 2;
    uint64_t i = inside / (size * 8);
    bool taken =
        inside % (size * 8) == 0 && i < V1_PAGE_WORDS / size && (how->bitmap[i / 64] >> i % 64 & 1);

    return taken && words < size ? span + 1 : NULL;
}

/* Compiles a limit again. False: the result differs from what the file has. */
static bool compile(const struct v1_limit *old, struct weir_limit *limit)
{
    static const uint64_t any_calendar[WEIR_BOUNDS_MIN] = {0, 1};
    struct weir_limit_spec spec = {.algorithm = (enum weir_algorithm)old->spec.algorithm,
                                   .rate = old->spec.rate,
                                   .window_ns = old->spec.window_ns,
                                   .burst = old->spec.burst,
                                   .segments = old->spec.segments,
                                   .strict = old->spec.strict,
                                   .rollover = old->spec.rollover,
                                   .calendar = old->spec.calendar};

    if (spec.algorithm == WEIR_QUOTA) {
        spec.bounds = any_calendar;
        spec.bound_count = WEIR_BOUNDS_MIN;
    }
    return weir_limit_init(limit, &spec, NULL) == 0 && limit->span_words == old->span_words &&
           limit->packs == old->packs && limit->index_bits == old->index_bits &&
           limit->count_bits == old->count_bits;
}

static bool compile_all(struct version1 *old)
{
    for (uint32_t i = 0; i < old->header->params_max; i++) {
        const struct v1_param *param = &old->params[i];

        if (param->live == 0 || param->live == 2)
            continue;
        if (param->live != 1 || param->check != checksum(&param->limit, sizeof param->limit) ||
            param->limit.id != i + 1 || !compile(&param->limit, &old->limits[i]))
            return false;
        old->limits[i].id = (uint16_t)(i + 1);
    }
    return true;
}

/* The log that a linked list was: word 0: head | tail << 16 | free << 32 | taken << 48; word 1: the
 * sum of the costs; entry n, from 1: its expiry, its cost | next << 32 | previous << 48. False: it
 * is not valid. */
static bool read_log(struct version1 *old, const struct weir_limit *limit, const uint64_t *list)
{
    uint64_t n = list[0] & 0xffff, taken = list[0] >> 48, sum = 0, last_ns = 0;
    uint32_t room = limit->spec.rate > 0 ? (uint32_t)limit->spec.rate : 1, count = 0;

    weir_span_resize(NULL, limit, old->log, 0);

    const struct span_view log = span_trusted(limit, old->log);

    if (taken > room)
        return false;
    for (; n != 0; n = list[2 * n + 1] >> 32 & 0xffff) {
        if (n > taken || ++count > taken)
            return false;

        struct weir_use use = {.now_ns = list[2 * n] - limit->spec.window_ns,
                               .cost = (uint32_t)list[2 * n + 1]};

        if (list[2 * n] < limit->spec.window_ns || use.now_ns >= V1_TIME_MAX ||
            list[2 * n] < last_ns || use.cost == 0)
            return false;
        last_ns = list[2 * n];
        sum += use.cost;
        span_charge_in_place(limit, &log, &use);
    }
    return sum == list[1];
}

/* Converts the state of a slot to the present format. False: it is not valid. */
static bool read_state(struct version1 *old, const union v1_slot *slot, struct copy_state *state)
{
    const struct weir_limit *limit = state->limit;
    uint64_t offset = slot->words[0];
    struct weir_cell cell;

    state->span = (struct span_view){NULL, 0};
    if (limit->packs && limit->span_words == 0) {
        memcpy(state->state, slot->state, sizeof state->state);
        cell_unpack(limit, state->state, &cell);
        return weir_cell_valid(limit, &cell);
    }
    state->span.words = limit->span_words > 0 ? limit->span_words : 2;
    state->span.at = (uint64_t *)(uintptr_t)span_at(old, offset, state->span.words);
    if (!state->span.at)
        return false;
    if (limit->span_words == 0) {
        cell = (struct weir_cell){state->span.at[0], state->span.at[1]};
        return weir_cell_valid(limit, &cell);
    }
    if (limit->spec.algorithm !=
        WEIR_SLIDING_LOG) /* with room for all: the format has not changed */
        return span_words(limit, &state->span) == limit->span_words &&
               span_valid(limit, &state->span);
    if (!read_log(old, limit, state->span.at))
        return false;
    state->span = span_trusted(limit, old->log);
    return true;
}

static uint64_t state_fresh_at(const struct copy_state *state)
{
    struct weir_cell cell;

    if (state->limit->span_words > 0)
        return span_fresh_at(state->limit, &state->span);
    if (state->span.at)
        cell = (struct weir_cell){state->span.at[0], state->span.at[1]};
    else
        cell_unpack(state->limit, state->state, &cell);
    return cell_fresh_at(state->limit, &cell);
}

static uint64_t tag_of(const struct v1_bucket *bucket, uint32_t i)
{
    uint32_t mark = bucket->marks >> MARK_BITS * i & MARK_MASK;

    return (uint64_t)bucket->tag_hi[i] << 36 | (uint64_t)bucket->slot[i].tag_lo << 4 | mark >> 1;
}

static bool is_second(const struct v1_bucket *bucket, uint32_t i)
{
    return bucket->marks >> MARK_BITS * i & 1;
}

/* Whether a bucket has this key in another slot than `except`. */
static bool has_key(const struct v1_bucket *bucket, uint64_t tag, bool second, uint32_t except)
{
    for (uint32_t i = 0; i < V1_SLOTS; i++)
        if (i != except && bucket->param[i] != 0 && !(bucket->param[i] & V1_SHARED) &&
            tag_of(bucket, i) == tag && is_second(bucket, i) == second)
            return true;
    return false;
}

/* Called for each state. */
typedef void each_state(void *context, const struct copy_state *state);

/* Visits all states of slots that no keys share. False: one of them is not valid. */
static bool walk(struct version1 *old, each_state *each, void *context)
{
    for (uint64_t b = 0; b < old->header->buckets; b++)
        for (uint32_t i = 0; i < V1_SLOTS; i++) {
            const struct v1_bucket *bucket = &old->buckets[b];
            uint32_t param = bucket->param[i];
            uint32_t id = param & (V1_SHARED - 1);
            struct copy_state state = {.at = {b, tag_of(bucket, i)}};
            uint64_t other = position_other(&old->map, b, state.at.tag);
            bool second = is_second(bucket, i);

            if (param == 0 || param & V1_SHARED)
                continue;
            if (id > old->header->params_max || old->limits[id - 1].id != id ||
                other >= old->header->buckets || has_key(bucket, state.at.tag, second, i) ||
                has_key(&old->buckets[other], state.at.tag, !second, V1_SLOTS))
                return false;
            state.limit = &old->limits[id - 1];
            state.param = (uint16_t)id;
            if (second)
                state.at.bucket = other;
            if (!read_state(old, &bucket->slot[i], &state))
                return false;
            if (each && state_fresh_at(&state) > old->now_ns)
                each(context, &state);
        }
    return true;
}

/* Points the parts into the mapped file. */
static void bind(struct version1 *old)
{
    const struct v1_header *header = old->header;

    old->params = (struct v1_param *)(void *)(old->base + header->params_at);
    old->owners = (struct v1_owner *)(void *)(old->base + header->owners_at);
    old->spill = (struct v1_undo *)(void *)(old->base + header->spill_at);
    old->pages = (struct v1_page *)(void *)(old->base + header->pages_at);
    old->buckets = (struct v1_bucket *)(void *)(old->base + header->buckets_at);

    struct table_header facts = {.buckets = header->buckets,
                                 .identity_bits = header->identity_bits};

    old->map = position_map_of(&facts);
}

/* What is wrong with a file; NULL: nothing. */
static const char *find_damage(struct version1 *old, uint64_t wall_ns)
{
    if (!version1_is(old->base, old->bytes) || !header_fits(old->header, old->bytes))
        return "its header";
    bind(old);
    for (uint32_t i = 0; i < old->header->owners_max; i++)
        if (!take_back(old, &old->owners[i]))
            return "its journals";
    /* A journal may not change what was checked above: it never names the header's first part. */
    if (old->header->mark_ns >= V1_TIME_MAX)
        return "its time";
    old->now_ns = wall_ns > old->header->mark_ns ? wall_ns : old->header->mark_ns;
    if (!compile_all(old))
        return "its parameters";
    return walk(old, NULL, NULL) ? NULL : "a state";
}

int version1_open(struct version1 **result, int fd, uint64_t size, uint64_t wall_ns,
                  struct weir_reason *reason)
{
    struct version1 *old = calloc(1, sizeof *old);
    int err = WEIR_ERR_MEMORY;

    if (!old)
        return WEIR_ERR_MEMORY;
    old->limits = calloc(V1_PARAMS_MAX, sizeof *old->limits);
    old->log = calloc(2 + 2 * WEIR_LOG_MAX, sizeof *old->log);
    if (!old->limits || !old->log)
        goto close_old;

    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);

    err = WEIR_ERR_IO;
    if (map == MAP_FAILED) {
        reason_text(reason, "the state file cannot be mapped");
        goto close_old;
    }
    old->base = map;
    old->bytes = size;
    old->header = map;

    const char *damage = find_damage(old, wall_ns);

    if (!damage) {
        *result = old;
        return 0;
    }
    reason_text(reason, "the state file, of an older version of weir, is damaged: ");
    reason_text(reason, damage);
    err = WEIR_ERR_DAMAGED;
close_old:
    version1_close(old);
    return err;
}

void version1_close(struct version1 *old)
{
    if (old->base)
        munmap(old->base, old->bytes);
    free(old->log);
    free(old->limits);
    free(old);
}

struct copying {
    struct copy copy;
    uint16_t *ids; /* of the new region, by those of the old one; 0: none */
};

static void copy_one(void *context, const struct copy_state *state)
{
    struct copying *copying = context;
    struct copy_state with_id = *state;

    with_id.param = copying->ids[state->param];
    if (with_id.param != 0)
        copy_state(&copying->copy, &with_id);
}

int version1_copy(struct weir_table *to, struct version1 *old)
{
    struct copying copying = {.copy = {.to = to,
                                       .map = old->map,
                                       .identity_bits = old->header->identity_bits,
                                       .now_ns = old->now_ns},
                              .ids = calloc(V1_PARAMS_MAX + 1, sizeof *copying.ids)};
    int err = !copying.ids ? WEIR_ERR_MEMORY : copy_begin(&copying.copy, old->header->mark_ns);

    if (err == 0) {
        for (uint32_t i = 0; i < old->header->params_max; i++) {
            struct weir_limit limit = old->limits[i];

            if (limit.id != 0 && weir_table_intern(to, &limit) == 0)
                copying.ids[i + 1] = limit.id;
        }
        walk(old, copy_one, &copying); /* it was valid a moment ago, and is a private copy */
    }
    copy_end(&copying.copy);
    free(copying.ids);
    return err;
}
