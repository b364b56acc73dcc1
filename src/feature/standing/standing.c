/* SPDX-License-Identifier: Apache-2.0 */
/* see standing.h */
#include "feature/standing/standing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/bytes.h"
#include "core/text/reason.h"
#include "core/text/siphash.h"
#include "feature/standing/file.h"
#include "feature/standing/index.h"
#include "feature/standing/layout.h"
#include "feature/standing/mirror.h"
#include "feature/standing/reasons.h"
#include "feature/standing/write.h"

static const char *const level_names[WEIR_STANDING_LEVELS] = {
    "good", "warned", "throttled", "challenged", "suspended", "revoked", "trusted",
};
static const char *const origin_names[WEIR_STANDING_ORIGINS] = {"list", "penalty", "operator"};

/* Kind, NUL, value: longer ones are hashed twice. */
#define ID_TEXT_MAX (WEIR_STANDING_KIND_MAX + 256)

/* How often a reader walks again because the map changed. A walk takes a ten-thousandth of a
 * millisecond, and a change much longer. */
#define WALKS_MAX 1000

/* Lengths of networks that are prefetched: the probes of the others wait for these no longer. */
#define PREFETCHED_MAX 4

/* One of each origin, and two of lists. */
#define CHAIN_MAX 4

const char *weir_standing_level_name(uint8_t level)
{
    return level < WEIR_STANDING_LEVELS ? level_names[level] : NULL;
}

const char *weir_standing_origin_name(uint8_t origin)
{
    return origin < WEIR_STANDING_ORIGINS ? origin_names[origin] : NULL;
}

int weir_standing_level_of(struct weir_bytes name)
{
    for (int level = 0; level < WEIR_STANDING_LEVELS; level++)
        if (weir_bytes_are(name, level_names[level]))
            return level;
    return -1;
}

/* Operators' entries and revocations, then trust, then what lists and penalties say. */
static int rank(uint8_t level, uint8_t origin)
{
    if (origin == WEIR_STANDING_BY_OPERATOR || level == WEIR_STANDING_REVOKED)
        return 2;
    return level == WEIR_STANDING_TRUSTED;
}

/* Trusted is the least strict. */
static int strictness(uint8_t level)
{
    return level == WEIR_STANDING_TRUSTED ? -1 : level;
}

static bool before(uint8_t level, uint8_t origin, uint64_t until_ns, uint8_t other_level,
                   uint8_t other_origin, uint64_t other_until_ns)
{
    int difference = rank(level, origin) - rank(other_level, other_origin);

    if (difference == 0)
        difference = strictness(level) - strictness(other_level);
    return difference > 0 || (difference == 0 && until_ns > other_until_ns);
}

bool weir_standing_before(const struct weir_standing_entry *one,
                          const struct weir_standing_entry *other)
{
    return before(one->level, one->origin, one->until_ns, other->level, other->origin,
                  other->until_ns);
}

void weir_standing_join(struct weir_standing_entry *best, const struct weir_standing_entry *one)
{
    if (weir_standing_before(one, best))
        *best = *one;
}

/* Reads the file that is there, for taking it over. Returns 1 when there is none. */
static int read_old(struct weir_standing *old, int *fd, const struct weir_standing_options *options,
                    struct weir_reason *reason)
{
    struct weir_reason missing = {""};
    int err =
        options->path ? standing_file_read(old, fd, options->path, &missing) : WEIR_ERR_NOT_FOUND;

    if (err == WEIR_ERR_NOT_FOUND || (err == WEIR_ERR_DAMAGED && options->remake))
        return 1;
    if (err < 0)
        reason_text(reason, missing.text);
    return err;
}

static int choose_secret(uint64_t secret[2], const struct weir_standing_options *options,
                         const struct weir_standing *old)
{
    memcpy(secret, options->secret, sizeof options->secret);
    if (secret[0] == 0 && secret[1] == 0 && old)
        memcpy(secret, old->secret, sizeof old->secret);
    if (secret[0] != 0 || secret[1] != 0)
        return 0;
    return getrandom(secret, 2 * sizeof secret[0], 0) == 2 * sizeof secret[0] ? 0 : WEIR_ERR_IO;
}

/* Fills a new map from the old one. Returns 1 where that is damaged, and is to be recreated. */
static int take_over(struct weir_standing *map, const struct weir_standing *old,
                     const struct weir_standing_options *options, struct weir_reason *reason)
{
    int err = standing_writer_copy(map, old);

    if (err == WEIR_ERR_DAMAGED && !options->remake) {
        reason_text(reason, options->path);
        reason_text(reason,
                    ": the entries are damaged: remove the file, and weir serve makes a new "
                    "one from the history");
    }
    return err == WEIR_ERR_DAMAGED && options->remake ? 1 : err;
}

