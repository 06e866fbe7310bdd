// Loads lines `key TAB value` from standard input into RocksDB and compacts it: rocksdb FOLDER none|zstd

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(char *error, const char *what) {
    if (!error) return;
    fprintf(stderr, "%s: %s\n", what, error);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, strcmp(argv[2], "zstd") ? rocksdb_no_compression : rocksdb_zstd_compression);
    char *error = NULL;
    rocksdb_t *db = rocksdb_open(options, argv[1], &error);
    check(error, "RocksDB cannot open its folder");
    rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        if (line[len - 1] == '\n') len--;
        char *tab = memchr(line, '\t', len);
        size_t key = tab ? tab - line : len;
        size_t value = tab ? len - key - 1 : 0;
        rocksdb_put(db, writes, line, key, tab ? tab + 1 : "", value, &error);
        check(error, "RocksDB cannot put");
    }
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &error);
    check(error, "RocksDB cannot flush");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_close(db);
    // Opening it again removes the files that compaction has replaced, and the log.
    db = rocksdb_open(options, argv[1], &error);
    check(error, "RocksDB cannot open its folder again");
    rocksdb_close(db);
    return 0;
}
