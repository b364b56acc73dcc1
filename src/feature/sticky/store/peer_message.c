/* SPDX-License-Identifier: Apache-2.0 */
/* see peer_message.h */
#include "feature/sticky/store/peer_message.h"

#include <string.h>

#include "core/scale.h"

#define VERSION 1

enum outcome_bit { REPORTED = 1, CHARGED = 2, OVERFLOWED = 4 };
#define OUTCOME_BITS (REPORTED | CHARGED | OVERFLOWED)

/* --- Numbers ---------------------------------------------------------------------------------- */

static char *put(char *out, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        out[i] = (char)(value >> 8 * i & 0xff);
    return out + size;
}

/* What is left of a message; `bad` once it was too short. */
struct reader {
    const char *at, *end;
    bool bad;
};

static const char *take_bytes(struct reader *reader, size_t size)
{
    static const char nothing[STICKY_NAME_MAX];
    const char *at = reader->at;

    if ((size_t)(reader->end - at) < size) {
        reader->bad = true;
        return nothing;
    }
    reader->at += size;
    return at;
}

static uint64_t take(struct reader *reader, unsigned size)
{
    const char *bytes = take_bytes(reader, size);
    uint64_t value = 0;

    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return value;
}

/* --- Messages --------------------------------------------------------------------------------- */

static bool op_is_sent(unsigned op)
{
    return op == WEIR_OP_DECIDE || op == WEIR_OP_PEEK || op == WEIR_OP_DEBIT ||
           op == WEIR_OP_REFUND || op == WEIR_OP_RESET || op == WEIR_OP_LOOK;
}

static bool algorithm_is_sent(unsigned algorithm)
{
    return algorithm <= WEIR_QUOTA && algorithm != WEIR_CONCURRENCY;
}

bool sticky_message_fits(const struct weir_decision *decision)
{
    if (!op_is_sent(decision->op))
        return false;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];

        if (!weir_check_has_state(check))
            continue;
        if (!check->limit || !algorithm_is_sent(check->limit->spec.algorithm) ||
            (check->limit->name && strlen(check->limit->name) > STICKY_NAME_MAX))
            return false;
    }
    return true;
}

static char *write_check(char *out, const struct weir_check *check, const unsigned char *digest)
{
    static const struct weir_limit none;
    bool state = weir_check_has_state(check);
    const struct weir_limit *limit = state ? check->limit : &none;
    size_t size = limit->name ? strlen(limit->name) : 0;

    out = put(out, check->flags, 1);
    out = put(out, check->scale, 1);
    /* A node that does not know the second bit refuses it: sent where it makes a difference. */
    bool alone = state && check->scale_alone && scale_is_shallow(check);
    out = put(out, check->scale_kind | (unsigned)alone << 1, 1);
    out = put(out, check->floor, 2);
    out = put(out, limit->spec.algorithm, 1);
    out = put(out, limit->spec.strict, 1);
    out = put(out, limit->spec.segments, 4);
    out = put(out, check->cost, 8);
    out = put(out, limit->spec.rate, 8);
    out = put(out, limit->spec.window_ns, 8);
    out = put(out, limit->spec.burst, 8);
    out = put(out, limit->spec.rollover, 8);
    out = put(out, limit->spec.calendar, 8);
    memcpy(out, digest, STICKY_DIGEST);
    out = put(out + STICKY_DIGEST, size, 1);
    if (size > 0)
        memcpy(out, limit->name, size);
    return out + size;
}

size_t sticky_message_write(char *start, const struct weir_decision *decision,
                            const unsigned char (*digests)[STICKY_DIGEST])
{
    char *out = put(start, VERSION, 1);

    out = put(out, decision->op, 1);
    out = put(out, decision->policy, 1);
    out = put(out, decision->count, 1);
    out = put(out, decision->network, 4);
    out = put(out, decision->charged_at_ns, 8);
    for (uint16_t i = 0; i < decision->count; i++)
        out = write_check(out, &decision->checks[i], digests[i]);
    return (size_t)(out - start);
}

