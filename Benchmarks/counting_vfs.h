/* SQLite's usual files, with every write and sync counted. */
#ifndef BENCHMARKS_COUNTING_VFS_H
#define BENCHMARKS_COUNTING_VFS_H

/* Makes the counting VFS the default of this process. Once, before any connection is opened. */
void counting_vfs_install(void);
/* Since the process began. Not while another thread uses SQLite. */
double counting_vfs_bytes_written(void);
double counting_vfs_syncs(void);

#endif
