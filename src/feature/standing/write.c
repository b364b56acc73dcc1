/* SPDX-License-Identifier: Apache-2.0 */
/* see write.h */
#include "feature/standing/write.h"

#include <stdlib.h>
#include <string.h>

#include "feature/standing/endings.h"
#include "feature/standing/index.h"
#include "feature/standing/reasons.h"

/* What only the writer has: it is recreated with each map. */
struct standing_writer {
    uint32_t values[STANDING_SHAPES]; /* how many there are of each shape */
    struct standing_endings endings;
    struct standing_reasons reasons;
    uint32_t records_used, records_free;
    uint64_t penalties;
    bool building; /* between begin_lists and end_lists */
    uint8_t *seen; /* between begin_all and end_all: a bit for each record that was set */
};

int standing_writer_new(struct weir_standing *map)
{
    map->writer = calloc(1, sizeof *map->writer);
    if (!map->writer)
        return WEIR_ERR_MEMORY;
    return standing_endings_init(&map->writer->endings, map->records_count);
}

void standing_writer_free(struct weir_standing *map)
{
    if (!map->writer)
        return;
    standing_endings_free(&map->writer->endings);
    free(map->writer->seen);
    free(map->writer);
    map->writer = NULL;
}

/* A value of the map: its place. */
struct place {
    uint64_t id[2];
    uint8_t shape;
    uint32_t tag;
};

static struct place place_of(const struct weir_standing *map, const uint64_t id[2], uint8_t shape)
{
    return (struct place){
        .id = {id[0], id[1]}, .shape = shape, .tag = standing_index_tag(map, id, shape)};
}

static size_t slot_of(const struct weir_standing *map, const struct place *place, bool add)
{
    return standing_index_slot(map, place->tag, place->id, place->shape, add);
}

/* The first record of a value; 0: it has none. */
static uint32_t first_record(const struct weir_standing *map, const struct place *place)
{
    size_t slot = slot_of(map, place, false);

    return slot == SIZE_MAX ? 0 : standing_index_record(map, slot);
}

/* Counts the values of a shape, and tells readers of which lengths there are networks. */
static void count_value(struct weir_standing *map, uint8_t shape, bool more)
{
    struct standing_header *header = map->header;
    uint32_t count = map->writer->values[shape] += more ? 1 : UINT32_MAX;
    bool ipv6 = shape >= STANDING_SHAPE6;
    uint32_t length = shape - (uint32_t)(ipv6 ? STANDING_SHAPE6 : STANDING_SHAPE4);
    uint64_t *word, bit;

    if (shape == STANDING_EXACT || count > 1)
        return;
    word = ipv6 ? &header->lengths6[length / 64] : &header->lengths4[0];
    bit = UINT64_C(1) << length % 64;
    standing_change(map);
    standing_store64(map, word, count > 0 ? *word | bit : *word & ~bit);
}

/* Links another first record for a value that has one, or removes the value (0). */
static void relink_first(struct weir_standing *map, const struct place *place, uint32_t record)
{
    standing_index_link(map, slot_of(map, place, false), place->tag, record);
    if (record == 0)
        count_value(map, place->shape, false);
}

/* Links the first record of a value that has none. */
static void link_first(struct weir_standing *map, const struct place *place, uint32_t record)
{
    /* Before the value itself: a reader that finds none of this shape does not look. */
    count_value(map, place->shape, true);
    standing_index_link(map, slot_of(map, place, true), place->tag, record);
}

static struct standing_record *at(const struct weir_standing *map, uint32_t record)
{
    return &map->records[record - 1];
}

static void count_entry(struct weir_standing *map, const struct standing_value *value, bool more)
{
    struct standing_header *header = map->header;
    uint64_t *count = &header->counts[value->level][value->origin];

    standing_store64(map, count, more ? *count + 1 : *count - 1);
    standing_store64(map, &header->entries, more ? header->entries + 1 : header->entries - 1);
    if (value->origin == WEIR_STANDING_BY_PENALTY)
        map->writer->penalties += more ? 1 : UINT64_MAX;
}

