/* A recording as an input of octctl export, and a dataset as it lies in it, plane by plane: the
 * providers behind export_source.c. Private to tools/files/export*. One thread uses one at a
 * time. */
#ifndef OCT_TOOLS_EXPORT_VALUES_H
#define OCT_TOOLS_EXPORT_VALUES_H

#include "formats/export/export.h"
#include "formats/pictures.h"
#include "formats/recording.h"
#include "pipeline/base/sha256.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/scan.h"
#include "pipeline/volume/volume.h"
#include "tools/files/export_source.h"

#include <signal.h>

/* What a recording says of itself, without its name, its folder and its configuration's text. */
struct oct_export_input {
    char *path;                       /* to open; of standard input /dev/stdin */
    struct oct_volume_reader *reader; /* of a volume file; else NULL */
    struct oct_pictures *device;      /* of what another device exported; else NULL */
    struct oct_recording *recording;  /* of all others; else NULL */
    struct oct_volume_facts own;      /* of all but the first: what a volume file would say */
    bool is_flow;                     /* a file of octctl flow: none of the three */
    const struct oct_volume_facts *facts;
    const char *scaling;       /* how samples became u16; "": they were. oct_input_facts */
    bool has_config;           /* it embeds one */
    struct oct_config *config; /* the embedded one, the user's keys over it; else the user's, and
                                  what oct_recording_open takes from the file */
    char uid[33];              /* 32 hexadecimal digits */
    struct oct_scan scan;      /* the way of its B-scans; of files that do not say it rows */
    struct oct_calibration calibration; /* of a volume file; empty where it has none */
};

/* "-" is standard input, all of which is kept (spool.h) before it is opened; *cancel, unless NULL,
 * ends that. *input is empty on error. Errors as oct_volume_open, oct_recording_open and
 * oct_spool_stdin. */
enum oct_err oct_export_input_open(struct oct_export_input *input, const char *path,
                                   const struct oct_config *config,
                                   const volatile sig_atomic_t *cancel, struct oct_error *err);
void oct_export_input_close(struct oct_export_input *input); /* an empty one too */

/* Whether it is a file of octctl flow; fills is_flow and the sum over what says which it is. */
bool oct_export_input_is_flow(const char *path);
enum oct_err oct_export_input_open_flow(struct oct_export_input *input, struct oct_sha256 *sum,
                                        struct oct_error *err);

/* "dB", "counts^2"; "": the file has no configuration that says so. */
const char *oct_export_input_unit(const struct oct_export_input *input);

/* Mean time from one of these B-scans to the next, by the camera's clock; NaN: unknown. Of a volume
 * file. */
double oct_export_input_plane_s(const struct oct_export_input *input, const struct oct_span *span);

struct oct_export_values {
    struct oct_export_form form; /* sample: as it is stored */
    const char *what;            /* "B-scans", of the report */
    void *context;

    /* Reads plane i ([rows][columns] of form.sample). */
    enum oct_err (*read)(void *context, uint32_t plane, void *values, struct oct_error *err);

    /* Which rows of plane i are there: came[rows], 1 or 0. NULL: all. `values` is the plane as
     * read. */
    enum oct_err (*rows)(void *context, uint32_t plane, const void *values, uint8_t *came,
                         struct oct_error *err);
    void (*close)(void *context);

    /* Of a dataset that is a single plane of a row a B-scan, [rows]; else [planes]. */
    bool is_rows;
    uint8_t *valid;  /* NULL: all */
    double *lo, *hi; /* of u8, what 0 and 255 stand for; NULL: unknown */
    float *held;     /* the only plane, where it is computed at once */
};

/* /bscans, /spectra, en face pictures of /bscans, /analysis/NAME. The caller closes them by
 * oct_export_values_finish, after an error too. */
enum oct_err oct_export_values_bscans(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err);
enum oct_err oct_export_values_spectra(struct oct_export_values *values,
                                       struct oct_export_input *in,
                                       const struct oct_export_wish *wish, struct oct_error *err);
enum oct_err oct_export_values_enface(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err);
enum oct_err oct_export_values_result(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err);

/* "slabs/NAME", "flow/NAME", "velocity/NAME" of a file of octctl flow; of none its first slab. */
enum oct_err oct_export_values_flow(struct oct_export_values *values, struct oct_export_input *in,
                                    const struct oct_export_wish *wish, struct oct_error *err);

/* "spectra" of in->recording, u16 [V][M][N]; of another name OCT_E_ARG. */
enum oct_err oct_export_values_recording(struct oct_export_values *values,
                                         struct oct_export_input *in, const char *name,
                                         const struct oct_export_wish *wish, struct oct_error *err);

/* "bscans" of in->device; of another name OCT_E_ARG. */
enum oct_err oct_export_values_device(struct oct_export_values *values, struct oct_export_input *in,
                                      const char *name, const struct oct_export_wish *wish,
                                      struct oct_error *err);

/* The form of B-scans of spectra, plane_s apart. */
struct oct_export_form oct_export_values_spectra_form(const struct oct_export_input *in,
                                                      const struct oct_span *span, double plane_s);

void oct_export_values_finish(struct oct_export_values *values);

/* The B-scans that are wanted of n. OCT_E_ARG: there are no such. */
enum oct_err oct_export_values_range(const struct oct_export_input *in,
                                     const struct oct_export_wish *wish, uint32_t n,
                                     struct oct_span *span, struct oct_error *err);

#endif
