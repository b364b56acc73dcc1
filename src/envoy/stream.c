/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "envoy/stream.h"

#include <stdlib.h>
#include <string.h>

#include "envoy/outcome.h"
#include "envoy/reply.h"
#include "envoy/request.h"
#include "proxy/lease.h"

/* Fields of an answer with up to five limits; longer ones are allocated. */
#define FIELDS_INSIDE 768

enum waiting { RUNS, QUEUES, HELD };

/* A denial that is held back. */
struct held {
    struct weir_evy_reply reply;
    char limit[65], type[WEIR_TYPE_MAX];
    char text[]; /* fields, body */
};

struct weir_evy_stream {
    const struct weir_evy_filter *filter;
    struct weir_evy_settings *route; /* of the decision, kept; NULL: none */
    struct weir_evy_wait wait;
    enum waiting waiting;
    struct weir_reservation_token *reservation; /* NULL: none, or settled */
    struct weir_evy_lease *lease;               /* NULL: none, or ended */
    struct weir_evy_outcome *outcome;           /* NULL: no penalty looks at it */
    struct held *held;
    char *fields; /* of the answer; NULL: none */
    size_t fields_size;
    char inside[FIELDS_INSIDE];
};

/* What one decision needs, on the stack of the worker. */
struct scratch {
    struct weir_evy_request request;
    struct weir_call call;
    struct weir_answer_summary answer;
    struct weir_limit_answer limits[WEIR_LIMITS_MAX];
    struct weir_reservation_token reservation;
    char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];
};

struct weir_evy_stream *weir_evy_stream_new(const struct weir_evy_filter *filter)
{
    struct weir_evy_stream *stream = malloc(sizeof *stream);
    if (stream)
        memset(stream, 0, offsetof(struct weir_evy_stream, inside));
    if (stream)
        stream->filter = filter;
    return stream;
}

static struct weir_evy_shared *shared_of(const struct weir_evy_stream *stream)
{
    return stream->filter->shared;
}

/* --- What the configuration says -------------------------------------------------------------- */

static bool is_on(enum weir_evy_flag route, enum weir_evy_flag filter)
{
    return (route != WEIR_EVY_UNSAID ? route : filter) == WEIR_EVY_YES;
}

static bool is_dry_run(const struct weir_evy_stream *stream)
{
    return is_on(stream->route ? stream->route->dry_run : WEIR_EVY_UNSAID,
                 stream->filter->settings->dry_run);
}

static bool is_trusted(const struct weir_evy_stream *stream)
{
    return is_on(stream->route ? stream->route->trusted : WEIR_EVY_UNSAID,
                 stream->filter->settings->trusted);
}

/* Where the true cost is, with an empty key if nothing says it. */
static const struct weir_evy_place *settle_of(const struct weir_evy_stream *stream)
{
    return stream->route && stream->route->settle.key.data ? &stream->route->settle
                                                           : &stream->filter->settings->settle;
}

/* 1 where nothing says it. Errors: as weir_evy_metadata_number; what the client says may be in the
 * metadata, so that such a request has no cost of 1. */
static int read_cost(const struct weir_evy_stream *stream, void *envoy, uint64_t *cost)
{
    const struct weir_evy_settings *said =
        stream->route && stream->route->has_cost ? stream->route : stream->filter->settings;
    *cost = said->has_cost && !said->cost_of.key.data ? said->cost : 1;
    int read = weir_evy_metadata_number(envoy, &said->cost_of, cost);
    if (read < 0)
        weir_evy_tell(shared_of(stream), WEIR_EVY_REFUSED,
                      "the cost in the metadata cannot be read, so the request gets 400", read);
    return read < 0 ? read : 0;
}

static struct weir_evy_settings *attributes_of(const struct weir_evy_stream *stream)
{
    return stream->route && stream->route->has_attributes ? stream->route
                                                          : stream->filter->settings;
}

/* --- Keeping what its end needs --------------------------------------------------------------- */