static uint32_t take_record(struct weir_standing *map, const struct standing_value *value,
                            uint32_t next)
{
    struct standing_writer *writer = map->writer;
    uint32_t number = writer->records_free;
    struct standing_record *record, copy = {.value = *value};

    if (number != 0)
        writer->records_free = at(map, number)->next;
    else
        number = ++writer->records_used;
    record = at(map, number);
    standing_change(map);
    /* Of a record that was never used, too, the sequence is odd while it is written. */
    standing_store32(map, &record->sequence, record->sequence | 1);
    for (int i = 0; i < 5; i++)
        standing_store64(map, &record->words[i], copy.words[i]);
    standing_store32(map, &record->next, next);
    standing_store32(map, &record->sequence, record->sequence + 1);
    count_entry(map, value, true);
    standing_endings_add(map, &writer->endings, number);
    return number;
}

/* Gives back a record that is unlinked. */
static void free_record(struct weir_standing *map, uint32_t number)
{
    struct standing_writer *writer = map->writer;
    struct standing_record *record = at(map, number);

    standing_endings_remove(map, &writer->endings, number);
    count_entry(map, &record->value, false);
    standing_reasons_release(map, &writer->reasons, record->value.reason);
    standing_change(map);
    standing_store32(map, &record->sequence, record->sequence + 1);
    standing_store32(map, &record->next, writer->records_free);
    writer->records_free = number;
}

/* Puts `after` in the place of a record that is not the last of its value, or of one of `before`.
 */
static void relink(struct weir_standing *map, const struct place *place, uint32_t record,
                   uint32_t after)
{
    uint32_t first = first_record(map, place);

    if (first == record) {
        relink_first(map, place, after);
        return;
    }
    while (at(map, first)->next != record)
        first = at(map, first)->next;
    standing_link(map, &at(map, first)->next, after);
}

static void remove_record(struct weir_standing *map, uint32_t record)
{
    const struct standing_value *value = &at(map, record)->value;
    struct place place = place_of(map, value->id, value->shape);

    relink(map, &place, record, at(map, record)->next);
    free_record(map, record);
}

/* The record of a value and origin; of lists one that has a bit of `lists`. 0: there is none. */
static uint32_t find_record(struct weir_standing *map, const struct place *place, uint8_t origin,
                            uint8_t lists)
{
    uint32_t record = first_record(map, place);

    for (; record != 0; record = at(map, record)->next) {
        const struct standing_value *value = &at(map, record)->value;

        if (value->origin == origin &&
            (origin != WEIR_STANDING_BY_LIST || (value->lists & lists) != 0))
            return record;
    }
    return 0;
}

/* Lets the entry go that ends first of those that may. False: there is none. */
static bool evict(struct weir_standing *map, bool penalties_only)
{
    struct standing_endings *endings = &map->writer->endings;
    uint32_t penalty = standing_endings_first(endings, STANDING_PENALTIES);
    uint32_t other = penalties_only ? 0 : standing_endings_first(endings, STANDING_OTHERS);

    if (penalty == 0 && other == 0)
        return false;
    if (penalty == 0 ||
        (other != 0 && at(map, other)->value.until_ns < at(map, penalty)->value.until_ns))
        penalty = other;
    remove_record(map, penalty);
    standing_store64(map, &map->header->evicted, map->header->evicted + 1);
    return true;
}

static bool make_room(struct weir_standing *map, uint8_t origin)
{
    uint64_t entries_max = map->header->entries_max;

    if (origin == WEIR_STANDING_BY_PENALTY && map->writer->penalties >= entries_max / 2)
        return evict(map, true);
    return map->header->entries < entries_max || evict(map, false);
}

static uint8_t lists_bit(const struct weir_standing *map)
{
    return (uint8_t)(1U << ((map->header->lists + map->writer->building) & 1));
}

/* Whether an entry says what a record does, except since when. */
static bool says_the_same(const struct weir_standing *map, const struct standing_value *value,
                          const struct weir_standing_entry *entry)
{
    const struct standing_reason *reason;

    if (value->level != entry->level || value->until_ns != entry->until_ns)
        return false;
    if (value->reason == 0)
        return entry->reason_size == 0;
    reason = &map->reasons[value->reason - 1];
    return reason->size == entry->reason_size &&
           memcmp(reason->text, entry->reason, reason->size) == 0;
}

