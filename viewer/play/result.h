/* The datasets of an HDF5 file that is no recording (formats/contents.h), as playback shows them:
 * one of two axes is a picture, one of three a picture for each row of its first axis. A picture
 * whose last axis is the depth lies as a B-scan does; another one as it is written, row below row.
 * One thread. */
#ifndef OCT_VIEWER_PLAY_RESULT_H
#define OCT_VIEWER_PLAY_RESULT_H

#include "viewer/model/playback.h"

struct oct_play_result;

/* Opens the how many-th dataset that can be shown, from 1 (0: the first), and fills file: its
 * shape, unit and spacing, what the file is, and which of how many it is. OCT_E_FORMAT: there is
 * none to be shown, the file is a recording, or another
 * program's whole numbers, which may be spectra; file->what is set where it is known; OCT_E_IO,
 * OCT_E_ARG, OCT_E_NO_MEMORY. */
enum oct_err oct_play_result_open(struct oct_play_result **result, const char *path,
                                  uint32_t number, struct oct_view_file *file,
                                  struct oct_error *err);
void oct_play_result_close(struct oct_play_result *result); /* NULL is fine */

/* Reads picture v, f32 [n_lines][depth]. */
enum oct_err oct_play_result_read(struct oct_play_result *result, uint32_t v, float *pixels,
                                  struct oct_error *err);

#endif
