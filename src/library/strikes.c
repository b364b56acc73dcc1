/* SPDX-License-Identifier: Apache-2.0 */
/* see strikes.h */
#include "library/strikes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "feature/identity/rules/keys.h"
#include "feature/penalties/engine/strike.h"
#include "feature/penalties/rules/penalty.h"
#include "feature/standing/settings.h"
#include "library/library.h"

#define TRY_EVERY_NS UINT64_C(1000000000)
#define SECOND_NS UINT64_C(1000000000)

int weir_library_strikes_open(struct weir_library_strikes *strikes, const char *state_file)
{
    memset(strikes, 0, sizeof *strikes);
    if (state_file) {
        strikes->state_file = strdup(state_file);
        if (!strikes->state_file)
            return WEIR_ERR_MEMORY;
    }
    pthread_mutex_init(&strikes->lock, NULL);
    return 0;
}

void weir_library_strikes_close(struct weir_library_strikes *strikes)
{
    weir_strike_ring_close(strikes->ring);
    free(strikes->state_file);
    pthread_mutex_destroy(&strikes->lock);
}

/* Under the lock: opens the ring, or another one that a server has made in its place. */
static int look_for_ring(struct weir_library_strikes *strikes, uint64_t now_ns,
                         struct weir_reason *reason)
{
    struct weir_strike_ring *ring;
    if (!strikes->state_file)
        return WEIR_ERR_NOT_FOUND;
    if (strikes->ring && weir_strike_ring_kept(strikes->ring, now_ns))
        return 0;
    strikes->tried_ns = now_ns;
    int err = weir_strike_ring_open(&ring, strikes->state_file, reason);
    if (err < 0)
        return err;
    weir_strike_ring_close(strikes->ring);
    strikes->ring = ring;
    return weir_strike_ring_kept(ring, now_ns) ? 0 : WEIR_ERR_NOT_FOUND;
}

void weir_library_strikes_set_rules(struct weir_library_strikes *strikes,
                                    const struct weir_rules *rules)
{
    pthread_mutex_lock(&strikes->lock);
    strikes->wanted = weir_rules_penalty_count(rules) > 0;
    pthread_mutex_unlock(&strikes->lock);
}

/* Under the lock. */
static int find_server(struct weir_library_strikes *strikes, struct weir_reason *reason)
{
    if (!strikes->wanted)
        return 0;
    if (!strikes->state_file) {
        snprintf(reason->text, sizeof reason->text,
                 "`penalties` need a state file that a `weir serve` uses as well");
        return WEIR_ERR_UNSUPPORTED;
    }
    int err = look_for_ring(strikes, library_clock(CLOCK_BOOTTIME), reason);
    if (err != WEIR_ERR_NOT_FOUND)
        return err;
    snprintf(reason->text, sizeof reason->text,
             "`penalties`: no `weir serve` with penalties runs on the state file %.120s: start one "
             "with these rules",
             strikes->state_file);
    return WEIR_ERR_UNSUPPORTED;
}

