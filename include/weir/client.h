/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client that keeps to servers' rate limits, so that it seldom meets a 429.
 *
 *     struct weir_client *client;
 *     struct weir_reason reason;
 *     if (weir_client_open(&client, NULL, &reason) < 0)
 *         ... reason.text ...
 *     struct weir_client_request request = {.url = "https://api.example.com/things/1"};
 *     struct weir_client_answer answer;
 *     weir_client_fetch(client, &request, &answer);
 *     if (answer.outcome == WEIR_CLIENT_ANSWERED)
 *         ... answer.status, answer.body ...
 *     weir_client_answer_free(&answer);
 *     weir_client_close(client);
 *
 * What it does:
 *
 *   - It paces requests by what servers say (RateLimit, RateLimit-Policy, X-RateLimit-* and their
 *     relatives, Retry-After): what remains is spread over the time that is left. Where a server
 *     says nothing, it learns a rate from 429s. It begins with one request at a time to a host, and
 *     twice as many after each round trip.
 *   - It retries 429, 500, 502, 503, 504 and broken connections with exponential backoff and
 *     jitter, Retry-After first: only idempotent methods (RFC 9110 9.2.2), or requests with an
 *     Idempotency-Key. A budget stops retries where most answers fail.
 *   - It hands an answer on as it arrives, with flow control, to a caller with on_head.
 *   - It keeps below a rate of the caller's own for each host, beside what servers say.
 *   - What it learned is shared by all threads that use one client, and with a state file by all
 *     processes of one machine that use this file.
 *
 * The library is libweir-client, over libcurl; libweir itself does not need libcurl.
 *
 * Threads: one client may be used by any number of threads. It has one thread of its own, which
 * runs all transfers and calls all callbacks. A callback must not block for long, must not call
 * weir_client_fetch or weir_client_close, and may call weir_client_submit and weir_client_cancel.
 *
 * Fork: a child must not use its parent's client; it opens its own, on the same state file if it
 * likes.
 *
 * Only http and https are allowed. Proxies come from the environment, as libcurl's do. libcurl's
 * global state is initialised by weir_client_open, once in a process.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#pragma GCC visibility push(default)

struct weir_client;

/* How waits between tries are drawn; E grows with each try by the factor, up to the cap. */
enum weir_client_jitter {
    WEIR_CLIENT_JITTER_FULL,         /* 0 to E */
    WEIR_CLIENT_JITTER_EQUAL,        /* E / 2 to E */
    WEIR_CLIENT_JITTER_DECORRELATED, /* the base to three times the last wait */
    WEIR_CLIENT_JITTER_NONE,         /* E: all that fail together come back together */
};

enum weir_client_outcome {
    WEIR_CLIENT_ANSWERED, /* a final answer, whatever its status: also 404 or 401 */
    WEIR_CLIENT_LIMITED, /* the last answer was 429 or its like, or the limit leaves no room in time
                          */
    WEIR_CLIENT_TIMEOUT, /* the request's time ended */
    WEIR_CLIENT_GAVE_UP, /* the server or the connection failed, and no try is left or allowed */
    WEIR_CLIENT_REFUSED, /* no try can help: a wrong URL, a certificate that is not valid, an
                            answer that is larger than allowed, a callback that refused the body */
    WEIR_CLIENT_CANCELLED, /* by weir_client_cancel or weir_client_close */
};

#define WEIR_CLIENT_UNKNOWN UINT64_MAX

/* What is known of the tightest limit of a host. WEIR_CLIENT_UNKNOWN: not known. */
struct weir_client_limit {
    uint64_t limit;       /* units in a window */
    uint64_t remaining;   /* units left now, as far as the client knows */
    uint64_t reset_ns;    /* until the window ends */
    uint64_t interval_ns; /* the client's pace: from one request to the next; 0: none is needed */
};

/* One try, for the hook: called when it has ended. Texts are borrowed for the call. */
struct weir_client_try {
    const char *url;
    void *request_context;
    uint32_t number;       /* 1 and up */
    int status;            /* 0: there was no answer */
    const char *error;     /* NULL, or why there was no answer */
    uint64_t waited_ns;    /* in the queue, before this try */
    uint64_t took_ns;      /* this try */
    uint64_t next_wait_ns; /* WEIR_CLIENT_UNKNOWN: this was the last try */
    struct weir_client_limit limit;
};

#define WEIR_CLIENT_RETRY_ON_MOST 16
#define WEIR_CLIENT_PIECE_MOST 16384 /* bytes of one call of on_body */

