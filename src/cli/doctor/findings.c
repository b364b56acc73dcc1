/* SPDX-License-Identifier: Apache-2.0 */
/* see findings.h */
#include "cli/doctor/findings.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "server/text/print.h"

static const char *const level_names[] = {
    [FINDING_WARNING] = "warning",
    [FINDING_ERROR] = "error",
};

void findings_add(struct findings *findings, enum finding_level level, const char *name,
                  const char *fix, const char *format, ...)
{
    va_list arguments;
    if (level == FINDING_ERROR)
        findings->errors++;
    else
        findings->warnings++;
    if (findings->count == FINDINGS_MAX)
        return;
    struct finding *finding = &findings->list[findings->count++];
    *finding = (struct finding){.level = level, .name = name, .fix = fix};
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

bool findings_have(const struct findings *findings, const char *name)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (!strcmp(findings->list[i].name, name))
            return true;
    return false;
}

static void print_one(const struct finding *finding)
{
    printf("%-7s  %s: ", level_names[finding->level], finding->name);
    weir_print_text(stdout, finding->text, strlen(finding->text), FINDING_TEXT_MAX);
    printf("\n         fix: %s\n", finding->fix);
}

void findings_print(const struct findings *findings, const char *subject)
{
    for (unsigned level = FINDING_ERROR + 1; level-- > FINDING_WARNING;)
        for (uint32_t i = 0; i < findings->count; i++)
            if (findings->list[i].level == level)
                print_one(&findings->list[i]);
    if (findings->errors + findings->warnings > findings->count)
        printf("%" PRIu32 " more findings\n",
               findings->errors + findings->warnings - findings->count);
    printf("%s: %" PRIu32 " error%s, %" PRIu32 " warning%s\n", subject ? subject : "weir",
           findings->errors, findings->errors == 1 ? "" : "s", findings->warnings,
           findings->warnings == 1 ? "" : "s");
}

bool findings_print_json(const struct findings *findings, const char *subject)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        json_t *object = json_pack("{s:s, s:s, s:o, s:s}", "name", finding->name, "level",
                                   level_names[finding->level], "text",
                                   json_stringn_nocheck(finding->text, strlen(finding->text)),
                                   "fix", finding->fix);
        json_array_append_new(list, object);
    }
    json_t *root =
        json_pack("{s:s?, s:i, s:i, s:o}", "config", subject, "errors", (int)findings->errors,
                  "warnings", (int)findings->warnings, "findings", list);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text)
        puts(text);
    bool printed = text;
    free(text);
    json_decref(root);
    return printed;
}
