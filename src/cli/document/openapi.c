/* SPDX-License-Identifier: Apache-2.0 */
/* see openapi.h */
#include "cli/document/openapi.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const all_methods[] = {"get",     "put",  "post",  "delete",
                                          "options", "head", "patch", "trace"};

/* "/games/:id" as "/games/{id}"; NULL: it has a star, or memory is out. The caller frees it. */
static char *template_of(const char *pattern)
{
    char *made = strchr(pattern, '*') ? NULL : malloc(2 * strlen(pattern) + 1), *to = made;
    bool named = false;

    for (const char *at = pattern; to; at++) {
        bool ends = *at == '/' || *at == '\0';
        if (named && ends)
            *to++ = '}';
        named = named && !ends;
        if (*at == ':' && at > pattern && at[-1] == '/') {
            named = true;
            *to++ = '{';
            continue;
        }
        *to++ = *at;
        if (*at == '\0')
            break;
    }
    return made;
}

/* The member of an object, made as an empty one of `kind` where it is missing. Borrowed. */
static json_t *member(json_t *object, const char *name, json_t *kind)
{
    if (json_object_get(object, name))
        json_decref(kind);
    else
        json_object_set_new(object, name, kind);
    return json_object_get(object, name);
}

/* The path's parameters, which OpenAPI wants declared. */
static void add_parameters(json_t *item, const char *path)
{
    json_t *list = member(item, "parameters", json_array());

    for (const char *at = strchr(path, '{'); at && json_array_size(list) < 32;
         at = strchr(at + 1, '{')) {
        json_t *name = json_stringn(at + 1, strcspn(at + 1, "}"));
        bool known = false;
        for (size_t i = 0; i < json_array_size(list); i++)
            known |= json_equal(json_object_get(json_array_get(list, i), "name"), name) != 0;
        if (known)
            json_decref(name);
        else
            json_array_append_new(list,
                                  json_pack("{s:o, s:s, s:b, s:{s:s}}", "name", name, "in", "path",
                                            "required", 1, "schema", "type", "string"));
    }
    if (json_array_size(list) == 0)
        json_object_del(item, "parameters");
}

static void add_operation(json_t *item, const char *method, json_t *limit)
{
    char name[16], status[24];
    size_t size = strlen(method);

    if (size >= sizeof name)
        return; /* no method of OpenAPI */
    for (size_t i = 0; i <= size; i++)
        name[i] = (char)tolower((unsigned char)method[i]);
    for (size_t i = 0; i < sizeof all_methods / sizeof *all_methods; i++) {
        if (strcmp(name, all_methods[i]) != 0)
            continue;
        json_t *operation = member(item, name, json_object());
        json_array_append(member(operation, "x-rate-limits", json_array()), limit);
        snprintf(status, sizeof status, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(limit, "status")));
        json_object_set_new(member(operation, "responses", json_object()), status,
                            json_pack("{s:s}", "$ref", "#/components/responses/RateLimited"));
    }
}

static void add_path(json_t *paths, const char *path, json_t *limit)
{
    const json_t *methods = json_object_get(limit, "methods");
    json_t *item = member(paths, path, json_object());

    add_parameters(item, path);
    for (size_t i = 0; i < json_array_size(methods); i++)
        add_operation(item, json_string_value(json_array_get(methods, i)), limit);
    if (json_array_size(methods) == 0)
        json_array_append(member(item, "x-rate-limits", json_array()), limit);
}

static json_t *components(const json_t *fields)
{
    json_t *headers = json_object(), *used = json_object();

    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        const char *name = json_string_value(json_object_get(field, "name"));
        char reference[100];
        snprintf(reference, sizeof reference, "#/components/headers/%s", name);
        json_object_set_new(headers, name,
                            json_pack("{s:O, s:{s:s}}", "description",
                                      json_object_get(field, "text"), "schema", "type", "string"));
        json_object_set_new(used, name, json_pack("{s:s}", "$ref", reference));
    }
    json_object_set_new(headers, "Retry-After",
                        json_pack("{s:s, s:{s:s}}", "description",
                                  "seconds, rounded up: the same request is admitted then",
                                  "schema", "type", "integer"));
    json_object_set_new(used, "Retry-After",
                        json_pack("{s:s}", "$ref", "#/components/headers/Retry-After"));
    return json_pack("{s:o, s:{s:{s:s, s:o}}}", "headers", headers, "responses", "RateLimited",
                     "description", "A limit is used up: wait for Retry-After.", "headers", used);
}

json_t *document_openapi(const json_t *model)
{
    json_t *paths = json_object(), *general = json_array();
    const json_t *limits = json_object_get(model, "limits");

    for (size_t i = 0; i < json_array_size(limits); i++) {
        json_t *limit = json_array_get(limits, i);
        const json_t *patterns = json_object_get(limit, "paths");
        bool everywhere = json_array_size(patterns) == 0;
        for (size_t j = 0; j < json_array_size(patterns); j++) {
            char *path = template_of(json_string_value(json_array_get(patterns, j)));
            if (path)
                add_path(paths, path, limit);
            everywhere |= !path;
            free(path);
        }
        if (everywhere)
            json_array_append(general, limit);
    }
    return json_pack("{s:o, s:o, s:o}", "paths", paths, "components",
                     components(json_object_get(model, "fields")), "x-rate-limits", general);
}
