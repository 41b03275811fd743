/* Two devices exchange packs of some size through a folder. Run under valgrind, it reveals reads of uninitialised memory. */
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return 0;
    fprintf(stderr, "%s\n", error ? llvs_error_message(error) : "no error reported");
    llvs_error_free(error);
    return 1;
}

int main(int count, char **arguments) {
    static uint8_t bytes[300000];
    char url[1024], path[64], id[32];
    llvs_error *error = NULL;
    /* The path must be absolute. */
    if (count != 2 || snprintf(url, sizeof url, "file://%s?layout=packed", arguments[1]) >= (int)sizeof url) return 2;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)((size_t)"abcdefgh"[i % 8] + (i / 1000) % 7);
    for (int device = 0; device < 2; device++) {
        llvs_coordinator *notes;
        snprintf(path, sizeof path, "packs-%d.llvs", device);
        if (failed(llvs_coordinator_open(llvs_str(path), NULL, &notes, &error), error)) return 1;
        if (failed(llvs_coordinator_attach(notes, llvs_str(url), NULL, &error), error)) return 1;
        for (int i = 0; i < 3; i++) {
            llvs_change change = LLVS_CHANGE_INIT;
            snprintf(id, sizeof id, "%d-%d", device, i);
            change.kind = LLVS_CHANGE_UPDATE;
            change.id = llvs_str(id);
            change.data.data = bytes;
            change.data.size = (size_t)(100000 + 60000 * i);
            if (failed(llvs_coordinator_save(notes, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error), error)) return 1;
            if (failed(llvs_coordinator_sync(notes, NULL, NULL, &error), error)) return 1;
        }
        llvs_coordinator_free(notes);
    }
    return EXIT_SUCCESS;
}