/* Zero is the default everywhere. Texts are copied. New members come last. */
struct weir_client_options {
    const char *state_file; /* knowledge of limits that processes share; created if it is missing.
                               NULL: kept in memory */
    const char *user_agent; /* NULL: "weir-client/VERSION" */
    /* The most that is sent to a host, or to a scope of it, whatever its server says: "10/s",
     * "600/min burst 20", "10/s, api.example.com=5/10s" (a rate for one host, and one for all
     * others; at most 16). Processes share the count by a state file. NULL: as servers say. */
    const char *rate;
    uint32_t concurrency;      /* requests in flight to all hosts: 1..1000; 0: 64 */
    uint32_t host_concurrency; /* to one host: 1..1000; 0: 16 */
    uint32_t queue_most;       /* requests that wait or are in flight; 0: 100,000 */
    uint32_t tries;            /* of one request: 1..1000; 0: 5 */
    uint64_t time_ns;   /* for one request with all waits; 0: 60 s; WEIR_CLIENT_UNKNOWN: no limit */
    uint64_t try_ns;    /* for one try; 0: 30 s */
    uint64_t body_most; /* bytes of an answer's body; 0: 16 MiB, or no limit with on_body */
    bool adaptive;      /* lower host_concurrency while latency grows (Gradient2) */
    bool follow;        /* follow up to 10 redirects */
    enum weir_client_jitter jitter;
    uint64_t backoff_base_ns; /* 0: 100 ms */
    uint64_t backoff_cap_ns;  /* 0: 20 s */
    double backoff_factor;    /* by which waits grow: 1 to 100; 0: 2 */
    uint64_t seed;            /* of jitter; 0: the system's random numbers */
    /* Statuses that are retried besides those that always are, 400..599; 0: no more. */
    uint16_t retry_on[WEIR_CLIENT_RETRY_ON_MOST];
    /* Exactly these statuses are retried, instead of those that always are and of retry_on; broken
     * connections are, too. 0: no more; the first 0: not given. */
    uint16_t retry_statuses[WEIR_CLIENT_RETRY_ON_MOST];
    void (*on_try)(void *context, const struct weir_client_try *one);
    void *context; /* of on_try */
};

/* What came of a request. New members come last. The caller frees it by weir_client_answer_free. */
struct weir_client_answer {
    enum weir_client_outcome outcome;
    int status;     /* of the last try; 0: it had no answer */
    uint32_t tries; /* that were made */
    struct weir_client_limit limit;
    uint64_t retry_after_ns; /* LIMITED: when a try may succeed; WEIR_CLIENT_UNKNOWN: not known */
    char *headers;           /* of the last answer: "name: value\n" lines, names in lower case, at
                                most 64 KiB; NULL: none */
    char *body;              /* NUL-terminated for convenience; NULL: none, or on_body took it */
    size_t body_size;
    struct weir_reason reason; /* why there is no final answer */
};

/* How the final answer begins. The text is borrowed for the call. */
struct weir_client_head {
    int status;
    uint32_t tries;
    struct weir_client_limit limit;
    const char *headers; /* as in the answer; NULL: none */
};

/* One request. Zero is the default everywhere, except for the URL. Texts and the body are copied.
 * New members come last. */
struct weir_client_request {
    const char *url;            /* http or https, at most 64 KiB */
    const char *method;         /* NULL: GET */
    const char *const *headers; /* "Name: value" lines without a line end */
    size_t header_count;        /* at most 64 */
    const void *body;
    size_t body_size;
    bool idempotency_key; /* add an Idempotency-Key of random 128 bits, the same in all tries, which
                             makes any method one that is retried */
    int priority;         /* waiting requests of a higher one go first; equal: first come */
    const char *scope;    /* what a limit counts, when it is not the host: such as the API key;
                             requests of different scopes are paced apart. NULL: the host */
    uint32_t tries;       /* as in the options; 0: as there */
    uint64_t time_ns;     /* likewise */
    /* Takes the body of an answer whose status is not retried. `offset` is where the piece belongs:
     * 0 means that the body begins anew, also after a try that broke off. Returns false to refuse
     * the rest. NULL: the answer has the body. */
    bool (*on_body)(void *context, int status, uint64_t offset, const void *data, size_t size);
    /* The request has ended. The answer is freed after the call. weir_client_submit only. */
    void (*on_done)(void *context, const struct weir_client_answer *answer);
    void *context; /* of on_head, on_body and on_done, and request_context of on_try */
    /* With on_head the answer is a stream: on_head is called when its fields have come, and each
     * piece of the body goes to on_body as it arrives. From then on there is no other try, the
     * times bound only how long no byte comes (try_ns; time_ns no more), and the request counts for
     * concurrency and host_concurrency until its end: as many open streams keep all others waiting.
     * Below these bounds it keeps no other one waiting. An answer that breaks off ends as
     * WEIR_CLIENT_GAVE_UP, and one that falls silent as WEIR_CLIENT_TIMEOUT. Not called where the
     * last answer has a status that is retried (such as 429) or there is none: on_done then has all
     * of it. Returns false to refuse the answer. */
    bool (*on_head)(void *context, const struct weir_client_head *head);
    /* With on_head, and weir_client_submit only: how many bytes on_body may get that
     * weir_client_consumed has not given back. At this bound the transfer pauses, also for the
     * server. A piece is handed over whole: it may pass the bound by WEIR_CLIENT_PIECE_MOST. Pieces
     * of fewer than 512 bytes count as 512 until fewer bytes are left than pieces: give back all
     * that was taken when nothing is left to take. 0: no bound. */
    uint64_t body_window;
};

