/* SPDX-License-Identifier: Apache-2.0 */
/* weir inside another program: a proxy, a gateway, a server of its own.
 *
 * <weir/weir.h> answers "may this request pass?". This header has what an edge needs beside that:
 *
 *   weir_rules_check_file       checks a rules file and tells every mistake, with no state made
 *   weir_rules_check_names      the same of the attributes that a configuration gives
 *   weir_open_check             whether this user can open what the rules name, with no state made
 *   weir_attribute              a handle for an attribute, so that no name is looked up per request
 *   weir_attribute_is_read      whether the rules read it, so that no value is copied unread
 *   weir_check_full             one decision with everything that HTTP says of it: each limit, the
 *                               header fields and the body, as weir's own HTTP front writes them
 *   weir_check_many             several at once
 *   weir_lane_keep              a lane for one thread, entered without an atomic instruction
 *   weir_settle, weir_report    the true cost, or the outcome, of a request that was reserved
 *   weir_outcome                the outcome of any request, for penalties
 *   weir_cancel                 the request did not happen: what it took is given back
 *   weir_renew, weir_tend       leases that live as long as the process that holds them
 *   weir_advance                moves the clock of a program's tests
 *   weir_memory                 what an open weir takes, for languages that collect garbage
 *   weir_state_check            whether the state file is open
 *   weir_penalties_check        whether a `weir serve` keeps the penalties of the rules
 *   weir_standing_check         whether bans of `weir serve` can be read
 *   weir_front                  as what `weir serve` counts the decisions that are made here
 *
 *     int path = weir_attribute(weir, "path"), ip = weir_attribute(weir, "client.ip");
 *     struct weir_value values[] = {{path, "/login", 6}, {ip, "192.0.2.1", 9}};
 *     char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];
 *     struct weir_call call = {.values = values, .count = 2, .cost = 1,
 *                              .fields = fields, .body = body};
 *     struct weir_answer_summary answer;
 *     if (weir_check_full(weir, &call, &answer) == 0 && !answer.allowed)
 *         ... answer.status, fields[0..answer.fields_size), body[0..answer.body_size) ...
 *
 * Ownership: what a call takes is borrowed for the call; what it returns is copied into the
 * caller's memory, and stays valid after weir_reload and weir_close. Threads and fork: as
 * <weir/weir.h>. None of these functions allocates memory or makes a system call while it decides,
 * except where a lock is held by another thread or process.
 */
#ifndef WEIR_EMBED_H
#define WEIR_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

struct sockaddr;

#pragma GCC visibility push(default)

/* --- Rules ------------------------------------------------------------------------------------ */

/* Called for each mistake of a file, in the order of file and line; `line` and `column` count from
 * 1, and are 0 where the file as a whole is meant. Texts are borrowed for the call. */
typedef void (*weir_mistake)(void *context, const char *file, unsigned line, unsigned column,
                             const char *message);

/* Whether weir_open would take this rules file, as far as the file alone says: it reads the file
 * and the files that it names, and makes no state. `tell` may be NULL. It is called for what is
 * deprecated, too, which is no error yet: then the result is 0. Errors: WEIR_ERR_RULES
 * (`reason`: the first mistake), WEIR_ERR_UNSUPPORTED (`reason`: what libweir cannot do, see
 * docs/library.md), WEIR_ERR_MEMORY. */
