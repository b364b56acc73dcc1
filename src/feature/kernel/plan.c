/* SPDX-License-Identifier: Apache-2.0 */
/* see plan.h
 *
 *   index ──▶ entry: network, set | wanted, present, pending | next in `changed`
 *
 * wanted, present and pending are ends: 0 is not there. An entry is in the list `changed` while
 * `wanted` differs from what was sent last.
 */
#include "feature/kernel/plan.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/limit.h>

#include "base/backoff.h"
#include "core/text/siphash.h"

#define INDEX_SIZE (2 * WEIR_PLAN_MAX)
#define SWEEP 512 /* entries that one weir_plan_next looks at for their end */
#define NS_PER_MS UINT64_C(1000000)

struct entry {
    uint8_t address[16];
    uint8_t family, bits, set;
    bool used, changed, flying; /* flying: in the transaction in flight */
    bool seen;                  /* since begin_all */
    uint32_t next;              /* in `changed`, or in the list of free ones; a number, 0: none */
    uint64_t wanted_ns, present_ns, pending_ns;
};

enum state {
    LOST,       /* the kernel's table has to be recreated */
    REBUILDING, /* messages of that transaction are being taken */
    FLYING,     /* a transaction is in flight */
    IDLE,
};

struct weir_plan {
    enum state state;
    bool rebuild; /* the transaction in flight is one */
    bool naming;  /* between begin_all and end_all */
    uint32_t hand, cursor, sweep_end;
    uint32_t free_first, used_end; /* entries from used_end on were never used */
    uint32_t changed_first, changed_last;
    size_t changed_count;
    uint64_t not_before_ns, retry_ns;
    struct weir_plan_stats stats;
    uint32_t bans; /* entries of them */
    uint32_t flying[WEIR_KERNEL_BATCH_MAX];
    size_t flying_count;
    uint64_t secret[2];         /* of the index */
    uint32_t index[INDEX_SIZE]; /* numbers of entries: their place plus one; 0: empty */
    struct entry entries[WEIR_PLAN_MAX];
};

int weir_plan_open(struct weir_plan **plan, const uint64_t secret[2])
{
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return WEIR_ERR_MEMORY;
    memcpy((*plan)->secret, secret, sizeof(*plan)->secret);
    return 0;
}

void weir_plan_close(struct weir_plan *plan)
{
    free(plan);
}

/* --- The index -------------------------------------------------------------------------------- */

static struct entry *at(struct weir_plan *plan, uint32_t number)
{
    return &plan->entries[number - 1];
}

/* Names of an entry: what it is found by. */
struct name {
    uint8_t address[16];
    uint8_t family, bits, set, gap[5];
};

static uint32_t home_of(const struct weir_plan *plan, const struct name *name)
{
    uint64_t hash[2];

    weir_siphash128(plan->secret, name, sizeof *name, hash);
    return (uint32_t)(hash[0] % INDEX_SIZE);
}

static struct name name_of(const struct entry *entry)
{
    struct name name = {.family = entry->family, .bits = entry->bits, .set = entry->set};

    memcpy(name.address, entry->address, sizeof name.address);
    return name;
}

/* The place of a name, or the empty one where it would be. */
static uint32_t place_of(const struct weir_plan *plan, const struct name *name)
{
    uint32_t place = home_of(plan, name);

    for (; plan->index[place] != 0; place = (place + 1) % INDEX_SIZE) {
        const struct entry *entry = &plan->entries[plan->index[place] - 1];

        if (entry->family == name->family && entry->bits == name->bits && entry->set == name->set &&
            memcmp(entry->address, name->address, sizeof name->address) == 0)
            break;
    }
    return place;
}

/* Takes a name out, and moves those behind it to where a walk finds them (Knuth, 6.4 R). */
static void forget_place(struct weir_plan *plan, uint32_t place)
{
    uint32_t gap = place, look = place;

    for (;;) {
        struct name name;
        uint32_t home;

        look = (look + 1) % INDEX_SIZE;
        if (plan->index[look] == 0)
            break;
        name = name_of(at(plan, plan->index[look]));
        home = home_of(plan, &name);
        if ((look - home + INDEX_SIZE) % INDEX_SIZE >= (look - gap + INDEX_SIZE) % INDEX_SIZE) {
            plan->index[gap] = plan->index[look];
            gap = look;
        }
    }
    plan->index[gap] = 0;
}

