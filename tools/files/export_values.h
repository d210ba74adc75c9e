/* A dataset as it lies in a recording, plane by plane: the providers behind export_source.c.
 * Private to tools/export_*. One thread uses one at a time. */
#ifndef OCT_TOOLS_EXPORT_VALUES_H
#define OCT_TOOLS_EXPORT_VALUES_H

#include "formats/export/export.h"
#include "tools/files/export_input.h"
#include "tools/files/export_source.h"

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
/* The form of n B-scans of spectra, plane_s apart. */
struct oct_export_form oct_export_values_spectra_form(const struct oct_export_input *in, uint32_t n,
                                                      double plane_s);

void oct_export_values_finish(struct oct_export_values *values);

/* The B-scans first .. last - 1 that are wanted of n. OCT_E_ARG: there are no such. */
enum oct_err oct_export_values_range(const struct oct_export_input *in,
                                     const struct oct_export_wish *wish, uint32_t n,
                                     uint32_t *first, uint32_t *last, struct oct_error *err);

#endif
