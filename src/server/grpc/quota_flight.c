/* SPDX-License-Identifier: Apache-2.0 */
/* see quota_flight.h */
#include "server/grpc/quota_flight.h"

#include "feature/envoy/server/daemon.h"
#include "rules/source.h"
#include "server/daemon/daemon.h"
#include "server/grpc/reply.h"

#define MS UINT64_C(1000000)
/* Buckets of a stream, one after the other, whose states were claimed: then others get their turn.
 */
#define PUT_OFF_MAX 4
/* The same of all streams together, when a flight has ended: else each end of many streams that
 * share a state would look at all of them. */
#define LANDING_PUT_OFF_MAX 16
#define WORKER_FLIGHTS_MAX (2 * WEIR_QUOTA_FLIGHTS_MAX)

struct weir_quota_service *weir_grpc_quota_service(const struct weir_grpc_quota *quota)
{
    return weir_daemon_envoy_run(weir_grpc_of(quota->stream)->daemon)->quota;
}

void weir_grpc_quota_count(const struct weir_grpc_quota *quota, enum weir_quota_count what)
{
    atomic_fetch_add_explicit(&weir_grpc_quota_service(quota)->counts[what], 1,
                              memory_order_relaxed);
}

static struct weir_worker *worker_of(const struct weir_grpc_quota *quota)
{
    return quota->stream->connection->worker;
}

uint64_t weir_grpc_quota_now_ms(const struct weir_grpc_quota *quota)
{
    return weir_worker_time(worker_of(quota)) / MS;
}

/* --- Decisions -------------------------------------------------------------------------------- */

/* Fills the worker's request from a bucket's id: its entries are attributes, and so is `domain`.
 * False: an address that is none. */
static bool request_fill(const struct weir_grpc_quota *quota, struct weir_bytes id)
{
    struct weir_grpc_stream *stream = quota->stream;
    struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX];
    const struct weir_rules *rules = weir_worker_rules(stream->connection->worker);
    struct weir_request *request = &weir_grpc_of(stream)->attributes;
    enum weir_trust trust = weir_trust_of(weir_listener_trusts(stream->connection->listener));
    weir_request_begin(request, rules, WEIR_FIELDS_ALL, (struct weir_room){NULL, 0});
    struct weir_attribute_source domain = weir_rules_source(rules, "domain", sizeof "domain" - 1);
    domain.flags |= WEIR_NAME_OF_REQUEST; /* an entry of this name goes before it */
    weir_request_put(request, domain, (struct weir_bytes){quota->domain, quota->domain_size},
                     trust);
    uint32_t count = weir_grpc_quota_entries(id, entries);
    for (uint32_t i = 0; i < count; i++)
        weir_request_put_name(request, entries[i].key, entries[i].value, trust);
    weir_connection_tell_peer(stream->connection, request);
    return weir_request_end(request, NULL) == 0;
}

/* A decision of the rules on a bucket; NULL: there is none. */
static struct weir_decision *decision_take(const struct weir_grpc_quota *quota, enum weir_op op)
{
    struct weir_worker *worker = worker_of(quota);
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_worker_take(worker);
    if (!decision)
        return NULL;
    decision->op = (uint8_t)op;
    int err = weir_engine_apply_rules(worker->engine, decision,
                                      &weir_grpc_of(quota->stream)->attributes, &reason);
    if (err < 0 || weir_engine_looks(decision)) {
        weir_worker_give(worker, decision);
        return NULL;
    }
    weir_engine_unaided(decision);
    for (uint16_t i = 0; i < decision->count; i++)
        decision->checks[i].on_store_error = WEIR_FAIL_CLOSED;
    return decision;
}

/* Whether the store has decided. */
static bool is_decided(const struct weir_decision *decision)
{
    return decision->verdict != WEIR_PENDING && decision->source == WEIR_SOURCE_STORE &&
           !weir_engine_refusal(decision);
}

/* Whether an assignment is a portion of a check's state: shadow limits, and those without a state,
 * do not count. */
static bool is_supply(const struct weir_check *check)
{
    return !(check->flags & WEIR_CHECK_SHADOW) && weir_check_has_state(check) && check->cost;
}

