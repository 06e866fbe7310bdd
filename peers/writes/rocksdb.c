// RocksDB for `workload.c`: leveled compaction without compression, with memtables, files and levels that are to the data
// set what the defaults are to the data set that this one stands for.

#include "store.h"
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEFAULT_MEMTABLE (64 << 20)
// RocksDB takes no smaller one.
#define MIN_MEMTABLE (64 << 10)

static rocksdb_t *db;
static rocksdb_writeoptions_t *writes;
static rocksdb_readoptions_t *reads;

static void check(char *error, const char *what) {
    if (error) fail(what, error);
}

void store_open(const struct settings *settings) {
    size_t memtable = (double)settings->records * settings->record_size / settings->stands_for * DEFAULT_MEMTABLE;
    if (memtable < MIN_MEMTABLE) memtable = MIN_MEMTABLE;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(options, memtable);
    rocksdb_options_set_arena_block_size(options, memtable / 16);
    rocksdb_options_set_target_file_size_base(options, memtable);
    rocksdb_options_set_max_bytes_for_level_base(options, 4 * memtable);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_WRITERS);
    // A compaction reads files one after the other. Without this each of its blocks would be a call.
    rocksdb_options_compaction_readahead_size(options, memtable);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(settings->cache));
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    char *error = NULL;
    db = rocksdb_open(options, settings->folder, &error);
    check(error, "RocksDB cannot open its folder");
    writes = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(writes, settings->flush_each);
    reads = rocksdb_readoptions_create();
}

void *session_open(void) { return NULL; }
void session_close(void *session) { (void)session; }

void session_put(void *session, const unsigned char *key, const unsigned char *value, size_t value_size) {
    (void)session;
    char *error = NULL;
    rocksdb_put(db, writes, (const char *)key, KEY_BYTES, (const char *)value, value_size, &error);
    check(error, "RocksDB cannot put");
}

int session_get(void *session, const unsigned char *key) {
    (void)session;
    char *error = NULL;
    size_t len;
    char *value = rocksdb_get(db, reads, (const char *)key, KEY_BYTES, &len, &error);
    check(error, "RocksDB cannot get");
    free(value);
    return value != NULL;
}

size_t session_scan(void *session, const unsigned char *key, size_t most) {
    (void)session;
    rocksdb_iterator_t *entries = rocksdb_create_iterator(db, reads);
    size_t found = 0;
    for (rocksdb_iter_seek(entries, (const char *)key, KEY_BYTES); found < most && rocksdb_iter_valid(entries); found++)
        rocksdb_iter_next(entries);
    rocksdb_iter_destroy(entries);
    return found;
}

void store_flush_log(void) {
    char *error = NULL;
    rocksdb_flush_wal(db, 1, &error);
    check(error, "RocksDB cannot flush its log");
}

void store_checkpoint(void) {
    char *error = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &error);
    check(error, "RocksDB cannot flush its memtable");
    rocksdb_flushoptions_destroy(options);
    // What is left of compactions belongs to the writes before.
    for (uint64_t pending = 1, running = 1; pending || running;) {
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        if (rocksdb_property_int(db, "rocksdb.compaction-pending", &pending) ||
            rocksdb_property_int(db, "rocksdb.num-running-compactions", &running))
            fail("RocksDB does not say", "whether compactions are pending");
    }
}

void store_close(void) { rocksdb_close(db); }

const char *store_name(void) { return "rocksdb"; }