/* Lets a record of the lists in force count for the next ones, too, when it says the same: a reload
 * of the same lists needs no room. */
static bool keep_in_lists(struct weir_standing *map, const struct place *place,
                          const struct weir_standing_entry *entry, uint8_t bit)
{
    uint32_t record = find_record(map, place, WEIR_STANDING_BY_LIST, 3);
    struct standing_record copy;

    if (!map->writer->building || record == 0 ||
        !says_the_same(map, &at(map, record)->value, entry))
        return false;
    copy.value = at(map, record)->value;
    copy.value.lists |= bit;
    standing_change(map);
    standing_store64(map, &at(map, record)->words[4], copy.words[4]);
    return true;
}

/* Whether an entry of the lists that are being set counts before the one of the same value. */
static bool loses_in_lists(const struct standing_value *value,
                           const struct weir_standing_entry *entry)
{
    const struct weir_standing_entry there = {
        .until_ns = value->until_ns, .level = value->level, .origin = value->origin};

    return !weir_standing_before(entry, &there);
}

/* Takes the bit of one generation from a record of lists; without any bit it goes. */
static void leave_lists(struct weir_standing *map, uint32_t record, uint8_t bit)
{
    struct standing_record copy;

    copy.value = at(map, record)->value;
    copy.value.lists &= (uint8_t)~bit;
    if (copy.value.lists == 0) {
        remove_record(map, record);
        return;
    }
    standing_change(map);
    standing_store64(map, &at(map, record)->words[4], copy.words[4]);
}

static void see(struct weir_standing *map, uint32_t record)
{
    if (map->writer->seen)
        map->writer->seen[(record - 1) / 8] |= (uint8_t)(1U << (record - 1) % 8);
}

static int add(struct weir_standing *map, const struct place *place, struct standing_value *value,
               const struct weir_standing_entry *entry)
{
    struct standing_writer *writer = map->writer;
    uint32_t first, record;

    if (!make_room(map, entry->origin)) {
        standing_store64(map, &map->header->refused, map->header->refused + 1);
        return WEIR_ERR_FULL;
    }
    value->reason = standing_reasons_take(map, &writer->reasons, entry->reason, entry->reason_size);
    first = first_record(map, place); /* not what it was, if that made room */
    record = take_record(map, value, first);
    if (first != 0)
        relink_first(map, place, record);
    else
        link_first(map, place, record);
    see(map, record);
    return 0;
}

static int set(struct weir_standing *map, const uint64_t id[2], uint8_t shape,
               const struct weir_standing_entry *entry)
{
    bool listed = entry->origin == WEIR_STANDING_BY_LIST;
    struct standing_value value = {.id = {id[0], id[1]},
                                   .since_ns = entry->since_ns,
                                   .until_ns = entry->until_ns,
                                   .level = entry->level,
                                   .origin = entry->origin,
                                   .lists = listed ? lists_bit(map) : 0,
                                   .shape = shape};
    struct place place = place_of(map, id, shape);
    uint32_t old, record;

    if (entry->level >= WEIR_STANDING_LEVELS || entry->origin >= WEIR_STANDING_ORIGINS ||
        entry->reason_size > WEIR_STANDING_REASON_MAX)
        return WEIR_ERR_RANGE;
    old = find_record(map, &place, entry->origin, value.lists);
    if (listed && old != 0 && loses_in_lists(&at(map, old)->value, entry))
        return 0;
    if (listed && old != 0 && at(map, old)->value.lists != value.lists) {
        leave_lists(map, old, value.lists);
        old = 0;
    }
    if (old == 0)
        return listed && keep_in_lists(map, &place, entry, value.lists)
                   ? 0
                   : add(map, &place, &value, entry);
    if (!listed && at(map, old)->value.since_ns == entry->since_ns &&
        says_the_same(map, &at(map, old)->value, entry)) {
        see(map, old);
        return 0;
    }
    /* There is one record more than entries. */
    value.reason =
        standing_reasons_take(map, &map->writer->reasons, entry->reason, entry->reason_size);
    record = take_record(map, &value, at(map, old)->next);
    relink(map, &place, old, record);
    free_record(map, old);
    see(map, record);
    return 0;
}

