/* The truth about a synthetic recording, as datasets (f64) of an HDF5 file. */
#ifndef OCT_SYNTH_TRUTH_FILE_H
#define OCT_SYNTH_TRUTH_FILE_H

#include "synth/flow.h"
#include "synth/retina.h"
#include "synth/spectrometer.h"

/* Makes an HDF5 file without anything in it; one that is there is replaced. */
enum oct_err oct_truth_file_create(const char *path, struct oct_error *err);

/* Adds what is true of the retina to a closed HDF5 file:
 *     /truth/wavelengths_nm [N], /truth/dispersion_rad [2] (a2, a3), /truth/axial_um,
 *     /truth/field_um [2] (width, height), /truth/fovea_um [2] (x, y),
 *     /truth/cones/position_um [n][2] (x, y), /truth/cones/offset_px [n][2] (IS/OS, COST); no
 *     /truth/cones where the mosaic is too fine to be modelled. */
enum oct_err oct_truth_file_add_facts(const char *path, const struct oct_retina_facts *facts,
                                      uint32_t n_samples, struct oct_error *err);

/* Adds what is true of one volume below `group` ("/truth"):
 *     motion_um [V][3] (x, y, z), surfaces_px/NAME [V][M], vessel_um [V][M];
 *     where the truth has them line_motion_um [V][M][3], line_shift_px [V][M][2], blink [V][M];
 *     of cells, if any are in view, cells/track [n], position_um [n][2] (x, y), seen_px [n][2]
 *     (A-line, B-scan), radius_um [n], time_s [n]. */
enum oct_err oct_truth_file_add_volume(const char *path, const char *group,
                                       const struct oct_retina_truth *truth, uint32_t n_bscans,
                                       uint32_t n_lines, struct oct_error *err);

/* Adds what is true of a spectrometer and of the reflectors before it:
 *     /truth/wavelengths_nm, kmap_px, place_q, source_counts [N]; dispersion_rad [2]; axial_um;
 *     limit_px; read_counts; /truth/mirror/depth_px, depth_um, share [n], where n > 0. */
enum oct_err oct_truth_file_add_spectrometer(const char *path, const struct oct_spectrometer *s,
                                             const struct oct_reflector *reflectors, unsigned n,
                                             struct oct_error *err);

/* Adds what is true of a phantom of flow: that of its spectrometer, and
 *     /truth/noise_counts2, tissue_um [2], motion_um [V][M][3] (x, y, z), time_s [V][M];
 *     /truth/vessels/position_um [n][2] (x, z at y = 0), direction [n][3], radius_um, mm_s [n];
 *     /truth/labels [P][M][D] of pixels first_px on: enum oct_flow_voxel, where that is at most
 *     OCT_TRUTH_MOST_LABELS values. */
#define OCT_TRUTH_MOST_LABELS (1u << 24)
enum oct_err oct_truth_file_add_flow(const char *path, const struct oct_flow_phantom *phantom,
                                     uint32_t n_bscans, uint32_t n_lines, uint32_t first_px,
                                     uint32_t depth, struct oct_error *err);

#endif
