/* SPDX-License-Identifier: Apache-2.0 */
/* weir as a library: open a rules file, check requests, close.
 *
 * One struct weir may be used by any number of threads at the same time; it is internally locked
 * where it has to be, and a check waits only for a thread that is at the same counter. State
 * lives in private memory or in a file shared with other processes (weir_options, or `state:` in
 * the rules file).
 *
 *     struct weir *weir;
 *     struct weir_reason reason;
 *     if (weir_open(&weir, "weir.yaml", NULL, &reason) < 0)
 *         ... reason.text ...
 *     struct weir_attribute_value request[] = {
 *         {"method", "POST"}, {"path", "/login"}, {"client.ip", "192.0.2.1"}};
 *     struct weir_answer_summary answer;
 *     if (weir_check(weir, request, 3, 1, &answer) == 0 && !answer.allowed)
 *         ... answer.retry_after_ns ...
 *     weir_close(weir);
 *
 * Time is the kernel's CLOCK_BOOTTIME on top of the wall clock at the first start: setting the
 * clock changes no decision. The bare algorithms, for callers that keep state and time themselves,
 * are in <weir/limit.h>.
 *
 * Fork: what a process has opened is its own. In a child every function but weir_close returns
 * WEIR_ERR_UNSUPPORTED, and weir_close does nothing; open again there. With a state file both then
 * count on the same state.
 *
 * A state file that cannot be opened (a folder that is missing, the wrong user, another version of
 * weir) is a state that does not answer: weir_open succeeds, and weir_options.say gets the reason.
 * A thread of libweir then tries to open the file once a second; it blocks all signals, so that
 * they go to the program's own threads. Until the file is open, the limits' on_store_error decides:
 * `local` by private memory. A mistake in the rules file or the options is an error of weir_open.
 * See weir_state_check in <weir/embed.h>.
 *
 * A process that shares the state file may be stopped (a debugger, SIGSTOP, a frozen container)
 * while it holds a lock of it. A check that needs this lock waits for state_patience_ns, once, and
 * is then decided by the limits' on_store_error, as are all that follow, until that process goes on
 * or ends: the answer says `store_failed`. See docs/state.md.
 *
 * Signals: no function here may be called from a signal handler.
 *
 * Memory: the state, plus about 100 KiB for each processor that checks at the same time. With a
 * state file, it reserves the same address space again; it uses memory only while
 * `on_store_error: local` decides.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/limit.h>

#pragma GCC visibility push(default)

struct weir;

/* What a line for the operator is about. */
enum weir_say {
    WEIR_SAY_INFO,    /* what was wrong is right again */
    WEIR_SAY_WARNING, /* a later version refuses it, or this one has another default; names in
                         requests that no rule knows */
    WEIR_SAY_ERROR,   /* decisions are not those of the state, or of standing */
};

/* Zero is the default everywhere. New members come last. */
struct weir_options {
    const char
        *state_file; /* overrides the rules file's; NULL: the rules file's, else private memory */
    uint64_t state_bytes;       /* 0: the rules file's, else 64 MiB */
    uint64_t state_patience_ns; /* how long a check waits for a process on the state file that is
                                   stopped; 0: 100 ms; WEIR_NEVER: until it continues */
    uint64_t state_open_patience_ns; /* how long weir_open waits for a process that is opening the
                                        file; 0: 5 s, and 1 s for each 100 MB of the file */
    /* Of a state file that is made; one that exists keeps what it has. A program that shares its
     * state with others gives it a group of its own and the mode 0660. */
    const char *state_owner; /* a user's name; NULL: the rules file's, else this process's */
    const char *state_group; /* a group's name; NULL: the rules file's, else this process's */
    unsigned state_mode; /* bits of 0666; 0: the rules file's, else 0600, or 0660 in a folder that
                            a group shares (docs/state.md) */
    unsigned threads; /* that check at the same time, 1 to 64: each takes one of the 256 places that
                         a state has for all processes; 0: one for each processor */
    bool state_must_open; /* a state file that cannot be opened, or a map of standing that is there
                             and cannot be read, is an error of weir_open. Else on_store_error of
                             the limits, and that of `standing`, decides until it can be */
    bool standing_may_fail; /* a map of standing that is there, and that this process cannot read,
                               is no error of weir_open: limits decide, and the callers in it count
                               as good until it can be read (weir_standing_check, <weir/embed.h>) */
    bool
        leases_end_with_process; /* leases end when this process does, however that happens, as soon
                                    as another one calls weir_open or weir_tend (<weir/embed.h>) */
    uint64_t test_clock_ns;      /* for the tests of a program: its clock begins at this Unix time,
                                    stands still, and moves by weir_advance (<weir/embed.h>) only; its
                                    state is private memory, also where the rules file names a file. 0:
                                    the kernel's clock */
    /* Called with each line that an operator has to know: deprecated parts of the rules file, a
     * default of it that has changed (weir_headers_warning, <weir/embed.h>), names in requests that
     * are neither built in nor declared, a state that does not answer or cannot be opened,
     * penalties that no server keeps, and that all is right again. What lasts is said at once, and
     * then once a minute. The text is one line without a newline, borrowed for the call. It comes
     * on the thread of a call, or on libweir's own until weir_close has returned; it may call
     * libweir, except weir_close. NULL: the lines are written to standard error. */
    void (*say)(void *context, enum weir_say level, const char *text);
    void *say_context;
};

