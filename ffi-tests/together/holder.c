/* A holder in C: see holder.h. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "holder.h"
#include "tollbar.h"

static int lock_one(const int *files) {
    for (int tries = 0; tries < TRIES; tries++)
        for (int n = 0; n < LIMIT; n++)
            if (flock(files[n], LOCK_EX | LOCK_NB) == 0)
                return n;
    exit(3);
}

int main(int argc, char **argv) {
    char path[4096], stop[4096];
    int files[LIMIT], told = 0;
    tollbar_in_flight *table;
    if (argc != 2)
        return 1;
    (void)snprintf(path, sizeof path, "%s/table", argv[1]);
    (void)snprintf(stop, sizeof stop, "%s/stop", argv[1]);
    if (tollbar_in_flight_open(path, NULL, &table) != 0)
        return 1;
    for (int n = 0; n < LIMIT; n++) {
        (void)snprintf(path, sizeof path, "%s/lock-%d", argv[1], n);
        files[n] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    while (access(stop, F_OK) != 0) {
        tollbar_ticket ticket;
        if (tollbar_in_flight_acquire(table, "k", 1, LIMIT, &ticket) != TOLLBAR_ALLOWED) {
            usleep(100);
            continue;
        }
        const int n = lock_one(files);
        if (!told && (told = 1))
            puts("held"), fflush(stdout);
        usleep(500);
        flock(files[n], LOCK_UN);
        if (tollbar_in_flight_release(table, ticket) != TOLLBAR_ALLOWED)
            return 4;
    }
    tollbar_in_flight_close(table);
    return 0;
}