static bool read_check(struct reader *reader, struct weir_check *check, struct sticky_check *read)
{
    *check = (struct weir_check){.rule = UINT32_MAX, .key = {"", 0}};
    *read = (struct sticky_check){.name = {NULL, 0}};
    check->flags = (uint8_t)take(reader, 1);
    uint64_t scale = take(reader, 1), kind = take(reader, 1), floor = take(reader, 2);
    uint64_t algorithm = take(reader, 1), strict = take(reader, 1);
    read->spec.segments = (uint32_t)take(reader, 4);
    check->cost = take(reader, 8);
    read->spec.rate = take(reader, 8);
    read->spec.window_ns = take(reader, 8);
    read->spec.burst = take(reader, 8);
    read->spec.rollover = take(reader, 8);
    read->spec.calendar = take(reader, 8);
    memcpy(read->digest, take_bytes(reader, STICKY_DIGEST), STICKY_DIGEST);
    read->name.size = (size_t)take(reader, 1);
    read->name.data = take_bytes(reader, read->name.size);
    if (reader->bad || scale > 99 || kind > 3 || kind == 2 || (scale == 0 && kind != 0) ||
        floor > 1001 || strict > 1 || (check->flags & WEIR_CHECK_COUNTER) != 0 ||
        !algorithm_is_sent((unsigned)algorithm))
        return false;
    check->scale = scale & 127;
    check->scale_kind = kind & 1;
    check->scale_alone = kind >> 1 & 1;
    check->floor = floor & 1023;
    read->spec.algorithm = (enum weir_algorithm)algorithm;
    read->spec.strict = strict == 1;
    return true;
}

int sticky_message_read(struct weir_bytes message, struct weir_decision *decision,
                        struct sticky_check checks[WEIR_CHECKS_MAX])
{
    struct reader reader = {message.data, message.data + message.size, false};
    uint64_t version = take(&reader, 1), op = take(&reader, 1), policy = take(&reader, 1);
    uint64_t count = take(&reader, 1);

    decision->network = (uint32_t)take(&reader, 4);
    decision->charged_at_ns = take(&reader, 8);
    if (reader.bad || version != VERSION || !op_is_sent((unsigned)op) ||
        policy > WEIR_POLICY_QUOTA || count > WEIR_CHECKS_MAX)
        return WEIR_ERR_SYNTAX;
    for (uint64_t i = 0; i < count; i++)
        if (!read_check(&reader, &decision->checks[i], &checks[i]))
            return WEIR_ERR_SYNTAX;
    for (uint64_t i = 0; i < count; i++) /* a decision's last check, under ALL only */
        if ((decision->checks[i].flags & WEIR_CHECK_IDEMPOTENCY) != 0 &&
            (i + 1 != count || policy != WEIR_POLICY_ALL))
            return WEIR_ERR_SYNTAX;
    if (reader.at != reader.end)
        return WEIR_ERR_SYNTAX;
    decision->op = (uint8_t)op;
    decision->policy = (uint8_t)policy;
    decision->count = (uint16_t)count;
    return 0;
}

/* --- Answers ---------------------------------------------------------------------------------- */

size_t sticky_answer_write(char *start, const struct weir_decision *decision)
{
    char *out = put(start, VERSION, 1);

    out = put(out, decision->verdict, 1);
    out = put(out, decision->repeated, 1);
    out = put(out, decision->count, 1);
    out = put(out, decision->now_ns, 8);
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_outcome *outcome = &decision->outcomes[i];
        const struct weir_report *report = &outcome->report;
        bool whole = outcome->reported;
        unsigned bits = (outcome->reported ? REPORTED : 0U) | (outcome->charged ? CHARGED : 0U) |
                        (outcome->overflow ? OVERFLOWED : 0U);

        out = put(out, outcome->verdict, 1);
        out = put(out, bits, 1);
        out = put(out, outcome->delay_ns, 8);
        out = put(out, whole ? outcome->next_ns : 0, 8);
        out = put(out, decision->checks[i].cost, 8);
        out = put(out, whole ? report->limit : outcome->cell.a, 8);
        out = put(out, whole ? report->remaining : outcome->cell.b, 8);
        out = put(out, whole ? report->retry_after_ns : 0, 8);
        out = put(out, whole ? report->reset_after_ns : 0, 8);
    }
    return (size_t)(out - start);
}

