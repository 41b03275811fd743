/*
 * Which secrets are in the memory of the process, and so in a core file of it: the secrets of an exchange while it is open, and no secret
 * after the exchange was freed, or after a call that was given the secret has returned. Looks through all memory that can be written.
 */
#include "support.h"

/* A passphrase, hidden, so that the program itself has it nowhere. */
enum { MASK = 0x5A };
static const unsigned char words[] = { 0x29, 0x33, 0x22, 0x7A, 0x2D, 0x35, 0x28, 0x3E, 0x29, 0x7A, 0x2E, 0x32, 0x3B, 0x2E, 0x7A, 0x34,
    0x35, 0x38, 0x35, 0x3E, 0x23, 0x7A, 0x3F, 0x36, 0x29, 0x3F, 0x7A, 0x32, 0x3B, 0x29 };

static volatile unsigned char *shown;

/* Returns the secret, in memory that `hide` wipes. */
static llvs_bytes show(const unsigned char *secret, size_t size) {
    llvs_bytes bytes;
    size_t i;
    shown = malloc(size);
    assert_non_null((void *)shown);
    for (i = 0; i < size; i++) shown[i] = secret[i] ^ MASK;
    bytes.data = (const uint8_t *)shown;
    bytes.size = size;
    return bytes;
}
static void hide(llvs_bytes bytes) {
    size_t i;
    for (i = 0; i < bytes.size; i++) shown[i] = 0;
    free((void *)shown);
}

/* Returns how often the secret is in memory that can be written. */
static size_t copies(const unsigned char *secret, size_t size) {
    char line[512];
    size_t found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[5];
        const volatile unsigned char *at, *end;
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[0] != 'r' || rights[1] != 'w' || strstr(line, "[v")) continue;
        end = (const volatile unsigned char *)to;
        for (at = (const volatile unsigned char *)from; at + size <= end; at++) {
            size_t i;
            if ((at[0] ^ MASK) != secret[0]) continue;
            for (i = 1; i < size && (at[i] ^ MASK) == secret[i]; i++) {}
            if (i == size) found++;
        }
    }
    fclose(maps);
    return found;
}

/* The passphrase of an exchange is in memory while the exchange is open. */
static void a_passphrase_of_an_exchange(void **state) {
    char *directory = new_directory(), url[1024];
    llvs_store *store = memory_store();
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    (void)state;
    snprintf(url, sizeof url, "file://%s/place", directory);
    assert_int_equal(copies(words, sizeof words), 0);
    options.passphrase = show(words, sizeof words);
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    hide(options.passphrase);
    OK(llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    assert_true(copies(words, sizeof words) > 0);
    llvs_exchange_free(exchange);
    assert_int_equal(copies(words, sizeof words), 0);
    llvs_store_free(store);
    remove_directory(directory);
}

static llvs_status discard(void *payload, const llvs_bytes *piece, llvs_error **problem) {
    (void)problem;
    *(size_t *)payload += piece->size;
    return LLVS_OK;
}

/* Neither the passphrase of a stream nor a refused one is in memory after the call. */
static void a_passphrase_of_a_stream(void **state) {
    llvs_store *store = memory_store();
    llvs_pack_options options = LLVS_PACK_OPTIONS_INIT;
    size_t written = 0;
    (void)state;
    save(store, NULL, insert("x", "1"));
    options.passphrase = show(words, sizeof words);
    OK(llvs_store_write_pack(store, NULL, 0, &options, discard, &written, NULL, NULL, &error));
    options.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(store, NULL, 0, &options, discard, &written, NULL, NULL, &error));
    hide(options.passphrase);
    assert_true(written > 0);
    assert_int_equal(copies(words, sizeof words), 0);
    llvs_store_free(store);
}

/* The private half of an identity, which the caller gets and wipes: without its first letters, which all have. */
static void an_identity(void **state) {
    llvs_buffer identity, recipient;
    unsigned char hidden[40];
    size_t i, start;
    (void)state;
    OK(llvs_identity_create(&identity, &recipient, &error));
    assert_true(identity.size > sizeof hidden);
    start = identity.size - sizeof hidden;
    for (i = 0; i < sizeof hidden; i++) hidden[i] = identity.data[start + i] ^ MASK;
    assert_int_equal(copies(hidden, sizeof hidden), 1);
    for (i = 0; i < identity.size; i++) ((volatile uint8_t *)identity.data)[i] = 0;
    assert_int_equal(copies(hidden, sizeof hidden), 0);
    llvs_buffer_dispose(&identity);
    llvs_buffer_dispose(&recipient);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_passphrase_of_an_exchange),
        cmocka_unit_test(a_passphrase_of_a_stream),
        cmocka_unit_test(an_identity),
    };
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
