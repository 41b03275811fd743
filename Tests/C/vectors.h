/* The vectors of Tests/Vectors in their text form, which Tests/Vectors/text.py makes from the JSON. */
#ifndef VECTORS_H
#define VECTORS_H

#include "support.h"

/* Opens the text form of the vectors of that name, for example "merging". */
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

/* Reads the rest. Fails if the text form could not be made completely. */
static inline void close_vectors(FILE *file) {
    while (fgetc(file) != EOF) {}
    if (pclose(file) != 0) fail_msg("Tests/Vectors/text.py failed; it needs python3");
}

#endif
