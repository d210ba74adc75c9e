/* From configuration to what the pipeline wants: geometry, calibration, plan, display, options. */
#ifndef OCT_CONFIG_APPLY_H
#define OCT_CONFIG_APPLY_H

#include "config/config.h"
#include "pipeline/flow/engine.h"
#include "pipeline/plan/plan.h"

/* One past the last depth pixel kept, 0: all; crop_last=auto is P2/4, for any camera.samples. */
uint32_t oct_config_crop_last(const struct oct_config *config);

/* Whether files have complex values beside their pictures: output.sample=c64. */
bool oct_config_has_complex(const struct oct_config *config);

/* Messages of the functions below start with where the key at fault was given (oct_config_blame).
 */
enum oct_err oct_config_geometry(const struct oct_config *config, struct oct_geometry *geometry,
                                 struct oct_error *err);

/* Reads the calibration files that the config names. The caller finishes *cal. Without wavelengths
 * and k map the result has neither, and the plan refuses it. */
enum oct_err oct_config_calibration(const struct oct_config *config, struct oct_calibration *cal,
                                    struct oct_error *err);

/* dc and interpolation. */
void oct_config_chain(const struct oct_config *config, struct oct_chain *chain);

void oct_config_display(const struct oct_config *config, struct oct_display *display);

/* The strings in *options point into the config or are static. wisdom_dir is filled from
 * XDG_CACHE_HOME or HOME (folder "octd"), written into wisdom_dir (of wisdom_bytes). */
void oct_config_engine_options(const struct oct_config *config, struct oct_engine_options *options,
                               char *wisdom_dir, size_t wisdom_bytes);

/* The way of the scan, but for the positions of a file. */
struct oct_scan oct_config_way(const struct oct_config *config);

/* The same of a recording: scan.lines and scan.bscans of the configuration are what the file has.
 * Volumes of the scan have scan_bscans B-scans (0: as many as the file) or, of the pattern file,
 * what the table of positions says; the file's first has the number first_bscan within its
 * acquisition. The positions stay those of the calibration. */
struct oct_scan oct_config_way_of_recording(const struct oct_config *config,
                                            const struct oct_calibration *cal, uint32_t scan_bscans,
                                            uint64_t first_bscan);

/* The same into a plan that nobody else has seen. OCT_E_CONFIG as oct_plan_set_scan. */
enum oct_err oct_config_set_scan(const struct oct_config *config, struct oct_plan *plan,
                                 struct oct_error *err);

/* B-scans a second at the line rate. */
double oct_config_bscans_hz(const struct oct_config *config);

/* Everything above in one go: geometry, calibration files, plan. */
enum oct_err oct_config_plan(const struct oct_config *config, struct oct_plan **plan,
                             struct oct_error *err);

#endif
