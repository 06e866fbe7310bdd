// Checks `meter.c`: writes what is known to files of each kind and compares the counts. Prints what is wrong.
//
// usage: check FOLDER

#include "meter.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(const char *what, unsigned long long found, unsigned long long expected) {
    if (found == expected) return;
    printf("%s: %llu, not %llu\n", what, found, expected);
    exit(1);
}

static int create(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    static unsigned char zeros[3 * 4096], noise[4096];
    for (size_t at = 0; at < sizeof noise; at++) noise[at] = rand() >> 7;
    int log = create(arguments[1], "000001.log"), table = create(arguments[1], "000002.sst");
    int pages = create(arguments[1], "records.wt"), other = create(arguments[1], "MANIFEST-000003");
    if (pwrite(pages, noise, 4096, 0) != 4096) return 1;
    meter_begin();
    // Part of two blocks, twice: both count each time.
    for (int turn = 0; turn < 2; turn++)
        if (pwrite(pages, noise, 200, 4000) != 200) return 1;
    // A log and a file that is appended to: each block once a sync.
    for (int part = 0; part < 8; part++)
        if (pwrite(log, zeros, 1024, 1024 * part) != 1024 || write(table, noise, 1024) != 1024) return 1;
    fsync(table);
    fdatasync(log);
    if (pwrite(log, zeros, 10, 8000) != 10 || write(other, noise, 4096) != 4096) return 1;
    close(other);
    // The end of one block and the beginning of the next; nothing behind the end.
    if (pread(pages, noise, 200, 4000) != 200 || pread(pages, noise, 10, 100000) != 0) return 1;
    struct meter_result result = meter_end();
    const struct meter_counts *counts = result.written;
    expect("syncs", result.syncs, 2);
    expect("calls that read", result.read_calls, 1);
    expect("bytes read", result.read_bytes, 2 * 4096);
    expect("calls of the log", counts[METER_LOG].calls, 9);
    expect("bytes of the log", counts[METER_LOG].logical, 3 * 4096);
    expect("bytes of pages", counts[METER_PAGE].logical, 6 * 4096);
    expect("bytes of other files", counts[METER_OTHER].logical, 4096);
    if (pread(pages, noise, 200, 0) != 200) return 1;
    expect("calls while nothing is counted", meter_end().read_calls, 1);
    expect("noise is not compressed", counts[METER_OTHER].physical, 4096);
    expect("zeros are", counts[METER_LOG].physical <= 3 * 64, 1);
    return 0;
}