#define WEIR_STATE_PATIENCE_DEFAULT_NS UINT64_C(100000000)

/* No other thread may be in a call on it. NULL is ignored. State in a file stays. Where the file is
 * just being opened again, waits for that. */
void weir_close(struct weir *weir);

/* One attribute of a request: "method", "path", "host", "client.ip", "header.<name>" (of any case),
 * or any name that the rules read; others are ignored. A NULL value is an absent attribute; of the
 * same name the last one counts. Borrowed for the call. */
struct weir_attribute_value {
    const char *name, *value;
};

/* Limits that one request may meet. */
#define WEIR_LIMITS_MAX 32

/* A Content-Type, its NUL included. */
#define WEIR_TYPE_MAX 128

/* What a lease is ended with; a NUL-terminated text, safe in URLs and headers. */
struct weir_lease_token {
    char text[1088];
};

/* What weir says of one request. New members come last. */
struct weir_answer_summary {
    bool allowed;
    bool store_failed; /* on_store_error decided: a process that shares the state file is stopped,
                          or the file could not be opened */
    bool repeated;     /* weir_check_once: it was allowed before, nothing is charged */
    unsigned status;   /* of HTTP: 200, or what the denial means (429, 503, or the limit's own) */
    unsigned warning;  /* the highest `warn_at`, in percent, that an allowed request has reached of
                          any limit; 0: none */
    unsigned limit_count;    /* limits that the request meets, at most WEIR_LIMITS_MAX */
    uint64_t retry_after_ns; /* 0 when allowed; WEIR_NEVER */
    uint64_t delay_ns;       /* how long to hold the request before it continues */
    uint64_t remaining;      /* of the tightest limit; WEIR_NEVER where no limit applies */
    size_t fields_size;      /* of weir_call.fields (<weir/embed.h>): "Name: value\r\n" lines */
    size_t body_size;        /* of weir_call.body: of a denial */
    /* What `steps` and `reject` of the limits say: "mark", "delay", "challenge", "tarpit",
     * "reject"; static; NULL: nothing. With "tarpit", `delay_ns` is how long to hold the denial. */
    const char *action;
    char denied_by[65];       /* the limit's name, "standing" (see `standing`), or empty when
                                 allowed */
    char class_name[65];      /* of the request (`priority`); empty: no limit of it has `shed` */
    char standing[16];        /* the caller's standing ("throttled"); empty: good */
    char reason[128];         /* of that standing; empty: none is known */
    char type[WEIR_TYPE_MAX]; /* Content-Type of the body */
    struct weir_lease_token lease; /* empty where no concurrency limit gave a lease */
};

/* Ends a lease. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_NOT_FOUND (unknown, expired, or ended already),
 * WEIR_ERR_BUSY (a process that shares the state file is stopped and has it locked: the lease ends
 * with its life, or try again), WEIR_ERR_UNSUPPORTED. */
int weir_release(struct weir *weir, const struct weir_lease_token *lease);

