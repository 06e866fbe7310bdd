// Loads lines `key TAB value` from standard input into a SQLite table without row ids and compacts it: sqlite FILE

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static sqlite3 *db;

static void check(int code, int expected) {
    if (code == expected) return;
    fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static void run(const char *sql) { check(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK); }

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    check(sqlite3_open(argv[1], &db), SQLITE_OK);
    run("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID; BEGIN");
    sqlite3_stmt *put;
    check(sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO entries VALUES (?, ?)", -1, &put, NULL), SQLITE_OK);
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        if (line[len - 1] == '\n') len--;
        char *tab = memchr(line, '\t', len);
        size_t key = tab ? tab - line : len;
        size_t value = tab ? len - key - 1 : 0;
        sqlite3_bind_blob(put, 1, line, key, SQLITE_STATIC);
        sqlite3_bind_blob(put, 2, tab ? tab + 1 : "", value, SQLITE_STATIC);
        check(sqlite3_step(put), SQLITE_DONE);
        check(sqlite3_reset(put), SQLITE_OK);
    }
    sqlite3_finalize(put);
    run("COMMIT; VACUUM");
    sqlite3_close(db);
    return 0;
}