/* The map of a writer in private memory, with what is in force in the old one, if there is one. */
static int make(struct weir_standing **out, const struct weir_standing_options *options,
                const struct weir_standing *old, struct weir_reason *reason)
{
    struct weir_standing *map = calloc(1, sizeof *map);
    size_t entries_max =
        options->entries_max ? options->entries_max : WEIR_STANDING_ENTRIES_DEFAULT;
    struct standing_header header;
    uint64_t secret[2];
    int err = map ? choose_secret(secret, options, old) : WEIR_ERR_MEMORY;

    if (err < 0)
        goto free_map;
    map->fd = map->mirror.fd = -1;
    standing_layout_plan(&header, entries_max, secret);
    header.generation = old ? old->header->generation : 0;
    if (header.generation < options->generation)
        header.generation = options->generation;
    err = standing_file_draft(map, NULL, &header, reason);
    if (err < 0)
        goto free_map;
    err = standing_writer_new(map);
    if (err == 0 && old)
        err = take_over(map, old, options, reason);
    if (err >= 0) {
        *out = map;
        return err;
    }
    standing_writer_free(map);
    standing_file_unmap(map);
free_map:
    free(map);
    return err;
}

int weir_standing_create(struct weir_standing **standing,
                         const struct weir_standing_options *options, struct weir_reason *reason)
{
    struct weir_standing old = {.fd = -1};
    size_t entries_max = options->entries_max;
    int err, none, fd = -1;

    *standing = NULL;
    if (entries_max != 0 &&
        (entries_max < WEIR_STANDING_ENTRIES_MIN || entries_max > WEIR_STANDING_ENTRIES_MAX))
        return WEIR_ERR_RANGE;
    err = none = read_old(&old, &fd, options, reason);
    if (err >= 0)
        err = make(standing, options, none ? NULL : &old, reason);
    if (err == 1) { /* its entries are damaged */
        weir_standing_close(*standing);
        *standing = NULL;
        err = make(standing, options, NULL, reason);
    }
    if (err == 0 && options->path) {
        err = standing_mirror_open(*standing, options->path, fd, reason);
        fd = -1; /* the map's, with its lock */
    }
    if (err < 0) {
        weir_standing_close(*standing);
        *standing = NULL;
    }
    standing_file_unmap(&old);
    if (fd >= 0)
        close(fd);
    return err;
}

int weir_standing_open(struct weir_standing **standing, const char *path,
                       struct weir_reason *reason)
{
    struct weir_standing *map = calloc(1, sizeof *map);
    int err;

    *standing = NULL;
    if (!map)
        return WEIR_ERR_MEMORY;
    map->mirror.fd = -1;
    err = standing_file_open(map, path, reason);
    if (err < 0)
        free(map);
    else
        *standing = map;
    return err;
}

void weir_standing_close(struct weir_standing *standing)
{
    if (!standing)
        return;
    standing_mirror_close(standing);
    standing_writer_free(standing);
    standing_file_unmap(standing);
    free(standing);
}

void weir_standing_secret(const struct weir_standing *standing, uint64_t secret[2])
{
    memcpy(secret, standing->secret, sizeof standing->secret);
}

bool weir_standing_replaced(const struct weir_standing *standing)
{
    return __atomic_load_n(&standing->header->replaced, __ATOMIC_RELAXED) != 0;
}

bool weir_standing_cut(const struct weir_standing *standing)
{
    return standing_file_cut(standing);
}

uint64_t weir_standing_generation(const struct weir_standing *standing)
{
    return __atomic_load_n(&standing->header->generation, __ATOMIC_RELAXED);
}

void weir_standing_id(const struct weir_standing *standing, struct weir_bytes kind,
                      struct weir_bytes value, uint64_t id[2])
{
    char text[ID_TEXT_MAX];
    uint64_t tail[2];

    if (kind.size + 1 + value.size > sizeof text) {
        /* Two hashes: that of the value counts as the value. */
        weir_siphash128(standing->secret, value.data, value.size, tail);
        value = (struct weir_bytes){(const char *)tail, sizeof tail};
    }
    kind.size = kind.size < WEIR_STANDING_KIND_MAX ? kind.size : WEIR_STANDING_KIND_MAX;
    memcpy(text, kind.data, kind.size);
    text[kind.size] = '\0';
    if (value.size > 0)
        memcpy(text + kind.size + 1, value.data, value.size);
    weir_siphash128(standing->secret, text, kind.size + 1 + value.size, id);
}