/* Reads the rules file again; the old rules stay when it has errors. State is kept; `state:` is not
 * read again. Errors: as weir_open with state_must_open. */
int weir_reload(struct weir *weir, struct weir_reason *reason) __attribute__((warn_unused_result));

#pragma GCC visibility pop

/* --- Functions whose structs may grow -----------------------------------------------------------
 *
 * weir_options, weir_answer_summary, and weir_call and weir_limit_answer of <weir/embed.h> may get
 * new members at their end while the library keeps its soversion. So the functions that take them
 * are inline, and hand the sizes that they were compiled with to the exported ones, whose names end
 * in `_sized`. Of a smaller struct the library reads and writes no more than its size, and a member
 * that it lacks has its default; of a larger answer it writes zero to what it does not know.
 * WEIR_ERR_UNSUPPORTED: a struct is larger than the library's and sets what the library does not
 * know. Bindings that call the exported functions pass the sizes of
 * their own declarations. */
#pragma GCC visibility push(default)

int weir_open_sized(struct weir **weir, const char *rules_file, const struct weir_options *options,
                    size_t options_size, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* `idempotency_key` NULL: none. */
int weir_check_named_sized(struct weir *weir, const struct weir_attribute_value *attributes,
                           size_t count, uint64_t cost, const char *idempotency_key,
                           struct weir_answer_summary *answer, size_t answer_size)
    __attribute__((warn_unused_result));

#pragma GCC visibility pop

/* Opens a rules file. The caller owns *weir (NULL on errors). `options` may be NULL.
 * Errors: WEIR_ERR_RULES (reason: the first problem, as "file:line:column: message"),
 * WEIR_ERR_MEMORY, WEIR_ERR_RANGE, WEIR_ERR_NOT_FOUND (no such owner or group),
 * WEIR_ERR_UNSUPPORTED (the rules need what only `weir serve` can do: limits or
 * callers in Redis, limits that follow health, scores; or a state file together with a clock for
 * tests); in private memory WEIR_ERR_FULL (more limits than the state has room for). With
 * state_must_open also, of the state file and of the map of standing: WEIR_ERR_IO, WEIR_ERR_FORMAT,
 * WEIR_ERR_DAMAGED, WEIR_ERR_FULL (also more processes on it than it has room for), WEIR_ERR_BUSY
 * (see reason; also where another process was stopped while it opened the file, after 5 s and a
 * second for each 100 MB, or while it changed the list of limits). */
__attribute__((warn_unused_result)) static inline int weir_open(struct weir **weir,
                                                                const char *rules_file,
                                                                const struct weir_options *options,
                                                                struct weir_reason *reason)
{
    return weir_open_sized(weir, rules_file, options, sizeof(struct weir_options), reason);
}

/* Decides one request at the time now: `count` attributes and a cost (usually 1), all limits that
 * match as one atomic decision. A denial is no error. Errors: WEIR_ERR_SYNTAX (a malformed path,
 * host or address), WEIR_ERR_TOO_LARGE (more than 32 limits match, or the keys are too long
 * together), WEIR_ERR_UNSUPPORTED (in a child, see above). */
__attribute__((warn_unused_result)) static inline int
weir_check(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
           uint64_t cost, struct weir_answer_summary *answer)
{
    return weir_check_named_sized(weir, attributes, count, cost, NULL, answer, sizeof *answer);
}

/* The same, charged once for its idempotency key: 1 to 255 bytes that the caller gives to one
 * request and to each repeat of it, for example after a crash that lost the answer. A repeat within
 * the life of the key (`idempotency: {life: …}` in the rules file, else 10 minutes) that the same
 * limits, keys and cost apply to is allowed, charges nothing and gives the same lease token. What
 * was denied is decided anew. Errors: WEIR_ERR_RANGE (the key's length), WEIR_ERR_TOO_LARGE (32
 * limits match), and as weir_check. */
__attribute__((warn_unused_result)) static inline int
weir_check_once(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
                uint64_t cost, const char *idempotency_key, struct weir_answer_summary *answer)
{
    return weir_check_named_sized(weir, attributes, count, cost, idempotency_key, answer,
                                  sizeof *answer);
}

#endif
