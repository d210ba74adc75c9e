/* octctl report: a recording on one page, to be printed. What it shows is taken in report.c, how in
 * report_page.c. One thread. */
#ifndef OCT_TOOLS_ANALYSE_REPORT_H
#define OCT_TOOLS_ANALYSE_REPORT_H

#include "tools/analyse/surfaces.h"
#include "tools/dicom/identity.h"
#include "tools/files/export_source.h"

#define OCT_REPORT_MOST_RESULTS 4u
#define OCT_REPORT_MOST_ANGIOGRAMS 2u

struct oct_report_options {
    const char *identity, *eye, *bscan, *to; /* NULL: not given */
    struct oct_job_options job;
};

/* Values from above, of a dataset that octctl export knows. */
struct oct_report_enface {
    struct oct_export_open *open; /* NULL: there is none */
    struct oct_export_source source;
    float *values; /* [dims[1]][dims[2]] of source.form */
    char name[64];
};

struct oct_report_job {
    struct oct_surfaces_job s; /* its layers, and of those the job */
    struct oct_report_options given;

    /* What the options mean. */
    const char *results[OCT_REPORT_MOST_RESULTS];
    unsigned n_results;
    bool is_dicom, is_real;
    struct oct_export_options work;
    struct oct_export_person person;

    /* The recording and what is known of it. */
    struct oct_report_enface enface, angiogram[OCT_REPORT_MOST_ANGIOGRAMS];
    unsigned n_angiograms;
    struct oct_contents layers; /* of layers_path */
    const char *layers_path;    /* NULL: they are found here */
    char crc32c[9], input_crc32c[16];
    uint32_t bscan;
    double quality, signal_db, place; /* 0 to 10, dB, 0 to 1; NaN: not measured */

    /* For the summary. */
    const char *eye, *identity, *format, *layers_from, *crc32c_text;
};

/* The page, in memory from malloc. */
enum oct_err oct_report_draw(struct oct_report_job *r, unsigned char **pdf, size_t *n,
                             struct oct_error *err);

#endif
