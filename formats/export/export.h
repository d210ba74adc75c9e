/* What octctl export writes: arrays of a recording in the formats of other tools.
 *
 * A source yields an array [planes][rows][columns] plane by plane, the last axis fastest, as octd
 * keeps it: B-scans [V][M][D], spectra [V][M][N], an en face picture [1][V][M], results of
 * analyses. A writer takes sources and makes one file, whole or not at all (whole_file.h), and
 * holds no more than a few planes in memory.
 *
 *     OME-TIFF, DICOM, PNG   pictures: of B-scans columns become rows, so that depth points down
 *                            (is_upright says which), of all others rows stay rows
 *     NIfTI, .npy, .mat      arrays, as they are
 *
 * No state; any thread, but one thread a source. */
#ifndef OCT_FORMATS_EXPORT_EXPORT_H
#define OCT_FORMATS_EXPORT_EXPORT_H

#include "pipeline/base/err.h"
#include "pipeline/plan/scan.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum oct_export_sample { OCT_EXPORT_U8, OCT_EXPORT_U16, OCT_EXPORT_F32 };

/* Who a patient is, for formats that are to say it: text in UTF-8 of one line as DICOM has it
 * (PS3.5 6.2), "": not known. */
#define OCT_PERSON_BYTES 257u /* 64 characters of four bytes */
struct oct_export_person {
    char name[OCT_PERSON_BYTES]; /* FAMILY^GIVEN^MIDDLE^PREFIX^SUFFIX */
    char id[OCT_PERSON_BYTES];
    char born[OCT_PERSON_BYTES]; /* YYYYMMDD */
    char sex[OCT_PERSON_BYTES];  /* M, F, O */
    char physician[OCT_PERSON_BYTES];
    char accession[OCT_PERSON_BYTES];
    char study_uid[OCT_PERSON_BYTES];
    char step[OCT_PERSON_BYTES];      /* the scheduled procedure step's ID */
    char procedure[OCT_PERSON_BYTES]; /* the requested procedure's ID */
};

/* What the array is and where it comes from; strings are the source's. */
struct oct_export_form {
    uint32_t dims[3];    /* planes, rows, columns */
    const char *axes[3]; /* "bscan", "line", "depth", "sample", ... of each */
    double um[3];    /* from one to the next along each; NaN: the axis is no length, or unknown. Of
                        a format with needs_um it is known where the axis is a length ("bscan",
                        "line", "depth") of more than one step, but where `scan` has none */
    bool is_upright; /* rows are depth already, or not depth at all; false: columns are depth */
    enum oct_export_sample sample;
    const char *name;     /* of the dataset: "bscans", "spectra", "enface", "analysis/NAME" */
    bool is_copied;       /* of what another device exported */
    const char *slab;     /* of a picture from above: the depths between layers that it is of, as
                             analysis/layers/measure/slab.h reads them; "", NULL: others */
    const char *quantity; /* "intensity", "thickness", ...; "": unknown */
    const char *method;   /* how a significance was found, of oct_flow_methods; "", NULL: unknown */
    const char *unit;     /* of the values: "dB", "counts^2", "counts", "um"; "": none or unknown */
    double lo, hi;        /* of u8 and u16 pictures: what 0 and the largest value stand for, in
                             `unit`; both NaN: values are what they are */
    const char *eye;      /* "OD", "OS", "" */
    const char *pseudonym, *start_time, *software, *engine; /* "": unknown */
    const char *start_time_source; /* OCT_TIME_... of pipeline/volume/volume.h; "", NULL: unknown */
    double plane_s;                /* from plane to plane; NaN: unknown */
    double refractive_index;       /* NaN: unknown */
    const char *acquisition_uid;   /* the same text for all exports of one recording: a hash of what
                                    the file says of itself; never a name or a path */
    const uint8_t *plane_valid;    /* [dims[0]]; NULL: all */
    const struct oct_export_person *person; /* NULL: nobody is to be known (DICOM alone asks) */
    const char *serial;                     /* of the device, where there is a person; "", NULL */
    double lambda_nm; /* of the light, the middle of what the camera sees; NaN: unknown */
    const struct oct_scan *scan; /* of B-scans that are no rows beside one another; NULL: they are,
                                    or the array is of none. What a scan's way has no length for
                                    has none in um, whatever the format needs */
    uint32_t bscans_first, bscans_step; /* the B-scans, or places, that planes are */
    bool is_of_places;
};