static bool keep_fields(struct weir_evy_stream *stream, const struct scratch *scratch)
{
    size_t size = scratch->answer.fields_size;
    if (stream->filter->settings->fields != WEIR_EVY_FIELDS_ALL || size == 0)
        return true;
    stream->fields = size <= FIELDS_INSIDE ? stream->inside : malloc(size);
    if (!stream->fields)
        return false;
    memcpy(stream->fields, scratch->fields, size);
    stream->fields_size = size;
    return true;
}

static bool keep_reservation(struct weir_evy_stream *stream,
                             const struct weir_reservation_token *token)
{
    if (token->text[0] == '\0')
        return true;
    stream->reservation = malloc(sizeof *token);
    if (!stream->reservation)
        return false;
    *stream->reservation = *token;
    return true;
}

static bool keep_lease(struct weir_evy_stream *stream, const struct scratch *scratch)
{
    if (scratch->answer.lease.text[0] == '\0')
        return true;
    stream->lease =
        weir_evy_lease_keep(shared_of(stream), &scratch->answer.lease,
                            weir_lease_life_ns(scratch->limits, scratch->answer.limit_count));
    return stream->lease;
}

static bool keep_outcome(struct weir_evy_stream *stream, const struct scratch *scratch)
{
    if (!scratch->answer.allowed && !is_dry_run(stream))
        return true;
    if (!atomic_load_explicit(&shared_of(stream)->reads.strikes, memory_order_relaxed))
        return true;
    stream->outcome = weir_evy_outcome_keep(&scratch->call);
    return stream->outcome;
}

static struct held *hold(const struct weir_evy_reply *reply)
{
    struct held *held = malloc(sizeof *held + reply->fields.size + reply->body.size);
    if (!held)
        return NULL;
    held->reply = *reply;
    memcpy(held->limit, reply->limit, strlen(reply->limit) + 1);
    memcpy(held->type, reply->type, strlen(reply->type) + 1);
    memcpy(held->text, reply->fields.data, reply->fields.size);
    memcpy(held->text + reply->fields.size, reply->body.data, reply->body.size);
    held->reply.limit = held->limit;
    held->reply.type = held->type;
    held->reply.fields.data = held->text;
    held->reply.body.data = held->text + reply->fields.size;
    return held;
}

/* --- Deciding --------------------------------------------------------------------------------- */

static enum weir_evy_status refuse(void *envoy, unsigned status, const char *reason)
{
    weir_evy_refuse(envoy, status, reason);
    return WEIR_EVY_STOP;
}

/* weir cannot decide: on_error does. */
static enum weir_evy_status give_up(struct weir_evy_stream *stream, void *envoy, int err)
{
    const struct weir_evy_settings *settings = stream->filter->settings;
    enum weir_on_store_error rules =
        (enum weir_on_store_error)atomic_load(&shared_of(stream)->rules_say);
    weir_evy_count(stream->filter, envoy, WEIR_EVY_ERRORS);
    if (weir_error_fault(err) == WEIR_FAULT_REQUEST)
        return refuse(envoy, 400, "the rate limiter cannot read this request");
    if (settings->on_error == WEIR_EVY_OPEN ||
        (settings->on_error == WEIR_EVY_AS_RULES_SAY && weir_passes(err, rules, false)))
        return WEIR_EVY_CONTINUE;
    return refuse(envoy, 503, "the rate limiter does not answer");
}

/* Logs why a request was not decided; libweir logs a state that cannot be opened. */
static void tell_why(const struct weir_evy_stream *stream, int err)
{
    if (weir_error_fault(err) == WEIR_FAULT_REQUEST)
        weir_evy_tell(shared_of(stream), WEIR_EVY_REFUSED, "a request gets 400", err);
    else
        weir_evy_tell(shared_of(stream), WEIR_EVY_UNDECIDED, "a request cannot be decided", err);
}

