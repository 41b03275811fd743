/* Two real Syncthings that keep two folders of this machine in step, over loopback, and speak to nobody else. */
#ifndef SYNCED_SYNCTHING_H
#define SYNCED_SYNCTHING_H

#include <sys/types.h>

struct syncthing {
    char *home;      /* its keys, settings and database */
    char *folder;    /* what it keeps in step */
    char id[80];
    int port;
    pid_t process;
};
/* Why it cannot be run here; NULL: it can. */
const char *syncthing_is_missing(void);
/* Gives both their keys and settings, and starts them. The folders are made. Failures end the test. */
void start_syncthings(struct syncthing pair[2]);
/* They end when the test does, too. */
void stop_syncthings(struct syncthing pair[2]);
/* Fails the test when one has ended. */
void check_syncthings(struct syncthing pair[2]);

#endif