/* By the clock of the server that has decided the check. */
static uint64_t decided_ns(const struct weir_decision *decision, uint16_t i)
{
    return decision->apart ? decision->outcomes[i].charged_at_ns : decision->now_ns;
}

/* Tables have this node's clock. */
static struct weir_quota_moment moment_of(const struct weir_grpc_quota_flight *flight, uint16_t i)
{
    uint64_t store_ns = decided_ns(flight->peek, i);
    if (!worker_of(flight->quota)->remote_store)
        return (struct weir_quota_moment){store_ns, store_ns, 0};
    return (struct weir_quota_moment){store_ns, flight->asked_ns, WEIR_QUOTA_DRIFT_MS};
}

/* What the limits of a peek can give. */
static enum weir_quota_peeked supplies_of(const struct weir_grpc_quota_flight *flight,
                                          struct weir_quota_supply supplies[WEIR_CHECKS_MAX],
                                          uint32_t *count)
{
    const struct weir_decision *peek = flight->peek;
    struct weir_report report;
    *count = 0;
    if (!is_decided(peek))
        return WEIR_QUOTA_NO_ANSWER;
    if (!peek->count)
        return peek->verdict == WEIR_DENIED ? WEIR_QUOTA_DENIED_ALWAYS : WEIR_QUOTA_NO_LIMIT;
    for (uint16_t i = 0; i < peek->count; i++) {
        const struct weir_check *check = &peek->checks[i];
        if (check->flags & WEIR_CHECK_ALWAYS_DENY && !(check->flags & WEIR_CHECK_SHADOW))
            return WEIR_QUOTA_DENIED_ALWAYS;
        if (!is_supply(check))
            continue;
        if (!weir_quota_assignable(check->limit) || check->scale || peek->outcomes[i].overflow)
            return WEIR_QUOTA_NOT_ASSIGNABLE;
        struct weir_quota_moment moment = moment_of(flight, i);
        weir_decision_report(peek, i, &report);
        supplies[(*count)++] = weir_quota_supply_of(check->limit, &report, check->cost, &moment);
    }
    return *count ? WEIR_QUOTA_SUPPLIES : WEIR_QUOTA_NO_LIMIT;
}

/* Whether both are of the same checks; then sets the costs of those that have supplies. */
static bool costs_set(struct weir_decision *charge, const struct weir_decision *peek,
                      const uint64_t *costs)
{
    if (charge->count != peek->count)
        return false;
    for (uint16_t i = 0; i < charge->count; i++) {
        struct weir_check *check = &charge->checks[i];
        const struct weir_check *seen = &peek->checks[i];
        if (check->limit != seen->limit || check->hash[0] != seen->hash[0] ||
            check->hash[1] != seen->hash[1] || is_supply(check) != is_supply(seen))
            return false;
        if (is_supply(check))
            check->cost = *costs++;
    }
    return true;
}

/* Whether all that was planned is charged, and is enough. */
static bool is_charged(const struct weir_grpc_quota_flight *flight)
{
    const struct weir_decision *peek = flight->peek, *charge = flight->charge;
    if (!is_decided(charge) || charge->verdict != WEIR_ALLOWED)
        return false;
    for (uint16_t i = 0; i < charge->count; i++)
        if (is_supply(&peek->checks[i]) &&
            !weir_quota_holds(charge->checks[i].limit, decided_ns(peek, i), decided_ns(charge, i)))
            return false;
    return true;
}

static void count_charged(const struct weir_grpc_quota_flight *flight)
{
    const struct weir_decision *charge = flight->charge;
    for (uint16_t i = 0; i < charge->count; i++)
        if (is_supply(&flight->peek->checks[i]))
            atomic_fetch_add_explicit(&weir_grpc_quota_service(flight->quota)->charged,
                                      charge->checks[i].cost, memory_order_relaxed);
}

/* --- Flights ---------------------------------------------------------------------------------- */

static uint32_t hashes_of(const struct weir_decision *decision, uint64_t hashes[WEIR_CHECKS_MAX])
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < decision->count; i++)
        if (is_supply(&decision->checks[i]))
            hashes[count++] = decision->checks[i].hash[0];
    return count;
}

