/* The headers: included twice in one program, layouts, and initialisers that agree between macro and function. */
#include "support.h"
#include "llvs.h"
#include "llvs_testing.h"
#include "llvs_testing.h"

#define CHECK_INIT(type, MACRO)                                                                \
    do {                                                                                       \
        type by_macro = MACRO, by_function;                                                    \
        memset(&by_function, 0xA5, sizeof by_function);                                        \
        assert_int_equal(llvs_struct_init(&by_function, sizeof by_function), LLVS_OK);         \
        assert_memory_equal(&by_macro, &by_function, sizeof by_macro);                         \
        assert_int_equal(by_macro.struct_size, sizeof by_macro);                               \
        assert_int_equal(offsetof(type, struct_size), 0);                                      \
    } while (0)

static void initialisers_agree(void **state) {
    (void)state;
#include "initialisers.h"
}

/* A struct of a size that this library does not know is initialised by the same rule. An impossible size is refused, and the memory is
 * left alone. */
static void struct_init_takes_any_size_of_a_struct(void **state) {
    unsigned char room[5000], zeros[5000];
    uint32_t size;
    const size_t absurd[] = { 0, 1, 3, 4097, SIZE_MAX, (size_t)1 << 63 };
    (void)state;
    memset(zeros, 0, sizeof zeros);
    for (size = 4; size <= 4096; size += size < 100 ? 1 : 499) {
        uint32_t written;
        memset(room, 0xA5, sizeof room);
        assert_int_equal(llvs_struct_init(room, size), LLVS_OK);
        memcpy(&written, room, sizeof written);
        assert_int_equal(written, size);
        assert_memory_equal(room + 4, zeros, size - 4);
        assert_int_equal(room[size], 0xA5);
    }
    memset(room, 0xA5, sizeof room);
    for (size = 0; size < sizeof absurd / sizeof *absurd; size++) {
        assert_int_equal(llvs_struct_init(room, absurd[size]), LLVS_ERROR_STRUCT_SIZE);
        assert_int_equal(room[0], 0xA5);
    }
    assert_int_equal(llvs_struct_init(NULL, sizeof(llvs_control)), LLVS_ERROR_INVALID_ARGUMENT);
}

static const llvs_bytes none = LLVS_NONE_INIT;
static void none_is_none(void **state) {
    (void)state;
    assert_true(none.data == NULL && none.size == 0 && LLVS_NONE.data == NULL && LLVS_NONE.size == 0);
}

/* ---- layouts ---- */

static char layouts[65536];
static void line(const char *name, size_t number) {
    size_t used = strlen(layouts);
    snprintf(layouts + used, sizeof layouts - used, "%s %lu\n", name, (unsigned long)number);
}
#define STRUCT(type) line(#type, sizeof(type))
#define FIELD(type, field) line(#type "." #field, offsetof(type, field))

static void write_layouts(void) {
#include "layout_fields.h"
}

/* Compares the layouts with the table next to this file. The bindings compare theirs with it too. */
static void layouts_are_those_of_the_table(void **state) {
    char path[4096], table[65536];
    const char *slash = strrchr(__FILE__, '/');
    FILE *file;
    size_t size;
    (void)state;
    snprintf(path, sizeof path, "%.*slayouts.txt", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
    write_layouts();
    file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    size = fread(table, 1, sizeof table - 1, file);
    fclose(file);
    table[size] = 0;
    assert_string_equal(layouts, table);
}

static void versions_agree(void **state) {
    char text[32];
    (void)state;
    assert_int_equal(llvs_version_number(), LLVS_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", LLVS_VERSION_MAJOR, LLVS_VERSION_MINOR, LLVS_VERSION_PATCH);
    assert_string_equal(llvs_version_string(), text);
}

static void statuses_have_names(void **state) {
    (void)state;
    assert_string_equal(llvs_status_name(LLVS_OK), "LLVS_OK");
    assert_string_equal(llvs_status_name(LLVS_ERROR_IO), "LLVS_ERROR_IO");
    assert_string_equal(llvs_status_name(LLVS_ERROR_FOREIGN_FILE), "LLVS_ERROR_FOREIGN_FILE");
    assert_string_equal(llvs_status_name(LLVS_ERROR_CUT_SHORT), "LLVS_ERROR_CUT_SHORT");
    assert_string_equal(llvs_status_name(-12345), "LLVS_ERROR_UNKNOWN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialisers_agree),
        cmocka_unit_test(struct_init_takes_any_size_of_a_struct),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(layouts_are_those_of_the_table),
        cmocka_unit_test(versions_agree),
        cmocka_unit_test(statuses_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