/* An entry for a network of that set; 0: there is none. */
static uint32_t take_entry(struct weir_plan *plan, uint8_t set)
{
    uint32_t number = plan->free_first;

    if (set == WEIR_KERNEL_BAN && plan->bans == WEIR_PLAN_BANS_MAX)
        return 0;
    if (number != 0)
        plan->free_first = at(plan, number)->next;
    else if (plan->used_end < WEIR_PLAN_MAX)
        number = ++plan->used_end;
    plan->bans += number != 0 && set == WEIR_KERNEL_BAN;
    return number;
}

static void free_entry(struct weir_plan *plan, uint32_t number)
{
    struct entry *entry = at(plan, number);
    struct name name = name_of(entry);

    plan->bans -= entry->set == WEIR_KERNEL_BAN;
    forget_place(plan, place_of(plan, &name));
    *entry = (struct entry){.next = plan->free_first};
    plan->free_first = number;
}

/* --- What is required ---------------------------------------------------------------------------
 */

static void count(size_t *counts, uint8_t set, uint64_t was_ns, uint64_t is_ns)
{
    counts[set] += (size_t)(is_ns > 0) - (size_t)(was_ns > 0);
}

static void set_present(struct weir_plan *plan, struct entry *entry, uint64_t until_ns)
{
    count(plan->stats.present, entry->set, entry->present_ns, until_ns);
    entry->present_ns = until_ns;
}

static void set_wanted(struct weir_plan *plan, struct entry *entry, uint64_t until_ns)
{
    count(plan->stats.wanted, entry->set, entry->wanted_ns, until_ns);
    entry->wanted_ns = until_ns;
}

/* Puts an entry behind those that have changed, unless it waits there already. */
static void change(struct weir_plan *plan, uint32_t number)
{
    struct entry *entry = at(plan, number);

    if (entry->changed)
        return;
    entry->changed = true;
    entry->next = 0;
    if (plan->changed_last != 0)
        at(plan, plan->changed_last)->next = number;
    else
        plan->changed_first = number;
    plan->changed_last = number;
    plan->changed_count++;
}

static uint64_t sent_ns(const struct entry *entry)
{
    return entry->flying ? entry->pending_ns : entry->present_ns;
}

/* Frees an entry that is nowhere. */
static void settle(struct weir_plan *plan, uint32_t number)
{
    struct entry *entry = at(plan, number);

    if (entry->used && !entry->changed && !entry->flying && entry->wanted_ns == 0 &&
        entry->present_ns == 0)
        free_entry(plan, number);
}

static bool name_network(struct name *name, enum weir_kernel_set set,
                         const struct weir_cidr *network)
{
    struct weir_address masked = network->address;
    uint8_t family = network->address.family;

    if ((family != 4 && family != 6) || network->bits > (family == 4 ? 32 : 128) ||
        (set == WEIR_KERNEL_BAN && network->bits < weir_kernel_ban_bits_min(family)))
        return false;
    weir_address_mask(&masked, network->bits);
    if (weir_kernel_is_mark(masked.bytes, family, network->bits))
        return false;
    *name = (struct name){.family = family, .bits = network->bits, .set = (uint8_t)set};
    memcpy(name->address, masked.bytes, family == 4 ? 4 : 16);
    return true;
}

bool weir_plan_want(struct weir_plan *plan, enum weir_kernel_set set,
                    const struct weir_cidr *network, uint64_t until_ns)
{
    struct name name;
    struct entry *entry;
    uint32_t place, number;

    if (!name_network(&name, set, network))
        return false;
    place = place_of(plan, &name);
    number = plan->index[place];
    if (number == 0 && until_ns == 0)
        return true;
    if (number == 0) {
        number = take_entry(plan, name.set);
        if (number == 0) {
            plan->stats.refused++;
            return false;
        }
        entry = at(plan, number);
        *entry =
            (struct entry){.family = name.family, .bits = name.bits, .set = name.set, .used = true};
        memcpy(entry->address, name.address, sizeof entry->address);
        plan->index[place] = number;
    }
    entry = at(plan, number);
    entry->seen = true;
    set_wanted(plan, entry, until_ns);
    if (sent_ns(entry) != until_ns)
        change(plan, number);
    return true;
}

