/* The settings that OCTproZ puts beside its recordings, TIME[_NAME]_meta.txt: a copy of its
 * settings.ini, which Qt's QSettings writes. Private to this room and its tests. Any thread.
 *
 * Where the meaning of each was read, in github.com/spectralcode/OCTproZ, octproz_project/:
 *
 *     names of the files          octproz/src/octprozapp.cpp (slot_record), recorder.cpp
 *     [record], [processing] keys octproz/src/settings.h, octproz/default/settings.ini
 *     main_active_system          octproz/src/settingsconstants.h
 *     bit_depth width height depth buffers_per_volume, in a section named after the system:
 *                                 octproz_plugins/octproz-virtual-oct-system/src/
 *                                 virtualoctsystemsettingsdialog.h and virtualoctsystem.cpp
 *     resampling, c0..c3          octproz/src/octalgorithmparameters.cpp (updateResampleCurve)
 *     dispersion, d0..d3          the same (updateDispersionCurve), octproz/src/cuda_code.cu
 *                                 (fillDispersivePhase, CUFFT_INVERSE) */
#ifndef OCT_FORMATS_INPUT_OCTPROZ_META_H
#define OCT_FORMATS_INPUT_OCTPROZ_META_H

#include "pipeline/plan/calibration.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_OCTPROZ_MOST_META (1u << 20) /* bytes; real ones have a few thousand */

struct oct_octproz_meta {
    bool is_octproz; /* it has a section of OCTproZ */
    char system[64]; /* that recorded; "Virtual OCT System" where the file does not say */
    uint64_t bits;   /* of a sample: 1 byte up to 8, 2 up to 16, else 4; 0: not said */
    uint64_t n_samples, n_lines, n_bscans; /* width, height, depth: of a buffer; 0: not said */
    bool is_resampled, is_resampled_by_file, is_dispersed;
    double resampling[4]; /* place in camera samples of step j of N in k: sum c_i (j / (N-1))^i */
    double dispersion[4]; /* phase in radians at step j: sum d_i (j / (N-1))^i */
};

/* text[n_bytes] ends with a NUL that is not counted; anything may stand in it. */
void oct_octproz_meta_read(struct oct_octproz_meta *meta, const char *text, size_t n_bytes);

/* The k map and the dispersion in octd's terms, for N samples; d0 and d1, which only turn the phase
 * and move the picture, are left out, and with them what the other two have of them. *cal comes in
 * empty. */
enum oct_err oct_octproz_meta_calibration(const struct oct_octproz_meta *meta, uint32_t n_samples,
                                          struct oct_calibration *cal, struct oct_error *err);

#endif
