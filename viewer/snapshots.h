/* Writes pictures of the window into PNG files. A thread compresses, writes and syncs them, because
 * that takes longer than a frame may, and for ever on a disk that stands still. One thread owns the
 * struct and calls the functions below. */
#ifndef OCT_VIEWER_SNAPSHOTS_H
#define OCT_VIEWER_SNAPSHOTS_H

#include "pipeline/base/err.h"

#include <stdbool.h>

#define OCT_VIEW_MOST_SNAPSHOTS 8

struct SDL_Surface;
struct oct_view_caption;
struct oct_view_snapshots;

/* What became of one. */
struct oct_view_snapshot_done {
    enum oct_err code;
    char text[OCT_ERROR_TEXT_BYTES]; /* its path, or what went wrong */
};

/* Files go to `folder`, which is copied. `notify` is called by the thread when one is done. */
enum oct_err oct_view_snapshots_create(struct oct_view_snapshots **snapshots, const char *folder,
                                       void (*notify)(void *context), void *context,
                                       struct oct_error *err);

/* Owns the surface from now on, on failure too, and copies the caption; returns at once. The file's
 * name has the time of this call. OCT_E_AGAIN: OCT_VIEW_MOST_SNAPSHOTS wait already. */
enum oct_err oct_view_snapshots_add(struct oct_view_snapshots *snapshots,
                                    struct SDL_Surface *surface,
                                    const struct oct_view_caption *caption, struct oct_error *err);

/* Returns what became of the oldest snapshot that is done and was not taken yet; false: none is. */
bool oct_view_snapshots_take(struct oct_view_snapshots *snapshots,
                             struct oct_view_snapshot_done *done);

/* Waits until all are written, wait_s at most. Logs what fails from here on, and how many were
 * given up. NULL is fine. */
void oct_view_snapshots_destroy(struct oct_view_snapshots *snapshots, int wait_s);

#endif
