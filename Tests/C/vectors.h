/* The vectors of Tests/Vectors in the text form, which Tests/Vectors/text.py makes of their JSON. */
#ifndef VECTORS_H
#define VECTORS_H

#include "support.h"

/* Opens the text form of the vectors of that name: "merging", say. */
static inline FILE *open_vectors(const char *name) {
    char command[1200];
    const char *slash = strrchr(__FILE__, '/');
    FILE *file;
    assert_true((size_t)snprintf(command, sizeof command, "exec python3 '%.*s/../Vectors/text.py' %s",
                                 slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".", name) < sizeof command);
    file = popen(command, "r");
    assert_non_null(file);
    return file;
}

/* Reads the rest, and fails if the form could not be made to its end. */
static inline void close_vectors(FILE *file) {
    while (fgetc(file) != EOF) {}
    if (pclose(file) != 0) fail_msg("Tests/Vectors/text.py failed; it needs python3");
}

#endif
