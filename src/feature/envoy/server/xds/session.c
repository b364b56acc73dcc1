/* SPDX-License-Identifier: Apache-2.0 */
/* see session.h */
#include "feature/envoy/server/xds/session.h"

#include <string.h>

#include "core/text/utf8.h"
#include "feature/envoy/server/xds/message.h"

#define NEVER UINT64_MAX

void weir_xds_session_init(struct weir_xds_session *session,
                           const struct weir_xds_settings *settings)
{
    memset(session, 0, sizeof *session);
    session->settings = settings;
    session->due_ns = NEVER;
    for (uint32_t i = 0; i < settings->metadata_count; i++)
        session->metadata[i] =
            (struct weir_discovery_pair){settings->metadata[i].name, settings->metadata[i].value};
}

void weir_xds_session_opened(struct weir_xds_session *session, uint64_t now_ns)
{
    session->version.size = session->nonce.size = 0;
    session->answered = session->refusing = false;
    session->due_ns = now_ns;
}

static void keep_word(struct weir_xds_word *word, struct weir_bytes text)
{
    memcpy(word->text, text.data, text.size);
    word->size = text.size;
}

int weir_xds_session_received(struct weir_xds_session *session,
                              const struct weir_discovery_response *response)
{
    if (response->version.size > WEIR_XDS_WORD_MAX || response->nonce.size > WEIR_XDS_WORD_MAX)
        return WEIR_ERR_RANGE;
    keep_word(&session->seen, response->version);
    keep_word(&session->nonce, response->nonce);
    session->answered = true;
    session->refusing = false;
    session->failures = 0;
    session->due_ns = NEVER;
    return 0;
}

void weir_xds_session_accepted(struct weir_xds_session *session, uint64_t now_ns)
{
    session->refused = 0;
    if (!session->answered)
        return;
    session->version = session->seen;
    session->refusing = false;
    session->due_ns = now_ns;
}

static uint64_t doubled(uint64_t first_ns, uint64_t most_ns, uint32_t times)
{
    uint64_t wait_ns = first_ns;
    for (uint32_t i = 0; i < times && wait_ns < most_ns; i++)
        wait_ns *= 2;
    return wait_ns < most_ns ? wait_ns : most_ns;
}

/* A message that is no UTF-8 ends the stream: a peer's bytes may be in it, and it may be cut. */
static void keep_error(char kept[WEIR_XDS_ERROR_MAX], const char *error)
{
    size_t left = strlen(error), used = 0;
    while (left > 0) {
        size_t step = weir_utf8_size(error, left), size = step > 0 ? step : 1;
        if (used + size >= WEIR_XDS_ERROR_MAX)
            break;
        memcpy(kept + used, step > 0 ? error : "?", size);
        used += size;
        error += size;
        left -= size;
    }
    kept[used] = '\0';
}

void weir_xds_session_refused(struct weir_xds_session *session, const char *error, uint64_t now_ns)
{
    uint64_t wait_ns = doubled(WEIR_XDS_REFUSE_FIRST_NS, WEIR_XDS_REFUSE_MOST_NS, session->refused);
    session->refused += session->refused < 32;
    if (!session->answered)
        return;
    keep_error(session->error, error);
    session->refusing = true;
    session->due_ns = now_ns + wait_ns;
}

static struct weir_bytes bytes_of(const struct weir_xds_word *word)
{
    return (struct weir_bytes){word->text, word->size};
}

void weir_xds_session_request(struct weir_xds_session *session,
                              struct weir_discovery_request *request)
{
    const struct weir_xds_settings *settings = session->settings;
    *request = (struct weir_discovery_request){
        .node = settings->node,
        .metadata = session->metadata,
        .metadata_count = settings->metadata_count,
        .type_url = {WEIR_XDS_TYPE_URL, sizeof WEIR_XDS_TYPE_URL - 1},
        .version = bytes_of(&session->version),
        .nonce = bytes_of(&session->nonce),
        .error = session->refusing ? session->error : NULL,
    };
    session->due_ns = NEVER;
}

uint64_t weir_xds_session_closed(struct weir_xds_session *session, bool connected, uint32_t random)
{
    const struct weir_xds_settings *settings = session->settings;
    uint64_t wait_ns =
        connected ? doubled(settings->backoff_ns, settings->backoff_most_ns, session->failures)
                  : settings->retry_ns;
    session->failures += connected && session->failures < 32;
    session->due_ns = NEVER;
    uint64_t part_ns = wait_ns / 100 * settings->jitter;
    return wait_ns - part_ns + (uint64_t)((double)part_ns * 2 * (random / (double)UINT32_MAX));
}
