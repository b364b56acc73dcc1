/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and decisions: where every front end and every store meet.
 *
 * A check is one limit, one key, one cost. A decision is one verdict for up to WEIR_CHECKS_MAX of
 * them. The front end's side (rules, commands, descriptors) fills the checks; a store fills the
 * outcomes. The report to a client is computed from an outcome, only when it is needed.
 *
 * Ownership: the engine owns decisions, in a fixed pool per worker; checks and outcomes point into
 * the same pool entry. A check's `limit` belongs to a generation of the rules that the decision
 * pins. `key` points into the pool entry too and lives as long as the decision.
 */
#ifndef WEIR_CORE_CHECK_H
#define WEIR_CORE_CHECK_H

#include <weir/bytes.h>
#include <weir/limit.h>

/* Limits that one request may meet; the rules loader and the codecs refuse more. */
#define WEIR_CHECKS_MAX 32

/* Longest idempotency key in bytes; the codecs refuse longer ones. */
#define WEIR_IDEMPOTENCY_KEY_MAX 255

enum weir_check_flag {
    WEIR_CHECK_SHADOW = 1,         /* decides and reports, never denies the request */
    WEIR_CHECK_CHARGE_ON_DENY = 2, /* `on_deny: charge`: charged whatever the outcome */
    WEIR_CHECK_UNLIMITED = 4,      /* always admitted; has no state */
    WEIR_CHECK_ALWAYS_DENY = 8,    /* `on_missing: deny`: always denied; has no state */
    WEIR_CHECK_LEASED = 16,        /* `mode: leased`: a remote store may decide from a share */
    /* The record of an idempotency key: a decision's last check, and never shown to a client; a
     * remote DEBIT may have more. A bucket of 1 per life. Where it denies, the request was decided
     * before and was allowed: `repeated` is set, every other check is admitted and charged nothing.
     * Where it admits, it is charged with the others, iff the request is allowed. It never denies.
     * It is charged on WEIR_OP_DECIDE and DEBIT, only looked at on PEEK, and skipped on others.
     * Only under WEIR_POLICY_ALL. A store without room for the record decides without it. */
    WEIR_CHECK_IDEMPOTENCY = 32,
    /* A fixed window that others count in, too: in Redis its key is `key` unchanged, window
     * included, and its state a number (INCRBY, EXPIRE). With CHARGE_ON_DENY and under EACH only;
     * all checks of a decision have it or none. The table ignores it. */
    WEIR_CHECK_COUNTER = 64,
    /* The key contains the client's address, or a prefix of it that says its network
     * (weir_address_network). Where the table is full, keys of one network do not crowd out those
     * of others. Remote stores ignore it. */
    WEIR_CHECK_NETWORK = 128,
    /* Either of the two that never deny a request. */
    WEIR_CHECK_SILENT = WEIR_CHECK_SHADOW | WEIR_CHECK_IDEMPOTENCY,
};

/* What a scale below 100 % does to a limit. Limit and state stay those of 100 %; the two differ for
 * buckets only. */
enum weir_scale_kind {
    WEIR_SCALE_RESERVE, /* the rest of the capacity is kept for others: a bucket refills as before
                         */
    WEIR_SCALE_RATE,    /* rate and burst are scaled: a bucket charges its cost * 100 / scale */
};

enum weir_store_failure { WEIR_FAIL_LOCAL, WEIR_FAIL_OPEN, WEIR_FAIL_CLOSED };

struct weir_edit;

