/* SPDX-License-Identifier: Apache-2.0 */
/* see problems.h */
#include <weir/version.h>

#include "rules/problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEMS_FIRST 16 /* room of the list at first; it doubles */
#define MESSAGE_MAX 1100  /* of the loader's 1024 bytes, and what is added to them */

static bool problems_grow(struct weir_problems *problems)
{
    /* Full exactly when the count is a power of two from PROBLEMS_FIRST on. */
    uint32_t count = problems->count;
    if (count != 0 && (count < PROBLEMS_FIRST || (count & (count - 1)) != 0))
        return true;
    size_t room = count == 0 ? PROBLEMS_FIRST : (size_t)count * 2;
    struct weir_problem *list = realloc(problems->list, room * sizeof(*list));
    if (!list)
        return false;
    problems->list = list;
    return true;
}

bool rules_problem_add(struct weir_problems *problems, const char *file, uint32_t line,
                       uint32_t column, const char *message)
{
    if (problems->count == WEIR_PROBLEMS_MAX) {
        problems->dropped++;
        return true;
    }
    if (!problems_grow(problems))
        return false;
    struct weir_problem *problem = &problems->list[problems->count];
    memset(problem, 0, sizeof(*problem));
    problem->file = strdup(file);
    problem->message = strdup(message);
    if (!problem->file || !problem->message) {
        free(problem->file);
        free(problem->message);
        return false;
    }
    problem->line = line;
    problem->column = column;
    problems->count++;
    return true;
}

bool rules_problem_deprecated(struct weir_problems *problems, const char *file, uint32_t line,
                              uint32_t column, const char *refused_from, const char *message,
                              bool *refused)
{
    char text[MESSAGE_MAX];
    *refused = problems->strict || !weir_still_takes(refused_from);
    if (*refused)
        return rules_problem_add(problems, file, line, column, message);
    snprintf(text, sizeof(text), "%s (weir %s will refuse this)", message, refused_from);
    uint32_t before = problems->count;
    if (!rules_problem_add(problems, file, line, column, text))
        return false;
    problems->deprecated++;
    if (problems->count > before)
        problems->list[before].refused_from = refused_from;
    return true;
}

bool rules_problem_fix(struct weir_problems *problems, enum weir_fix fix, const char *text,
                       size_t size, uint32_t at)
{
    if (problems->dropped > 0)
        return true;
    struct weir_problem *problem = &problems->list[problems->count - 1];
    problem->fix = (uint8_t)fix;
    problem->fix_at = at;
    problem->fix_text = text ? strndup(text, size) : NULL;
    return !text || problem->fix_text;
}

void weir_problems_free(struct weir_problems *problems)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        free(problems->list[i].file);
        free(problems->list[i].message);
        free(problems->list[i].fix_text);
    }
    free(problems->list);
    memset(problems, 0, sizeof(*problems));
}

static bool problem_after(const struct weir_problem *a, const struct weir_problem *b)
{
    if (strcmp(a->file, b->file) != 0)
        return false;
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

void rules_problems_sort(struct weir_problems *problems)
{
    /* Insertion: stable, and the list comes nearly in order. */
    for (uint32_t i = 1; i < problems->count; i++) {
        struct weir_problem problem = problems->list[i];
        uint32_t j = i;
        for (; j > 0 && problem_after(&problems->list[j - 1], &problem); j--)
            problems->list[j] = problems->list[j - 1];
        problems->list[j] = problem;
    }
}

#define QUOTE_BYTES 60

const char *rules_quote(struct rules_quote *quote, const char *text, size_t size)
{
    char *out = quote->text;
    size_t shown = size > QUOTE_BYTES ? QUOTE_BYTES : size;
    /* Not in the middle of a character: UTF-8 continuation bytes are 10xxxxxx. */
    while (shown < size && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
        shown--;
    *out++ = '`';
    for (size_t i = 0; i < shown; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == 0x7F || byte == '\\')
            out += sprintf(out, "\\x%02x", byte);
        else
            *out++ = (char)byte;
    }
    if (shown < size) {
        memcpy(out, "...", 3);
        out += 3;
    }
    *out++ = '`';
    *out = '\0';
    return quote->text;
}

#define WORD_MAX 32 /* longer than any word of the grammar */

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment distance, one row after the other. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *row = rows[1], *next = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        next[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t change = a[i - 1] != b[j - 1];
            next[j] = smallest(row[j] + 1, next[j - 1] + 1, row[j - 1] + change);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < next[j])
                next[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = row;
        row = next;
        next = spare;
    }
    return row[b_size];
}

const char *rules_nearest(const char *text, size_t size, const char *const *words, size_t count)
{
    if (size > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t least = size / 3 > 3 ? 3 : size / 3;
    if (least == 0)
        least = 1;
    for (size_t i = 0; i < count; i++) {
        size_t word_size = words[i] ? strlen(words[i]) : 0; /* a limit with problems has no name */
        /* A change of every letter is another word, not a mistyping. */
        if (word_size > WORD_MAX || word_size < 2)
            continue;
        size_t far = distance(text, size, words[i], word_size);
        if (far < least || (far == least && !nearest)) {
            least = far;
            nearest = words[i];
        }
    }
    return nearest;
}

const char *rules_hint(struct rules_hint *hint, const char *text, size_t size,
                       const char *const *words, size_t count)
{
    const char *nearest = rules_nearest(text, size, words, count);
    hint->text[0] = '\0';
    if (nearest)
        snprintf(hint->text, sizeof(hint->text), "; did you mean `%.*s`?", WORD_MAX, nearest);
    return hint->text;
}
