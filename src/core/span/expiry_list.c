/* SPDX-License-Identifier: Apache-2.0 */
/* see expiry_list.h */
#include "core/span/expiry_list.h"

#include "core/span/span.h"

#define ENTRIES_ROOM_SHIFT 48
#define ENTRIES_SUM_MASK ((UINT64_C(1) << ENTRIES_ROOM_SHIFT) - 1)

static void expiry_list_clear(struct entries *list)
{
    list->sum = 0;
    list->head = list->tail = list->free = list->taken = 0;
}

/* The entries that the words of a span have room for. */
static uint32_t expiry_list_room(uint32_t words)
{
    return words > ENTRIES_HEADER_WORDS ? (words - ENTRIES_HEADER_WORDS) / ENTRIES_STRIDE : 0;
}

bool expiry_list_load(const struct weir_limit *limit, const struct span_change *change,
                      struct entries *list)
{
    uint64_t header = span_read(change, 0), sum = span_read(change, 1);
    uint32_t room = expiry_list_room(change->span.words);

    list->sum = sum & ENTRIES_SUM_MASK;
    list->capacity = (uint32_t)(sum >> ENTRIES_ROOM_SHIFT);
    if (list->capacity == 0)
        list->capacity = expiry_list_most(limit);
    if (list->capacity > room)
        list->capacity = room;
    list->head = header & 0xffff;
    list->tail = header >> 16 & 0xffff;
    list->free = header >> 32 & 0xffff;
    list->taken = (uint32_t)(header >> 48);
    if (list->taken <= room && list->head <= list->taken && list->tail <= list->taken &&
        list->free <= list->taken && (list->head == 0) == (list->tail == 0))
        return true;
    expiry_list_clear(list);
    return false;
}

void expiry_list_store(const struct span_change *change, const struct entries *list)
{
    uint64_t header = list->taken, room = span_read(change, 1) & ~ENTRIES_SUM_MASK;

    header = header << 16 | list->free;
    header = header << 16 | list->tail;
    header = header << 16 | list->head;
    span_write(change, 0, header);
    span_write(change, 1, (list->sum & ENTRIES_SUM_MASK) | room);
}

void expiry_list_read(const struct span_change *change, uint32_t n, struct entry *entry)
{
    uint32_t word = expiry_list_word(n);
    uint64_t links = span_read(change, word + 1);

    entry->expiry_ns = span_read(change, word);
    entry->cost = (uint32_t)links;
    entry->next = links >> 32 & 0xffff;
    entry->previous = (uint32_t)(links >> 48);
}

static void expiry_list_write_links(const struct span_change *change, uint32_t n,
                                    const struct entry *entry)
{
    uint64_t links = entry->previous;

    links = links << 16 | entry->next;
    links = links << 32 | entry->cost;
    span_write(change, expiry_list_word(n) + 1, links);
}

static void expiry_list_set_next(const struct span_change *change, struct entries *list, uint32_t n,
                                 uint32_t next)
{
    struct entry entry;

    if (n == 0) {
        list->head = next;
        return;
    }
    expiry_list_read(change, n, &entry);
    entry.next = next;
    expiry_list_write_links(change, n, &entry);
}

static void expiry_list_set_previous(const struct span_change *change, struct entries *list,
                                     uint32_t n, uint32_t previous)
{
    struct entry entry;

    if (n == 0) {
        list->tail = previous;
        return;
    }
    expiry_list_read(change, n, &entry);
    entry.previous = previous;
    expiry_list_write_links(change, n, &entry);
}

uint64_t expiry_list_live(const struct span_change *change, const struct entries *list,
                          uint64_t now_ns, uint32_t *first)
{
    struct entry entry;
    uint64_t sum = list->sum;

    *first = 0;
    if (list->tail == 0)
        return 0;
    expiry_list_read(change, list->tail, &entry);
    if (entry.expiry_ns <= now_ns)
        return 0;
    *first = list->head;
    for (uint32_t left = list->taken; left > 0 && *first != 0; left--) { /* ends at the tail */
        expiry_list_read(change, *first, &entry);
        if (entry.expiry_ns > now_ns)
            return sum;
        sum = span_less(sum, entry.cost);
        *first = entry.next;
    }
    *first = 0; /* the links of a damaged state */
    return 0;
}

void expiry_list_purge(const struct span_change *change, struct entries *list, uint64_t now_ns)
{
    uint32_t first;
    uint64_t live = expiry_list_live(change, list, now_ns, &first);
    struct entry entry;

    if (first == 0) {
        expiry_list_clear(list);
        return;
    }
    if (first == list->head)
        return;
    /* The expired ones are a chain already: hang it before the free ones. */
    expiry_list_read(change, first, &entry);
    expiry_list_set_next(change, list, entry.previous, list->free);
    expiry_list_set_previous(change, list, first, 0);
    list->free = list->head;
    list->head = first;
    list->sum = live;
}

