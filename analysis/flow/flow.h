/* Blood flow and motion, live and offline: the analyses `flow`, `angiogram`, `velocity`, `trace`.
 *
 * Input: complex depth values, but of angiogram. All are at rest until their section's `enabled` is
 * set.
 *
 * flow        [M][D] a place of scan.repeats B-scans: d (place.h) where z, projected, is flow.min_z
 *             or more, else 0; NaN (u8: 0) where no pair has it; of the sample type of
 *             pictures, 0..1. With scan.interleave [K][M][D], a group of places an image. Numbers
 *             of a place (of a group the worst): enum oct_flow_number
 * angiogram   [P][M] f32 a volume, of what lies beside flow's images, which it takes in: the
 *             largest z of flow.slab (slab.h) in each A-line; NaN where
 *             nothing has come, no layer is known, or the place has moved. More than
 *             OCT_ENFACE_MOST_VALUES are thinned out as en face is. Awake with flow.enabled
 * velocity    f32 mm/s (rad where k is not known): lines: [M / L][D] a B-scan, L scan.line_repeats;
 *             bscans: [M][D] a place (velocity.h), with scan.interleave [K][M][D]
 * trace       f32 rows time_s, nm (rad), sd_nm: one a B-scan, M of M-mode, where
 *             scan.line_repeats is scan.lines (trace.h). It begins anew with an acquisition
 *
 * Wavelengths, if the plan has them, say which way phases turn; a k map does not: then
 * flow.wavelengths does. B-scans are grouped by their numbers; a lost one leaves the pairs there
 * are. The window is of flow.window_um where the spacings of A-lines and depths are known, else 1
 * A-line and 3 pixels. */
#ifndef OCT_ANALYSIS_FLOW_FLOW_H
#define OCT_ANALYSIS_FLOW_FLOW_H

#include "analysis/analysis.h"
#include "analysis/flow/engine.h"
#include "analysis/flow/slab.h"
#include "analysis/flow/trace.h"

enum oct_flow_number {
    OCT_FLOW_BULK,        /* b; 0 where there is no tissue */
    OCT_FLOW_SHIFT_LINES, /* the largest of a repeat, A-lines and depth px */
    OCT_FLOW_SHIFT_DEPTH,
    OCT_FLOW_SNR_DB, /* of tissue; NaN: none */
    OCT_FLOW_PAIRS,
    OCT_FLOW_TAU_US,
    OCT_FLOW_MOVED, /* 1: it stays out of the angiogram */
    OCT_FLOW_N_NUMBERS
};

enum oct_flow_wavelengths { OCT_FLOW_RISING, OCT_FLOW_FALLING };
enum oct_flow_between { OCT_FLOW_LINES_OF_BSCAN, OCT_FLOW_BSCANS_OF_PLACE };

extern const char *const oct_flow_methods[]; /* by enum oct_flow_method, up to NULL */

struct oct_flow_settings {
    bool enabled, record;
    enum oct_flow_method method;
    double window_um; /* sigma */
    double min_z, projection, max_bulk;
    struct oct_flow_slab slab;
    enum oct_flow_wavelengths wavelengths; /* where a k map does not tell */
    double refractive_index;               /* of the session, as the next */
    bool cpu;                              /* no GPU is wanted */
};
extern const struct oct_params oct_flow_params;

struct oct_velocity_settings {
    bool enabled, record;
    enum oct_flow_between between;
    double min_coherence;
    double window_um, refractive_index; /* of the session, as the next */
    enum oct_flow_wavelengths wavelengths;
};
extern const struct oct_params oct_velocity_params;

struct oct_trace_settings {
    bool enabled, record;
    struct oct_flow_slab upper, lower;
    enum oct_flow_reference reference; /* previous or first */
    double refractive_index;           /* of the session, as the next */
    enum oct_flow_wavelengths wavelengths;
};
extern const struct oct_params oct_trace_params;

extern const struct oct_analysis_ops oct_flow_cpu, oct_angiogram_cpu, oct_velocity_cpu,
    oct_trace_cpu;

#define OCT_FLOW_PROJECTION_UM 10.0 /* what lies nearer is not above */

/* Beside each image of `flow`, for `angiogram`: [K][M + 1] the largest z, projected, of flow.slab
 * of each A-line, NaN where there is none; then 1 where the place has moved, else 0. */
#define OCT_FLOW_N_BESIDE(n_places, n_lines) ((size_t)(n_places) * ((n_lines) + 1))

/* Of the analyses that go by flow's keys. */
enum oct_err oct_flow_settings_check(const void *settings, const struct oct_analysis_setup *setup,
                                     struct oct_error *err);

/* The same with 1 where it has 0. */
struct oct_scan_protocol oct_flow_scan(const struct oct_scan_protocol *scan);

/* Sigma of the window in A-lines and depth px. Of unknown spacing: n_lines and 3 px, where a map of
 * d has one A-line, and one of velocity, whose pairs are fewer, two. */
enum { OCT_FLOW_D_LINES = 1, OCT_FLOW_VELOCITY_LINES = 2 };
void oct_flow_sigma(const struct oct_spacing *spacing, double window_um, unsigned n_lines,
                    double sigma[2]);

/* As a place is set up by settings; optics is borrowed. */
struct oct_flow_place_setup
oct_flow_place_setup_of(const struct oct_flow_settings *settings, uint32_t n_lines, uint32_t depth,
                        unsigned n_repeats, const struct oct_spacing *spacing,
                        const struct oct_flow_optics *optics, struct oct_workers *workers);

/* OCT_E_CONFIG: no flow can be found in such a scan: a place has one B-scan, or B-scans are
 * small. */
enum oct_err oct_flow_check(const char *name, uint32_t n_lines, uint32_t depth,
                            const struct oct_scan_protocol *scan, struct oct_error *err);

/* ---- the layers of a place, or of a B-scan, by its mean intensity ---- */

struct oct_flow_layers;

/* *layers is NULL on error: OCT_E_CONFIG, OCT_E_NO_MEMORY. */
enum oct_err oct_flow_layers_create(struct oct_flow_layers **layers, uint32_t n_lines,
                                    uint32_t depth, const struct oct_spacing *spacing,
                                    struct oct_error *err);
void oct_flow_layers_destroy(struct oct_flow_layers *layers); /* NULL is fine */

/* intensity: [M][D] counts^2. *position: [M] of each layer, the layers' own until the next run. */
void oct_flow_layers_find(struct oct_flow_layers *layers, const float *intensity,
                          const struct oct_bscan_info *info, const float *position[OCT_N_LAYERS]);

/* OCT_E_CONFIG: one of them is the whole depth, or pixels beyond it. */
enum oct_err oct_flow_check_spans(const struct oct_flow_slab *upper,
                                  const struct oct_flow_slab *lower, uint32_t depth,
                                  struct oct_error *err);

/* Where both are in a B-scan; spans: [2][M], upper, then lower. OCT_E_CONFIG, OCT_E_NO_MEMORY. */
enum oct_err oct_flow_find_spans(const struct oct_flow_slab *upper,
                                 const struct oct_flow_slab *lower,
                                 const struct oct_spacing *spacing,
                                 const struct oct_image_frame *bscan, struct oct_flow_span *spans,
                                 struct oct_error *err);

#endif