static int ask(struct weir_evy_stream *stream, void *envoy, struct scratch *scratch)
{
    struct weir_evy_shared *shared = shared_of(stream);
    bool settles = settle_of(stream)->key.data ||
                   atomic_load_explicit(&shared->reads.refunds, memory_order_relaxed);
    uint64_t cost;
    int err = read_cost(stream, envoy, &cost);
    if (err < 0)
        return err;
    scratch->reservation.text[0] = '\0';
    scratch->call = (struct weir_call){
        .cost = cost,
        .untrusted = !is_trusted(stream),
        .reserve_life_ns = WEIR_SETTLE_LIFE_NS,
        .fields = scratch->fields,
        .body = scratch->body,
        .limits = scratch->limits,
        .reservation = &scratch->reservation,
    };
    if (scratch->call.cost > 0)
        scratch->call.reserve = settles ? WEIR_RESERVE_ALWAYS : WEIR_RESERVE_DELAYED;
    err = weir_evy_request_read(&scratch->request, envoy, shared, attributes_of(stream),
                                stream->filter->settings->trusted_proxies, &scratch->call);
    return err < 0 ? err : weir_check_full(shared->weir, &scratch->call, &scratch->answer);
}

/* Holds a denial back; false: it is sent now. */
static bool begin_tarpit(struct weir_evy_stream *stream, void *envoy,
                         const struct weir_evy_reply *reply, uint64_t delay_ns)
{
    if (delay_ns == 0)
        return false;
    stream->held = hold(reply);
    if (!stream->held ||
        !weir_evy_wait_begin(weir_evy_clock(), &stream->wait, envoy, delay_ns, true))
        return false;
    stream->waiting = HELD;
    return true;
}

static enum weir_evy_status deny(struct weir_evy_stream *stream, void *envoy,
                                 const struct scratch *scratch)
{
    const struct weir_answer_summary *answer = &scratch->answer;
    struct weir_evy_reply reply = {
        .status = answer->status,
        .limit = answer->denied_by,
        .type = answer->type,
        .fields = {scratch->fields, answer->fields_size},
        .body = {scratch->body, answer->body_size},
        .which = stream->filter->settings->fields,
    };
    weir_evy_count_limit(stream->filter, envoy, answer->denied_by);
    if (is_dry_run(stream)) {
        weir_evy_count(stream->filter, envoy, WEIR_EVY_DRY_RUN);
        return WEIR_EVY_CONTINUE;
    }
    weir_evy_count(stream->filter, envoy, WEIR_EVY_DENIED);
    if (begin_tarpit(stream, envoy, &reply, answer->delay_ns))
        return WEIR_EVY_WAIT_ALL;
    weir_evy_send(envoy, &reply);
    return WEIR_EVY_STOP;
}

static enum weir_evy_status queue(struct weir_evy_stream *stream, void *envoy, uint64_t delay_ns)
{
    if (!weir_evy_wait_begin(weir_evy_clock(), &stream->wait, envoy, delay_ns, false)) {
        if (stream->reservation)
            (void)weir_cancel(shared_of(stream)->weir, stream->reservation);
        free(stream->reservation);
        stream->reservation = NULL;
        weir_evy_count(stream->filter, envoy, WEIR_EVY_ERRORS);
        return refuse(envoy, 503, "too many requests wait");
    }
    weir_evy_count(stream->filter, envoy, WEIR_EVY_DELAYED);
    stream->waiting = QUEUES;
    return WEIR_EVY_WAIT_ALL;
}

static enum weir_evy_status answer(struct weir_evy_stream *stream, void *envoy,
                                   const struct scratch *scratch)
{
    const struct weir_answer_summary *told = &scratch->answer;
    bool dry_run = is_dry_run(stream);
    if (told->store_failed)
        weir_evy_count(stream->filter, envoy, WEIR_EVY_STORE_FAILED);
    if (!keep_reservation(stream, &scratch->reservation) || !keep_lease(stream, scratch) ||
        !keep_outcome(stream, scratch) || (!dry_run && !keep_fields(stream, scratch)))
        return refuse(envoy, 500, "out of memory");
    if (!told->allowed)
        return deny(stream, envoy, scratch);
    if (told->delay_ns != 0 && !dry_run)
        return queue(stream, envoy, told->delay_ns);
    weir_evy_count(stream->filter, envoy, WEIR_EVY_ALLOWED);
    return WEIR_EVY_CONTINUE;
}

