// Counts what a program writes to files, as a drive with built-in compression gets it, and what it reads. It is loaded
// before the C library (LD_PRELOAD) and stands before its calls that read, write, sync and close.
//
// A write at an offset counts at once, with each block of 4 KiB that it covers in part or whole. Writes to a log, and
// writes that append to a file, go through the system's cache: their blocks count when the file is synced or closed, or
// when the counts are read, once, however often they were written until then. The physical bytes of a block are those of
// zlib, level 1, and no more than its own. A read at an offset counts at once, too. So does `duramen_sim::DriveVolume`,
// which counts for Duramen.
// Which files are of which kind is decided here; what the counts mean must not be.

#define _GNU_SOURCE
#include "meter.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK 4096
#define MAX_FILES 65536

// A file that is open for writing: a bit for each block that was written and not counted.
struct file {
    int open;
    enum meter_kind kind;
    unsigned char *dirty;
    size_t bytes;
    // The bytes of `dirty` that may have bits.
    size_t first, end;
};

static struct file files[MAX_FILES];
static struct meter_counts counts[METER_KINDS];
static unsigned long long syncs;
static atomic_int counting;
static atomic_ullong read_calls, read_bytes;
static atomic_uint sync_time;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "meter: the C library has no %s\n", name);
        abort();
    }
    return found;
}

#define NEXT(result, name, ...)                                                                                        \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (!real) real = (result(*)(__VA_ARGS__))next(name)

// What a block takes after compression.
static size_t compressed(const unsigned char *block) {
    unsigned char out[2 * BLOCK];
    uLongf len = sizeof out;
    if (compress2(out, &len, block, BLOCK, 1) != Z_OK || len > BLOCK) return BLOCK;
    return len;
}

static enum meter_kind kind_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strlen(name);
    int wal = len > 4 && !strcmp(name + len - 4, ".log");
    int sorted = len > 4 && !strcmp(name + len - 4, ".sst");
    if (wal || !strncmp(name, "WiredTigerLog", 13) || !strncmp(name, "WiredTigerTmplog", 16)) return METER_LOG;
    if (sorted || !strcmp(name, "records.wt")) return METER_PAGE;
    return METER_OTHER;
}

static void opened(int fd, const char *path, int flags) {
    struct stat stat;
    if (fd < 0 || fd >= MAX_FILES || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &stat) || !S_ISREG(stat.st_mode)) return;
    pthread_mutex_lock(&lock);
    files[fd] = (struct file){.open = 1, .kind = kind_of(path)};
    pthread_mutex_unlock(&lock);
}

// Marks the blocks of a write; the lock is held.
static void mark(struct file *file, off_t offset, size_t len) {
    size_t first = offset / BLOCK, last = (offset + len - 1) / BLOCK;
    if (last / 8 >= file->bytes) {
        size_t bytes = 2 * (last / 8 + 1);
        file->dirty = realloc(file->dirty, bytes);
        if (!file->dirty) abort();
        memset(file->dirty + file->bytes, 0, bytes - file->bytes);
        file->bytes = bytes;
    }
    if (file->first == file->end) file->first = first / 8, file->end = last / 8 + 1;
    if (first / 8 < file->first) file->first = first / 8;
    if (last / 8 >= file->end) file->end = last / 8 + 1;
    for (size_t block = first; block <= last; block++) file->dirty[block / 8] |= 1 << block % 8;
}

// Counts the blocks that are marked, and clears the marks; the lock is held.
static void settle(int fd) {
    struct file *file = &files[fd];
    char path[64];
    unsigned char block[BLOCK];
    int reader = -1;
    for (size_t at = file->first; at < file->end; at++) {
        for (int bit = 0; file->dirty[at] && bit < 8; bit++) {
            if (!(file->dirty[at] & 1 << bit)) continue;
            if (reader < 0) {
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
                NEXT(int, "open", const char *, int, ...);
                reader = real(path, O_RDONLY | O_CLOEXEC);
            }
            NEXT(ssize_t, "pread64", int, void *, size_t, off_t);
            ssize_t got = real(reader, block, BLOCK, (off_t)(8 * at + bit) * BLOCK);
            if (got < 0) got = 0;
            memset(block + got, 0, BLOCK - got);
            counts[file->kind].logical += BLOCK;
            counts[file->kind].physical += compressed(block);
        }
        file->dirty[at] = 0;
    }
    file->first = file->end = 0;
    if (reader >= 0) {
        NEXT(int, "close", int);
        real(reader);
    }
}