static bool claim(const struct weir_grpc_quota *quota, const struct weir_decision *peek)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    uint64_t hashes[WEIR_CHECKS_MAX];
    uint32_t count = hashes_of(peek, hashes);
    pthread_mutex_lock(&service->lock);
    bool claimed = weir_quota_claim(service->quota, hashes, count);
    pthread_mutex_unlock(&service->lock);
    return claimed;
}

static void unclaim(const struct weir_grpc_quota *quota, const struct weir_decision *peek)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    uint64_t hashes[WEIR_CHECKS_MAX];
    uint32_t count = hashes_of(peek, hashes);
    pthread_mutex_lock(&service->lock);
    weir_quota_unclaim(service->quota, hashes, count);
    pthread_mutex_unlock(&service->lock);
}

/* Its decisions are done or cancelled, and its states free for others. */
static void flight_end(struct weir_grpc_quota_flight *flight)
{
    struct weir_grpc_quota *quota = flight->quota;
    unclaim(quota, flight->peek);
    weir_worker_cancel(worker_of(quota), flight->peek);
    if (flight->charge)
        weir_worker_cancel(worker_of(quota), flight->charge);
    *flight = (struct weir_grpc_quota_flight){.quota = quota};
    quota->flight_count--;
    weir_grpc_of(quota->stream)->quota_flights--;
}

/* When the answer to a peek was there. The table charges at the same time as it has peeked, so that
 * a plan of a later time might cost too little. */
static uint64_t planned_ms(const struct weir_grpc_quota_flight *flight)
{
    bool at_once = is_decided(flight->peek) && !worker_of(flight->quota)->remote_store;
    return at_once ? flight->peek->now_ns / MS : weir_grpc_quota_now_ms(flight->quota);
}

/* The peek was answered: plans, and begins the charge. Returns whether it has. */
static bool flight_charge(struct weir_grpc_quota_flight *flight)
{
    struct weir_grpc_quota *quota = flight->quota;
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    struct weir_quota_supply supplies[WEIR_CHECKS_MAX];
    uint64_t costs[WEIR_CHECKS_MAX] = {0};
    uint32_t count;
    enum weir_quota_peeked what = supplies_of(flight, supplies, &count);
    uint64_t now_ms = planned_ms(flight);
    if (what == WEIR_QUOTA_NO_ANSWER)
        weir_grpc_quota_count(quota, WEIR_QUOTA_FAILED);
    if (what == WEIR_QUOTA_NOT_ASSIGNABLE)
        weir_grpc_quota_count(quota, WEIR_QUOTA_UNASSIGNABLE);
    pthread_mutex_lock(&service->lock);
    bool charges = weir_quota_peeked(flight->bucket, what, supplies, count, now_ms, costs);
    pthread_mutex_unlock(&service->lock);
    if (!charges)
        return false;
    if (request_fill(quota, flight->bucket->id))
        flight->charge = decision_take(quota, WEIR_OP_DECIDE);
    if (flight->charge && costs_set(flight->charge, flight->peek, costs)) {
        weir_slot_wait(flight->slot, flight->charge);
        return true;
    }
    pthread_mutex_lock(&service->lock);
    weir_quota_charged(flight->bucket, false, now_ms);
    pthread_mutex_unlock(&service->lock);
    return false;
}

static void flight_charged(struct weir_grpc_quota_flight *flight)
{
    struct weir_grpc_quota *quota = flight->quota;
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    bool charged = is_charged(flight);
    bool denied = is_decided(flight->charge) && flight->charge->verdict == WEIR_DENIED;
    if (is_decided(flight->charge) && !denied)
        count_charged(flight);
    pthread_mutex_lock(&service->lock);
    bool ready = weir_quota_charged(flight->bucket, charged, weir_grpc_quota_now_ms(quota));
    pthread_mutex_unlock(&service->lock);
    if (!ready && !denied)
        weir_grpc_quota_count(quota, WEIR_QUOTA_FAILED);
}

static bool flight_again(struct weir_slot *slot)
{
    struct weir_grpc_quota_flight *flight = slot->owner;
    if (!flight->charge)
        return flight_charge(flight);
    flight_charged(flight);
    return false;
}

