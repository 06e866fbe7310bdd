// RocksDB, with what its wiki recommends for a start ("Setup Options and Basic Tuning"). Its memtables, of 64 MiB, are
// beside the cache.

#include "store.h"
#include <rocksdb/c.h>

#define BLOCK (16 << 10)
#define SYNC_BYTES (1 << 20)
#define BACKGROUND_JOBS 6
#define TWO_LEVEL_INDEX 2
#define METADATA_BLOCK 4096
#define SHARD_BITS 2

struct store {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *synced, *unsynced;
    rocksdb_writebatch_t *batch;
};

struct reader {
    struct store *store;
    const rocksdb_snapshot_t *snapshot;
    rocksdb_readoptions_t *options;
};

static void check(char *error, const char *what) {
    if (error) fail(what, error);
}

// The default number of shards leaves 512 KiB to each shard of a small cache. The filter of a file is longer than that,
// would not stay in the cache, and would be read again for each record. So the cache has few shards, and filters and
// indexes have partitions, as the wiki recommends ("Partitioned Index Filters").
static rocksdb_cache_t *block_cache(uint64_t cache) {
    rocksdb_lru_cache_options_t *options = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(options, cache);
    rocksdb_lru_cache_options_set_num_shard_bits(options, SHARD_BITS);
    rocksdb_cache_t *created = rocksdb_cache_create_lru_opts(options);
    rocksdb_lru_cache_options_destroy(options);
    return created;
}

static rocksdb_block_based_table_options_t *table_options(uint64_t cache) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, block_cache(cache));
    rocksdb_block_based_options_set_index_type(table, TWO_LEVEL_INDEX);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, METADATA_BLOCK);
    rocksdb_block_based_options_set_block_size(table, BLOCK);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_format_version(table, 5);
    return table;
}

void *store_open(const char *folder, uint64_t cache, int direct) {
    struct store *store = calloc(1, sizeof *store);
    if (!store) fail("no memory", "for a store");
    store->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(store->options, 1);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(store->options, 1);
    rocksdb_options_set_max_background_jobs(store->options, BACKGROUND_JOBS);
    rocksdb_options_set_bytes_per_sync(store->options, SYNC_BYTES);
    rocksdb_options_set_use_direct_reads(store->options, direct);
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(store->options, direct);
    rocksdb_options_set_compression(store->options, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(store->options, rocksdb_zstd_compression);
    rocksdb_options_set_block_based_table_factory(store->options, table_options(cache));
    char *error = NULL;
    store->db = rocksdb_open(store->options, folder, &error);
    check(error, "RocksDB cannot open its folder");
    store->unsynced = rocksdb_writeoptions_create();
    store->synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(store->synced, 1);
    store->batch = rocksdb_writebatch_create();
    return store;
}

void store_close(void *opaque) {
    struct store *store = opaque;
    char *error = NULL;
    rocksdb_flushoptions_t *wait = rocksdb_flushoptions_create();
    rocksdb_flush(store->db, wait, &error);
    check(error, "RocksDB cannot flush its memtable");
    rocksdb_flushoptions_destroy(wait);
    rocksdb_close(store->db);
    rocksdb_writebatch_destroy(store->batch);
    rocksdb_writeoptions_destroy(store->synced);
    rocksdb_writeoptions_destroy(store->unsynced);
    rocksdb_options_destroy(store->options);
    free(store);
}

void store_begin(void *opaque) { rocksdb_writebatch_clear(((struct store *)opaque)->batch); }

void store_put(void *opaque, const unsigned char *key, size_t key_size, const unsigned char *value, size_t value_size) {
    struct store *store = opaque;
    rocksdb_writebatch_put(store->batch, (const char *)key, key_size, (const char *)value, value_size);
}

void store_remove(void *opaque, const unsigned char *key, size_t key_size) {
    rocksdb_writebatch_delete(((struct store *)opaque)->batch, (const char *)key, key_size);
}

void store_commit(void *opaque, int synced) {
    struct store *store = opaque;
    char *error = NULL;
    rocksdb_write(store->db, synced ? store->synced : store->unsynced, store->batch, &error);
    check(error, "RocksDB cannot write");
}

void store_compact(void *opaque) {
    struct store *store = opaque;
    rocksdb_compact_range(store->db, NULL, 0, NULL, 0);
}

void *reader_open(void *opaque) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) fail("no memory", "for a reader");
    reader->store = opaque;
    reader->snapshot = rocksdb_create_snapshot(reader->store->db);
    reader->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(reader->options, reader->snapshot);
    return reader;
}

void reader_close(void *opaque) {
    struct reader *reader = opaque;
    rocksdb_readoptions_destroy(reader->options);
    rocksdb_release_snapshot(reader->store->db, reader->snapshot);
    free(reader);
}

int reader_get(void *opaque, const unsigned char *key, size_t key_size, visit see, void *context) {
    struct reader *reader = opaque;
    char *error = NULL;
    rocksdb_pinnableslice_t *found =
        rocksdb_get_pinned(reader->store->db, reader->options, (const char *)key, key_size, &error);
    check(error, "RocksDB cannot read");
    if (!found) return 0;
    size_t size;
    const char *value = rocksdb_pinnableslice_value(found, &size);
    see(context, key, key_size, (const unsigned char *)value, size);
    rocksdb_pinnableslice_destroy(found);
    return 1;
}

void reader_scan(void *opaque, const unsigned char *from, size_t from_size, visit see, void *context) {
    struct reader *reader = opaque;
    rocksdb_iterator_t *entries = rocksdb_create_iterator(reader->store->db, reader->options);
    int goes_on = 1;
    for (rocksdb_iter_seek(entries, (const char *)from, from_size); goes_on && rocksdb_iter_valid(entries);
         rocksdb_iter_next(entries)) {
        size_t key_size, value_size;
        const char *key = rocksdb_iter_key(entries, &key_size), *value = rocksdb_iter_value(entries, &value_size);
        goes_on = see(context, (const unsigned char *)key, key_size, (const unsigned char *)value, value_size);
    }
    char *error = NULL;
    rocksdb_iter_get_error(entries, &error);
    check(error, "RocksDB cannot scan");
    rocksdb_iter_destroy(entries);
}