void weir_plan_begin_all(struct weir_plan *plan)
{
    for (uint32_t i = 0; i < plan->used_end; i++)
        plan->entries[i].seen = false;
    plan->naming = true;
}

void weir_plan_end_all(struct weir_plan *plan)
{
    if (!plan->naming)
        return;
    plan->naming = false;
    for (uint32_t number = 1; number <= plan->used_end; number++) {
        struct entry *entry = at(plan, number);

        if (!entry->used || entry->seen || entry->wanted_ns == 0)
            continue;
        set_wanted(plan, entry, 0);
        if (sent_ns(entry) != 0)
            change(plan, number);
        settle(plan, number);
    }
}

bool weir_plan_has(const struct weir_plan *plan, enum weir_kernel_set set,
                   const struct weir_cidr *network, uint64_t now_ns)
{
    struct name name;
    uint32_t number;

    if (!name_network(&name, set, network))
        return false;
    number = plan->index[place_of(plan, &name)];
    return number != 0 && plan->entries[number - 1].present_ns > now_ns;
}

/* --- Messages --------------------------------------------------------------------------------- */

/* The term in whole milliseconds; 0: it has ended. */
static uint64_t term_ms(uint64_t until_ns, uint64_t now_ns)
{
    uint64_t term = until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS : 0;

    return term < WEIR_KERNEL_TIMEOUT_MAX_MS ? term : WEIR_KERNEL_TIMEOUT_MAX_MS;
}

static void put(const struct entry *entry, uint64_t now_ns, bool removed,
                struct weir_kernel_message *message)
{
    struct weir_kernel_element *element = &message->elements[message->head.count++];

    *element = (struct weir_kernel_element){
        .family = entry->family, .bits = entry->bits, .set = entry->set, .removed = removed};
    memcpy(element->address, entry->address, sizeof element->address);
    if (!removed && entry->wanted_ns != WEIR_NEVER)
        element->timeout_ms = term_ms(entry->wanted_ns, now_ns);
}

/* What was wanted has ended: in the kernel, too, by itself. */
static void end_if_over(struct weir_plan *plan, struct entry *entry, uint64_t now_ns)
{
    if (entry->wanted_ns > 0 && term_ms(entry->wanted_ns, now_ns) == 0)
        set_wanted(plan, entry, 0);
    if (!entry->flying && entry->present_ns > 0 && entry->present_ns <= now_ns)
        set_present(plan, entry, 0);
}

/* Looks at some entries for their end. */
static void sweep(struct weir_plan *plan, uint64_t now_ns)
{
    for (uint32_t i = 0; i < SWEEP && plan->used_end > 0; i++) {
        uint32_t number = plan->hand % plan->used_end + 1;
        struct entry *entry = at(plan, number);

        plan->hand = number;
        if (!entry->used)
            continue;
        end_if_over(plan, entry, now_ns);
        settle(plan, number);
    }
}

static void fly(struct weir_plan *plan, uint64_t now_ns)
{
    plan->state = FLYING;
    plan->not_before_ns = now_ns + WEIR_PLAN_PACE_NS;
}

/* Drops what was known of the kernel; all that is required will be sent. */
static void begin_rebuild(struct weir_plan *plan)
{
    plan->state = REBUILDING;
    plan->rebuild = true;
    plan->cursor = 1;
    plan->changed_first = plan->changed_last = 0;
    plan->changed_count = 0;
    for (uint32_t number = 1; number <= plan->used_end; number++) {
        struct entry *entry = at(plan, number);

        if (!entry->used)
            continue;
        entry->changed = entry->flying = false;
        set_present(plan, entry, 0);
    }
    plan->stats.rebuilds++;
}

