/* Copies a static library (ar, ELF of 64 bits, little-endian) so that the linker may leave out what nothing refers to: collectable FROM TO

   The compiler marks all public functions of Swift's runtime as retained (SHF_GNU_RETAIN), for programs that load more code later.
   libllvs.so loads none, and so needs only what it refers to. The mark stays on the sections that the runtime searches by itself
   (swift5_protocol_conformances and others), and so does all that these refer to. cmake/Library.cmake links the copy. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SHF_GNU_RETAIN
#define SHF_GNU_RETAIN (1 << 21)
#endif

static int fail(const char *what, const char *path) {
    fprintf(stderr, "collectable: %s: %s\n", what, path);
    return 1;
}

/* The runtime finds these by the names of their sections. */
static int is_searched(const char *name) {
    return strncmp(name, "swift5_", 7) == 0 || strncmp(name, ".swift", 6) == 0 || strstr(name, "init_array") || strstr(name, "fini_array");
}

/* Clears the marks in an object. Returns 0 if it is malformed. An object of another kind is left as it is. */
static int release(unsigned char *bytes, size_t size) {
    Elf64_Ehdr header;
    if (size < sizeof header || memcmp(bytes, ELFMAG, SELFMAG) != 0) return 1;
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return 1;
    if (header.e_shoff > size || size - header.e_shoff < sizeof(Elf64_Shdr) || header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
    unsigned char *table = bytes + header.e_shoff;
    Elf64_Shdr first, section, names;
    memcpy(&first, table, sizeof first);
    /* Many sections: their number, and which of them has the names, are in the first. */
    size_t count = header.e_shnum ? header.e_shnum : first.sh_size;
    size_t named = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
    if (count > (size - header.e_shoff) / sizeof section || named >= count) return 0;
    memcpy(&names, table + named * sizeof names, sizeof names);
    if (names.sh_offset > size || names.sh_size > size - names.sh_offset || names.sh_size == 0) return 0;
    if (bytes[names.sh_offset + names.sh_size - 1] != 0) return 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(&section, table + i * sizeof section, sizeof section);
        if (section.sh_name >= names.sh_size) return 0;
        if (is_searched((const char *)bytes + names.sh_offset + section.sh_name)) continue;
        section.sh_flags &= ~(Elf64_Xword)SHF_GNU_RETAIN;
        memcpy(table + i * sizeof section, &section, sizeof section);
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return fail("usage", "collectable FROM TO");
    FILE *from = fopen(argv[1], "rb");
    if (!from) return fail("cannot open", argv[1]);
    long end;
    if (fseek(from, 0, SEEK_END) != 0 || (end = ftell(from)) < 8 || fseek(from, 0, SEEK_SET) != 0) return fail("cannot read", argv[1]);
    size_t size = (size_t)end;
    unsigned char *bytes = malloc(size);
    if (!bytes || fread(bytes, 1, size, from) != size) return fail("cannot read", argv[1]);
    fclose(from);
    if (memcmp(bytes, "!<arch>\n", 8) != 0) return fail("not a static library", argv[1]);
    /* Each member has a header of 60 bytes, with its size in decimal at 48, and begins at an even offset. */
    for (size_t at = 8; at < size;) {
        char digits[11] = {0};
        if (size - at < 60) return fail("malformed", argv[1]);
        memcpy(digits, bytes + at + 48, 10);
        char *rest;
        unsigned long length = strtoul(digits, &rest, 10);
        at += 60;
        if (rest == digits || length > size - at || !release(bytes + at, length)) return fail("malformed", argv[1]);
        at += length + (length & 1);
    }
    FILE *to = fopen(argv[2], "wb");
    if (!to) return fail("cannot write", argv[2]);
    int is_whole = fwrite(bytes, 1, size, to) == size;
    if (fclose(to) != 0 || !is_whole) return fail("cannot write", argv[2]);
    free(bytes);
    return 0;
}
