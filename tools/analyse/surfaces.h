/* octctl surfaces: layers of the retina, their thickness, and slabs that follow them; with --mask
 * the boundary of a volume in their place. Writers are those of a struct oct_output_file, of a
 * struct oct_surfaces_job. One thread. */
#ifndef OCT_TOOLS_ANALYSE_SURFACES_H
#define OCT_TOOLS_ANALYSE_SURFACES_H

#include "analysis/layers/denoise/denoise.h"
#include "analysis/layers/find/volume.h"
#include "analysis/layers/measure/slab.h"
#include "analysis/layers/measure/thickness.h"
#include "analysis/layers/measure/tsnit.h"
#include "formats/contents.h"
#include "formats/pictures.h"
#include "plot/plot.h"
#include "tools/analyse/job.h"
#include "tools/options.h"

#define OCT_SURFACES_MOST_SLABS 16u

enum oct_surfaces_eye { OCT_SURFACES_EYE_UNKNOWN, OCT_SURFACES_EYE_OD, OCT_SURFACES_EYE_OS };
enum oct_surfaces_denoise { OCT_SURFACES_LOCAL, OCT_SURFACES_FULL, OCT_SURFACES_NONE };

/* Options of a parameter table. */
struct oct_surfaces_choice {
    enum oct_surfaces_denoise denoise;
    int profile, depth, superior; /* 1: paper, down, last */
    enum oct_surfaces_eye eye;
    double strength; /* NaN: not given */
    uint32_t steps;
};

struct oct_surfaces_options {
    struct oct_param_texts choice;
    const char *layers, *pixel_um, *skip, *eye, *fovea, *mask, *phi, *csv, *png; /* NULL: none */
    const char **slabs; /* ends with NULL */
    bool align, no_align;
    struct oct_job_options job;
};

struct oct_surfaces_layer {
    const char *label; /* "ILM", "RNFL/GCL" */
    bool is_asked;
    float *found;     /* [V][M] as it was found; position has it denoised */
    uint64_t n_known; /* A-lines that have it, denoised */
    double share;     /* of all A-lines */
    struct oct_denoise_report denoised;
};

struct oct_surfaces_slab {
    struct oct_surfaces_job *s;
    struct oct_slab slab;
    const char *given;
    char name[64]; /* in its shortest form */
    float *values; /* [V][M] */
    char *png;     /* its picture beside --png; NULL: none */
};

/* A layer between two borders that were asked for. */
#define OCT_SURFACES_N_THICKNESSES 7u
struct oct_surfaces_thickness {
    const char *name; /* "retina", "rnfl", ... */
    enum oct_layer upper, lower;
    float *map;       /* [V][M]; NULL: one of them was not asked for */
    const char *unit; /* "px" where the depth of a pixel is unknown */
    uint64_t n_known;
    double mean, p1, p99, known; /* NaN: none is known; a share of all A-lines */
    struct oct_etdrs etdrs;      /* where the grid is measured */
};

/* What the device that exported the volume found itself. */
#define OCT_SURFACES_MOST_DEVICE 17u
struct oct_surfaces_device {
    const char *format;        /* "Spectralis .vol" */
    unsigned n;                /* layers; 0: it says nothing, or pictures were turned */
    const char *const *layers; /* [n] */
    float *px;                 /* [n][V][M] */
};

/* The ETDRS grid. */
struct oct_surfaces_grid {
    bool is_measured, has_fovea, is_given;      /* given: by an option, or a file */
    double fovea_px[2];                         /* B-scan, A-line */
    const char *fovea, *eye, *superior, *nasal; /* words of what it stands on */
};

/* The nerve fibres of a circle about the optic disc: of a device's file those of the first B-scan,
 * of octd's recordings the mean of all of them. */
struct oct_surfaces_circle {
    double first_mm[2]; /* oct_volume_info: circle_mm */
    bool is_own;        /* is_own_circle */
    bool is_measured;
    struct oct_tsnit_setup setup;            /* where it is measured */
    double *angle_deg, *rnfl_um, *device_um; /* [M]; device_um NULL: it says nothing */
    struct oct_tsnit tsnit;
};

/* --mask */
struct oct_surfaces_mask {
    uint32_t dims[3];
    bool is_distance;     /* given as signed distances */
    float *before, *phi;  /* [dims] px */
    uint64_t n_before, n; /* voxels of the tissue, before and after */
    const char *given_as, *running;
    struct oct_levelset_report report;
};

struct oct_surfaces_job {
    struct oct_job job;
    struct oct_surfaces_options given;

    /* What the options mean. */
    struct oct_surfaces_choice choice;
    bool is_aligned, is_denoised, has_both;
    double um_given[3];                     /* B-scan, A-line, depth; 0: not given */
    const char *denoise_name, *layer_names; /* "ilm, rpe": those that were asked for */
    char layer_text[80];
    enum oct_layer first;              /* that stands first, for --phi and NAME_um */
    struct oct_levelset_params params; /* of the denoising */
    struct oct_surfaces_layer layer[OCT_N_LAYERS];
    struct oct_surfaces_slab slab[OCT_SURFACES_MOST_SLABS];
    unsigned n_slabs;
    char *png_bscans, *png_relief; /* beside --png */

