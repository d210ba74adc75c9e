/* Spectra in files of other programs: a table of functions a format, recognised by content.
 *
 *     probe -> find -> open -> { oct_input_array_read } -> close
 *
 * recording.h is what programs use; it asks these for everything that is neither a volume of octd
 * nor plain samples. One thread uses an input at a time. */
#ifndef OCT_FORMATS_INPUT_INPUT_H
#define OCT_FORMATS_INPUT_INPUT_H

#include "pipeline/base/err.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/volume/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file's beginning, by which a format knows it. */
struct oct_input_probe {
    const char *path; /* to open; of standard input one below /proc/self/fd */
    const char *name; /* for messages: as the user named it */
    int fd;           /* open for reading; the caller's */
    uint64_t size;
    unsigned char start[4096];
    size_t n_start; /* bytes of `start` */
    /* Of an HDF5 file that can be read, its datasets of numbers; else NULL. Owned. */
    struct oct_volume_array_entry *arrays; /* [n_arrays] */
    unsigned n_arrays;
};

/* Which axis of an array is which; the first named is the outermost. */
enum oct_input_transpose {
    OCT_INPUT_AS_IS,     /* [B-scan][A-line][sample], [A-line][sample] */
    OCT_INPUT_TRANSPOSE, /* [B-scan][sample][A-line], [sample][A-line] */
    OCT_INPUT_REVERSE,   /* [sample][A-line][B-scan], [sample][A-line] */
};

/* What the user said of the file: the configuration's [file] section, and what of its geometry is
 * not a default. */
struct oct_input_wish {
    const char *dataset; /* "" where nothing was said */
    enum oct_input_transpose transpose;
    bool is_scaled; /* u16 sample = value * scale + offset; false: by the rule of its type
                       (scaling.h) */
    double scale, offset;
    uint32_t n_samples, n_lines, n_bscans; /* camera.samples, scan.lines, scan.bscans; 0: nothing
                                              was said */
};

/* What the file says. oct_input_facts_init makes everything unknown. */
struct oct_input_facts {
    const char *format;          /* "OCTproZ", for messages */
    uint32_t n_samples, n_lines; /* N, M. A file that does not say where a B-scan ends has as many
                                    A-lines in one as the wish says, or all */
    uint64_t n_bscans;           /* all of the file */
    unsigned bits;               /* of a sample as it is read; 0: unknown */
    double line_rate_hz;         /* NaN: unknown */
    double width_um, height_um;  /* of the scanned field; NaN: unknown */
    double axial_um;             /* optical path of a depth pixel as its maker reconstructs it;
                                    NaN: unknown */
    double lambda_nm, width_nm;  /* of the source; NaN: unknown */
    char eye[8], start_time[40]; /* as oct_volume_facts; "": unknown */
    char scaling[96];            /* how samples became u16: "value + 32768"; "": they were u16 */
};

struct oct_input_ops;

/* An open file. */
struct oct_input {
    const struct oct_input_ops *ops;
    struct oct_input_array *array;   /* its B-scans (array.h) */
    struct oct_volume_array *source; /* what they come from in an HDF5 file; else NULL */
    void *own;                       /* what else its format keeps; NULL: nothing */
};

struct oct_input_ops {
    const char *name;
    bool (*is)(const struct oct_input_probe *probe);

    /* Opens probe->path; *input comes in empty, and oct_input_close follows on error too.
     * probe->fd stays open until then. *facts comes in with everything unknown. *cal comes in
     * empty: filled with what the file brings (k map, background, dispersion, wavelengths, span);
     * the caller finishes it, on error too. OCT_E_FORMAT: which part of the file is missing or
     * wrong, and what to do; sizes are checked against the file before anything is allocated. */
    enum oct_err (*open)(struct oct_input *input, const struct oct_input_probe *probe,
                         const struct oct_input_wish *wish, struct oct_input_facts *facts,
                         struct oct_calibration *cal, struct oct_error *err);
    void (*close)(void *own); /* NULL: it keeps nothing of its own */
};

/* The same by its table; facts->format is its name. */
enum oct_err oct_input_open(struct oct_input *input, const struct oct_input_ops *ops,
                            const struct oct_input_probe *probe, const struct oct_input_wish *wish,
                            struct oct_input_facts *facts, struct oct_calibration *cal,
                            struct oct_error *err);
void oct_input_close(struct oct_input *input); /* also of one that nothing was opened of */

/* Looks at an open file, which oct_input_look_end ends, on error too. `path` and `name` are
 * borrowed. OCT_E_IO: a folder, a pipe, or it cannot be read; OCT_E_NO_MEMORY. */
enum oct_err oct_input_look(struct oct_input_probe *probe, const char *path, const char *name,
                            int fd, struct oct_error *err);
void oct_input_look_end(struct oct_input_probe *probe);

/* Whether it begins as HDF5 does, or does so behind a block of another program (MATLAB's). */
bool oct_input_is_hdf5(const struct oct_input_probe *probe);

/* The dataset of that name ("/group/name", or without the first slash); NULL: there is none. */
const struct oct_volume_array_entry *oct_input_array_named(const struct oct_input_probe *probe,
                                                           const char *name);

/* The format that the file has, NULL: none that is known. */
const struct oct_input_ops *oct_input_find(const struct oct_input_probe *probe);

/* Whether settings of OCTproZ lie beside the file that do not say how long its A-lines and B-scans
 * are: to all else it is a file of plain samples. */
bool oct_input_lacks_geometry(const struct oct_input_probe *probe);

void oct_input_facts_init(struct oct_input_facts *facts);

/* OCT_E_FORMAT: a geometry beyond what can be processed (geometry.h). */
enum oct_err oct_input_check(const char *name, uint64_t n_bscans, uint64_t n_lines,
                             uint64_t n_samples, struct oct_error *err);

#endif