static bool clear(struct weir_standing *map, const uint64_t id[2], uint8_t shape,
                  enum weir_standing_origin origin)
{
    struct place place = place_of(map, id, shape);
    uint8_t bit = lists_bit(map);
    uint32_t record = find_record(map, &place, (uint8_t)origin, bit);

    if (record == 0)
        return false;
    if (origin == WEIR_STANDING_BY_LIST)
        leave_lists(map, record, bit);
    else
        remove_record(map, record);
    return true;
}

int weir_standing_set(struct weir_standing *standing, const uint64_t id[2],
                      const struct weir_standing_entry *entry)
{
    return set(standing, id, STANDING_EXACT, entry);
}

bool weir_standing_clear(struct weir_standing *standing, const uint64_t id[2],
                         enum weir_standing_origin origin)
{
    return clear(standing, id, STANDING_EXACT, origin);
}

/* Whether a network is one, as an id and a shape. */
static bool network_value(const struct weir_cidr *network, uint64_t id[2], uint8_t *shape)
{
    const struct weir_address *address = &network->address;
    struct weir_address masked = *address;
    uint64_t bits[2];

    if (!(address->family == 4 && network->bits <= 32) &&
        !(address->family == 6 && network->bits <= 128))
        return false;
    weir_address_mask(&masked, network->bits);
    if (memcmp(masked.bytes, address->bytes, sizeof masked.bytes) != 0)
        return false;
    standing_address_bits(address, bits);
    standing_network_id(bits, network->bits, id);
    *shape = (uint8_t)((address->family == 4 ? STANDING_SHAPE4 : STANDING_SHAPE6) + network->bits);
    return true;
}

int weir_standing_set_network(struct weir_standing *standing, const struct weir_cidr *network,
                              const struct weir_standing_entry *entry)
{
    uint64_t id[2];
    uint8_t shape;

    return network_value(network, id, &shape) ? set(standing, id, shape, entry) : WEIR_ERR_RANGE;
}

bool weir_standing_clear_network(struct weir_standing *standing, const struct weir_cidr *network,
                                 enum weir_standing_origin origin)
{
    uint64_t id[2];
    uint8_t shape;

    return network_value(network, id, &shape) && clear(standing, id, shape, origin);
}

static bool has(struct weir_standing *map, const uint64_t id[2], uint8_t shape,
                enum weir_standing_origin origin)
{
    struct place place = place_of(map, id, shape);

    return find_record(map, &place, (uint8_t)origin, lists_bit(map)) != 0;
}

bool weir_standing_has(struct weir_standing *standing, const uint64_t id[2],
                       enum weir_standing_origin origin)
{
    return has(standing, id, STANDING_EXACT, origin);
}

bool weir_standing_has_network(struct weir_standing *standing, const struct weir_cidr *network,
                               enum weir_standing_origin origin)
{
    uint64_t id[2];
    uint8_t shape;

    return network_value(network, id, &shape) && has(standing, id, shape, origin);
}

/* Removes what counts only for generations of lists with that bit. */
static void drop_lists(struct weir_standing *map, uint8_t bit)
{
    for (uint32_t record = 1; record <= map->writer->records_used; record++) {
        const struct standing_record *one = at(map, record);

        if (one->sequence % 2 == 0 && one->value.origin == WEIR_STANDING_BY_LIST &&
            (one->value.lists & bit) != 0)
            leave_lists(map, record, bit);
    }
}

void weir_standing_begin_lists(struct weir_standing *standing)
{
    if (standing->writer->building)
        weir_standing_cancel_lists(standing);
    standing->writer->building = true;
}

void weir_standing_end_lists(struct weir_standing *standing)
{
    uint8_t old = (uint8_t)(1U << (standing->header->lists & 1));

    if (!standing->writer->building)
        return;
    standing->writer->building = false;
    standing_link(standing, &standing->header->lists, standing->header->lists + 1);
    drop_lists(standing, old);
}

void weir_standing_cancel_lists(struct weir_standing *standing)
{
    if (!standing->writer->building)
        return;
    drop_lists(standing, lists_bit(standing));
    standing->writer->building = false;
}

