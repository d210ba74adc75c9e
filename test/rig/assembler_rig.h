/* The assembler with its ring and a reader, for its tests. */
#ifndef OCT_TEST_RIG_ASSEMBLER_RIG_H
#define OCT_TEST_RIG_ASSEMBLER_RIG_H

#include "pipeline/ingest/assembler.h"

enum { N = 6, M = 5, V = 4, MOST_LINES = 25, SLOTS = 24 };

struct assembler_rig {
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    struct oct_assembler *assembler;
    struct oct_ingest_counts *counts;
};

void open_assembler(struct assembler_rig *r, uint64_t patience_us);
void close_assembler(struct assembler_rig *r);

/* Each sample encodes the message that carried it. */
uint16_t assembler_sample(const struct oct_lines_header *h, uint64_t line, uint32_t i);

/* Makes a message of such samples and returns what the assembler says of it. */
enum oct_bad send_message(struct assembler_rig *r, const struct oct_lines_header *h,
                          uint64_t arrival_ns);

#endif