struct weir_check {
    const struct weir_limit *limit;
    uint64_t hash[2]; /* keyed hash of the typed tuple (limit name, key values) */
    uint64_t cost;
    struct weir_bytes key; /* its text, for Redis, logs and /top; the table ignores it */
    uint64_t tag;          /* hash of the rule's `hash_tag` values: checks with one tag live on one
                              server of a cluster; 0: the key's own. The table ignores it */
    uint32_t rule;         /* index of the limit in its rules; UINT32_MAX for limits in commands */
    uint8_t flags;         /* enum weir_check_flag */
    uint8_t scale : 7;     /* percent of the limit that this request may use: 1..99; 0: all of it */
    uint8_t scale_kind : 1; /* enum weir_scale_kind; 0 where `scale` is 0 */
    uint16_t floor : 10;    /* WEIR_OP_DEBIT: 0: none; else 1 + the most that may be owed beyond the
                               capacity, in percent of it (0..1000): the store lowers `cost` to
                               what it has charged. With `challenged`, which no debit has: the
                               scale without the challenge (weir_check_unchallenged) */
    uint16_t scale_alone : 1; /* WEIR_SCALE_RATE: all that charge this state have the scale, so one
                                 request may weigh more than the depth: see core/scale.h */
    uint16_t on_store_error : 2; /* enum weir_store_failure */
    uint16_t key_is_tuple : 1;   /* `key` is the tuple: weir_rules_key_text writes its text */
    uint16_t challenged : 1; /* `scale` is that of the limit's challenge, and would be higher, or
                                none, if the request had passed one. Stores ignore it */
};

/* Sets what every check has, and that it has nothing else yet; not its limit, hash, cost, key and
 * tag. `failure`: enum weir_store_failure. */
static inline void weir_check_begin(struct weir_check *check, uint32_t rule, uint8_t flags,
                                    unsigned failure)
{
    check->rule = rule;
    check->flags = flags;
    check->scale = check->scale_kind = 0;
    check->floor = 0;
    check->scale_alone = 0;
    check->on_store_error = failure & 3;
    check->key_is_tuple = check->challenged = 0;
}

/* The scale that a check with `challenged` would have if the request had passed the challenge. */
static inline void weir_check_unchallenged(const struct weir_check *check,
                                           struct weir_check *without)
{
    *without = *check;
    without->scale = check->floor & 0x7f;
    without->scale_kind = check->floor >> 7 & 1;
    without->scale_alone = check->floor >> 8 & 1;
    without->floor = without->challenged = 0;
}

/* Notes that scale, which the check has until now. */
static inline void weir_check_challenge(struct weir_check *check)
{
    unsigned scale = check->scale, kind = check->scale_kind, alone = check->scale_alone;

    check->floor = (scale | kind << 7 | alone << 8) & 0x3ff;
    check->challenged = 1;
}
_Static_assert(sizeof(void *) != 8 || sizeof(struct weir_check) == 64, "a check is one line");

/* Whether a check has a state, and so a limit and a key. */
static inline bool weir_check_has_state(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) == 0;
}

enum weir_op {
    WEIR_OP_DECIDE,
    WEIR_OP_PEEK,   /* the real verdict, nothing charged */
    WEIR_OP_DEBIT,  /* charges although it may exceed the capacity; the verdict is "allowed" */
    WEIR_OP_REFUND, /* gives back what was charged at `charged_at_ns`; "allowed" */
    /* On states rather than requests. "Allowed" says that there was something, "denied" that there
     * was nothing: no such lease, or a fresh state. Nothing is charged; on_store_error plays no
     * part: where the store fails, the verdict is "denied" with `error` set. */
    WEIR_OP_RELEASE, /* ends the lease `lease.id` of each check, all concurrency */
    WEIR_OP_RESET,   /* forgets each check's state */
    WEIR_OP_LOOK,    /* reports when each check's state will be fresh (reset_after_ns), and more of
                        some: see enum weir_look */
    WEIR_OP_EDIT,    /* changes counters by `edit`: see struct weir_edit */
};

/* What WEIR_OP_LOOK says in `limit` of its report. Remote stores always say OTHER. */
enum weir_look {
    WEIR_LOOK_OTHER,
    WEIR_LOOK_COUNTER, /* `remaining` is its value, `retry_after_ns` WEIR_NEVER if it has no end */
    WEIR_LOOK_LOG,     /* `remaining` is what it has used, `retry_after_ns` how long ago the oldest
                          unit of that was; with a cost of c above 0, the c-th of the newest */
};

