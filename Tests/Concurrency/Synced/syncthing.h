/* Two real Syncthings that synchronize two folders of this machine over loopback, and contact no other machine. */
#ifndef SYNCED_SYNCTHING_H
#define SYNCED_SYNCTHING_H

#include <sys/types.h>

struct syncthing {
    char *home;      /* its keys, settings and database */
    char *folder;    /* the folder that it synchronizes */
    char id[80];
    int port;
    pid_t process;
};
/* The reason why it cannot run here; NULL if it can. */
const char *syncthing_is_missing(void);
/* Writes keys and settings of both, makes the folders and starts them. Failures end the test. */
void start_syncthings(struct syncthing pair[2]);
/* Stops both. They also end when the test does. */
void stop_syncthings(struct syncthing pair[2]);
/* Fails the test if one of the two processes has ended. */
void check_syncthings(struct syncthing pair[2]);

#endif