static uint32_t expiry_list_take(const struct span_change *change, struct entries *list)
{
    struct entry entry;
    uint32_t n = list->free;

    if (n == 0)
        return list->taken < list->capacity ? ++list->taken : 0;
    expiry_list_read(change, n, &entry);
    list->free = entry.next;
    return n;
}

uint32_t expiry_list_insert(const struct span_change *change, struct entries *list,
                            uint64_t expiry_ns, uint64_t cost)
{
    uint32_t n = expiry_list_take(change, list);
    struct entry entry, before;
    uint32_t left = list->taken;

    if (n == 0)
        return 0;
    entry.cost = cost < UINT32_MAX ? cost : UINT32_MAX;
    entry.next = 0;
    entry.previous = list->tail;
    for (; entry.previous != 0 && left > 0; left--) {
        expiry_list_read(change, entry.previous, &before);
        if (before.expiry_ns <= expiry_ns)
            break;
        entry.next = entry.previous;
        entry.previous = before.previous;
    }
    span_write(change, expiry_list_word(n), expiry_ns);
    expiry_list_write_links(change, n, &entry);
    expiry_list_set_next(change, list, entry.previous, n);
    expiry_list_set_previous(change, list, entry.next, n);
    list->sum += entry.cost;
    return n;
}

void expiry_list_unlink(const struct span_change *change, struct entries *list, uint32_t n)
{
    struct entry entry;

    expiry_list_read(change, n, &entry);
    expiry_list_set_next(change, list, entry.previous, entry.next);
    expiry_list_set_previous(change, list, entry.next, entry.previous);
    list->sum = span_less(list->sum, entry.cost);
    entry.next = list->free;
    expiry_list_write_links(change, n, &entry);
    list->free = n;
    if (list->head == 0)
        expiry_list_clear(list);
}

void expiry_list_give_back(const struct span_change *change, struct entries *list, uint32_t n,
                           uint64_t cost)
{
    struct entry entry;

    expiry_list_read(change, n, &entry);
    if (cost >= entry.cost) {
        expiry_list_unlink(change, list, n);
        return;
    }
    entry.cost -= cost;
    list->sum = span_less(list->sum, cost);
    expiry_list_write_links(change, n, &entry);
}

/* When enough has expired for `room` to be what is left in use: the expiry of the entry that goes
 * last until then. Something live is in the way. */
static uint64_t expiry_list_retry_at(const struct span_change *change, const struct entries *list,
                                     uint32_t first, uint64_t excess)
{
    struct entry entry;
    uint32_t left = list->taken;

    for (uint32_t n = first;; n = entry.next, left--) {
        expiry_list_read(change, n, &entry);
        if (entry.cost >= excess || entry.next == 0 || left == 0)
            return entry.expiry_ns;
        excess -= entry.cost;
    }
}

void expiry_list_report(const struct weir_limit *limit, const struct span_view *span,
                        const struct weir_use *use, struct weir_report *report)
{
    const struct span_change read_only = {.span = *span};
    struct entries list;
    uint32_t first;
    uint64_t rate = limit->spec.rate, fresh_at_ns = expiry_list_fresh_at(limit, span);

    expiry_list_load(limit, &read_only, &list);
    uint64_t used = expiry_list_live(&read_only, &list, use->now_ns, &first);

    report->limit = rate;
    report->remaining = used < rate ? rate - used : 0;
    report->reset_after_ns = fresh_at_ns > use->now_ns ? fresh_at_ns - use->now_ns : 0;
    report->retry_after_ns = 0;
    if (use->cost > rate)
        report->retry_after_ns = WEIR_NEVER;
    else if (used + use->cost > rate)
        report->retry_after_ns = span_less(
            expiry_list_retry_at(&read_only, &list, first, used + use->cost - rate), use->now_ns);
}

uint64_t expiry_list_fresh_at(const struct weir_limit *limit, const struct span_view *span)
{
    const struct span_change read_only = {.span = *span};
    struct entries list;
    struct entry entry;

    expiry_list_load(limit, &read_only, &list);
    if (list.tail == 0)
        return 0;
    expiry_list_read(&read_only, list.tail, &entry);
    return entry.expiry_ns;
}

uint32_t expiry_list_span_words(const struct weir_limit *limit, const struct span_view *span)
{
    uint32_t room = (uint32_t)(span_word(span, 1) >> ENTRIES_ROOM_SHIFT);

    return expiry_list_words(room > 0 ? room : expiry_list_most(limit));
}

bool expiry_list_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                      uint64_t cost, uint32_t count)
{
    const struct span_change read_only = {.span = *span};
    struct entries list;
    struct entry entry;
    uint32_t first, free;

    count = cost > 0 ? count : 0;
    expiry_list_load(limit, &read_only, &list);
    free = list.capacity > list.taken ? list.capacity - list.taken : 0;
    if (free >= count || list.capacity >= expiry_list_most(limit))
        return true;
    if (expiry_list_live(&read_only, &list, now_ns, &first) == 0)
        return count <= list.capacity;
    for (uint32_t n = list.free; n != 0 && free < count; n = entry.next, free++)
        expiry_list_read(&read_only, n, &entry);
    for (uint32_t n = list.head; n != first && free < count; n = entry.next, free++)
        expiry_list_read(&read_only, n, &entry);
    return free >= count;
}

