/* Saves of large values under a limit of memory that is lower each time. A value that does not fit gives LLVS_ERROR_OUT_OF_MEMORY, the
   process survives, and acknowledged versions exist. */
#include "support.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "array_storage.h"

/* The lowest limit. Below it the library may get no memory for small objects, which ends the process: see llvs.h. */
enum { MEBIBYTE = 1 << 20, VALUE = 96 * MEBIBYTE, ROOM = 24 };

/* The address space of this process, in bytes. */
static size_t address_space(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!file || fscanf(file, "%lu", &pages) != 1) _exit(90);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
static void limit_to(size_t bytes) {
    struct rlimit limit;
    limit.rlim_cur = bytes;
    limit.rlim_max = RLIM_INFINITY;
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(91);
}

static llvs_status read_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    size_t *left = payload;
    (void)error;
    if (*left == 0) return LLVS_END;
    *size = capacity < *left ? capacity : *left;
    memset(buffer, 'x', *size);
    *left -= *size;
    return LLVS_OK;
}

/* Runs in a child. Returns 0 if the large save was stored and 1 if it was refused; everything else is a fault. */
static int save_under(int kind, int in_pieces, size_t room, const char *path) {
    array_storage *array = calloc(1, sizeof *array);
    llvs_storage_callbacks callbacks = array_storage_callbacks();
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_version_options more = LLVS_VERSION_OPTIONS_INIT;
    llvs_value_source source = LLVS_VALUE_SOURCE_INIT;
    llvs_storage *storage = NULL;
    llvs_store *store;
    llvs_change change = insert("a", "1");
    llvs_version_id first, second, third;
    llvs_buffer data;
    llvs_status status;
    size_t left = VALUE;
    uint8_t *large = NULL;
    options.storage = (llvs_storage_kind)kind;
    if (!array) return 92;
    if (kind == LLVS_STORAGE_HOST && llvs_storage_create(llvs_str("array"), &callbacks, array, NULL, &storage, NULL) != LLVS_OK) return 93;
    options.host_storage = storage;
    if (llvs_store_open(kind == LLVS_STORAGE_FILE ? llvs_str(path) : LLVS_NONE, &options, &store, NULL) != LLVS_OK) return 94;
    if (llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &first, NULL, NULL) != LLVS_OK) return 95;
    if (!in_pieces) {
        size_t i;
        large = malloc(VALUE);
        if (!large) return 96;
        uint64_t word = 88172645463325252u; /* incompressible bytes */
        for (i = 0; i < VALUE; i += 8) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            memcpy(large + i, &word, 8);
        }
    }
    limit_to(address_space() + room);
    change.id = llvs_str("large");
    change.data = llvs_bytes_make(large, VALUE);
    source.id = llvs_str("large");
    source.read = read_piece;
    source.payload = &left;
    more.sources = &source;
    more.source_count = 1;
    more.source_size = sizeof source;
    status = llvs_store_make_version(store, llvs_id(&first), in_pieces ? NULL : &change, !in_pieces, sizeof change,
                                     in_pieces ? &more : NULL, &second, NULL, NULL);
    if (status != LLVS_OK && status != LLVS_ERROR_OUT_OF_MEMORY && !(kind == LLVS_STORAGE_HOST && status == LLVS_ERROR_NO_SPACE)) return 97;
    /* The store still works, and has the acknowledged versions. */
    change = insert("small", "2");
    if (llvs_store_make_version(store, status == LLVS_OK ? llvs_id(&second) : llvs_id(&first), &change, 1, sizeof change, NULL, &third,
                                NULL, NULL) != LLVS_OK)
        return 98;
    if (llvs_store_value(store, llvs_str("a"), llvs_id(&third), &data, NULL, NULL) != LLVS_OK || data.size != 1) return 99;
    llvs_buffer_dispose(&data);
    if (llvs_store_close(store, NULL) != LLVS_OK) return 100;
    return status == LLVS_OK ? 0 : 1;
}

static void large_saves(void **state) {
    static const int kinds[] = { LLVS_STORAGE_MEMORY, LLVS_STORAGE_HOST, LLVS_STORAGE_FILE };
    size_t k, in_pieces, room;
    (void)state;
    for (k = 0; k < 3; k++) {
        for (in_pieces = 0; in_pieces < 2; in_pieces++) {
            int stored = 0, refused = 0;
            /* The short run uses the largest limit, the smallest, and two in between. */
            for (room = 432; room >= ROOM; room -= 24) {
                if (!is_deep() && room % 144 != 0 && room != ROOM) continue;
                char *directory = new_directory(), *path = join(directory, "store");
                int status;
                pid_t child = fork();
                assert_true(child >= 0);
                if (child == 0) _exit(save_under(kinds[k], (int)in_pieces, room * MEBIBYTE, path));
                assert_int_equal(waitpid(child, &status, 0), child);
                if (WIFSIGNALED(status))
                    fail_msg("storage %d, in pieces %zu, %zu MiB: ended by signal %d", kinds[k], in_pieces, room, WTERMSIG(status));
                if (WEXITSTATUS(status) > 1)
                    fail_msg("storage %d, in pieces %zu, %zu MiB: %d", kinds[k], in_pieces, room, WEXITSTATUS(status));
                stored += WEXITSTATUS(status) == 0;
                refused += WEXITSTATUS(status) == 1;
                remove_directory(directory);
            }
            printf("storage %d, in pieces %zu: %d stored, %d refused\n", kinds[k], in_pieces, stored, refused);
            if (kinds[k] != LLVS_STORAGE_FILE) assert_true(refused > 0);
            assert_true(stored > 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(large_saves) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
