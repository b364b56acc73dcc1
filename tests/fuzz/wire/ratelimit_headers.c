/* SPDX-License-Identifier: Apache-2.0 */
/* Rate-limit fields: whatever an answer holds, the fields fit their room and a strict reader of
 * structured lists reads them back. The input is taken as the answer's numbers and names. */
#include "fuzz.h"

#include <string.h>

#include "structured_list.h"
#include "wire/http/ratelimit_headers.h"

struct input {
    const uint8_t *data;
    size_t size;
};

static uint64_t number_take(struct input *input, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0 && input->size > 0) {
        value = value << 8 | *input->data++;
        input->size--;
    }
    return value;
}

static struct weir_bytes name_take(struct input *input)
{
    size_t size = number_take(input, 1) % (WEIR_RATELIMIT_NAME_MAX + 2);
    size = size < input->size ? size : input->size;
    struct weir_bytes name = {(const char *)input->data, size};
    input->data += size;
    input->size -= size;
    return name;
}

static void answer_take(struct weir_answer *answer, struct weir_limit *limits, struct input *input)
{
    memset(answer, 0, sizeof *answer);
    answer->count = (uint16_t)(number_take(input, 1) % (WEIR_CHECKS_MAX + 1));
    answer->allowed = number_take(input, 1) & 1;
    answer->denied_by = (int16_t)(number_take(input, 1) % (answer->count + 1u)) - 1;
    answer->retry_after_ns = number_take(input, 8);
    answer->now_ns = number_take(input, 7);
    unsigned rates = 0;
    for (unsigned i = 0; i < answer->count; i++) {
        struct weir_answer_limit *entry = &answer->limits[i];
        uint64_t flags = number_take(input, 1);
        limits[i].spec.algorithm = (enum weir_algorithm)(flags & 7);
        limits[i].spec.rate = number_take(input, 6);
        limits[i].spec.window_ns = number_take(input, 7) | 1;
        entry->limit = flags & 8 ? NULL : &limits[i];
        entry->shadow = flags >> 4 & 1;
        entry->unlimited = flags >> 5 & 1;
        entry->report.limit = number_take(input, 8);
        entry->scale = (uint8_t)(entry->report.limit % 100);
        entry->report.remaining = number_take(input, 8);
        entry->report.reset_after_ns = number_take(input, 8);
        entry->next_ns = number_take(input, 8);
        entry->name = name_take(input);
        /* What is no number of rates in an answer of 32 checks is taken for none. */
        entry->rate_count = (uint8_t)number_take(input, 1);
        if (entry->rate_count < 2 || rates + entry->rate_count > WEIR_CHECKS_MAX)
            entry->rate_count = 0;
        entry->first_rate = (uint8_t)rates;
        for (unsigned j = 0; j < entry->rate_count; j++) {
            answer->rates[rates++] = (struct weir_answer_rate){&limits[i], entry->report,
                                                               entry->next_ns, entry->scale, true};
        }
        entry->warning =
            (struct weir_answer_warning){entry->next_ns, entry->report.limit,
                                         (uint8_t)(flags >> 6 & 1 ? entry->report.limit : 0)};
    }
}

/* The number of members of a field's list; 0 when the field is not there. `line` is the field's
 * name after a line end: names of limits may hold anything else. */
static unsigned members(const char *fields, size_t size, const char *line)
{
    struct structured_list list;
    const char *name = line + 2, *at = fields + strlen(name);
    if (size == 0 || memcmp(fields, name, strlen(name)) != 0) {
        at = memmem(fields, size, line, strlen(line));
        if (at == NULL)
            return 0;
        at += strlen(line);
    }
    const char *end = memmem(at, size - (size_t)(at - fields), "\r\n", 2);
    REQUIRE(end != NULL && structured_list_read(&list, at, (size_t)(end - at)));
    return list.count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_answer answer;
    static struct weir_limit limits[WEIR_CHECKS_MAX];
    struct input input = {data, size};
    char *out = malloc(WEIR_RATELIMIT_HEADERS_MAX);
    REQUIRE(out != NULL);
    answer_take(&answer, limits, &input);
    size_t written = weir_ratelimit_headers_write(15, &answer, number_take(&input, 5), out);
    REQUIRE(written <= WEIR_RATELIMIT_HEADERS_MAX);
    REQUIRE(written == 0 || memcmp(out + written - 2, "\r\n", 2) == 0);
    unsigned entry = members(out, written, "\r\nRateLimit-Policy: ");
    REQUIRE(members(out, written, "\r\nX-RateLimit-Warning: ") <= entry);
    unsigned policies = answer.count;
    for (unsigned i = 0; i < answer.count; i++)
        policies += answer.limits[i].rate_count;
    REQUIRE(entry <= policies && entry == members(out, written, "\r\nRateLimit: "));
    free(out);
    return 0;
}
