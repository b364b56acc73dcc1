/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/use/rules/section.h"

enum { DENIALS_FILE, DENIALS_KEEP, DENIALS_SIZE, DENIALS_SAMPLE, DENIALS_SERIES, DENIALS_TOP };

#define AT(member) RULES_AT(struct weir_denials_settings, member)

static const struct rules_keyword keywords[] = {
    [DENIALS_FILE] = {"file", RULES_FILE, AT(file), .absent = "denials are kept in memory only",
                      .doc = "[the file](use.md#the-denial-log) that denials are kept in"},
    [DENIALS_KEEP] = {"keep", RULES_DURATION, AT(keep_ns),
                      RULES_RANGE(RULES_MINUTE, 366 * RULES_DAY), .otherwise = "7d",
                      .doc = "how long the file keeps a denial",
                      .why = "long enough for a complaint of last week"},
    [DENIALS_SIZE] = {"size", RULES_SIZE, AT(size_bytes),
                      RULES_RANGE(UINT64_C(64) << 10, UINT64_C(16) << 30), .otherwise = "64MiB",
                      .doc = "the size of the file, and of the one before it, together",
                      .why = "some 200,000 denials; never a full disk"},
    [DENIALS_SAMPLE] = {"sample", RULES_NUMBER, AT(sample), RULES_RANGE(0, WEIR_DENIALS_SAMPLE_MAX),
                        .otherwise = "5",
                        .doc =
                            "how many denials of a key and a limit each worker keeps in a second",
                        .why = "an attacker's denials do not push out all others"},
    [DENIALS_SERIES] = {"series", RULES_NUMBER, AT(series), RULES_RANGE(0, WEIR_DENIALS_SERIES_MAX),
                        .otherwise = "0",
                        .doc = "how many of the keys denied most are in the metrics, by name",
                        .why = "names of callers make series without bound in Prometheus"},
    [DENIALS_TOP] = {"top", RULES_NUMBER, AT(top), RULES_RANGE(0, WEIR_DENIALS_SERIES_MAX),
                     .otherwise = "0",
                     .doc = "how many of the keys used most are in the metrics, by name",
                     .why = "names of callers make series without bound in Prometheus"},
};
const struct rules_section rules_section_denials = RULES_SECTION("denials", keywords);

void rules_load_denials(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &rules_section_denials, node, fields,
                            &loader->rules->settings.denials))
        return;
    const struct rules_field *of_file = fields[DENIALS_KEEP].value   ? &fields[DENIALS_KEEP]
                                        : fields[DENIALS_SIZE].value ? &fields[DENIALS_SIZE]
                                                                     : NULL;
    if (!fields[DENIALS_FILE].value && of_file)
        rules_problem(loader, of_file->key, "`%s` of `denials` needs `file`", of_file->name);
}
