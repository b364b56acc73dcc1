/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of access logs: what is accepted lies within the line and has a time. */
#include "fuzz.h"

#include "wire/log/access_log.h"

static void field_check(const char *text, size_t size, struct weir_bytes field)
{
    REQUIRE(field.data == NULL || (field.data >= text && field.data + field.size <= text + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_access_line line;
    char *text = fuzz_copy(data, size);
    if (weir_access_line_parse(&line, text, size) == 0) {
        REQUIRE(line.host.size > 0 && line.t_ns < UINT64_C(1) << 62 && line.status <= 999);
        REQUIRE((line.method.data == NULL) == (line.target.data == NULL));
        field_check(text, size, line.host);
        field_check(text, size, line.user);
        field_check(text, size, line.method);
        field_check(text, size, line.target);
        field_check(text, size, line.referer);
        field_check(text, size, line.agent);
    }
    free(text);
    return 0;
}
