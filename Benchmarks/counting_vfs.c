#include "counting_vfs.h"
#include "side.h"
#include <sqlite3.h>
#include <stdlib.h>

/* Our file; SQLite's own follows it in the same allocation. */
typedef struct counted_file {
    sqlite3_file base;
    sqlite3_file *real;
} counted_file;

static sqlite3_vfs counting;
static sqlite3_vfs *real_vfs;
static uint64_t bytes_written, syncs;

static sqlite3_file *real(sqlite3_file *file) { return ((counted_file *)file)->real; }

static int x_close(sqlite3_file *file) { return real(file)->pMethods->xClose(real(file)); }
static int x_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at) { return real(file)->pMethods->xRead(real(file), to, size, at); }
static int x_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at) {
    bytes_written += (uint64_t)size;
    return real(file)->pMethods->xWrite(real(file), from, size, at);
}
static int x_truncate(sqlite3_file *file, sqlite3_int64 size) { return real(file)->pMethods->xTruncate(real(file), size); }
static int x_sync(sqlite3_file *file, int flags) {
    syncs++;
    return real(file)->pMethods->xSync(real(file), flags);
}
static int x_file_size(sqlite3_file *file, sqlite3_int64 *size) { return real(file)->pMethods->xFileSize(real(file), size); }
static int x_lock(sqlite3_file *file, int level) { return real(file)->pMethods->xLock(real(file), level); }
static int x_unlock(sqlite3_file *file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
static int x_check_reserved_lock(sqlite3_file *file, int *is_held) { return real(file)->pMethods->xCheckReservedLock(real(file), is_held); }
static int x_file_control(sqlite3_file *file, int what, void *with) { return real(file)->pMethods->xFileControl(real(file), what, with); }
static int x_sector_size(sqlite3_file *file) { return real(file)->pMethods->xSectorSize(real(file)); }
static int x_device_characteristics(sqlite3_file *file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }
static int x_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at) {
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, at);
}
static int x_shm_lock(sqlite3_file *file, int offset, int count, int flags) { return real(file)->pMethods->xShmLock(real(file), offset, count, flags); }
static void x_shm_barrier(sqlite3_file *file) { real(file)->pMethods->xShmBarrier(real(file)); }
static int x_shm_unmap(sqlite3_file *file, int and_delete) { return real(file)->pMethods->xShmUnmap(real(file), and_delete); }
static int x_fetch(sqlite3_file *file, sqlite3_int64 offset, int size, void **at) { return real(file)->pMethods->xFetch(real(file), offset, size, at); }
static int x_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *at) { return real(file)->pMethods->xUnfetch(real(file), offset, at); }

static const sqlite3_io_methods methods = {
    3, x_close, x_read, x_write, x_truncate, x_sync, x_file_size, x_lock, x_unlock, x_check_reserved_lock, x_file_control,
    x_sector_size, x_device_characteristics, x_shm_map, x_shm_lock, x_shm_barrier, x_shm_unmap, x_fetch, x_unfetch
};

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out) {
    counted_file *counted = (counted_file *)file;
    int result;
    (void)vfs;
    counted->real = (sqlite3_file *)(counted + 1);
    counted->base.pMethods = NULL;
    result = real_vfs->xOpen(real_vfs, name, counted->real, flags, flags_out);
    if (!counted->real->pMethods) return result;
    if (counted->real->pMethods->iVersion < 3) fail("SQLite's files here are too old to be counted");
    counted->base.pMethods = &methods;
    return result;
}

void counting_vfs_install(void) {
    real_vfs = sqlite3_vfs_find(NULL);
    if (!real_vfs) fail("SQLite has no files here");
    counting = *real_vfs;
    counting.zName = "counting";
    counting.szOsFile += (int)sizeof(counted_file);
    counting.xOpen = x_open;
    if (sqlite3_vfs_register(&counting, 1) != SQLITE_OK) fail("SQLite does not take the counting files");
}

double counting_vfs_bytes_written(void) { return (double)bytes_written; }
double counting_vfs_syncs(void) { return (double)syncs; }