enum weir_policy {
    WEIR_POLICY_ALL,   /* all checks are charged or none is */
    WEIR_POLICY_EACH,  /* every check on its own; denied if any non-shadow one is */
    WEIR_POLICY_QUOTA, /* as EACH, but denied only if every non-shadow check is */
};

enum weir_verdict { WEIR_PENDING, WEIR_ALLOWED, WEIR_DENIED };

/* Where a verdict came from. */
enum weir_source {
    WEIR_SOURCE_STORE,
    WEIR_SOURCE_LOCAL,  /* on_store_error: local */
    WEIR_SOURCE_OPEN,   /* on_store_error: open: nothing was decided or charged */
    WEIR_SOURCE_CLOSED, /* on_store_error: closed */
};

/* What a store says of one check. `verdict` is the limit's own (a shadow check may be DENIED in an
 * allowed decision). Either `cell` is the state after the decision, or, for states in spans and for
 * remote stores, `report` is already made (`reported`), and `next_ns` with it: of a check with a
 * scale, limit and remaining at 100 %, the retry and `next_ns` at the scale. */
struct weir_outcome {
    uint64_t delay_ns;
    uint64_t next_ns; /* with `reported` and nothing remaining at the scale: until a cost of 1 is
                         admitted, or WEIR_NEVER */
    uint64_t charged_at_ns; /* only where decision->apart: by its own server's time */
    union {
        struct weir_cell cell;
        struct weir_report report;
    };
    uint8_t verdict; /* WEIR_ALLOWED or WEIR_DENIED */
    bool reported;
    bool charged;
    bool overflow; /* there was no room for the key: decided on cells that it shares with others,
                      never later than by a state of its own; `report` is an estimate */
};

struct weir_decision {
    struct weir_check *checks;
    struct weir_outcome *outcomes;
    uint64_t now_ns;         /* set by the store: the time at which it was decided */
    uint64_t charged_at_ns;  /* in: WEIR_OP_REFUND only, unless `apart` */
    struct weir_lease lease; /* in: for concurrency checks; id chosen by the engine */
    uint64_t deadline_ns;    /* in: when an asynchronous store gives up; 0: none */
    uint64_t delay_ns;       /* out: the longest delay of an admitted leaky_queue */
    void *owner;             /* the front end's; the store leaves it alone */
    void *store_data;        /* the store's while it is pending */
    struct weir_edit *edit;  /* in: WEIR_OP_EDIT only; the front end's */
    uint16_t count;          /* of checks and outcomes: 0..WEIR_CHECKS_MAX; 0 is allowed */
    uint16_t denied_by;      /* out, engine: index of the check to blame; UINT16_MAX: none */
    uint8_t op, policy;      /* in: enum weir_op, enum weir_policy */
    uint8_t verdict;         /* out: enum weir_verdict */
    uint8_t source;          /* out: enum weir_source */
    int8_t error;            /* out: 0, or the enum weir_err that made `source` not STORE */
    bool repeated;           /* out: see WEIR_CHECK_IDEMPOTENCY */
    bool remembered; /* out, remote stores: a denial answered from memory. What denied then denies
                        now; what admitted then may not any more */
    bool apart;      /* out, remote stores; in: WEIR_OP_REFUND: the checks were charged by several
                        servers, each at its own time: their outcomes' charged_at_ns */
    bool unused; /* in: WEIR_OP_REFUND: nothing was admitted for it. A remote store gives back at
                    most what the states would have without the charge: of a bucket less what
                    it has regained since, and nothing while shares of it are out */
    uint32_t
        network; /* in: of the client (weir_address_network), for WEIR_CHECK_NETWORK; 0: unknown */
};

/* WEIR_OP_EDIT: reads and writes the states of a decision's checks, which are cells, all of them as
 * one: counters (core/counter.h), mostly.
 *
 * The store finds the states, calls `run` while it holds their locks, and writes what that changed:
 * everything or, where it fails, nothing. So a command like INCR, a transaction of several
 * commands, and a script are all one decision. Only the embedded store does it.
 *
 * `run` may be called more than once for one decision; what counts is the last call. It reads no
 * clock, takes no lock, allocates nothing, and changes only the states and what `edit` contains.
 *
 * The checks of an edit have different keys, a cost of 0, and limits whose states are cells: for
 * counters the narrow one. The decision is WEIR_ALLOWED when it is done, and WEIR_DENIED when the
 * table has no room for a key that `run` gives a state; then nothing is written.
 */
