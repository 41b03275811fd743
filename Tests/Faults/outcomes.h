/*
 * The possible contents of a disk after a power cut, computed from a recording (shim.h).
 *
 * The following is certain: what existed when the recording began; what was written to a file before it was synced, with its length; a name
 * or its removal, once its folder was synced; everything before a sync of the whole file system. Later calls may have taken effect or not,
 * each independently and in any order. A write may have taken effect wholly, in some of its sectors of 512 bytes, or only as the length
 * that it gave the file, with zeros as bytes. A rename within a folder happened or did not. After a rename into another folder, the file
 * may also exist under both names. If a sync of a file failed, neither it nor any later sync makes the earlier writes certain (Linux marks
 * the pages clean).
 *
 * No assumption is made about the order in which ext4 or other file systems write.
 */
#ifndef FAULTS_OUTCOMES_H
#define FAULTS_OUTCOMES_H

#include "files.h"
#include "shim.h"

/* The fate of a call that no sync made certain. */
enum fate { FATE_NONE, FATE_ALL, FATE_LENGTH, FATE_SECTORS };

struct script;
/* Makes a script from the recording in `faults`, which began with `base`. */
struct script *script_make(const struct tree *base);
void script_free(struct script *script);

/* Syncs that have no effect, as on a disk that lies. */
enum { LIES_OF_FILES = 1, LIES_OF_FOLDERS = 2 };
/* Cuts the power after the first `cut` calls. Returns how many calls are uncertain. */
size_t script_cut(struct script *script, long cut, int lies);
/* Sets the fate of one of the uncertain calls, which are in their order. After script_cut all are FATE_NONE. */
void script_set(struct script *script, size_t index, enum fate fate, uint64_t seed);
int script_is_write(const struct script *script, size_t index);

/* A digest of the disk's contents. */
uint64_t script_digest(struct script *script);
/* Writes the contents into a new folder. */
void script_write(struct script *script, const char *root);

#endif