// `appended`: at the position of the file.
static void written(int fd, off_t offset, ssize_t len, int appended) {
    if (len <= 0 || fd < 0 || fd >= MAX_FILES) return;
    pthread_mutex_lock(&lock);
    struct file *file = &files[fd];
    if (file->open && counting) {
        mark(file, offset, len);
        counts[file->kind].calls++;
        if (!appended && file->kind != METER_LOG) settle(fd);
    }
    pthread_mutex_unlock(&lock);
}

static void synced(int fd) {
    if (fd < 0 || fd >= MAX_FILES) return;
    pthread_mutex_lock(&lock);
    if (files[fd].open && counting) {
        settle(fd);
        syncs++;
    }
    pthread_mutex_unlock(&lock);
}

void meter_sync_time(unsigned microseconds) { sync_time = microseconds; }

void meter_begin(void) {
    pthread_mutex_lock(&lock);
    memset(counts, 0, sizeof counts);
    syncs = 0;
    read_calls = read_bytes = 0;
    counting = 1;
    pthread_mutex_unlock(&lock);
}

struct meter_result meter_end(void) {
    struct meter_result result;
    pthread_mutex_lock(&lock);
    for (int fd = 0; fd < MAX_FILES; fd++) {
        if (files[fd].open) settle(fd);
    }
    memcpy(result.written, counts, sizeof counts);
    result.read_calls = read_calls;
    result.read_bytes = read_bytes;
    result.syncs = syncs;
    counting = 0;
    pthread_mutex_unlock(&lock);
    return result;
}

unsigned long long meter_stored(const char *path) {
    unsigned char block[BLOCK];
    static const unsigned char zeros[BLOCK];
    unsigned long long stored = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    for (size_t got; (got = fread(block, 1, BLOCK, file)) > 0;) {
        memset(block + got, 0, BLOCK - got);
        if (memcmp(block, zeros, BLOCK)) stored += compressed(block);
    }
    fclose(file);
    return stored;
}

// The calls of the C library.

static int mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        NEXT(int, #name, const char *, int, ...);                                                                      \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        int fd = real(path, flags, mode_of(flags, arguments));                                                         \
        va_end(arguments);                                                                                             \
        opened(fd, path, flags);                                                                                       \
        return fd;                                                                                                     \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        NEXT(int, #name, int, const char *, int, ...);                                                                 \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        int fd = real(folder, path, flags, mode_of(flags, arguments));                                                 \
        va_end(arguments);                                                                                             \
        opened(fd, path, flags);                                                                                       \
        return fd;                                                                                                     \
    }
OPENAT(openat)
OPENAT(openat64)

// A write at the position of the file has ended there.
static void written_here(int fd, ssize_t len) {
    if (len > 0) written(fd, lseek(fd, 0, SEEK_CUR) - len, len, 1);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    ssize_t done = real(fd, bytes, len);
    written_here(fd, done);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    ssize_t done = real(fd, parts, count);
    written_here(fd, done);
    return done;
}

#define PWRITE(name)                                                                                                   \
    ssize_t name(int fd, const void *bytes, size_t len, off_t offset) {                                                \
        NEXT(ssize_t, #name, int, const void *, size_t, off_t);                                                        \
        ssize_t done = real(fd, bytes, len, offset);                                                                   \
        written(fd, offset, done, 0);                                                                                     \
        return done;                                                                                                   \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define PREAD(name)                                                                                                    \
    ssize_t name(int fd, void *bytes, size_t len, off_t offset) {                                                      \
        NEXT(ssize_t, #name, int, void *, size_t, off_t);                                                              \
        ssize_t done = real(fd, bytes, len, offset);                                                                   \
        if (counting && done > 0) {                                                                                    \
            read_calls++;                                                                                              \
            read_bytes += ((offset + done - 1) / BLOCK - offset / BLOCK + 1) * BLOCK;                                  \
        }                                                                                                              \
        return done;                                                                                                   \
    }
PREAD(pread)
PREAD(pread64)

#define SYNC(name)                                                                                                     \
    int name(int fd) {                                                                                                 \
        synced(fd);                                                                                                    \
        if (sync_time) usleep(sync_time);                                                                              \
        return 0;                                                                                                      \
    }
SYNC(fsync)
SYNC(fdatasync)

int close(int fd) {
    NEXT(int, "close", int);
    if (fd >= 0 && fd < MAX_FILES) {
        pthread_mutex_lock(&lock);
        if (files[fd].open) {
            if (counting) settle(fd);
            free(files[fd].dirty);
            files[fd] = (struct file){0};
        }
        pthread_mutex_unlock(&lock);
    }
    return real(fd);
}
