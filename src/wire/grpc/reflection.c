/* SPDX-License-Identifier: Apache-2.0 */
/* see reflection.h */
#include "wire/grpc/reflection.h"
#include "core/bytes.h"

#include <string.h>

#include "grpc_reflection_v1.pb-c.h"
#include "wire/grpc/descriptors.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/message.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest pb_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse pb_response;

static const struct weir_grpc_file *file_find(struct weir_bytes name)
{
    for (unsigned i = 0; i < weir_grpc_file_count; i++)
        if (weir_bytes_are(name, weir_grpc_files[i].name))
            return &weir_grpc_files[i];
    return NULL;
}

static const struct weir_grpc_file *symbol_find(struct weir_bytes name)
{
    for (unsigned i = 0; i < weir_grpc_symbol_count; i++)
        if (weir_bytes_are(name, weir_grpc_symbols[i].name))
            return &weir_grpc_files[weir_grpc_symbols[i].file];
    return NULL;
}

/* What a response may point at. */
struct answer {
    pb_response response;
    union {
        Grpc__Reflection__V1__FileDescriptorResponse files;
        Grpc__Reflection__V1__ListServiceResponse services;
        Grpc__Reflection__V1__ErrorResponse error;
    };
    ProtobufCBinaryData file;
};

static void answer_error(struct answer *answer, int code, const char *text)
{
    answer->error = (Grpc__Reflection__V1__ErrorResponse)GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    answer->error.error_code = code;
    answer->error.error_message = weir_grpc_data(weir_bytes_of(text));
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    answer->response.error_response = &answer->error;
}

static void answer_file(struct answer *answer, const struct weir_grpc_file *file)
{
    if (!file) {
        answer_error(answer, WEIR_GRPC_NOT_FOUND, "not found");
        return;
    }
    answer->file = (ProtobufCBinaryData){file->size, (uint8_t *)(uintptr_t)file->data};
    answer->files = (Grpc__Reflection__V1__FileDescriptorResponse)
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    answer->files.file_descriptor_proto = &answer->file;
    answer->files.n_file_descriptor_proto = 1;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    answer->response.file_descriptor_response = &answer->files;
}

static int answer_services(struct answer *answer, struct weir_grpc_arena *arena)
{
    typedef Grpc__Reflection__V1__ServiceResponse pb_service;
    pb_service *services = weir_grpc_arena_take(arena, weir_grpc_service_count * sizeof *services);
    pb_service **pointers = weir_grpc_arena_take(arena, weir_grpc_service_count * sizeof(void *));
    if (!services || !pointers)
        return WEIR_ERR_TOO_LARGE;
    for (unsigned i = 0; i < weir_grpc_service_count; i++) {
        const char *name = weir_grpc_services[i];
        services[i] = (pb_service)GRPC__REFLECTION__V1__SERVICE_RESPONSE__INIT;
        services[i].name = weir_grpc_data(weir_bytes_of(name));
        pointers[i] = &services[i];
    }
    answer->services = (Grpc__Reflection__V1__ListServiceResponse)
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    answer->services.service = pointers;
    answer->services.n_service = weir_grpc_service_count;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    answer->response.list_services_response = &answer->services;
    return 0;
}

int weir_grpc_reflection_answer(struct weir_bytes message, struct weir_grpc_arena *arena,
                                struct weir_bytes *out)
{
    ProtobufCMessage *unpacked;
    struct answer answer = {.response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT};
    int err = weir_grpc_unpack(&grpc__reflection__v1__server_reflection_request__descriptor,
                               message, arena, &unpacked);
    if (err < 0)
        return err;
    pb_request *request = (pb_request *)unpacked;
    answer.response.valid_host = request->host;
    answer.response.original_request = request;
    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        answer_file(&answer, file_find(weir_grpc_text(request->file_by_filename)));
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        answer_file(&answer, symbol_find(weir_grpc_text(request->file_containing_symbol)));
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        err = answer_services(&answer, arena);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        answer_error(&answer, WEIR_GRPC_NOT_FOUND, "no message here has extensions");
        break;
    default:
        answer_error(&answer, WEIR_GRPC_INVALID_ARGUMENT, "nothing is asked");
    }
    return err < 0 ? err : weir_grpc_pack(&answer.response.base, arena, out);
}
