/* What octctl export writes: a dataset of a recording as planes of one kind of sample, read plane
 * by plane.
 *
 *     export_input.c   the recording: what it says of itself; spectra of what is no volume file
 *     export_values.h  a dataset as it lies in the file, plane by plane
 *     export_source.c  the samples that were asked for: dB of u8 pictures, u8 with common limits
 *
 * One thread uses a source. */
#ifndef OCT_TOOLS_EXPORT_SOURCE_H
#define OCT_TOOLS_EXPORT_SOURCE_H

#include "analysis/enface/depths.h"
#include "analysis/param.h"
#include "config/config.h"
#include "formats/export/export.h"

#include <stdbool.h>
#include <stdint.h>

/* What was asked for; the same of all inputs. */
struct oct_export_wish {
    const char *dataset; /* "bscans", "spectra", "enface", "analysis/NAME", of octctl flow
                            "slabs/NAME" and more; NULL: the bscans of a volume file, the spectra
                            of another recording, the first slab */
    bool has_sample;
    enum oct_export_sample sample; /* u8 or f32; else as it lies in the file */
    bool u8_only, no_f32;          /* of the format: f32 becomes u8 */
    bool has_range;
    double lo, hi;          /* what u8 0 and 255 stand for, in the unit of the values */
    struct oct_span frames; /* B-scans; a step makes the length between them longer */
    bool has_slab;
    struct oct_depths slab;
    double um[3];    /* of B-scans, A-lines, depth pixels; NaN: as the file says */
    bool needs_um;   /* of the format: lengths must be known */
    const char *eye; /* "OD" or "OS", of recordings that do not say it; NULL */
    bool with_pseudonym;
    const struct oct_config *config;       /* defaults and what the user gave over them */
    const struct oct_export_options *work; /* cancel and progress of passes over the file */
};

struct oct_export_open; /* what stands behind a source */

/* Opens path ("-": standard input) and fills *source; form.plane_valid and all texts live until the
 * close. *open is NULL on error. OCT_E_ARG: the file has no such dataset, B-scans or depths, a
 * spacing is missing (names --pixel-um), or it says another eye than the wish; OCT_E_CLOSED:
 * cancelled in a pass over the file. */
enum oct_err oct_export_source_open(struct oct_export_open **open, struct oct_export_source *source,
                                    const char *path, const struct oct_export_wish *wish,
                                    struct oct_error *err);

/* Planes, or rows where the dataset is one plane of a row a B-scan: all and those that were never
 * written. */
struct oct_export_counts {
    const char *what; /* "B-scans", "rows", "planes" */
    uint32_t n, n_missing;
};
struct oct_export_counts oct_export_source_counts(const struct oct_export_open *open);

/* The configuration that the recording embeds, with what the user gave over it; NULL: it embeds
 * none. */
const struct oct_config *oct_export_source_config(const struct oct_export_open *open);

/* The way of the recording's B-scans; lives as long as the source. */
const struct oct_scan *oct_export_source_scan(const struct oct_export_open *open);

/* How samples of the file became u16, "value + 32768"; "": they were u16, or are no spectra. */
const char *oct_export_source_scaling(const struct oct_export_open *open);

void oct_export_source_close(struct oct_export_open *open); /* NULL is fine */

#endif
