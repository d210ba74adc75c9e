/* The struct of octctl flow, for its own files. */
#ifndef OCT_TOOLS_ANALYSE_FLOW_H
#define OCT_TOOLS_ANALYSE_FLOW_H

#include "analysis/flow/flow.h"
#include "analysis/flow/group.h"
#include "analysis/flow/velocity.h"
#include "analysis/layers/measure/thickness.h"
#include "config/options.h"
#include "tools/analyse/job.h"

#define OCT_FLOW_MOST_SLABS 8u
#define OCT_FLOW_N_SHOWN 3u /* places of the figures */

struct oct_flow_options {
    const char *layers, *sample, *csv, *png;
    const char **slabs; /* as given, up to NULL */
    uint64_t repeats, interleave;
    double noise; /* NaN: not given */
    bool velocity;
    struct oct_param_texts params; /* of oct_flow_params */
    struct oct_job_options job;
};

/* A row of the CSV, and what /flow says of each place. */
struct oct_flow_row {
    uint64_t place, first_bscan;
    double bulk, shift_lines, shift_depth, noise, snr_db, tau_us, time_s;
    uint32_t n_pairs;
    bool moved;
};

struct oct_flow_job_slab {
    struct oct_flow_job *job;
    struct oct_flow_slab slab;
    char name[48];     /* of its dataset */
    const char *label; /* the same */
    float *z;          /* [P][M] the largest; NaN: not known, or moved */
    float *structure;  /* [P][M] dB */
    double density;    /* the share of what is known with z >= min_z; NaN: nothing is */
    double sector[OCT_ETDRS_N_SECTORS]; /* with layers: the same of each sector of the ETDRS grid */
};

/* A place of the figures. */
struct oct_flow_shown {
    uint32_t place;
    float *z, *db, *velocity; /* [M][D]; velocity NULL: none */
};

struct oct_flow_job {
    struct oct_job job;
    struct oct_flow_options given;
    bool is_u8;

    /* Of the recording. */
    struct oct_flow_settings settings;
    bool is_projected; /* z too, because it was asked for; else what is shown alone */
    struct oct_velocity_settings velocity_settings;
    struct oct_scan_protocol scan;
    struct oct_spacing spacing; /* between places, A-lines, depths; NaN: not known */
    struct oct_flow_optics optics;
    double line_rate_hz;
    uint32_t n_places, n_lines, depth; /* P, M, D */
    struct oct_results *file;          /* OUT.h5, while B-scans come */
    struct oct_flow_group group;
    const struct oct_flow_engine_ops *ops; /* NULL: no engine */
    struct oct_flow_engine *engine;
    struct oct_flow_velocity *velocity;
    struct oct_flow_layers *layers; /* NULL: no slab needs them, or a file has them */
    float *heights[OCT_N_LAYERS];   /* [P][M] of a file; NULL: none */
    unsigned d, z, intensity, mm_s; /* datasets */
    float *v;                       /* a B-scan's or a place's velocities */
    uint8_t *bytes;                 /* [M][D] */
    double *shifts;                 /* [P][R][2] */
    struct oct_flow_row *rows;      /* [P] */
    struct oct_flow_job_slab slab[OCT_FLOW_MOST_SLABS];
    unsigned n_slabs;
    struct oct_flow_shown shown[OCT_FLOW_N_SHOWN];
    unsigned n_shown;

    /* What was found. */
    uint64_t n_found, n_moved, n_identical, n_with_pairs;
    double tissue;               /* voxels */
    double bulk, snr_db, tau_us; /* medians */
    double ambiguous_mm_s;       /* NaN: no velocity */
    const char *method, *velocity_unit;
};

/* Outputs; job: struct oct_flow_job. */
oct_output_writer oct_flow_write_csv, oct_flow_draw_slabs, oct_flow_draw_bscans,
    oct_flow_draw_velocity;

/* OUT.h5 as B-scans come: begin, then a place or a B-scan at a time, then end. */
enum oct_err oct_flow_begin_file(struct oct_flow_job *f, const char *path, bool force,
                                 struct oct_error *err);
void oct_flow_put_place(struct oct_flow_job *f, const struct oct_flow_found *found, uint32_t place);
void oct_flow_put_velocity(struct oct_flow_job *f, uint64_t row);
void oct_flow_end_file(struct oct_flow_job *f);

void oct_flow_print(const void *job);
void oct_flow_json(const void *job, struct cJSON *tree);

#endif
