/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of POST /json: whatever is accepted lies within the text and keeps to the stated
 * numbers, and fits the room that was asked for; whatever is refused has a reason. */
#include "fuzz.h"

#include <string.h>

#include "wire/json/envoy_json.h"

static void string_check(const char *text, size_t size, struct weir_bytes string)
{
    REQUIRE(string.data != NULL);
    bool inside =
        string.data >= text && string.size <= size && string.data + string.size <= text + size;
    REQUIRE(string.size == 0 || inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_envoy_request request;
    struct weir_reason reason = {""};
    char *text = fuzz_copy(data, size);
    size_t room = weir_envoy_json_room(text, size);
    void *memory = malloc(room + 1);
    REQUIRE(memory != NULL);
    int err = weir_envoy_json_read(&request, text, size, memory, &reason);
    REQUIRE((err < 0) == (reason.text[0] != '\0'));
    if (err == 0) {
        string_check(text, size, request.domain);
        for (uint32_t i = 0; i < request.descriptor_count; i++) {
            const struct weir_envoy_descriptor *of = &request.descriptors[i];
            for (uint32_t j = 0; j < of->entry_count; j++) {
                string_check(text, size, of->entries[j].key);
                string_check(text, size, of->entries[j].value);
            }
        }
    }
    free(memory);
    free(text);
    return 0;
}
