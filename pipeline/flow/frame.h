/* What travels through the rings: a B-scan of spectra, then the same B-scan as a picture. */
#ifndef OCT_PIPELINE_FLOW_FRAME_H
#define OCT_PIPELINE_FLOW_FRAME_H

#include "numeric/samples.h"
#include "pipeline/base/err.h"
#include "pipeline/flow/image.h"
#include "pipeline/plan/geometry.h"

#include <stdbool.h>
#include <stdint.h>

/* The identity of a B-scan. Filled by the assembler (or a file source), copied unchanged into the
 * image frame by the feeding thread. */
struct oct_bscan_info {
    uint64_t id;          /* number since the pipeline started, no gaps: the accounting's key, and
                             its slot in the raw ring and the image ring */
    uint32_t acquisition; /* number of the acquisition (new epoch, or flag "starts") since start */
    uint64_t number;      /* B-scan number within the acquisition: first_line / M */
    uint64_t volume;      /* number / V */
    uint32_t bscan;       /* number % V */
    uint64_t sequence;    /* message that completed it */
    uint64_t time_ns;     /* the camera's clock at the first block that reached it */
    uint64_t arrival_ns;  /* CLOCK_MONOTONIC when its last line arrived */
    uint32_t missing_lines;
    uint64_t lost_before; /* B-scans of the acquisition directly before it that never arrived */
};

/* One slot of the raw ring. Memory belongs to the ring, or is lent to it until the slot's last
 * reader has released it (loans.h); a driver may overwrite shared memory meanwhile. */
struct oct_raw_frame {
    struct oct_bscan_info info;
    uint16_t *spectra;   /* [M][N], 2-byte aligned; a missing line's samples are zero. Of a format
                            other than u16 these are its bytes, [M][oct_samples_bytes(format, N)],
                            at any address: readers take lines by oct_raw_line */
    uint16_t format;     /* enum oct_lines_format; 0: u16 */
    uint8_t *line_valid; /* [M] 1: the line came, 0: missing (all 1 when missing_lines == 0) */
};

/* Bytes of the frame's spectra. */
static inline size_t oct_raw_bytes(const struct oct_raw_frame *frame, const struct oct_geometry *g)
{
    return g->n_lines * (size_t)oct_samples_bytes(frame->format, g->n_samples);
}

/* The frame's lines from line j on as they lie, and the n samples from `first` on of line j as u16:
 * there, or in `room` ([n]). first and n are even. */
static inline const void *oct_raw_at(const struct oct_raw_frame *frame,
                                     const struct oct_geometry *g, uint32_t j)
{
    return (const uint8_t *)frame->spectra + j * oct_samples_bytes(frame->format, g->n_samples);
}
const uint16_t *oct_raw_line(const struct oct_raw_frame *frame, const struct oct_geometry *g,
                             uint32_t j, uint32_t first, uint32_t n, uint16_t *room);

/* What of a B-scan is lent beside its pixels to those who ask for it (pipeline.h). */
enum oct_lent {
    OCT_LENT_VALUES,  /* frame->values */
    OCT_LENT_COMPLEX, /* frame->complex_values */
    OCT_LENT_DEVICE,  /* frame->complex_device */
    OCT_N_LENT
};

/* One slot of a ring of images: of the image ring, whose images are an engine's pictures, or of the
 * results of an analysis. Memory belongs to the ring.
 *
 * In the image ring the engine fills status, pixels, lo, hi, and values and complex_values where
 * they are not NULL. An analysis fills all but form (pipeline/flow/stage.h). */
struct oct_image_frame {
    struct oct_bscan_info info; /* the B-scan it came from; of a volume: the newest in it */
    enum oct_err status; /* OCT_OK, or why the engine lost it: then the pixels mean nothing */
    const struct oct_image_form *form; /* the same for all of a ring, outlives it */
    uint32_t dims[OCT_IMAGE_MAX_RANK]; /* as in the form; dims[0] may be smaller */
    bool whole;                        /* of a volume: nothing will be added */
    double lo, hi;                     /* what black and white stand for, in the quantity's unit */
    double numbers[OCT_IMAGE_MAX_NUMBERS]; /* those of the form, one after another; NaN: unknown */
    void *pixels;       /* dims of form->type; a picture: [M][D] u8 or f32 (dB or counts^2) */
    float *values;      /* pictures: NULL, or [M][D] dB or counts^2 for those who asked for
                            them (pipeline.h); of f32 pictures these are the pixels. A missing line
                            (info.missing_lines says whether there are any) has -120 dB or
                            0 counts^2 in all its depths. Of an analysis: [form->n_beside], for
                            the one that takes its results in; NULL: none */
    float *values_room; /* where an engine puts values; NULL: no room. An engine may give the slot
                            other memory for pixels and rooms, for good */
    float
        *complex_values; /* pictures: NULL, or for those who asked [M][D][2] re, im in counts: B of
                              contract step 6, cropped, before step 8. A missing line has NaN in all
                              its depths */
    float *complex_room; /* as values_room */
    float *complex_device; /* pictures: NULL, or the same for those who asked in the memory of
                              the GPU complex_gpu, and no byte of it on the bus. Who reads it there
                              holds the slot meanwhile */
    float *device_room;
    unsigned complex_gpu;
};

#endif
