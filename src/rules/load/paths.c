/* SPDX-License-Identifier: Apache-2.0 */
/* `paths`; see loader.h */
#include "rules/load/loader.h"
#include "rules/match/path.h"

void rules_load_paths(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const parameters[] = {"strip", "keep"};
    static const char *const cases[] = {"sensitive", "insensitive"};
    static const char *const slashes[] = {"exact", "ignore"};
    /* Of each field the second word sets the option. */
    static const struct {
        const char *const *words;
        uint8_t option;
    } choices[] = {{parameters, WEIR_PATH_KEEP_PARAMETERS},
                   {cases, WEIR_PATH_FOLD_CASE},
                   {slashes, WEIR_PATH_DROP_SLASH}};
    struct rules_field fields[] = {
        {"parameters", NULL, NULL}, {"case", NULL, NULL}, {"trailing_slash", NULL, NULL}};
    if (!rules_fields(loader, node, "paths", fields, 3))
        return;
    for (int i = 0; i < 3; i++)
        if (fields[i].value != NULL &&
            rules_read_choice(loader, fields[i].value, fields[i].name, choices[i].words, 2) == 1)
            loader->rules->path_options |= choices[i].option;
}
