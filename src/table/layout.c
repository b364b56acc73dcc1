/* SPDX-License-Identifier: Apache-2.0 */
/* see layout.h */
#include "table/layout.h"

#include <string.h>

#include "core/text/reason.h"
#include "core/text/siphash.h"

#define BYTES_DEFAULT (UINT64_C(64) << 20)
#define SPAN_PERCENT_DEFAULT 2
#define SPAN_PERCENT_MAX 90

/* Small against the rest of the region: an owner slot (2.7 KiB) for every 256 KiB and parameters
 * (256 bytes, and an account of 32) for every 32 KiB are 1 % and 0.9 % of it, overflow cells 3 %.
 */
#define BYTES_PER_OWNER (UINT64_C(256) << 10)
#define OWNERS_MIN 12
#define BYTES_PER_PARAM (UINT64_C(32) << 10)
#define PARAMS_MIN 32
/* A state that grows needs pages of two sizes at a time, and no walk over pages has to handle a
 * heap without any. */
#define PAGES_MIN 8
#define BYTES_PER_CHUNK (32 * CHUNK_BYTES)

/* Checksums find damage, not malice: their key is no secret. */
static const uint64_t checksum_key[2] = {TABLE_MAGIC, TABLE_VERSION};

static uint64_t checksum(const void *data, size_t size)
{
    uint64_t hash[2];

    weir_siphash128(checksum_key, data, size, hash);
    return hash[0];
}

uint32_t layout_checksum(void)
{
    const uint64_t facts[] = {
        sizeof(struct weir_limit),
        sizeof(struct weir_cell),
        sizeof(struct table_bucket),
        sizeof(struct table_param),
        sizeof(struct table_account),
        CHUNK_BYTES,
        sizeof(struct table_owner_slot),
        sizeof(struct table_page),
        sizeof(struct table_header),
        offsetof(struct table_header, heap_lock),
        offsetof(struct table_param, limit),
        BUCKET_SLOTS,
        TAG_BITS,
        UNDO_OWN,
        UNDO_SPILL,
        SPAN_CLASSES,
        TABLE_PAGE,
        COUNTERS,
        OVERFLOW_ROWS,
    };

    return (uint32_t)checksum(facts, sizeof facts);
}

uint64_t layout_header_check(const struct table_header *header)
{
    return checksum(header, offsetof(struct table_header, check));
}

uint64_t layout_param_check(const struct table_param *param)
{
    return checksum(&param->limit, sizeof param->limit) + param->account;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* floor(log2(value)), value > 0. */
static uint32_t log2_floor(uint64_t value)
{
    return 63 - (uint32_t)__builtin_clzll(value);
}

uint32_t layout_spill_entries(const struct table_header *header)
{
    uint64_t most = WEIR_CHECKS_MAX * RUN_PAGES_MAX;

    return UNDO_SPILL + 2 * (uint32_t)(header->pages < most ? header->pages : most);
}

/* Sets the offsets from the counts of params, owners, pages and the size; and the count of buckets.
 */
static void place_parts(struct table_header *header)
{
    header->params_at = TABLE_PAGE;
    header->accounts_at = header->params_at + header->params_max * sizeof(struct table_param);
    header->pins_at = header->accounts_at + header->params_max * sizeof(struct table_account);
    header->owners_at =
        round_up(header->pins_at + header->owners_max * layout_pin_words(header) * 8, TABLE_LINE);
    header->spill_at = header->owners_at + header->owners_max * sizeof(struct table_owner_slot);
    header->pages_at = header->spill_at + layout_spill_entries(header) * sizeof(struct table_undo);
    header->cells_at =
        round_up(header->pages_at + header->pages * sizeof(struct table_page), TABLE_LINE);
    header->buckets_at = round_up(header->cells_at + header->chunks * CHUNK_BYTES, TABLE_PAGE);
    header->spans_at = header->bytes - header->pages * TABLE_PAGE;
    header->buckets = header->buckets_at < header->spans_at
                          ? (header->spans_at - header->buckets_at) / sizeof(struct table_bucket)
                          : 0;
}

int layout_plan(struct table_header *header, const struct weir_table_options *options,
                struct weir_reason *reason)
{
    uint64_t bytes = options->bytes != 0 ? options->bytes : BYTES_DEFAULT;
    uint32_t percent = options->span_percent != 0       ? options->span_percent
                       : options->span_percent_new != 0 ? options->span_percent_new
                                                        : SPAN_PERCENT_DEFAULT;

    if (bytes < WEIR_TABLE_BYTES_MIN || bytes > WEIR_TABLE_BYTES_MAX) {
        reason_text(reason, "the size of the state must be 256KiB to 4TiB");
        return WEIR_ERR_RANGE;
    }
    if (percent > SPAN_PERCENT_MAX || options->params_max > WEIR_TABLE_PARAMS_MAX) {
        reason_text(reason, "span_percent or params_max is out of range");
        return WEIR_ERR_RANGE;
    }
    memset(header, 0, sizeof *header);
    header->magic = TABLE_MAGIC;
    header->version = TABLE_VERSION;
    header->layout = layout_checksum();
    header->bytes = bytes / TABLE_PAGE * TABLE_PAGE;
    header->owners_max =
        (uint32_t)clamp(bytes / BYTES_PER_OWNER, OWNERS_MIN, WEIR_TABLE_OWNERS_MAX);
    header->params_max =
        options->params_max != 0
            ? options->params_max
            : (uint32_t)clamp(bytes / BYTES_PER_PARAM, PARAMS_MIN, WEIR_TABLE_PARAMS_MAX);
    header->chunks = (uint32_t)clamp(bytes / BYTES_PER_CHUNK, 1, CHUNKS_MAX - 1);
    header->span_percent = percent;
    header->pages = header->bytes / 100 * percent / (TABLE_PAGE + sizeof(struct table_page));
    if (header->pages < PAGES_MIN)
        header->pages = PAGES_MIN;
    place_parts(header);
    if (header->buckets < 16) {
        reason_text(reason, "the size of the state is too small for its spans and parameters");
        return WEIR_ERR_RANGE;
    }
    header->identity_bits = log2_floor(header->buckets) + TAG_BITS;
    return 0;
}

int layout_check(const struct table_header *header)
{
    struct table_header copy = *header;

    if (header->bytes < WEIR_TABLE_BYTES_MIN || header->bytes > WEIR_TABLE_BYTES_MAX ||
        header->bytes % TABLE_PAGE != 0 || header->params_max == 0 ||
        header->params_max > WEIR_TABLE_PARAMS_MAX || header->owners_max == 0 ||
        header->owners_max > WEIR_TABLE_OWNERS_MAX || header->chunks == 0 ||
        header->chunks >= CHUNKS_MAX || header->pages == 0 ||
        header->pages >= header->bytes / TABLE_PAGE)
        return WEIR_ERR_DAMAGED;
    place_parts(&copy);
    if (memcmp(&copy, header, offsetof(struct table_header, check)) != 0 || copy.buckets == 0)
        return WEIR_ERR_DAMAGED;
    if (header->identity_bits < TAG_BITS ||
        header->identity_bits > log2_floor(header->buckets) + TAG_BITS)
        return WEIR_ERR_DAMAGED;
    return 0;
}
