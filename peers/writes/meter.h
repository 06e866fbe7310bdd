// The counts of `meter.c`.

enum meter_kind { METER_LOG, METER_PAGE, METER_OTHER, METER_KINDS };

// What was written of a kind.
struct meter_counts {
    unsigned long long calls;
    // Bytes of blocks of 4 KiB, before and after compression.
    unsigned long long logical, physical;
};

// Begins to count, from zero.
void meter_begin(void);
// Ends counting, with all that was written so far. Returns the number of syncs.
unsigned long long meter_end(struct meter_counts counts[METER_KINDS]);
// Bytes of a file's blocks after compression; blocks of zeros take none.
unsigned long long meter_stored(const char *path);
