/*
 * What a disk can hold after a power cut, played from a recording (shim.h).
 *
 * Certain is: what was there when the recording began; what was written to a file before it was synced, with its
 * length; a name, or that it is gone, once its folder was synced; everything before a sync of the whole file system. What
 * comes after that may be there or not, each call for itself and in any order: a write wholly, in some of its sectors of
 * 512 bytes, or only as the length that it gave the file, the bytes being zeros. A rename within a folder happened or
 * did not; into another folder the file may also be found under both names. A sync of a file that failed makes nothing certain
 * of what came before it, nor does any later one (Linux marks the pages clean).
 *
 * Nothing is assumed of the order that ext4 or others keep.
 */
#ifndef FAULTS_OUTCOMES_H
#define FAULTS_OUTCOMES_H

#include "files.h"
#include "shim.h"

/* What became of a call that nothing made certain. */
enum fate { FATE_NONE, FATE_ALL, FATE_LENGTH, FATE_SECTORS };

struct script;
/* Of the recording in `faults`, that began with `base`. */
struct script *script_make(const struct tree *base);
void script_free(struct script *script);

/* Syncs that are taken for having done nothing: a disk that lies. */
enum { LIES_OF_FILES = 1, LIES_OF_FOLDERS = 2 };
/* A cut after the first `cut` calls. Tells how many calls are uncertain. */
size_t script_cut(struct script *script, long cut, int lies);
/* Sets the fate of one of the uncertain calls, in their order; all are FATE_NONE after script_cut. */
void script_set(struct script *script, size_t index, enum fate fate, uint64_t seed);
int script_is_write(const struct script *script, size_t index);

/* A digest of what the disk holds. */
uint64_t script_digest(struct script *script);
/* Writes it into a new folder. */
void script_write(struct script *script, const char *root);

#endif