/* See weir_client_open, _fetch and _submit below, which pass the sizes that a program was compiled
 * with, as <weir/weir.h> says. */
int weir_client_open_sized(struct weir_client **client, const struct weir_client_options *options,
                           size_t options_size, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_client_fetch_sized(struct weir_client *client, const struct weir_client_request *request,
                            size_t request_size, struct weir_client_answer *answer,
                            size_t answer_size);
int weir_client_submit_sized(struct weir_client *client, const struct weir_client_request *request,
                             size_t request_size, uint64_t *id) __attribute__((warn_unused_result));

/* Cancels what is left, waits for its callbacks, and frees the client. No other thread may be in a
 * call on it. NULL is ignored. */
void weir_client_close(struct weir_client *client);

/* Ends a request as WEIR_CLIENT_CANCELLED, soon. A request that has ended is ignored. */
void weir_client_cancel(struct weir_client *client, uint64_t id);

/* Gives back `bytes` of what on_body got, once the reader has taken them: a paused transfer
 * continues when half of its body_window is free. A request that has ended is ignored. Errors:
 * WEIR_ERR_MEMORY (nothing was given back: call again, or cancel). */
int weir_client_consumed(struct weir_client *client, uint64_t id, uint64_t bytes)
    __attribute__((warn_unused_result));

/* How many requests are still to come, these that wait included: where a limit has room for all of
 * them, they are not spread over its window. WEIR_CLIENT_UNKNOWN (the default): not known. */
void weir_client_expect(struct weir_client *client, uint64_t requests);

/* Frees what an answer holds. NULL and a zeroed answer are allowed. */
void weir_client_answer_free(struct weir_client_answer *answer);

/* What is known of the tightest limit for the host of a URL, and a scope (NULL: none), now.
 * Errors: WEIR_ERR_NOT_FOUND (nothing is known), WEIR_ERR_SYNTAX (the URL). */
int weir_client_known(struct weir_client *client, const char *url, const char *scope,
                      struct weir_client_limit *limit);

/* "answered", "limited", "timeout", "gave up", "refused", "cancelled". Static storage. */
const char *weir_client_outcome_text(enum weir_client_outcome outcome);

#pragma GCC visibility pop

/* Opens a client and starts its thread. The caller owns *client (NULL on errors). `options` may be
 * NULL. Errors: WEIR_ERR_RANGE (an option; see reason), WEIR_ERR_UNSUPPORTED (an option that this
 * version does not know), WEIR_ERR_MEMORY, WEIR_ERR_IO and WEIR_ERR_FORMAT (the state file; see
 * reason). */
__attribute__((warn_unused_result)) static inline int
weir_client_open(struct weir_client **client, const struct weir_client_options *options,
                 struct weir_reason *reason)
{
    return weir_client_open_sized(client, options, sizeof(struct weir_client_options), reason);
}

/* Makes a request and waits for its outcome. Always fills *answer.
 * Returns 0 for WEIR_CLIENT_ANSWERED. Errors: WEIR_ERR_DEADLINE (TIMEOUT), WEIR_ERR_BUSY (LIMITED),
 * WEIR_ERR_IO (GAVE_UP), WEIR_ERR_UNSUPPORTED (REFUSED), WEIR_ERR_CANCELLED; those of
 * weir_client_submit. */
static inline int weir_client_fetch(struct weir_client *client,
                                    const struct weir_client_request *request,
                                    struct weir_client_answer *answer)
{
    return weir_client_fetch_sized(client, request, sizeof *request, answer, sizeof *answer);
}

/* Queues a request. on_done is called once, unless an error is returned. *id (may be NULL) names
 * the request for weir_client_cancel. Errors: WEIR_ERR_SYNTAX (the URL, the method or a header),
 * WEIR_ERR_MEMORY, WEIR_ERR_FULL (queue_most), WEIR_ERR_CANCELLED (the client is being closed). */
__attribute__((warn_unused_result)) static inline int
weir_client_submit(struct weir_client *client, const struct weir_client_request *request,
                   uint64_t *id)
{
    return weir_client_submit_sized(client, request, sizeof *request, id);
}

#endif
