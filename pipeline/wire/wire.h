/* The bytes on the wire (contract section 5): lines in, B-scans out. No sockets here. */
#ifndef OCT_PIPELINE_WIRE_WIRE_H
#define OCT_PIPELINE_WIRE_WIRE_H

#include "numeric/samples.h"
#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/geometry.h"

#include <stddef.h>
#include <stdint.h>

/* ---- lines in: a 64-byte little-endian header, then n_lines * n_samples samples ---- */

#define OCT_LINES_HEADER_BYTES 64
#define OCT_LINES_VERSION 1

enum oct_lines_flag {
    OCT_LINES_STARTS = 1,
    OCT_LINES_ENDS = 2,
    OCT_LINES_FOLLOWS = 4, /* the epoch is one that octd gave for the scan of these lines */
};
#define OCT_LINES_ALL_FLAGS (OCT_LINES_STARTS | OCT_LINES_ENDS | OCT_LINES_FOLLOWS)

struct oct_lines_header {
    uint64_t sequence;   /* +1 a message within an epoch */
    uint64_t time_ns;    /* the camera's clock */
    uint64_t first_line; /* number of the first A-line since the acquisition began */
    uint32_t n_lines, n_samples;
    uint16_t format; /* enum oct_lines_format (numeric/samples.h) */
    uint16_t flags;  /* enum oct_lines_flag, or'ed */
    uint32_t epoch;  /* changes whenever the sender restarts */
    uint32_t crc32c; /* of the payload; 0: none */
};

/* Why a message was dropped; the order is that of oct_bad_names. */
enum oct_bad {
    OCT_BAD_NONE = 0,
    OCT_BAD_PARTS,       /* not exactly two parts */
    OCT_BAD_HEADER_SIZE, /* first part is not 64 bytes, or says it is not */
    OCT_BAD_MAGIC,
    OCT_BAD_VERSION,
    OCT_BAD_RESERVED,     /* a reserved byte or flag is not zero */
    OCT_BAD_FORMAT,       /* unknown sample format, lines of it that are no whole bytes, or not that
                             of the acquisition */
    OCT_BAD_SAMPLES,      /* n_samples differs from camera.samples */
    OCT_BAD_LINES,        /* no lines and no flag, or line numbers that overflow or leap wildly */
    OCT_BAD_PAYLOAD_SIZE, /* not n_lines * n_samples samples */
    OCT_BAD_CRC,
    OCT_BAD_EPOCH, /* another epoch's acquisition runs (assembler.h) */
    OCT_BAD_SLOT,  /* a slot of shared memory that is none, or does not hold this message */
    OCT_BAD_SCAN,  /* lines of another scan than runs, or that do not say of which (assembler.h) */
    OCT_N_BAD
};
extern const char *const oct_bad_names[OCT_N_BAD]; /* as they stand in the status */

void oct_lines_encode(const struct oct_lines_header *header, uint8_t bytes[OCT_LINES_HEADER_BYTES]);

/* Checks all that the header alone can tell; n_bytes is the size of the first part. */
enum oct_bad oct_lines_decode(struct oct_lines_header *header, const void *bytes, size_t n_bytes);

/* Bytes of the payload that a decoded header announces (no overflow: counts are 32 bit). */
uint64_t oct_lines_payload_bytes(const struct oct_lines_header *header);

/* ---- B-scans out: topic, JSON header, image ---- */

#define OCT_TOPIC_BSCAN "bscan"
#define OCT_TOPIC_COMPLEX "complex"
#define OCT_PICTURE_HEADER_BYTES 1024 /* more than any header we write */

struct oct_picture_header {
    uint64_t frame_num; /* B-scan number within the acquisition: a gap is a loss */
    char acquisition_id[64];
    enum oct_sample_type sample_type;
    uint32_t n_lines, depth; /* M, D */
    uint64_t time_ns;
    uint32_t missing_lines;
    double lo, hi;
    uint64_t volume;
    uint32_t bscan;
};

/* Writes the JSON text into `json` (NUL-terminated); returns its length, 0 if it did not fit or if
 * lo or hi is not a finite number (JSON has none other). */
size_t oct_picture_encode(const struct oct_picture_header *header, char *json, size_t json_bytes);

/* Parses and checks untrusted JSON against the size of the image part. OCT_E_FORMAT says what is
 * wrong. Pictures of more than OCT_MAX_BSCAN_SAMPLES pixels are refused. Integers above 2^53
 * (time_ns) come out rounded to a double; they are exact in the JSON text. Unknown keys are
 * ignored. */
enum oct_err oct_picture_decode(struct oct_picture_header *header, const char *json,
                                size_t json_bytes, size_t image_bytes, struct oct_error *err);

#endif