/* What a look-up has found up to now. */
struct found {
    const struct weir_standing *map;
    uint64_t now_ns;
    uint8_t lists; /* the bit of the generation of lists that is in force */
    bool any;
    bool named; /* of operators and lists only */
    uint32_t reason;
    struct weir_standing_entry *entry; /* without its reason */
};

static void join_value(struct found *found, const struct standing_value *value)
{
    struct weir_standing_entry *best = found->entry;
    bool listed = value->origin != WEIR_STANDING_BY_LIST || value->lists & found->lists;

    if (!listed || value->until_ns <= found->now_ns || value->level >= WEIR_STANDING_LEVELS ||
        value->origin >= WEIR_STANDING_ORIGINS)
        return;
    if (found->named && value->origin == WEIR_STANDING_BY_PENALTY)
        return;
    if (found->any && !before(value->level, value->origin, value->until_ns, best->level,
                              best->origin, best->until_ns))
        return;
    found->any = true;
    found->reason = value->reason;
    best->since_ns = value->since_ns;
    best->until_ns = value->until_ns;
    best->level = value->level;
    best->origin = value->origin;
}

/* Joins a chain of records, whose first is read. False: it changed meanwhile. */
static bool join_chain(struct found *found, struct standing_value *value, uint32_t next)
{
    join_value(found, value);
    for (int i = 1; i < CHAIN_MAX && next != 0; i++) {
        if (!standing_record_read(found->map, next, value, &next))
            return false;
        join_value(found, value);
    }
    return true;
}

static bool join_exact(struct found *found, const uint64_t id[2], uint8_t shape)
{
    uint32_t tag = standing_index_tag(found->map, id, shape), next = 0;
    struct standing_value value;
    bool retry = false;

    if (standing_index_read(found->map, tag, id, shape, &value, &next, &retry) == 0)
        return !retry;
    return join_chain(found, &value, next);
}

/* The networks that an address is in, of each length of which there are any, shortest first. */
struct networks {
    const uint64_t *lengths;
    uint64_t bits[2], left; /* left: of the word */
    uint32_t word, words, shape;
};

static struct networks networks_of(const struct weir_standing *map,
                                   const struct weir_address *address)
{
    const struct standing_header *header = map->header;
    struct networks networks = {.lengths = header->lengths4, .words = 1, .shape = STANDING_SHAPE4};

    if (address->family == 6)
        networks =
            (struct networks){.lengths = header->lengths6, .words = 3, .shape = STANDING_SHAPE6};
    standing_address_bits(address, networks.bits);
    networks.left = __atomic_load_n(&networks.lengths[0], __ATOMIC_ACQUIRE);
    return networks;
}

/* Fills the id and the shape of the next network of at most `longest` bits; false: there is none.
 */
static inline bool next_network(struct networks *networks, uint32_t longest, uint64_t id[2],
                                uint8_t *shape)
{
    while (networks->left == 0) {
        if (++networks->word == networks->words)
            return false;
        networks->left = __atomic_load_n(&networks->lengths[networks->word], __ATOMIC_ACQUIRE);
    }
    uint32_t length = networks->word * 64 + (uint32_t)__builtin_ctzll(networks->left);
    if (length > longest)
        return false;
    networks->left &= networks->left - 1;
    standing_network_id(networks->bits, length, id);
    *shape = (uint8_t)(networks->shape + length);
    return true;
}

/* The probes do not wait for one another. */
static bool join_address(struct found *found, const struct weir_address *address, uint32_t longest)
{
    struct networks networks = networks_of(found->map, address);
    uint64_t id[2];
    uint8_t shape;

    while (next_network(&networks, longest, id, &shape))
        if (!join_exact(found, id, shape))
            return false;
    return true;
}

void weir_standing_prefetch(const struct weir_standing *standing, const uint64_t id[2])
{
    standing_index_prefetch(standing, standing_index_tag(standing, id, STANDING_EXACT));
}

void weir_standing_prefetch_address(const struct weir_standing *standing,
                                    const struct weir_address *address)
{
    struct networks networks;
    uint64_t id[2];
    uint8_t shape;

    if (address->family == 0)
        return;
    networks = networks_of(standing, address);
    for (int i = 0; i < PREFETCHED_MAX && next_network(&networks, 128, id, &shape); i++)
        standing_index_prefetch(standing, standing_index_tag(standing, id, shape));
}

