/* SPDX-License-Identifier: Apache-2.0 */
/* What Redis says of a caller: any reply is a record within its bounds, nobody, or an error. */
#include "fuzz.h"

#include <string.h>

#include "feature/identity/server/directory_record.h"

#define NODES_MAX 512

static void check_record(const struct weir_directory_record *record)
{
    struct weir_bytes limit, text;
    uint32_t texts = 0;
    size_t at = 0;

    REQUIRE(record->user.size >= 1 && record->user.size <= WEIR_IDENTITY_MAX);
    REQUIRE(record->org.data == NULL || record->org.size <= WEIR_IDENTITY_MAX);
    REQUIRE(record->plan.data == NULL || record->plan.size <= WEIR_PLAN_NAME_MAX);
    REQUIRE(record->text_count <= WEIR_OVERRIDES_MAX);
    for (; weir_directory_record_next(record, &at, &limit, &text); texts++) {
        REQUIRE(limit.size >= 1 && limit.size <= WEIR_OVERRIDE_NAME_MAX);
        REQUIRE(text.size >= 1 && text.size <= WEIR_OVERRIDE_TEXT_MAX);
        REQUIRE(at <= record->size);
    }
    REQUIRE(texts == record->text_count);
    REQUIRE(weir_directory_record_equal(record, record));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_resp_reader reader = {0};
    struct weir_resp_node nodes[NODES_MAX];
    struct weir_directory_record *record, *again;
    struct weir_reason problem;
    uint32_t count = 0;
    char *copy = fuzz_copy(data, size);
    long taken = weir_resp_reply_parse(&reader, copy, size, nodes, NODES_MAX, &count);

    if (taken <= 0 || count > NODES_MAX) {
        free(copy);
        return 0;
    }
    int result = weir_directory_record_read(nodes, count, &record, &problem);
    REQUIRE(result == 1 || result == 0 || result == WEIR_ERR_STORE);
    REQUIRE((result == 1) == (record != NULL));
    REQUIRE(memchr(problem.text, '\0', sizeof problem.text) != NULL);
    REQUIRE(result != WEIR_ERR_STORE || problem.text[0] != '\0');
    if (record != NULL) {
        REQUIRE(weir_directory_record_read(nodes, count, &again, &problem) == 1);
        REQUIRE(weir_directory_record_equal(record, again));
        check_record(record);
        free(again);
    }
    free(copy); /* a record keeps nothing of the reply */
    if (record != NULL)
        check_record(record);
    free(record);
    return 0;
}
