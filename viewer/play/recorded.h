/* An open recording as octview shows it: what it says of itself, and its B-scans one by one.
 * Nothing is read ahead and nothing is kept, so that a recording of any size opens at once and
 * takes the memory of a few B-scans. Its bytes are checked by pipeline/volume.
 *
 * A recording without pictures is reconstructed B-scan by B-scan, with what it says of itself.
 *
 * One thread uses a recording at a time. Each function may take as long as the disk does. */
#ifndef OCT_VIEWER_PLAY_RECORDED_H
#define OCT_VIEWER_PLAY_RECORDED_H

#include "config/config.h"
#include "viewer/model/enface.h"
#include "viewer/model/picture.h"
#include "viewer/model/playback.h"

struct oct_play_recorded;

/* config: of the command line, borrowed for the call. Where the file carries none it says whether
 * values are dB, and how spectra are reconstructed. A file of `record last` has volumes one after
 * another: opened is the how many-th, from 1, or with 0 the newest whole one, else the newest.
 * *recorded is NULL on error. Errors as of oct_volume_open. */
enum oct_err oct_play_recorded_open(struct oct_play_recorded **recorded, const char *path,
                                    const struct oct_config *config, uint32_t volume,
                                    struct oct_error *err);
void oct_play_recorded_close(struct oct_play_recorded *recorded); /* NULL is fine */

/* The file; valid until it is closed. place and n_files are 0. */
const struct oct_view_file *oct_play_recorded_file(const struct oct_play_recorded *recorded);

/* Its way, with the positions of a file; valid until it is closed. n_bscans 0: not known. */
const struct oct_scan *oct_play_recorded_scan(const struct oct_play_recorded *recorded);

/* Of all its pictures. */
enum oct_sample_type oct_play_recorded_type(const struct oct_play_recorded *recorded);

/* Reads B-scan v: its header and pixels. One that was not recorded (*valid false) is empty: zero
 * (u8) or NaN. OCT_E_ARG: v out of range; OCT_E_NO_MEMORY. */
enum oct_err oct_play_recorded_read(struct oct_play_recorded *recorded, uint32_t v,
                                    struct oct_view_picture *picture, bool *valid,
                                    struct oct_error *err);

/* Reads one A-line of B-scan v into depths ([depth], dB or counts^2), or the mean of each A-line
 * into means ([n_lines]). NaN where nothing was recorded. */
enum oct_err oct_play_recorded_line(struct oct_play_recorded *recorded, uint32_t v, uint32_t line,
                                    float *depths, struct oct_error *err);
enum oct_err oct_play_recorded_means(struct oct_play_recorded *recorded, uint32_t v, float *means,
                                     struct oct_error *err);

/* Fills an en face picture that was resized for this file, or for the grid of its scan, with the
 * one that it holds. False: it holds none that is whole, or it is of another shape. */
bool oct_play_recorded_enface(struct oct_play_recorded *recorded, struct oct_view_enface *enface);

#endif