int weir_standing_begin_all(struct weir_standing *standing)
{
    struct standing_writer *writer = standing->writer;

    free(writer->seen);
    writer->seen = calloc(standing->records_count / 8 + 1, 1);
    return writer->seen ? 0 : WEIR_ERR_MEMORY;
}

void weir_standing_end_all(struct weir_standing *standing)
{
    struct standing_writer *writer = standing->writer;

    for (uint32_t record = 1; writer->seen && record <= writer->records_used; record++) {
        const struct standing_record *one = at(standing, record);

        if (one->sequence % 2 == 0 && one->value.origin != WEIR_STANDING_BY_LIST &&
            !(writer->seen[(record - 1) / 8] >> (record - 1) % 8 & 1))
            remove_record(standing, record);
    }
    weir_standing_cancel_all(standing);
}

void weir_standing_cancel_all(struct weir_standing *standing)
{
    free(standing->writer->seen);
    standing->writer->seen = NULL;
}

size_t weir_standing_sweep(struct weir_standing *standing, uint64_t now_ns, size_t most)
{
    size_t swept = 0;

    for (int which = 0; which < STANDING_ENDINGS; which++)
        while (swept < most) {
            uint32_t record =
                standing_endings_first(&standing->writer->endings, (enum standing_ending)which);

            if (record == 0 || at(standing, record)->value.until_ns > now_ns)
                break;
            remove_record(standing, record);
            swept++;
        }
    return swept;
}

/* The network of an id and a shape, which is none of STANDING_EXACT. */
static struct weir_cidr network_of(const struct standing_value *value)
{
    bool ipv6 = value->shape >= STANDING_SHAPE6;
    struct weir_cidr network = {
        .address = {.family = ipv6 ? 6 : 4},
        .bits = (uint8_t)(value->shape - (ipv6 ? STANDING_SHAPE6 : STANDING_SHAPE4))};

    for (int i = 0; i < (ipv6 ? 16 : 4); i++)
        network.address.bytes[i] = (uint8_t)(value->id[i / 8] >> (56 - i % 8 * 8));
    return network;
}

void weir_standing_each_network(const struct weir_standing *standing,
                                void (*take)(void *context, const struct weir_cidr *network),
                                void *context)
{
    for (uint64_t slot = 0; slot <= standing->mask; slot++) {
        uint32_t record = (uint32_t)standing->slots[slot];
        struct weir_cidr network;

        if (record == 0 || at(standing, record)->value.shape == STANDING_EXACT)
            continue;
        network = network_of(&at(standing, record)->value);
        take(context, &network);
    }
}

static int copy_chain(struct weir_standing *map, const struct weir_standing *old, uint32_t record)
{
    uint8_t bit = (uint8_t)(1U << (old->header->lists & 1));

    for (int i = 0; i < 4 && record != 0; i++) {
        struct weir_standing_entry entry;
        struct standing_value value;

        if (!standing_record_read(old, record, &value, &record) ||
            value.level >= WEIR_STANDING_LEVELS || value.origin >= WEIR_STANDING_ORIGINS ||
            value.shape >= STANDING_SHAPES)
            return WEIR_ERR_DAMAGED;
        if (value.origin == WEIR_STANDING_BY_LIST && (value.lists & bit) == 0)
            continue;
        entry.since_ns = value.since_ns;
        entry.until_ns = value.until_ns;
        entry.level = value.level;
        entry.origin = value.origin;
        standing_reasons_read(old, value.reason, &entry);
        /* A smaller map keeps what it has room for. */
        if (set(map, value.id, value.shape, &entry) < 0)
            continue;
    }
    return 0;
}

int standing_writer_copy(struct weir_standing *map, const struct weir_standing *old)
{
    bool same_secret = memcmp(map->secret, old->secret, sizeof map->secret) == 0;
    int err = 0;

    for (uint64_t slot = 0; slot <= old->mask && err == 0; slot++) {
        uint32_t record = (uint32_t)old->slots[slot];

        if (old->slots[slot] == 0)
            continue;
        if (record - 1 >= old->records_count)
            return WEIR_ERR_DAMAGED;
        if (same_secret || old->records[record - 1].value.shape != STANDING_EXACT)
            err = copy_chain(map, old, record);
    }
    return err;
}