    /* The volume. */
    struct oct_pictures *pictures;
    uint32_t n_bscans, n_lines, depth; /* V, M, D */
    double um[3];                      /* B-scan, A-line, depth pixel of tissue; NaN: unknown */
    enum oct_surfaces_eye eye;
    const char *eye_name;
    bool is_turned; /* pictures are [D][M] */
    bool is_db;     /* what is read */
    bool is_linear; /* values are counts^2 */
    uint8_t *skip;  /* [V] */

    /* What was found. */
    struct oct_surfaces surfaces;
    const char *running; /* what denoised the first layer; NULL: nothing */
    struct oct_surfaces_device device;
    struct oct_surfaces_thickness thickness[OCT_SURFACES_N_THICKNESSES]; /* first: the retina's */
    struct oct_surfaces_grid grid;
    struct oct_surfaces_circle circle;
    struct oct_surfaces_mask mask;
};

/* um of all three axes are known. */
bool oct_surfaces_has_um(const struct oct_surfaces_job *s);

/* B-scan b as [A-line][depth]; the caller finishes it. OCT_E_STATE: a signal came. */
enum oct_err oct_surfaces_read(struct oct_surfaces_job *s, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err);

/* ---- its parts, which octctl report calls too ---- */

/* A job's own functions: defaults; options to what they mean; the end. */
void oct_surfaces_init(void *job);
int oct_surfaces_read_options(void *job);
void oct_surfaces_close(void *job);

/* open, then find or load, then measure. load: of a file of octctl surfaces of the same pictures,
 * OCT_E_FORMAT: it is of others. Layers that it lacks are not asked for. */
enum oct_err oct_surfaces_open(struct oct_surfaces_job *s, struct oct_error *err);
enum oct_err oct_surfaces_find_layers(struct oct_surfaces_job *s, struct oct_error *err);
enum oct_err oct_surfaces_load_layers(struct oct_surfaces_job *s, const char *path,
                                      const struct oct_contents *contents, struct oct_error *err);
enum oct_err oct_surfaces_measure(struct oct_surfaces_job *s, struct oct_error *err);
bool oct_surfaces_is_circle(const struct oct_surfaces_job *s);

/* ---- surfaces_files.c ---- */

oct_output_writer oct_surfaces_write_h5;
oct_output_writer oct_surfaces_write_csv;
void oct_surfaces_print(const void *job);
void oct_surfaces_json(const void *job, struct cJSON *tree);

/* ---- surfaces_levelset.c ---- */

/* The level set of the first layer as it was found, and what the steps of levelset.h make of it. */
oct_output_writer oct_surfaces_write_phi;

/* The parameters of the level set as attributes of the file. */
struct oct_results;
void oct_surfaces_write_params(struct oct_results *results,
                               const struct oct_levelset_params *params);

extern const struct oct_job_ops oct_surfaces_mask_job; /* --mask */

/* ---- surfaces_pictures.c ---- */

/* A figure that oct_surfaces_figure_finish frees. */
struct oct_surfaces_figure {
    struct oct_plot_picture plot;
    char title[96];
    void *held[4];
};
void oct_surfaces_figure_finish(struct oct_surfaces_figure *figure);

/* Thickness i, with the ETDRS grid where it is measured; px: how large it is drawn, about. Its map
 * is there. OCT_E_NO_MEMORY. */
enum oct_err oct_surfaces_figure_map(const struct oct_surfaces_job *s, unsigned i, double px,
                                     struct oct_surfaces_figure *figure, struct oct_error *err);

/* B-scan b with its layers, of the depths about them. */
enum oct_err oct_surfaces_figure_bscan(struct oct_surfaces_job *s, uint32_t b,
                                       struct oct_surfaces_figure *figure, struct oct_error *err);

/* The colours of the layers; returns how many. */
unsigned oct_surfaces_legends(const struct oct_surfaces_job *s,
                              struct oct_plot_legend legends[OCT_N_LAYERS + 1]);

/* Nerve fibres over the angle; they are measured. */
void oct_surfaces_plot_circle(const struct oct_surfaces_job *s, struct oct_plot_series series[2],
                              struct oct_plot_lines *plot);

/* The thickness, of one layer its depth, of a circle the nerve fibres over the angle; five B-scans
 * spread over the volume; each layer as found and as denoised; a slab (of a struct
 * oct_surfaces_slab). */
oct_output_writer oct_surfaces_draw_map;
oct_output_writer oct_surfaces_draw_bscans;
oct_output_writer oct_surfaces_draw_relief;
oct_output_writer oct_surfaces_draw_slab;

#endif
