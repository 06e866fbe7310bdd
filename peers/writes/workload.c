// The workload of `duramen-bench writes` on another store: insert all records in random order, overwrite records at random
// until each page has been rewritten twice, do twice as many overwrites and a checkpoint, which are measured; then read and
// scan. Prints one JSON object. `docs/benchmarks/writes.md` says what its figures mean.
//
// usage: workload populate|measure FOLDER RECORDS RECORD_SIZE PAGE_SIZE CACHE THREADS FLUSH_SECONDS STANDS_FOR
// `populate` only inserts; `measure` does the rest, with a folder that was populated. FLUSH_SECONDS is 0 to flush the log
// with each commit. STANDS_FOR: the bytes of the data set that this one is a small one of.

#include "meter.h"
#include "store.h"
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SEED 1
#define READS 20000
#define SCANS 2000
#define SCANNED 100
#define SYNC_MICROSECONDS 200

static struct settings settings;
static uint64_t *keys;
static unsigned flush_seconds;

void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

// SplitMix64.
static uint64_t next(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

static uint64_t below(uint64_t *state, uint64_t bound) { return (unsigned __int128)next(state) * bound >> 64; }

static int by_value(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void big_endian(uint64_t key, unsigned char bytes[KEY_BYTES]) {
    for (int at = 0; at < KEY_BYTES; at++) bytes[at] = key >> 8 * (KEY_BYTES - 1 - at);
}

// Puts a record: half of the value is zeros, the other half looks random.
static void put(void *session, uint64_t key, uint64_t *state) {
    unsigned char bytes[KEY_BYTES], value[1024] = {0};
    size_t len = settings.record_size - KEY_BYTES;
    for (size_t at = len / 2; at < len; at += 8) {
        uint64_t word = next(state);
        memcpy(value + at, &word, len - at < 8 ? len - at : 8);
    }
    big_endian(key, bytes);
    session_put(session, bytes, value, len);
}

// How many random overwrites rewrite each page twice. A page is at least two thirds full.
static uint64_t cycle(void) {
    uint64_t pages = settings.records * settings.record_size * 3 / 2 / settings.page_size + 1, left = pages, state = SEED ^ 2;
    unsigned char *times = calloc(pages, 1);
    uint64_t count = 0;
    while (left) {
        unsigned char *page = &times[below(&state, pages)];
        if (*page < 2 && ++*page == 2) left--;
        count++;
    }
    free(times);
    return count;
}

// What a thread does, once for each turn that it takes from `left`.
struct work {
    void (*operation)(void *session, uint64_t *state);
    atomic_llong *left;
    uint64_t seed;
};

static void *run(void *argument) {
    struct work *work = argument;
    void *session = session_open();
    while (atomic_fetch_sub(work->left, 1) > 0) work->operation(session, &work->seed);
    session_close(session);
    return NULL;
}

static void in_threads(uint64_t count, uint64_t salt, void (*operation)(void *, uint64_t *)) {
    atomic_llong left = count;
    pthread_t threads[16];
    struct work work[16];
    for (unsigned at = 0; at < settings.threads; at++) {
        work[at] = (struct work){operation, &left, SEED ^ salt << 32 ^ (uint64_t)at << 48};
        if (pthread_create(&threads[at], NULL, run, &work[at])) fail("cannot start a thread", "none is left");
    }
    for (unsigned at = 0; at < settings.threads; at++) pthread_join(threads[at], NULL);
}

static void overwrite(void *session, uint64_t *state) { put(session, keys[below(state, settings.records)], state); }

static void read_one(void *session, uint64_t *state) {
    unsigned char bytes[KEY_BYTES];
    big_endian(keys[below(state, settings.records)], bytes);
    if (!session_get(session, bytes)) fail("wrong answer", "a key is missing");
}

static void scan_some(void *session, uint64_t *state) {
    unsigned char bytes[KEY_BYTES];
    big_endian(keys[below(state, settings.records - SCANNED)], bytes);
    if (session_scan(session, bytes, SCANNED) != SCANNED) fail("wrong answer", "a scan ends early");
}

static atomic_int done;

static void *flush_at_intervals(void *unused) {
    for (double last = now(); !done;) {
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
        if (now() - last >= flush_seconds) {
            store_flush_log();
            last = now();
        }
    }
    return unused;
}

static void populate(void) {
    uint64_t *order = malloc(settings.records * sizeof *order), state = SEED ^ 1;
    if (!order) fail("no memory", "for the keys");
    memcpy(order, keys, settings.records * sizeof *order);
    for (uint64_t at = settings.records - 1; at > 0; at--) {
        uint64_t other = below(&state, at + 1), key = order[at];
        order[at] = order[other];
        order[other] = key;
    }
    void *session = session_open();
    for (uint64_t at = 0; at < settings.records; at++) put(session, order[at], &state);
    session_close(session);
    free(order);
    store_checkpoint();
}

static void make_keys(void) {
    uint64_t count = settings.records + settings.records / 64, state = SEED, unique = 0;
    keys = malloc(count * sizeof *keys);
    if (!keys) fail("no memory", "for the keys");
    for (uint64_t at = 0; at < count; at++) keys[at] = next(&state);
    qsort(keys, count, sizeof *keys, by_value);
    for (uint64_t at = 0; at < count; at++)
        if (!unique || keys[at] != keys[unique - 1]) keys[unique++] = keys[at];
}

// Bytes of all files of the store, and of their blocks after compression.
static void measure_space(unsigned long long *logical, unsigned long long *physical) {
    DIR *folder = opendir(settings.folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        struct stat stat_of;
        snprintf(path, sizeof path, "%s/%s", settings.folder, entry->d_name);
        if (stat(path, &stat_of) || !S_ISREG(stat_of.st_mode)) continue;
        *logical += stat_of.st_size;
        *physical += meter_stored(path);
    }
    if (folder) closedir(folder);
}

static void print_kinds(const char *name, const struct meter_result *result, int physical, double user) {
    const char *kinds[METER_KINDS] = {"log", "page", "other"};
    const struct meter_counts *counts = result->written;
    double total = 0;
    for (int kind = 0; kind < METER_KINDS; kind++) total += physical ? counts[kind].physical : counts[kind].logical;
    printf("  \"%s\": {\"total\": %.4f", name, total / user);
    for (int kind = 0; kind < METER_KINDS; kind++)
        printf(", \"%s\": %.4f", kinds[kind], (physical ? counts[kind].physical : counts[kind].logical) / user);
    printf("},\n");
}

// What a part of the workload did to the drive.
static void print_part(const char *name, uint64_t operations, const struct meter_result *result) {
    unsigned long long logical = 0, physical = 0;
    for (int kind = 0; kind < METER_KINDS; kind++) {
        logical += result->written[kind].logical;
        physical += result->written[kind].physical;
    }
    printf("  \"%s\": {\"operations\": %llu, \"read_calls\": %llu, \"read_bytes\": %llu, \"written_logical\": %llu, "
           "\"written_physical\": %llu, \"syncs\": %llu},\n",
           name, (unsigned long long)operations, result->read_calls, result->read_bytes, logical, physical, result->syncs);
}

static void measure(void) {
    uint64_t overwrites = 2 * cycle();
    // Commits of other threads gather meanwhile.
    if (settings.flush_each && settings.threads > 1) meter_sync_time(SYNC_MICROSECONDS);
    in_threads(overwrites / 2, 3, overwrite);
    pthread_t flusher;
    if (flush_seconds && pthread_create(&flusher, NULL, flush_at_intervals, NULL)) fail("no thread", "to flush the log");
    meter_begin();
    double started = now();
    in_threads(overwrites, 4, overwrite);
    store_checkpoint();
    double seconds = now() - started;
    done = 1;
    if (flush_seconds) pthread_join(flusher, NULL);
    struct meter_result overwriting = meter_end();
    unsigned long long logical = 0, physical = 0;
    measure_space(&logical, &physical);
    meter_begin();
    in_threads(READS, 5, read_one);
    struct meter_result reading = meter_end();
    meter_begin();
    in_threads(SCANS, 6, scan_some);
    struct meter_result scanning = meter_end();
    double user = (double)overwrites * settings.record_size;
    printf("{\n  \"store\": \"%s\",\n", store_name());
    print_kinds("wa_physical", &overwriting, 1, user);
    print_kinds("wa_logical", &overwriting, 0, user);
    print_part("overwrites", overwrites, &overwriting);
    print_part("reads", READS, &reading);
    print_part("scans", SCANS, &scanning);
    printf("  \"tps\": %.1f,\n  \"physical_bytes\": %llu,\n  \"logical_bytes\": %llu,\n", overwrites / seconds, physical,
           logical);
    printf("  \"workload\": {\"records\": %llu, \"record_size\": %zu, \"page_size\": %zu, \"cache\": %zu, \"threads\": %u, "
           "\"flush_seconds\": %u, \"stands_for\": %llu}\n}\n",
           (unsigned long long)settings.records, settings.record_size, settings.page_size, settings.cache,
           settings.threads, flush_seconds, (unsigned long long)settings.stands_for);
}

int main(int count, char **arguments) {
    if (count != 10) fail("usage", "the head of workload.c has it");
    uint64_t numbers[7];
    for (int at = 0; at < 7; at++) numbers[at] = strtoull(arguments[at + 3], NULL, 10);
    flush_seconds = numbers[5];
    int populates = !strcmp(arguments[1], "populate");
    settings = (struct settings){
        .folder = arguments[2],
        .records = numbers[0],
        .record_size = numbers[1],
        .page_size = numbers[2],
        .cache = numbers[3],
        .threads = numbers[4],
        .flush_each = !populates && !flush_seconds,
        .stands_for = numbers[6],
    };
    make_keys();
    store_open(&settings);
    if (populates) {
        populate();
    } else {
        measure();
    }
    store_close();
    return 0;
}
