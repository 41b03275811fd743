/*
 * Compares the SHA-256 of the library with that of OpenSSL, and both with the time of a save: scripts/bench --only digests links it with
 * the objects of the library, so these functions are the library's own.
 *
 *     digests [--quick]
 *
 * For values of 1 kB and 100 kB it prints the processor time of a digest by each way that this machine has, of a digest by OpenSSL's
 * SHA256(), and of a save in memory with values of random bytes and of words. The measurements take turns, and each number is the median
 * of their rounds. The last columns are ratios: a digest of ours to one of OpenSSL, and how much longer a save would take with OpenSSL's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "CLLVSShims.h"

enum { ROUNDS = 15, WAYS = 3, OPENSSL = WAYS, SAVES = OPENSSL + 1, KINDS = SAVES + 2 };

typedef unsigned char *one_shot(const unsigned char *data, size_t size, unsigned char *digest);

static void fail(const char *what) {
    fprintf(stderr, "digests: %s\n", what);
    exit(1);
}
static void must(llvs_status status, llvs_error **error) {
    if (status != LLVS_OK) fail(llvs_error_message(*error));
}
static double processor_time(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *list) {
    qsort(list, ROUNDS, sizeof *list, ascending);
    return list[ROUNDS / 2];
}

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static void fill(uint8_t *value, size_t size, int has_words) {
    static const char *words[] = {"meeting ", "with ", "Ann ", "about ", "the ", "orchestra ", "on ", "Sunday ", "morning ", "bring "};
    size_t at = 0;
    while (at < size) {
        uint64_t word = draw();
        const void *from = has_words ? (const void *)words[word % 10] : &word;
        size_t count = has_words ? strlen(words[word % 10]) : sizeof word;
        if (count > size - at) count = size - at;
        memcpy(value + at, from, count);
        at += count;
    }
}

/* Seconds of one digest of the library; 0 if the machine has not that way. */
static double ours(int way, const uint8_t *value, size_t size, int count) {
    uint8_t digest[32];
    double from;
    int i;
    if (!llvs_shim_sha256_by(way)) return 0;
    from = processor_time();
    for (i = 0; i < count; i++) {
        llvs_shim_sha256 context;
        llvs_shim_sha256_init(&context);
        llvs_shim_sha256_update(&context, value, size);
        llvs_shim_sha256_final(&context, digest);
    }
    return (processor_time() - from) / count;
}
static double openssl(one_shot *sha256, const uint8_t *value, size_t size, int count) {
    uint8_t digest[32];
    double from = processor_time();
    int i;
    for (i = 0; i < count; i++) sha256(value, size, digest);
    return (processor_time() - from) / count;
}
/* Seconds of one save of a new value. Making the values is not measured. */
static double save(uint8_t *value, size_t size, int has_words, int count) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_version_id last, made;
    llvs_store *store;
    llvs_error *error;
    double spent = 0;
    int i;
    options.storage = LLVS_STORAGE_MEMORY;
    must(llvs_store_open(llvs_str(""), &options, &store, &error), &error);
    for (i = 0; i < count; i++) {
        llvs_change change = LLVS_CHANGE_INIT;
        char id[32];
        double from;
        snprintf(id, sizeof id, "value/%d", i);
        fill(value, size, has_words);
        change.kind = LLVS_CHANGE_INSERT, change.id = llvs_str(id), change.data.data = value, change.data.size = size;
        from = processor_time();
        must(llvs_store_make_version(
            store, i ? llvs_id(&last) : LLVS_NONE, &change, 1, sizeof change, NULL, &made, NULL, &error), &error);
        spent += processor_time() - from;
        last = made;
    }
    must(llvs_store_close(store, &error), &error);
    llvs_store_free(store);
    return spent / count;
}

int main(int count, char **arguments) {
    static const size_t sizes[] = {1000, 100000};
    static const char *kinds[] = {"random bytes", "words"};
    int is_quick = count > 1 && strcmp(arguments[1], "--quick") == 0;
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    one_shot *sha256 = NULL;
    uint8_t first[32];
    size_t i;
    if (!library) fail("libcrypto.so.3 is missing: install OpenSSL 3");
    *(void **)&sha256 = dlsym(library, "SHA256");
    if (!sha256) fail("libcrypto.so.3 has no SHA256");
    sha256((const uint8_t *)"", 0, first); /* OpenSSL prepares itself at the first call. */
    printf("microseconds of processor time    instructions   libcrypto's blocks   in C   OpenSSL's SHA256()   ours/OpenSSL\n");
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        int repeated = is_quick ? 10 : (int)(100000000 / size), saves = is_quick ? 10 : size < 10000 ? 4000 : 200, round, kind, best = -1;
        double spent[KINDS][ROUNDS], found[KINDS];
        uint8_t *value = malloc(size);
        if (!value) fail("no memory");
        fill(value, size, 0);
        for (round = 0; round < ROUNDS; round++) {
            int way;
            for (way = 0; way < WAYS; way++) spent[way][round] = ours(way, value, size, repeated / (way == 2 ? 4 : 1) + 1);
            spent[OPENSSL][round] = openssl(sha256, value, size, repeated);
            for (kind = 0; kind < 2; kind++) spent[SAVES + kind][round] = save(value, size, kind, saves);
            if (is_quick && round == 0) {
                for (round = 1; round < ROUNDS; round++)
                    for (way = 0; way < KINDS; way++) spent[way][round] = spent[way][0];
            }
        }
        for (kind = 0; kind < KINDS; kind++) found[kind] = median(spent[kind]) * 1e6;
        for (kind = WAYS - 1; kind >= 0; kind--)
            if (found[kind] > 0) best = kind;
        printf("%7zu bytes, a digest            %12.2f   %18.2f   %4.2f   %18.2f   %12.2f\n", size, found[0], found[1], found[2],
            found[OPENSSL], found[best] / found[OPENSSL]);
        for (kind = 0; kind < 2; kind++)
            printf("%7zu bytes of %-12s, a save  %8.1f, of which a digest is %2.0f %%; with OpenSSL's %+.1f %%, with C %+.1f %%\n", size,
                kinds[kind], found[SAVES + kind], 100 * found[best] / found[SAVES + kind],
                100 * (found[OPENSSL] - found[best]) / found[SAVES + kind], 100 * (found[2] - found[best]) / found[SAVES + kind]);
        free(value);
    }
    return 0;
}
