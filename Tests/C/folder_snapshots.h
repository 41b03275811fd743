/* Snapshots of whole stores in a folder: an exchange with the folder's file: URL that is open for one call. */
#ifndef LLVS_TESTS_FOLDER_SNAPSHOTS_H
#define LLVS_TESTS_FOLDER_SNAPSHOTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llvs.h"

static inline llvs_status open_folder(llvs_store *store, const char *folder, llvs_bool must_exist, llvs_exchange **exchange,
                                      llvs_error **error) {
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    const char *from;
    char here[2048] = "", url[8192] = "file://", *to = url + 7;
    *exchange = NULL;
    if (error) *error = NULL;
    if (folder[0] != '/' && !getcwd(here, sizeof here)) return LLVS_ERROR_INVALID_ARGUMENT;
    if (strlen(here) + strlen(folder) > 2500) return LLVS_ERROR_INVALID_ARGUMENT;
    for (from = here; *from; from++) to += sprintf(to, "%%%02X", (unsigned char)*from);
    if (here[0]) *to++ = '/';
    for (from = folder; *from; from++) to += *from == '/' ? sprintf(to, "/") : sprintf(to, "%%%02X", (unsigned char)*from);
    for (to = url; *to; to++)
        if (to[0] == '%' && to[1] == '2' && to[2] == 'F') {
            to[0] = '/';
            memmove(to + 1, to + 3, strlen(to + 3) + 1);
        }
    options.must_exist = must_exist;
    return llvs_exchange_open(store, llvs_str(url), &options, exchange, error);
}

static inline llvs_status write_snapshot_into(llvs_store *store, const char *folder, const llvs_control *control, llvs_error **error) {
    llvs_exchange *exchange;
    llvs_status status = open_folder(store, folder, 0, &exchange, error);
    if (status == LLVS_OK) status = llvs_exchange_put_snapshot(exchange, control, NULL, error);
    llvs_exchange_free(exchange);
    return status;
}
static inline llvs_status restore_snapshot_from(llvs_store *store, const char *folder, const llvs_control *control, llvs_error **error) {
    llvs_exchange *exchange;
    llvs_status status = open_folder(store, folder, 1, &exchange, error);
    if (status == LLVS_OK) status = llvs_exchange_restore_snapshot(exchange, control, NULL, error);
    llvs_exchange_free(exchange);
    return status;
}

#endif