struct weir_edit_state {
    struct weir_cell cell; /* all zero: it is fresh, as one that was never used */
    /* The key has a live state that says nothing under this limit, and is fresh at that time; 0: it
     * has none. What `run` writes replaces it; with `clear` it goes. */
    uint64_t other_until_ns;
    bool clear;
};

struct weir_edit {
    /* states[0..count) are those of the decision's checks. */
    void (*run)(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                uint64_t now_ns);
    const struct weir_limit *wide; /* for counters that the limit of the checks does not pack */
};

/* What chooses the server of a check's state in a cluster: its tag, else a hash of its key's text
 * that all nodes agree on. */
uint64_t weir_check_tag(const struct weir_check *check);

/* The report of check `i` of a finished decision, made from its outcome, at the check's scale. */
void weir_decision_report(const struct weir_decision *decision, uint16_t i,
                          struct weir_report *report);

/* The same as if the request had passed the challenge of a check with `challenged`; its retry is
 * unspecified. */
void weir_decision_report_unchallenged(const struct weir_decision *decision, uint16_t i,
                                       struct weir_report *report);

/* The same with limit and remaining of the whole limit, whatever the scale; its retry is
 * unspecified where the check has a scale. */
void weir_decision_report_whole(const struct weir_decision *decision, uint16_t i,
                                struct weir_report *report);

/* Sets verdict and delay_ns of the whole from its outcomes, as op and policy say. Shadow checks and
 * the record of an idempotency key never deny. */
void weir_decision_join(struct weir_decision *decision);

/* How many checks are of limits: all but the record of an idempotency key, the last, which has no
 * `rule`. Loops over what limits say end there. */
static inline uint16_t weir_decision_limits(const struct weir_decision *decision)
{
    uint16_t count = decision->count;
    bool recorded = count > 0 && (decision->checks[count - 1].flags & WEIR_CHECK_IDEMPOTENCY) != 0;
    return recorded ? (uint16_t)(count - 1) : count;
}

/* A limit of several rates is as many checks, one after the other, of one `rule`. Code that counts
 * or reports limits takes them together. Returns where the checks of the limit end whose first
 * check is `first`. Checks of commands (rule UINT32_MAX) are each a limit. */
static inline uint16_t weir_decision_limit_end(const struct weir_decision *decision, uint16_t first)
{
    uint32_t rule = decision->checks[first].rule;
    uint16_t end = (uint16_t)(first + 1);

    while (rule != UINT32_MAX && end < decision->count && decision->checks[end].rule == rule)
        end++;
    return end;
}

/* The one of the checks [first, end) of a limit that is reported to a client, and its report: of
 * those that deny the one with the longest retry; if none denies, the one with the least remaining,
 * and of such the one with the longest reset; the first where that is a tie too. In the report
 * `remaining` is the least of all: what the limit as a whole would admit. */
uint16_t weir_decision_tightest_of(const struct weir_decision *decision, uint16_t first,
                                   uint16_t end, struct weir_report *report);
static inline uint16_t weir_decision_tightest(const struct weir_decision *decision, uint16_t first,
                                              uint16_t end, struct weir_report *report)
{
    if (end - first > 1)
        return weir_decision_tightest_of(decision, first, end, report);
    weir_decision_report(decision, first, report);
    return first;
}

/* Finds the check to blame for a denial: the denying, non-shadow check with the longest retry
 * (never is longest; ties in the order of `rule`). Returns its index and sets *retry_after_ns;
 * UINT16_MAX and 0 when none denies. Under WEIR_POLICY_ALL and EACH this is also the request's
 * retry. */
uint16_t weir_decision_blame(const struct weir_decision *decision, uint64_t *retry_after_ns);

#endif
