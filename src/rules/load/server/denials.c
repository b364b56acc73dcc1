/* SPDX-License-Identifier: Apache-2.0 */
/* see denials.h */
#include "rules/load/server/denials.h"

#include "rules/load/numbers.h"

#define KEEP_MIN_NS (UINT64_C(60) * 1000000000)
#define KEEP_MAX_NS (UINT64_C(366) * 86400 * 1000000000)
#define DENIALS_BYTES_MIN (UINT64_C(64) << 10)
#define DENIALS_BYTES_MAX (UINT64_C(16) << 30)

enum denials_field {
    DENIALS_FILE,
    DENIALS_KEEP,
    DENIALS_SIZE,
    DENIALS_SAMPLE,
    DENIALS_SERIES,
    DENIALS_FIELDS
};

static void load_denials_size(struct rules_loader *loader, const struct rules_node *node,
                              uint64_t *bytes)
{
    struct weir_reason reason;
    struct weir_bytes text;
    uint64_t size;
    if (!rules_read_text(loader, node, "size", &text))
        return;
    if (weir_size_parse(&size, text.data, text.size, &reason) < 0)
        rules_problem(loader, node, "%s", reason.text);
    else if (size < DENIALS_BYTES_MIN || size > DENIALS_BYTES_MAX)
        rules_problem(loader, node, "`size` of `denials` must be 64KiB to 16GiB");
    else
        *bytes = size;
}

void rules_load_denials(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_denials_settings *denials = &loader->rules->settings.denials;
    struct rules_field fields[DENIALS_FIELDS] = {
        [DENIALS_FILE] = {"file", NULL, NULL},     [DENIALS_KEEP] = {"keep", NULL, NULL},
        [DENIALS_SIZE] = {"size", NULL, NULL},     [DENIALS_SAMPLE] = {"sample", NULL, NULL},
        [DENIALS_SERIES] = {"series", NULL, NULL},
    };
    struct weir_bytes file;
    uint64_t sample;
    if (!rules_fields(loader, node, "denials", fields, DENIALS_FIELDS))
        return;
    const struct rules_field *of_file = fields[DENIALS_KEEP].value   ? &fields[DENIALS_KEEP]
                                        : fields[DENIALS_SIZE].value ? &fields[DENIALS_SIZE]
                                                                     : NULL;
    if (fields[DENIALS_FILE].value &&
        rules_read_text(loader, fields[DENIALS_FILE].value, "file", &file))
        denials->file = rules_path_of(loader, file);
    else if (of_file)
        rules_problem(loader, of_file->key, "`%s` of `denials` needs `file`", of_file->name);
    if (fields[DENIALS_KEEP].value)
        rules_read_duration(loader, fields[DENIALS_KEEP].value, "keep", KEEP_MIN_NS, KEEP_MAX_NS,
                            "1min to 366d", &denials->keep_ns);
    if (fields[DENIALS_SIZE].value)
        load_denials_size(loader, fields[DENIALS_SIZE].value, &denials->size_bytes);
    if (fields[DENIALS_SAMPLE].value &&
        rules_read_number(loader, fields[DENIALS_SAMPLE].value, "sample", 0,
                          WEIR_DENIALS_SAMPLE_MAX, &sample))
        denials->sample = (uint32_t)sample;
    if (fields[DENIALS_SERIES].value &&
        rules_read_number(loader, fields[DENIALS_SERIES].value, "series", 0,
                          WEIR_DENIALS_SERIES_MAX, &sample))
        denials->series = (uint32_t)sample;
}