static bool is_verdict(uint64_t value)
{
    return value == WEIR_ALLOWED || value == WEIR_DENIED;
}

/* What one check was answered. */
struct entry {
    struct weir_outcome outcome;
    uint64_t cost;
};

static bool read_outcome(struct reader *reader, const struct weir_check *check, struct entry *entry)
{
    struct weir_outcome *outcome = &entry->outcome;
    uint64_t verdict = take(reader, 1), bits = take(reader, 1), words[4];

    memset(entry, 0, sizeof *entry);
    outcome->delay_ns = take(reader, 8);
    outcome->next_ns = take(reader, 8);
    entry->cost = take(reader, 8);
    for (unsigned i = 0; i < 4; i++)
        words[i] = take(reader, 8);
    outcome->verdict = (uint8_t)verdict;
    outcome->reported = (bits & REPORTED) != 0;
    outcome->charged = (bits & CHARGED) != 0;
    outcome->overflow = (bits & OVERFLOWED) != 0;
    if (outcome->reported)
        outcome->report = (struct weir_report){words[0], words[1], words[2], words[3]};
    else
        outcome->cell = (struct weir_cell){words[0], words[1]};
    /* The functions that report a cell are for cells that they can have made. */
    bool reports = outcome->reported || !weir_check_has_state(check) ||
                   (check->limit->span_words == 0 && weir_cell_valid(check->limit, &outcome->cell));
    return !reader->bad && is_verdict(verdict) && bits <= OUTCOME_BITS &&
           entry->cost <= check->cost && reports;
}

int sticky_answer_read(struct weir_bytes answer, struct weir_decision *decision)
{
    struct entry entries[WEIR_CHECKS_MAX];
    struct reader reader = {answer.data, answer.data + answer.size, false};
    uint64_t version = take(&reader, 1), verdict = take(&reader, 1), repeated = take(&reader, 1);
    uint64_t count = take(&reader, 1), now_ns = take(&reader, 8);

    if (reader.bad || version != VERSION || !is_verdict(verdict) || repeated > 1 ||
        count != decision->count || now_ns >= UINT64_C(1) << 62)
        return WEIR_ERR_SYNTAX;
    for (uint16_t i = 0; i < decision->count; i++)
        if (!read_outcome(&reader, &decision->checks[i], &entries[i]))
            return WEIR_ERR_SYNTAX;
    if (reader.at != reader.end)
        return WEIR_ERR_SYNTAX;
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision joined = *decision; /* what it would be: to be compared before it is */

    for (uint16_t i = 0; i < decision->count; i++)
        outcomes[i] = entries[i].outcome;
    joined.outcomes = outcomes;
    joined.delay_ns = 0;
    weir_decision_join(&joined);
    if (decision->op < WEIR_OP_RELEASE && joined.verdict != verdict)
        return WEIR_ERR_SYNTAX;
    for (uint16_t i = 0; i < decision->count; i++) {
        decision->outcomes[i] = outcomes[i];
        if (decision->op == WEIR_OP_DEBIT)
            decision->checks[i].cost = entries[i].cost;
    }
    decision->now_ns = now_ns;
    decision->repeated = repeated == 1;
    decision->delay_ns = joined.delay_ns;
    decision->verdict = (uint8_t)verdict;
    return 0;
}