static void flight_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_grpc_quota_flight *flight = slot->owner;
    struct weir_grpc_quota *quota = flight->quota;
    (void)output;
    flight->slot = NULL; /* the caller gives it back */
    flight_end(flight);
    weir_grpc_quota_landed(quota);
}

static bool flight_open(struct weir_grpc_quota *quota, struct weir_quota_bucket *bucket,
                        struct weir_decision *peek)
{
    struct weir_grpc_quota_flight *flight = quota->flights;
    struct weir_slot *slot = weir_connection_slot(quota->stream->connection);
    if (!slot)
        return false;
    while (flight->bucket)
        flight++;
    *flight = (struct weir_grpc_quota_flight){.quota = quota,
                                              .bucket = bucket,
                                              .slot = slot,
                                              .peek = peek,
                                              .asked_ns = weir_worker_time(worker_of(quota))};
    quota->flight_count++;
    weir_grpc_of(quota->stream)->quota_flights++;
    slot->owner = flight;
    slot->again = flight_again;
    slot->write = flight_write;
    weir_slot_wait(slot, peek);
    return true;
}

/* Peeks at the limits of a bucket in PEEKS. False: its states are claimed. */
static bool flight_begin(struct weir_grpc_quota *quota, struct weir_quota_bucket *bucket)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    struct weir_decision *peek =
        request_fill(quota, bucket->id) ? decision_take(quota, WEIR_OP_PEEK) : NULL;
    bool claimed = peek && claim(quota, peek);
    if (claimed && flight_open(quota, bucket, peek))
        return true;
    if (!peek || claimed)
        weir_grpc_quota_count(quota, WEIR_QUOTA_FAILED);
    if (claimed)
        unclaim(quota, peek);
    pthread_mutex_lock(&service->lock);
    if (!peek || claimed)
        weir_quota_peeked(bucket, WEIR_QUOTA_NO_ANSWER, NULL, 0, weir_grpc_quota_now_ms(quota),
                          NULL);
    else
        weir_quota_put_off(bucket);
    pthread_mutex_unlock(&service->lock);
    if (peek)
        weir_worker_give(worker_of(quota), peek);
    return !peek || claimed;
}

/* Begins what is due of one stream. Returns how many of its buckets were put off. */
static unsigned stream_fly(struct weir_grpc *grpc, struct weir_grpc_quota *quota)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    uint64_t now_ms = weir_grpc_quota_now_ms(quota);
    unsigned put_off = 0;
    while (put_off < PUT_OFF_MAX) {
        if (weir_grpc_quota_is_behind(quota) || quota->flight_count == WEIR_QUOTA_FLIGHTS_MAX ||
            grpc->quota_flights >= WORKER_FLIGHTS_MAX || !weir_worker_has_room(grpc->worker))
            break;
        pthread_mutex_lock(&service->lock);
        struct weir_quota_bucket *bucket = weir_quota_begin(quota->client, now_ms, &quota->wants);
        pthread_mutex_unlock(&service->lock);
        if (!bucket)
            break;
        if (bucket->stage == WEIR_QUOTA_PEEKS && !flight_begin(quota, bucket))
            put_off++;
    }
    return put_off;
}

void weir_grpc_quota_fly(struct weir_grpc *grpc, bool all)
{
    struct weir_grpc_quota *first = grpc->quota_turn ? grpc->quota_turn : grpc->quotas;
    struct weir_grpc_quota *quota = first;
    unsigned put_off = 0;
    if (!first)
        return;
    do {
        if (quota->wants && !quota->stream->answered)
            put_off += stream_fly(grpc, quota);
        quota = quota->next ? quota->next : grpc->quotas;
        grpc->quota_turn = quota; /* the next pass begins where there was no room */
    } while (quota != first && grpc->quota_flights < WORKER_FLIGHTS_MAX &&
             (all || put_off < LANDING_PUT_OFF_MAX));
}

void weir_grpc_quota_land(struct weir_grpc_quota *quota)
{
    for (uint32_t i = 0; i < WEIR_QUOTA_FLIGHTS_MAX; i++) {
        struct weir_grpc_quota_flight *flight = &quota->flights[i];
        if (!flight->bucket)
            continue;
        if (flight->slot)
            weir_connection_drop_slot(quota->stream->connection, flight->slot);
        flight_end(flight);
    }
}