int weir_rules_check_file(const char *rules_file, weir_mistake tell, void *context,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Called for each name that is wrong, by its place in the list; borrowed for the call. */
typedef void (*weir_wrong_name)(void *context, size_t place, const char *message);

/* Whether a configuration that gives attributes by these names gives something that the rules can
 * read: tells each name that is neither built in nor declared in the rules file, with the one that
 * it may be a mistyping of, that the rules make themselves, or that is too long. A header field, a
 * parameter or a cookie is always right. Errors: as weir_rules_check_file. */
int weir_rules_check_names(const char *rules_file, const char *const *names, size_t count,
                           weir_wrong_name tell, void *context) __attribute__((warn_unused_result));

/* Called for each thing that is wrong; the text is borrowed for the call. */
typedef void (*weir_finding)(void *context, const char *text);

/* See weir_open_check. */
int weir_open_check_sized(const char *rules_file, const struct weir_options *options,
                          size_t options_size, weir_finding tell, void *context)
    __attribute__((warn_unused_result));

/* What to log at a start by a rules file that does not choose `headers`: X-RateLimit-Reset has
 * changed its meaning. NULL: the file chooses, or has errors. Static. weir_open says this by
 * itself: it is for programs that check their configuration before. */
const char *weir_headers_warning(const char *rules_file);

/* --- Where nothing can be decided ------------------------------------------------------------- */

/* What a rules file says at its top: `on_store_error`. */
enum weir_on_store_error {
    WEIR_ON_STORE_ERROR_NONE, /* nothing */
    WEIR_ON_STORE_ERROR_LOCAL,
    WEIR_ON_STORE_ERROR_OPEN,
    WEIR_ON_STORE_ERROR_CLOSED,
};

/* Reads that from a rules file, so that it is known where weir_open fails. NONE where the file has
 * errors. It does not report what is deprecated. */
enum weir_on_store_error weir_rules_on_store_error(const char *rules_file);

/* Whether a request passes that a program could not ask about, because of `err`: the one table for
 * all languages. An open weir decides by itself where its state does not answer, by on_store_error
 * of each limit; this is for programs without one, as with state_must_open.
 *
 *   fault (weir_error_fault)     the rules say        the request
 *   of the request, the program  -                    is denied
 *   of the state                 `open`               passes
 *                                `closed`, `local`    is denied: without a weir nothing is local
 *                                nothing              `open_before` until WEIR_REFUSED_FROM, then
 *                                                     as `local`
 *
 * `open_before` is what this program did before the rules could say it. While it counts, say so to
 * the operator at each start (weir_on_store_error_warning). */
bool weir_passes(int err, enum weir_on_store_error rules, bool open_before);

/* The line for the log of a program whose rules say nothing and that let requests pass until now;
 * NULL: nothing changes, so there is nothing to say. Static. */
const char *weir_on_store_error_warning(enum weir_on_store_error rules, bool open_before);

/* --- Attributes ------------------------------------------------------------------------------- */

/* Handles of one struct weir, those of its rules included. */
#define WEIR_HANDLES_MAX 512

/* The handle of an attribute: "method", "path", "host", "client.ip", "header.<name>" (of any case),
 * or any name that a rule may read, of at most 128 bytes. It stays the same until weir_close, also
 * when weir_reload brings rules that begin or cease to read it. Errors: WEIR_ERR_FULL
 * (WEIR_HANDLES_MAX), WEIR_ERR_TOO_LARGE (the name), WEIR_ERR_MEMORY. */
int weir_attribute(struct weir *weir, const char *name) __attribute__((warn_unused_result));

/* The name of a handle, header names in lower case; NULL: there is none such. The attributes that
 * the rules of weir_open read have the handles from 0 on, so that a program can walk them all.
 * Valid until weir_close. */
const char *weir_attribute_name(const struct weir *weir, int attribute);

/* Whether the present rules read this attribute. What they do not read need not be given. */
bool weir_attribute_is_read(const struct weir *weir, int attribute);

/* Added to a handle: the value is what the request itself says, not the program: its method, path
 * and host, a line of its header. Lines of one header field are joined, as all of weir's front ends
 * join them, and a value of the same attribute without this mark goes before them. */
#define WEIR_OF_REQUEST 65536

/* The value of an attribute. `data` NULL: absent; an empty value has a size of 0. Not
 * NUL-terminated. A call that gives a header field, be it absent, says that the others which it
 * does not give are absent, too: `header.x: absent` in the rules holds only then. */
struct weir_value {
    int attribute; /* a handle, or WEIR_OF_REQUEST + a handle; less than 0: nothing */
    const char *data;
    size_t size;
};

/* --- Checking --------------------------------------------------------------------------------- */

/* Room that is always enough for weir_call.fields and weir_call.body. */
#define WEIR_FIELDS_MAX 24576
#define WEIR_BODY_MAX 20480

/* When what a request is charged is to be settled later. */
enum weir_reserve_when {
    WEIR_RESERVE_NEVER,
    WEIR_RESERVE_DELAYED, /* iff it has to wait: weir_cancel can then give its place back */
    WEIR_RESERVE_ALWAYS,
};

/* What one limit says of the request. New members come last. */
struct weir_limit_answer {
    struct weir_report report; /* see <weir/limit.h>; of several rates the tightest */
    uint64_t cost;             /* what the request takes of it */
    uint64_t window_ns;        /* W; the life of a lease for concurrency */
    enum weir_algorithm algorithm;
    unsigned warning; /* `warn_at` that is reached, in percent; 0: none */
    bool allowed;     /* this limit's own verdict */
    bool shadow;      /* it denies nothing */
    bool unlimited;   /* the caller's rate: then `report` is all zero */
    bool borrowed;    /* the pool that was charged in place of limits that deny */
    bool overflow;    /* the state had no room for its key: `report` is an estimate */
    char name[65];
};

/* A reservation, to settle or cancel a request by. `text` is NUL-terminated, empty where there is
 * none, and good in all processes on the state; the rest is this process's. */
struct weir_reservation_token {
    char text[2736];
    unsigned place_count;
    struct weir_queue_place {
        uint64_t hash[2], until_ns;
        unsigned part;
    } places[WEIR_LIMITS_MAX];
};

/* One request, and where its answer goes. Zero is the default everywhere. New members come last. */
struct weir_call {
    const struct weir_value
        *values; /* of the same attribute the last one without WEIR_OF_REQUEST */
    size_t count;
    const struct sockaddr *client; /* AF_INET or AF_INET6; counts instead of "client.ip"; NULL: that
                                      attribute, if it is given */
    /* What the request's fields X-Forwarded-For and Forwarded (RFC 7239) say, repeated lines joined
     * by commas; NULL: absent. They count where the client above is one of `trusted_proxies` of the
     * rules file, as for /v1/auth, or where none is given (a Unix socket) and `unix` is: then the
     * right-most address of X-Forwarded-For, else of Forwarded, that is not one of these. */
    const char *forwarded_for;
    size_t forwarded_for_size;
    const char *forwarded;
    size_t forwarded_size;
    const char *idempotency_key; /* as weir_check_once; 1 to 255 bytes; NULL: none */
    size_t idempotency_size;
    uint64_t cost;                  /* usually 1; 0 asks whether a limit is used up */
    uint64_t reserve_life_ns;       /* how long it may be settled: 1 s to 1 h; 0: 60 s */
    enum weir_reserve_when reserve; /* not with an idempotency key, and with a cost of at least 1 */
    bool peek;                      /* decides, and charges nothing */
    bool untrusted; /* header fields are those of a client that may not say its class (`priority`,
                       `from: header.NAME`): the default class counts */
    /* Where parts of the answer are written, or NULL: what is not asked for costs nothing. */
    char *fields; /* WEIR_FIELDS_MAX bytes: RateLimit, Retry-After, X-RateLimit-*, and of a denial
                     Cache-Control and the fields of `reject` */
    char *body;   /* WEIR_BODY_MAX bytes: of a denial */
    struct weir_limit_answer *limits; /* WEIR_LIMITS_MAX of them, of which limit_count are written,
                                         in the order of the rules file */
    struct weir_reservation_token *reservation; /* needed with `reserve`; its text is empty where
                                                   there is none */
};

/* Decides one request: `sizes` is WEIR_SIZES. See weir_check_full. */
int weir_check_sized(struct weir *weir, const struct weir_call *call,
                     struct weir_answer_summary *answer, uint64_t sizes)
    __attribute__((warn_unused_result));

/* See weir_check_many. */
int weir_check_many_sized(struct weir *weir, const struct weir_call *calls,
                          struct weir_answer_summary *answers, int *errors, size_t count,
                          uint64_t sizes) __attribute__((warn_unused_result));

/* --- A lane for one thread ---------------------------------------------------------------------
 */

/* Each check enters an engine, a lane, and leaves it: with an atomic instruction, since any thread
 * may come. A thread that checks often keeps a lane to itself, and enters without one. Every
 * function that it calls on the same struct weir takes that lane, too; other threads take others,
 * and this one only where there is none. */
struct weir_lane;

/* Gives the calling thread a lane, one of weir_options.threads; one at a time for each thread.
 * Errors: WEIR_ERR_BUSY (this thread has one), WEIR_ERR_FULL (all lanes are kept, or could not be
 * opened), WEIR_ERR_MEMORY (also where the process has no more keys of thread-specific data, of
 * which each struct weir with lanes takes one), WEIR_ERR_UNSUPPORTED (in a child; the kernel has no
 * membarrier, or a filter of system calls forbids it: check without a lane). */
int weir_lane_keep(struct weir_lane **lane, struct weir *weir) __attribute__((warn_unused_result));

/* Gives it back; by the thread that keeps it, and before weir_close. A thread that ends gives its
 * lane back by itself. NULL is ignored. */
void weir_lane_give(struct weir_lane *lane);

/* Whether some limit of the present rules gives back by outcome (`refund_on`), so that requests are
 * worth reserving for weir_report. */
bool weir_gives_back(struct weir *weir);

/* --- After the request ------------------------------------------------------------------------ */

/* The request has cost `cost` in truth, in units of weir_call.cost: less is given back, more is
 * charged. Errors: WEIR_ERR_SYNTAX (not a token of this state), WEIR_ERR_NOT_FOUND (its life has
 * ended), WEIR_ERR_BUSY (a process that shares the state is stopped: try again),
 * WEIR_ERR_UNSUPPORTED. Settling twice does nothing the second time. */
int weir_settle(struct weir *weir, const struct weir_reservation_token *reservation, uint64_t cost);

/* The request ended with this HTTP status, 100 to 599: limits whose `refund_on` has it give back
 * what they have charged. An outcome that no limit gives back for does nothing, and is not
 * remembered. Errors: as weir_settle; WEIR_ERR_RANGE (the status). */
int weir_report(struct weir *weir, const struct weir_reservation_token *reservation,
                unsigned status);

/* Whether an outcome with this HTTP status is a strike of a penalty of the present rules
 * (`outcomes`), so that requests that end with it are worth weir_outcome. */
bool weir_is_strike(struct weir *weir, unsigned status);

/* See weir_outcome. */
int weir_outcome_sized(struct weir *weir, const struct weir_call *call, unsigned status,
                       uint64_t sizes);

/* The request did not happen: all that it has charged is given back, except its place in a queue
 * (`queue: true`) behind which another request has queued. Errors: as weir_settle. */
int weir_cancel(struct weir *weir, const struct weir_reservation_token *reservation);

/* --- Leases that live with their process -------------------------------------------------------
 */

/* With weir_options.leases_end_with_process: the lease expires a whole `life` from now. Call it
 * before `life` has passed, for work that outlives it. Errors: as weir_release. */
int weir_renew(struct weir *weir, const struct weir_lease_token *lease);

/* Whether the state file is open, so that decisions are those of all processes on it. Always in
 * private memory. For programs that watch what they depend on; it reads memory only. Errors: why
 * the file cannot be opened, as weir_open with state_must_open; WEIR_ERR_UNSUPPORTED (in a child).
 */
int weir_state_check(struct weir *weir, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether a `weir serve` on the state file keeps the penalties of the rules, if they have any.
 * Without one, limits and standing still apply, and penalties change no standing. Sets *lost
 * (NULL: not wanted; in a child it is not set) to how many strikes found no server since weir_open.
 * It may open a file, so it is for once a second, not for each request. Errors:
 * WEIR_ERR_UNSUPPORTED (there is no such server; in a child), WEIR_ERR_FORMAT (one of another
 * version), WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_penalties_check(struct weir *weir, uint64_t *lost, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether the map of standing of the present rules can be read, or is not there yet. For programs
 * with weir_options.standing_may_fail, about once a second: it opens the file. Errors: as weir_open
 * of the map; WEIR_ERR_UNSUPPORTED (in a child). */
int weir_standing_check(struct weir *weir, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Sets the name under which `weir serve` on the same state file counts this program's decisions:
 * "nginx", or "library" (the default). Errors: WEIR_ERR_RANGE (another name), WEIR_ERR_UNSUPPORTED
 * (in a child). */
int weir_front(struct weir *weir, const char *name);

/* Call it about once a second, on one thread at a time: ends the leases of processes that have
 * died, after a death in a part of the state with each call (65,536 buckets, 8 MiB). Returns how
 * many it ended, or WEIR_ERR_UNSUPPORTED (in a child). */
long weir_tend(struct weir *weir);

/* --- For the tests of programs ----------------------------------------------------------------
 */

/* With weir_options.test_clock_ns: all decisions from now on take place `ns` later, so that a test
 * need not wait for a window to end. Errors: WEIR_ERR_UNSUPPORTED (without that option; in a
 * child), WEIR_ERR_RANGE (the clock would pass the year 2262). */
int weir_advance(struct weir *weir, uint64_t ns);

/* --- Memory ----------------------------------------------------------------------------------- */

/* Bytes that an open weir takes at most for its state, as far as it is used: what a collector of
 * garbage should know of an object that keeps it open. */
uint64_t weir_memory(const struct weir *weir);

#pragma GCC visibility pop

/* --- Functions whose structs may grow: see <weir/weir.h> ----------------------------------------
 */

/* The sizes of this header's structs, see <weir/weir.h>. */
#define WEIR_SIZES                                                                                 \
    (sizeof(struct weir_call) | (uint64_t)sizeof(struct weir_answer_summary) << 16 |               \
     (uint64_t)sizeof(struct weir_limit_answer) << 32)

/* Decides one request at the time now, as weir_check does, and writes what the call asks for.
 * Errors: as weir_check and weir_check_once; WEIR_ERR_RANGE (cost, life, a reservation without room
 * for it), WEIR_ERR_TOO_LARGE (a reservation of more limits than a token has room for; repeated
 * header fields of more than 64 KiB together). */
__attribute__((warn_unused_result)) static inline int
weir_check_full(struct weir *weir, const struct weir_call *call, struct weir_answer_summary *answer)
{
    return weir_check_sized(weir, call, answer, WEIR_SIZES);
}

/* Decides `count` requests, one after the other, at one time: each as weir_check_full does, but the
 * misses of the processor's caches, which are most of what a check of many keys costs, overlap.
 * errors[i] is what weir_check_full would have returned for calls[i]; of those that are not 0,
 * answers[i] is not written. Returns how many were decided. Errors: WEIR_ERR_UNSUPPORTED (in a
 * child), WEIR_ERR_RANGE (more than INT_MAX). */
__attribute__((warn_unused_result)) static inline int
weir_check_many(struct weir *weir, const struct weir_call *calls,
                struct weir_answer_summary *answers, int *errors, size_t count)
{
    return weir_check_many_sized(weir, calls, answers, errors, count, WEIR_SIZES);
}

/* A request, given as in weir_check_full, ended with this HTTP status, 100 to 599: a strike of each
 * penalty that has it in `outcomes`. Charges nothing. Errors: as weir_check_full. */
static inline int weir_outcome(struct weir *weir, const struct weir_call *call, unsigned status)
{
    return weir_outcome_sized(weir, call, status, WEIR_SIZES);
}

/* Whether weir_open with these arguments will find what it needs, as the user and the groups of
 * this process: the rules file and the files that it names, the map of standing, and a state file
 * that can be used, or made. It opens and makes no state, and tells nothing that may change while
 * other programs start (an absent map; penalties without a server). For programs that check their
 * configuration before they become another user: in a child process that has become it. `tell` may
 * be NULL. Errors: the first of those that it tells, as weir_open. */
__attribute__((warn_unused_result)) static inline int
weir_open_check(const char *rules_file, const struct weir_options *options, weir_finding tell,
                void *context)
{
    return weir_open_check_sized(rules_file, options, sizeof(struct weir_options), tell, context);
}

#endif