/* What is looked up: a value, or all networks of up to `longest` bits that an address is in. */
struct sought {
    const uint64_t *id; /* NULL: an address */
    const struct weir_address *address;
    uint8_t shape, longest;
    bool named; /* see found */
};

static bool look(const struct weir_standing *standing, const struct sought *sought, uint64_t now_ns,
                 struct weir_standing_entry *entry)
{
    const struct standing_header *header = standing->header;
    struct weir_standing_entry best;
    struct found found = {
        .map = standing, .now_ns = now_ns, .named = sought->named, .entry = &best};

    for (int walks = 0; walks < WALKS_MAX; walks++) {
        uint64_t changes = __atomic_load_n(&header->changes, __ATOMIC_ACQUIRE);

        found.lists = (uint8_t)(1U << (__atomic_load_n(&header->lists, __ATOMIC_ACQUIRE) & 1));
        found.any = false;
        best.reason_size = 0; /* of a walk that is broken off */
        if (!(sought->id ? join_exact(&found, sought->id, sought->shape)
                         : join_address(&found, sought->address, sought->longest)))
            continue;
        if (found.any)
            standing_reasons_read(standing, found.reason, &best);
        if (__atomic_load_n(&header->changes, __ATOMIC_RELAXED) == changes)
            break;
    }
    if (found.any)
        memcpy(entry, &best, offsetof(struct weir_standing_entry, reason) + best.reason_size);
    return found.any;
}

bool weir_standing_find(const struct weir_standing *standing, const uint64_t id[2], uint64_t now_ns,
                        struct weir_standing_entry *entry)
{
    return weir_standing_any(standing) &&
           look(standing, &(struct sought){.id = id, .shape = STANDING_EXACT}, now_ns, entry);
}

bool weir_standing_find_address(const struct weir_standing *standing,
                                const struct weir_address *address, uint64_t now_ns,
                                struct weir_standing_entry *entry)
{
    return address->family != 0 && weir_standing_any(standing) &&
           look(standing, &(struct sought){.address = address, .longest = 128}, now_ns, entry);
}

bool weir_standing_find_named(const struct weir_standing *standing,
                              const struct weir_address *address, uint64_t now_ns,
                              struct weir_standing_entry *entry)
{
    const struct sought sought = {.address = address, .longest = 128, .named = true};

    return address->family != 0 && weir_standing_any(standing) &&
           look(standing, &sought, now_ns, entry);
}

bool weir_standing_find_around(const struct weir_standing *standing,
                               const struct weir_cidr *network, uint64_t now_ns,
                               struct weir_standing_entry *entry)
{
    const struct sought sought = {.address = &network->address, .longest = network->bits};

    return network->address.family != 0 && weir_standing_any(standing) &&
           look(standing, &sought, now_ns, entry);
}

bool weir_standing_find_network(const struct weir_standing *standing,
                                const struct weir_cidr *network, uint64_t now_ns,
                                struct weir_standing_entry *entry)
{
    const struct weir_address *address = &network->address;
    uint32_t shape = address->family == 6 ? STANDING_SHAPE6 : STANDING_SHAPE4;
    uint64_t bits[2], id[2];

    if (address->family == 0 || network->bits > (address->family == 6 ? 128 : 32))
        return false;
    standing_address_bits(address, bits);
    standing_network_id(bits, network->bits, id);
    return weir_standing_any(standing) &&
           look(standing, &(struct sought){.id = id, .shape = (uint8_t)(shape + network->bits)},
                now_ns, entry);
}

void weir_standing_stats(const struct weir_standing *standing, struct weir_standing_stats *stats)
{
    const struct standing_header *header = standing->header;

    *stats = (struct weir_standing_stats){
        .entries = __atomic_load_n(&header->entries, __ATOMIC_RELAXED),
        .entries_max = header->entries_max,
        .evicted = __atomic_load_n(&header->evicted, __ATOMIC_RELAXED),
        .refused = __atomic_load_n(&header->refused, __ATOMIC_RELAXED),
        .bytes = standing->bytes,
    };
    for (int level = 0; level < WEIR_STANDING_LEVELS; level++)
        for (int origin = 0; origin < WEIR_STANDING_ORIGINS; origin++)
            stats->levels[level][origin] =
                __atomic_load_n(&header->counts[level][origin], __ATOMIC_RELAXED);
}