static void fill_rebuild(struct weir_plan *plan, uint64_t now_ns,
                         struct weir_kernel_message *message)
{
    message->head.flags = WEIR_KERNEL_REPLACE;
    for (; plan->cursor <= plan->used_end; plan->cursor++) {
        struct entry *entry = at(plan, plan->cursor);

        if (!entry->used)
            continue;
        end_if_over(plan, entry, now_ns);
        if (entry->wanted_ns == 0 || entry->flying) {
            settle(plan, plan->cursor);
            continue;
        }
        if (message->head.count == WEIR_KERNEL_BATCH_MAX)
            break;
        put(entry, now_ns, false, message);
        entry->flying = true;
        entry->pending_ns = entry->wanted_ns;
    }
    if (plan->cursor <= plan->used_end)
        message->head.flags |= WEIR_KERNEL_MORE;
    else
        fly(plan, now_ns);
}

static uint32_t take_changed(struct weir_plan *plan)
{
    uint32_t number = plan->changed_first;
    struct entry *entry = at(plan, number);

    plan->changed_first = entry->next;
    if (plan->changed_first == 0)
        plan->changed_last = 0;
    plan->changed_count--;
    entry->changed = false;
    entry->next = 0;
    return number;
}

static void fill_batch(struct weir_plan *plan, uint64_t now_ns, struct weir_kernel_message *message)
{
    plan->flying_count = 0;
    while (plan->changed_first != 0 && message->head.count < WEIR_KERNEL_BATCH_MAX) {
        uint32_t number = take_changed(plan);
        struct entry *entry = at(plan, number);

        end_if_over(plan, entry, now_ns);
        if (entry->wanted_ns == entry->present_ns) {
            settle(plan, number);
            continue;
        }
        put(entry, now_ns, entry->wanted_ns == 0, message);
        entry->flying = true;
        entry->pending_ns = entry->wanted_ns;
        plan->flying[plan->flying_count++] = number;
    }
}

bool weir_plan_next(struct weir_plan *plan, uint64_t now_ns, struct weir_kernel_message *message)
{
    if (plan->state == FLYING)
        return false;
    weir_kernel_message_begin(message, WEIR_KERNEL_APPLY);
    if (plan->state == LOST && now_ns >= plan->not_before_ns)
        begin_rebuild(plan);
    if (plan->state == REBUILDING) {
        fill_rebuild(plan, now_ns, message);
        return true;
    }
    sweep(plan, now_ns);
    if (plan->state == LOST || plan->changed_count == 0 ||
        (now_ns < plan->not_before_ns && plan->changed_count < WEIR_KERNEL_BATCH_MAX))
        return false;
    fill_batch(plan, now_ns, message);
    if (message->head.count == 0)
        return false;
    plan->stats.batches++;
    fly(plan, now_ns);
    return true;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void land(struct weir_plan *plan, uint32_t number)
{
    struct entry *entry = at(plan, number);

    if (!entry->used || !entry->flying)
        return;
    entry->flying = false;
    set_present(plan, entry, entry->pending_ns);
    if (entry->wanted_ns != entry->present_ns)
        change(plan, number);
    settle(plan, number);
}

void weir_plan_done(struct weir_plan *plan, uint64_t now_ns, int result)
{
    if (plan->state != FLYING)
        return;
    if (result != 0) {
        plan->stats.failures++;
        weir_plan_lost(plan);
        plan->retry_ns = plan->retry_ns == 0
                             ? WEIR_PLAN_RETRY_NS
                             : weir_backoff_longer(plan->retry_ns, WEIR_PLAN_RETRY_MAX_NS);
        plan->not_before_ns = now_ns + plan->retry_ns;
        return;
    }
    plan->retry_ns = 0;
    plan->state = IDLE;
    if (plan->rebuild) {
        plan->rebuild = false;
        for (uint32_t number = 1; number <= plan->used_end; number++)
            land(plan, number);
        return;
    }
    for (size_t i = 0; i < plan->flying_count; i++)
        land(plan, plan->flying[i]);
    plan->flying_count = 0;
}

void weir_plan_lost(struct weir_plan *plan)
{
    plan->state = LOST;
    plan->rebuild = false;
    plan->flying_count = 0;
    plan->not_before_ns = 0;
}

void weir_plan_stats(const struct weir_plan *plan, struct weir_plan_stats *stats)
{
    *stats = plan->stats;
    stats->agrees = plan->state == IDLE && plan->changed_count == 0;
}