/* Where A-line `line` of a plane lies, x and y in um (pipeline/plan/scan.h); false: unknown, or
 * planes are no B-scans of form.scan. */
bool oct_export_position(const struct oct_export_form *form, uint32_t plane, uint32_t line,
                         double um[2]);

struct oct_export_source {
    struct oct_export_form form;
    void *context;
    /* Reads plane i into pixels ([rows][columns] of form.sample), any order. */
    enum oct_err (*read)(void *context, uint32_t plane, void *pixels, struct oct_error *err);
};

struct oct_export_options {
    bool force;
    const volatile sig_atomic_t *cancel; /* not 0: end (OCT_E_CLOSED); NULL: nobody does */
    void (*progress)(void *context, uint64_t done, uint64_t all); /* of long work; NULL: none */
    void *progress_context;
};

/* A format: a row of the table in formats.c. */
struct oct_export_format {
    const char *name;        /* "ome-tiff", as --to takes it */
    const char *suffixes[4]; /* ".ome.tif", ...; the first is the usual one */
    const char *meaning;     /* for the help */
    bool many;               /* takes several sources, a series each */
    bool needs_um;           /* writes lengths: a spacing that is unknown must be given */
    bool u8_only, no_f32;
    /* Whether the folder `path` may be made; NULL: the format makes none. */
    enum oct_err (*may_make_folder)(const char *path, bool force, struct oct_error *err);
    bool has_pseudonym; /* is told the pseudonym whether or not the user asks for it */
    enum oct_err (*write)(const char *path, const struct oct_export_source *sources, unsigned n,
                          const struct oct_export_options *options, struct oct_error *err);
};

/* When start_time is, in the local time of this machine, with the seconds and their parts. False:
 * it is no time. */
bool oct_export_local_time(const char *start_time, time_t *utc, struct tm *local, double *s);

/* A document about the recording of `form` as a DICOM file, Encapsulated PDF (PS3.3 A.45.1): of the
 * same study, with the patient as oct_export_dicom says it. OCT_E_ARG: it is a pseudonym or a time
 * that DICOM does not take. */
enum oct_err oct_export_pdf_as_dicom(const char *path, bool force,
                                     const struct oct_export_form *form, const char *title,
                                     const unsigned char *pdf, size_t n, struct oct_error *err);

extern const struct oct_export_format oct_export_ome_tiff, oct_export_nifti, oct_export_dicom,
    oct_export_npy, oct_export_mat, oct_export_png;

/* The formats that there are, up to NULL. */
extern const struct oct_export_format *const oct_export_formats[];

/* By --to, or (to NULL) by the suffix of the path. OCT_E_ARG: there is none; lists them. */
enum oct_err oct_export_format_find(const struct oct_export_format **format, const char *path,
                                    const char *to, struct oct_error *err);

/* Whether it makes a folder: it may, and the path does not end as a single file of it does. */
bool oct_export_makes_folder(const struct oct_export_format *format, const char *path);

/* Reads plane i as a picture: [height][width], depth downwards. scratch: as large as the plane. */
enum oct_err oct_export_read_picture(const struct oct_export_source *source, uint32_t plane,
                                     void *pixels, void *scratch, struct oct_error *err);
/* Takes plane after plane of a source, as it is (as_picture: as read_picture gives it), until one
 * fails; tells the progress and obeys cancel. done, all: of all planes of the work. take gets the
 * plane's number. */
enum oct_err
oct_export_each_plane(const struct oct_export_source *source, bool as_picture,
                      const struct oct_export_options *options, uint64_t done, uint64_t all,
                      enum oct_err (*take)(void *context, uint32_t plane, const void *pixels,
                                           size_t n_bytes, struct oct_error *err),
                      void *context, struct oct_error *err);
void oct_export_picture_size(const struct oct_export_form *form, uint32_t *height, uint32_t *width,
                             double um[2] /* dy, dx */);
size_t oct_export_sample_bytes(enum oct_export_sample sample);

#endif