int weir_library_strikes_check(struct weir_library_strikes *strikes, struct weir_reason *reason)
{
    reason->text[0] = '\0';
    pthread_mutex_lock(&strikes->lock);
    int err = find_server(strikes, reason);
    pthread_mutex_unlock(&strikes->lock);
    if (err < 0 && reason->text[0] == '\0')
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

/* --- Handing over ----------------------------------------------------------------------------- */

/* A secret value leaves this process as its hash only. False: it is too long. */
static bool set_text(struct weir_ring_strike *strike, const struct weir_standing_kind *kind,
                     struct weir_bytes value)
{
    static const char hidden[] = "sha256:";
    uint8_t digest[WEIR_DIGEST_BYTES];
    if (kind->secret) {
        rules_sha256(value, digest);
        memcpy(strike->text, hidden, sizeof hidden - 1);
        char *end = weir_hex_write(strike->text + sizeof hidden - 1, digest, sizeof digest);
        strike->size = (uint16_t)(end - strike->text);
        return true;
    }
    if (value.size > sizeof strike->text)
        return false;
    memcpy(strike->text, value.data, value.size);
    strike->size = (uint16_t)value.size;
    return true;
}

/* Whether the map of standing has named the value: without a map it has no id. */
static bool is_named(const struct weir_struck *struck)
{
    const uint64_t *id = struck->strike->id;
    return struck->kind->address || id[0] != 0 || id[1] != 0;
}

static bool make(struct weir_ring_strike *strike, const struct weir_struck *struck)
{
    memset(strike, 0, sizeof *strike);
    strike->penalty =
        weir_penalty_print(struck->penalty, struck->kind, struck->strike->check.limit);
    strike->now_ns = struck->now_ns;
    strike->moves = struck->moves;
    memcpy(strike->count, struck->strike->check.hash, sizeof strike->count);
    if (struck->kind->address) {
        strike->network.address.family = struck->strike->network.address.family;
        memcpy(strike->network.address.bytes, struck->strike->network.address.bytes,
               sizeof strike->network.address.bytes);
        strike->network.bits = struck->strike->network.bits;
        return true;
    }
    memcpy(strike->id, struck->strike->id, sizeof strike->id);
    return set_text(strike, struck->kind, struck->strike->value);
}

/* Under the lock: whether such a strike was sent in this second. */
static bool is_repeat(struct weir_library_strikes *strikes, const struct weir_ring_strike *strike)
{
    const uint64_t key[2] = {strike->penalty, strike->network.bits};
    uint8_t value[sizeof strike->id + sizeof strike->network.address.bytes];
    uint64_t hash[2];
    memcpy(value, strike->id, sizeof strike->id);
    memcpy(value + sizeof strike->id, strike->network.address.bytes,
           sizeof strike->network.address.bytes);
    weir_siphash128(key, value, sizeof value, hash);
    uint64_t now = hash[0] >> 32 << 32 | (uint32_t)(strike->now_ns / SECOND_NS);
    uint64_t *sent = &strikes->sent[hash[1] % WEIR_STRIKES_SENT];
    bool repeat = *sent == now;
    *sent = now;
    return repeat;
}

/* Under the lock: counts a strike for which there is no server, or no map, and news for the log.
 * What a server has no room for it counts itself. */
static void note(struct weir_library_strikes *strikes, bool kept)
{
    if (!kept) {
        atomic_fetch_add_explicit(&strikes->lost, 1, memory_order_relaxed);
        atomic_fetch_or_explicit(&strikes->news, WEIR_STRIKES_LOST, memory_order_relaxed);
    } else if (strikes->fails) {
        atomic_fetch_or_explicit(&strikes->news, WEIR_STRIKES_AGAIN, memory_order_relaxed);
    }
    strikes->fails = !kept;
}

enum weir_strike_answer weir_library_struck(void *context, const struct weir_struck *struck)
{
    struct weir_library_strikes *strikes = context;
    struct weir_ring_strike strike;
    struct weir_reason reason;
    bool put = false, named = is_named(struck);
    if (!make(&strike, struck))
        return WEIR_STRIKE_DONE; /* no standing can be set for it */
    uint64_t now_ns = library_clock(CLOCK_BOOTTIME);
    pthread_mutex_lock(&strikes->lock);
    if (strike.moves || !is_repeat(strikes, &strike)) {
        if (now_ns - strikes->tried_ns >= TRY_EVERY_NS)
            (void)!look_for_ring(strikes, now_ns, &reason);
        if (strikes->ring && named)
            put = weir_strike_ring_put(strikes->ring, &strike, now_ns);
        note(strikes,
             put || (named && strikes->ring && weir_strike_ring_kept(strikes->ring, now_ns)));
    }
    pthread_mutex_unlock(&strikes->lock);
    return put ? WEIR_STRIKE_LATER : WEIR_STRIKE_REFUSED;
}
