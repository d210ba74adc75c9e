/* What OCTview (github.com/sstucker/OCTview) writes beside its recordings when "Save metadata
 * .JSON" is checked: NAME.json, of NAME.bin, NAME_0001.bin, ... Private to this room and its tests.
 * Any thread.
 *
 * Where the meaning of each member was read: src/main/python/OCTview.py, _create_metadata_json, of
 * the versions that write "OCTview version"; the order of the samples and their types in MANUAL.md,
 * "File settings" (Fortran order [z, x, y, t], UINT16 or COMPLEX64); the names of the files in
 * src/main/cpp/fastnisdoct/fastnisdoct/FileStreamWorker.h. Frame-size-voxels of spectra is
 * points_in_image * aline_size (src/main/python/widgets.py), which counts repeated A-lines and
 * B-lines. */
#ifndef OCT_FORMATS_INPUT_OCTVIEW_META_H
#define OCT_FORMATS_INPUT_OCTVIEW_META_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_OCTVIEW_MOST_META (1u << 20) /* bytes; real ones have about a thousand */

struct oct_octview_meta {
    bool is_octview;                       /* an object with "OCTview version" */
    bool is_spectra;                       /* Data-type UINT16, Processed not True */
    uint64_t n_samples, n_lines, n_bscans; /* of a frame, repeats among them; 0: not said, or the
                                              numbers contradict each other */
    double line_rate_hz, width_um, height_um, axial_um; /* NaN: unknown */
    double band_nm[2]; /* least and most of the spectrometer; NaN: unknown, or not as wavelengths */
};

/* json[n_bytes] may be anything. */
void oct_octview_meta_read(struct oct_octview_meta *meta, const char *json, size_t n_bytes);

#endif
