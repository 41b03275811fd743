/* Uses the installed library from a separate project: saves one version, and reads it back. */
#include <llvs.h>
#include <llvs_testing.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_store *store = NULL;
    llvs_error *error = NULL;
    llvs_version_id version;
    llvs_buffer data = {NULL, 0};
    int right = 0;

    if (llvs_version_number() != LLVS_VERSION_NUMBER) {
        fprintf(stderr, "the header is %d, the library %u\n", LLVS_VERSION_NUMBER, (unsigned)llvs_version_number());
        return 1;
    }
    options.storage = LLVS_STORAGE_MEMORY;
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str("greeting");
    change.data = llvs_str("hello");
    if (llvs_store_open(LLVS_NONE, &options, &store, &error) == LLVS_OK &&
        llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &version, NULL, &error) == LLVS_OK &&
        llvs_store_value(store, llvs_str("greeting"), llvs_id(&version), &data, NULL, &error) == LLVS_OK) {
        right = data.data != NULL && data.size == 5 && memcmp(data.data, "hello", 5) == 0;
        printf("%s %s\n", llvs_version_string(), right ? "works" : "read something else");
    } else {
        fprintf(stderr, "%s\n", llvs_error_message(error));
    }
    llvs_buffer_dispose(&data);
    llvs_error_free(error);
    llvs_store_free(store);
    return right ? 0 : 1;
}
