/* SPDX-License-Identifier: Apache-2.0 */
/* see sessions.h */
#include "feature/dashboard/server/sessions.h"

#include <string.h>

#include "core/text/shown.h"
#include "core/text/siphash.h"
#include "core/text/utf8.h"

void weir_sessions_init(struct weir_sessions *sessions, const uint64_t secret[2])
{
    memset(sessions, 0, sizeof *sessions);
    memcpy(sessions->secret, secret, sizeof sessions->secret);
}

/* Compares all bytes, whichever differ. */
static bool same_id(const unsigned char *a, const unsigned char *b)
{
    unsigned differ = 0;
    for (unsigned i = 0; i < WEIR_SESSION_ID_BYTES; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* The place of an id; NULL: it has none. Looks at all places, wherever it is. */
static const struct weir_session *find(const struct weir_sessions *sessions,
                                       const unsigned char *id)
{
    const struct weir_session *found = NULL;
    for (unsigned i = 0; i < WEIR_SESSIONS_MAX; i++)
        if (same_id(sessions->list[i].id, id) && sessions->list[i].until_ns > 0)
            found = &sessions->list[i];
    return found;
}

bool weir_session_name_is_fine(struct weir_bytes name)
{
    if (name.size > WEIR_SESSION_NAME_MAX)
        return false;
    while (name.size > 0) {
        size_t size = weir_utf8_size(name.data, name.size);
        if (size == 0 || !weir_text_is_plain(name.data, size))
            return false;
        name.data += size;
        name.size -= size;
    }
    return true;
}

void weir_sessions_begin(struct weir_sessions *sessions,
                         const unsigned char id[WEIR_SESSION_ID_BYTES], const char *token,
                         struct weir_bytes name, uint64_t now_ns)
{
    struct weir_session *place = &sessions->list[0];
    for (unsigned i = 1; i < WEIR_SESSIONS_MAX; i++)
        if (sessions->list[i].until_ns < place->until_ns)
            place = &sessions->list[i];
    memcpy(place->id, id, WEIR_SESSION_ID_BYTES);
    place->until_ns = now_ns + WEIR_SESSION_NS;
    weir_siphash128(sessions->secret, token, strlen(token), place->token);
    place->name_size = (uint8_t)name.size;
    if (name.size > 0)
        memcpy(place->name, name.data, name.size);
}

struct weir_bytes weir_sessions_name(const struct weir_sessions *sessions,
                                     const unsigned char id[WEIR_SESSION_ID_BYTES])
{
    const struct weir_session *session = find(sessions, id);
    return session ? (struct weir_bytes){session->name, session->name_size}
                   : (struct weir_bytes){NULL, 0};
}

bool weir_sessions_has(const struct weir_sessions *sessions,
                       const unsigned char id[WEIR_SESSION_ID_BYTES], const char *token,
                       uint64_t now_ns)
{
    const struct weir_session *session = find(sessions, id);
    uint64_t hash[2];
    if (!session || session->until_ns <= now_ns)
        return false;
    weir_siphash128(sessions->secret, token, strlen(token), hash);
    return session->token[0] == hash[0] && session->token[1] == hash[1];
}

bool weir_sessions_end(struct weir_sessions *sessions,
                       const unsigned char id[WEIR_SESSION_ID_BYTES])
{
    const struct weir_session *session = find(sessions, id);
    if (!session)
        return false;
    memset(&sessions->list[session - sessions->list], 0, sizeof *session);
    return true;
}

unsigned weir_sessions_count(const struct weir_sessions *sessions, uint64_t now_ns)
{
    unsigned count = 0;
    for (unsigned i = 0; i < WEIR_SESSIONS_MAX; i++)
        count += sessions->list[i].until_ns > now_ns;
    return count;
}
