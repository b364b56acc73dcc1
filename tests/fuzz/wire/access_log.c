/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of logs of every format, with and without a container's envelope: what is accepted lies
 * within the line and has a time. The first byte says which. */
#include "fuzz.h"

#include <string.h>

#include "wire/log/client.h"
#include "wire/log/envelope.h"
#include "wire/log/formats.h"

static struct weir_log_room room;

static void field_check(const char *text, size_t size, struct weir_bytes field)
{
    REQUIRE(field.data == NULL || (field.data >= text && field.data + field.size <= text + size));
}

static void record_check(const char *text, size_t size, const struct weir_log_record *record)
{
    REQUIRE(record->t_ns < UINT64_C(1) << 62 && record->written_ns < UINT64_C(1) << 62);
    if (record->check)
        return;
    REQUIRE(record->status <= 999);
    REQUIRE(record->client.data == NULL || record->client.size > 0);
    field_check(text, size, record->client);
    field_check(text, size, record->forwarded);
    field_check(text, size, record->user);
    field_check(text, size, record->method);
    field_check(text, size, record->host);
    field_check(text, size, record->referer);
    field_check(text, size, record->agent);
    if (record->target.size != 1 || record->target.data[0] != '/') /* of an absolute one */
        field_check(text, size, record->target);
    REQUIRE(record->header_count <= WEIR_CHECK_JSON_PAIRS_MAX);
    for (int i = 0; i < record->header_count; i++) {
        field_check(text, size, record->headers[i].name);
        field_check(text, size, record->headers[i].value);
    }
}

/* Whose request it is: an address, a name, or nobody. */
static void client_check(const struct weir_log_record *record)
{
    static struct weir_log_clients clients;
    struct weir_address client;
    struct weir_bytes name;
    struct weir_reason reason;
    clients.trusted = weir_log_private_proxies;
    if (weir_log_client_read(&clients, record, &client, &name, &reason) < 0)
        return;
    REQUIRE(client.family == 0 || client.family == 4 || client.family == 6);
    REQUIRE(name.data == NULL || (client.family == 6 && client.bytes[0] == 0xfc));
    REQUIRE(clients.odd_shown <= WEIR_LOG_ODD_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_log_record record;
    struct weir_reason reason;
    struct weir_log_piece piece;
    if (size == 0)
        return 0;
    enum weir_log_format format = data[0] % WEIR_LOG_FORMATS;
    enum weir_log_envelope envelope = data[0] / WEIR_LOG_FORMATS % WEIR_LOG_ENVELOPES;
    char *text = fuzz_copy(data + 1, size - 1);
    if (weir_log_unwrap(envelope, text, size - 1, &piece)) {
        REQUIRE(piece.text >= text && piece.text + piece.size <= text + size - 1);
        memset(&record, 0xff, sizeof record); /* no field is left as it was */
        int got = weir_log_parse(format, &record, piece.text, piece.size, &room, &reason);
        REQUIRE(got == 0 || got == WEIR_LOG_OTHER || reason.text[0] != '\0');
        if (got == 0)
            record_check(text, size - 1, &record);
        if (got == 0 && !record.check)
            client_check(&record);
    }
    free(text);
    return 0;
}