enum weir_evy_status weir_evy_stream_decide(struct weir_evy_stream *stream, void *envoy)
{
    struct scratch scratch;
    struct weir_evy_shared *shared = shared_of(stream);
    stream->route =
        (struct weir_evy_settings *)(uintptr_t)ENVOY(get_most_specific_route_config)(envoy);
    weir_evy_settings_keep(stream->route);
    if (!shared || (stream->route && stream->route->off == WEIR_EVY_YES))
        return WEIR_EVY_CONTINUE;
    if (stream->filter->settings->on_error != WEIR_EVY_AS_RULES_SAY &&
        !atomic_load_explicit(&shared->usable, memory_order_relaxed))
        return give_up(stream, envoy, WEIR_ERR_IO);
    int err = ask(stream, envoy, &scratch);
    if (err >= 0)
        return answer(stream, envoy, &scratch);
    tell_why(stream, err);
    return give_up(stream, envoy, err);
}

/* --- What follows ----------------------------------------------------------------------------- */

void weir_evy_stream_respond(struct weir_evy_stream *stream, void *envoy)
{
    if (stream->fields_size > 0)
        weir_evy_add_fields(envoy, (struct weir_evy_text){stream->fields, stream->fields_size});
    stream->fields_size = 0; /* a second answer has them already */
}

void weir_evy_stream_scheduled(struct weir_evy_stream *stream, void *envoy)
{
    enum waiting waited = stream->waiting;
    weir_evy_wait_end(weir_evy_clock(), &stream->wait);
    stream->waiting = RUNS;
    if (waited == QUEUES)
        ENVOY(http_filter_continue_decoding)(envoy);
    else if (waited == HELD)
        weir_evy_send(envoy, &stream->held->reply);
}

/* The status that the client was sent; 0: none. */
static unsigned status_of(void *envoy)
{
    uint64_t status;
    return ENVOY(http_filter_get_attribute_int)(envoy, WEIR_EVY_RESPONSE_CODE, &status) &&
                   status >= 100 && status <= 599
               ? (unsigned)status
               : 0;
}

static void settle(struct weir_evy_stream *stream, void *envoy, unsigned status)
{
    struct weir_evy_shared *shared = shared_of(stream);
    uint64_t cost = 0;
    int err = 0, said = weir_evy_metadata_number(envoy, settle_of(stream), &cost);
    if (said == 1)
        err = weir_settle(shared->weir, stream->reservation, cost);
    else if (status != 0 && atomic_load_explicit(&shared->reads.refunds, memory_order_relaxed))
        err = weir_report(shared->weir, stream->reservation, status);
    if (said < 0 || err < 0)
        weir_evy_tell(shared, WEIR_EVY_UNSETTLED, "cannot settle", said < 0 ? said : err);
    free(stream->reservation);
    stream->reservation = NULL;
}

void weir_evy_stream_complete(struct weir_evy_stream *stream, void *envoy)
{
    struct weir_evy_shared *shared = shared_of(stream);
    if (!shared)
        return;
    weir_evy_lease_end(shared, stream->lease);
    stream->lease = NULL;
    if (stream->waiting == QUEUES)
        weir_evy_count(stream->filter, envoy, WEIR_EVY_CANCELLED);
    if (stream->waiting != RUNS)
        return;
    unsigned status = stream->outcome || stream->reservation ? status_of(envoy) : 0;
    if (stream->outcome && weir_reads_strike(&shared->reads, status))
        weir_evy_outcome_tell(stream->outcome, shared->weir, status);
    if (stream->reservation)
        settle(stream, envoy, status);
}

void weir_evy_stream_free(struct weir_evy_stream *stream)
{
    struct weir_evy_shared *shared = shared_of(stream);
    if (stream->waiting != RUNS)
        weir_evy_wait_end(weir_evy_clock(), &stream->wait);
    if (stream->waiting == QUEUES && stream->reservation)
        (void)weir_cancel(shared->weir, stream->reservation);
    if (shared)
        weir_evy_lease_end(shared, stream->lease);
    if (stream->fields != stream->inside)
        free(stream->fields);
    free(stream->reservation);
    free(stream->outcome);
    free(stream->held);
    weir_evy_settings_free(stream->route);
    free(stream);
}