/* How many entries are live is not written down: at most as many as were ever taken, and at most as
 * many as their costs together. */
uint32_t expiry_list_needs(const struct weir_span_source *source, const struct weir_limit *to,
                           uint64_t cost, uint32_t count)
{
    uint32_t most = expiry_list_most(to);
    uint64_t entries = cost > 0 ? count : 0;

    if (source) {
        const struct span_change read_only = {.span = span_of_source(source)};
        struct entries list;
        uint32_t first;

        expiry_list_load(source->limit, &read_only, &list);

        uint64_t live = expiry_list_live(&read_only, &list, source->now_ns, &first);

        entries += live < list.taken ? live : list.taken;
    }
    return expiry_list_words(entries == 0 ? 1 : entries < most ? (uint32_t)entries : most);
}

/* Adds to the newest entry and makes it expire at `expiry_ns`, not before its old expiry. */
static void expiry_list_add_to_tail(const struct span_change *change, struct entries *list,
                                    uint64_t expiry_ns, uint64_t cost)
{
    struct entry entry;

    expiry_list_read(change, list->tail, &entry);
    if (cost > UINT32_MAX - entry.cost)
        cost = UINT32_MAX - entry.cost;
    entry.cost += cost;
    list->sum += cost;
    span_write(change, expiry_list_word(list->tail), expiry_ns);
    expiry_list_write_links(change, list->tail, &entry);
}

/* In order. Where there is less room, the oldest keep their entries and all the others become one,
 * which expires with the newest: nothing is forgotten, and nothing expires early. */
void expiry_list_resize(const struct weir_span_source *source, const struct weir_limit *to,
                        uint64_t *out, uint32_t words)
{
    const struct span_change old = {.span = span_of_source(source)};
    const struct span_change made = {.span = {out, words > 0 ? words : to->span_words}};
    struct entries from, list;
    struct entry entry;
    uint64_t latest_ns = 0;
    uint32_t first, left;

    if (words > 0) {
        uint32_t room = expiry_list_room(words), most = expiry_list_most(to);

        out[1] = (uint64_t)(room < most ? room : most) << ENTRIES_ROOM_SHIFT;
    }
    expiry_list_load(source->limit, &old, &from);
    expiry_list_load(to, &made, &list);
    expiry_list_live(&old, &from, source->now_ns, &first);
    left = from.taken;
    for (uint32_t n = first; n != 0 && left > 0; n = entry.next, left--) {
        expiry_list_read(&old, n, &entry);
        if (entry.expiry_ns < latest_ns) /* of a damaged state: see to it that no insert walks */
            entry.expiry_ns = latest_ns;
        latest_ns = entry.expiry_ns;

        uint32_t copy = expiry_list_insert(&made, &list, entry.expiry_ns, entry.cost);

        if (copy == 0) {
            expiry_list_add_to_tail(&made, &list, entry.expiry_ns, entry.cost);
            copy = list.tail;
        }
        for (uint32_t i = 2; i < ENTRIES_STRIDE; i++)
            span_write(&made, expiry_list_word(copy) + i, span_read(&old, expiry_list_word(n) + i));
    }
    expiry_list_store(&made, &list);
}

/* The list runs forwards and backwards over different entries that were taken, in the order of
 * their expiry, with a cost each that make the sum; and the free ones are all the others. */
bool expiry_list_valid(const struct weir_limit *limit, const struct span_view *span)
{
    const struct span_change read_only = {.span = *span};
    struct entries list;
    struct entry entry;
    uint64_t sum = 0, expiry_ns = 0;
    uint32_t left, previous = 0;

    if (!expiry_list_load(limit, &read_only, &list) || list.taken > list.capacity ||
        list.capacity > expiry_list_most(limit))
        return false;
    left = list.taken;
    for (uint32_t n = list.head; n != 0; n = entry.next, left--) {
        if (n > list.taken || left == 0)
            return false;
        expiry_list_read(&read_only, n, &entry);
        if (entry.previous != previous || entry.expiry_ns < expiry_ns || entry.cost == 0)
            return false;
        sum += entry.cost;
        expiry_ns = entry.expiry_ns;
        previous = n;
    }
    if (list.tail != previous || list.sum != sum)
        return false;
    for (uint32_t n = list.free; n != 0; n = entry.next, left--) {
        if (n > list.taken || left == 0)
            return false;
        expiry_list_read(&read_only, n, &entry);
    }
    return left == 0;
}

uint32_t expiry_list_full_words(const struct weir_limit *limit)
{
    return expiry_list_needs(NULL, limit, 1, (uint32_t)limit->spec.rate);
}
