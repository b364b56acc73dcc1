/* see log.h */
#include "core/log.h"

#include "core/entries.h"

/* The time that the log decides at: never before its newest entry. */
static uint64_t log_time(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns)
{
    uint64_t fresh_at_ns = entries_fresh_at(limit, span);

    return fresh_at_ns > now_ns + limit->spec.window_ns ? fresh_at_ns - limit->spec.window_ns
                                                        : now_ns;
}

bool log_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns, uint64_t cost)
{
    const struct span_change read_only = {.span = span};
    struct entries list;
    uint32_t first;

    if (cost > limit->spec.rate)
        return false;
    entries_load(limit, &read_only, &list);
    if (list.sum <= limit->spec.rate - cost) /* even if nothing has expired */
        return true;
    return entries_live(&read_only, &list, log_time(limit, span, now_ns), &first) <=
           limit->spec.rate - cost;
}

void log_charge(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use)
{
    struct entries list;
    struct entry newest;
    uint64_t now_ns = log_time(limit, change->span, use->now_ns);
    uint64_t expiry_ns = now_ns + limit->spec.window_ns;

    if (use->cost == 0)
        return;
    entries_load(limit, change, &list);
    entries_purge(change, &list, now_ns);
    newest.expiry_ns = 0;
    if (list.tail != 0)
        entries_read(change, &list, list.tail, &newest);
    if (newest.expiry_ns == expiry_ns || entries_insert(change, &list, expiry_ns, use->cost) == 0)
        entries_add_to_tail(change, &list, expiry_ns, use->cost);
    entries_store(change, &list);
}

void log_refund(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use)
{
    struct entries list;
    struct entry entry;
    uint64_t now_ns = log_time(limit, change->span, use->now_ns);
    uint64_t expiry_ns = use->charged_at_ns + limit->spec.window_ns;

    entries_load(limit, change, &list);
    if (expiry_ns <= now_ns || use->cost == 0)
        return;
    for (uint32_t n = list.tail; n != 0; n = entry.previous) {
        entries_read(change, &list, n, &entry);
        if (entry.expiry_ns > expiry_ns)
            continue;
        if (entry.expiry_ns == expiry_ns) {
            entries_give_back(change, &list, n, use->cost);
            entries_store(change, &list);
        }
        return;
    }
}

void log_report(const struct weir_limit *limit, const uint64_t *span, const struct weir_use *use,
                struct weir_report *report)
{
    entries_report(limit, span, use, log_time(limit, span, use->now_ns), report);
}
