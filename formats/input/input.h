/* Spectra in files of other programs: a table of functions a format, recognised by content.
 *
 *     find -> open -> { read } -> close
 *
 * recording.h is what programs use; it asks these for everything that is neither a volume of octd
 * nor plain samples. One thread uses an input at a time. */
#ifndef OCT_FORMATS_INPUT_INPUT_H
#define OCT_FORMATS_INPUT_INPUT_H

#include "pipeline/base/err.h"
#include "pipeline/plan/calibration.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file's beginning, by which a format knows it. */
struct oct_input_probe {
    const char *path;
    int fd; /* open for reading; the caller's */
    uint64_t size;
    unsigned char start[4096];
    size_t n_start; /* bytes of `start` */
};

/* What the user said of the file; the configuration's [file] section. */
struct oct_input_wish {
    const char *dataset; /* "" where nothing was said */
    bool transpose;      /* samples are not the last axis */
};

/* What the file says. */
struct oct_input_facts {
    const char *format;                    /* "OCTproZ", for messages */
    uint32_t n_samples, n_lines, n_bscans; /* N, M, V: all B-scans of the file; n_lines 0: the file
                                              does not say, scan.lines counts */
    unsigned bits;                         /* of a sample as it is read; 0: unknown */
    double line_rate_hz;                   /* NaN: unknown */
    double width_um, height_um;            /* of the scanned field; NaN: unknown */
    double axial_um;             /* optical path of a depth pixel as its maker reconstructs it;
                                     NaN: unknown */
    double lambda_nm, width_nm;  /* of the source; NaN: unknown */
    char eye[8], start_time[40]; /* as oct_volume_facts; "": unknown */
    char scaling[96];            /* how samples became u16: "value - 32768"; "": they were u16 */
};

struct oct_input; /* each format's own */

struct oct_input_ops {
    const char *name;
    bool (*is)(const struct oct_input_probe *probe);

    /* Opens probe->path. *cal: filled with what the file brings (k map, background, dispersion,
     * wavelengths), else left empty; the caller finishes it. OCT_E_FORMAT: which part of the file
     * is missing or wrong, and what to do; sizes are checked against the file before anything is
     * allocated. *input is NULL on error. */
    enum oct_err (*open)(struct oct_input **input, const struct oct_input_probe *probe,
                         const struct oct_input_wish *wish, struct oct_input_facts *facts,
                         struct oct_calibration *cal, struct oct_error *err);

    /* B-scan i into spectra ([M][N]). *time_ns: the camera's clock, 0: unknown. */
    enum oct_err (*read)(struct oct_input *input, uint64_t i, uint16_t *spectra, uint64_t *time_ns,
                         struct oct_error *err);
    void (*close)(struct oct_input *input); /* NULL is fine */
};

/* The format that the file has, NULL: none that is known. */
const struct oct_input_ops *oct_input_find(const struct oct_input_probe *probe);

#endif
