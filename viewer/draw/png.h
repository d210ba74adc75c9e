/* Pictures of the window as PNG files, with a text in them of what they show: the keywords
 * Software, Creation Time, Description (a line) and octview (JSON). Any thread, one a surface. */
#ifndef OCT_VIEWER_DRAW_PNG_H
#define OCT_VIEWER_DRAW_PNG_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <time.h>

struct SDL_Surface;
struct oct_view_caption;

/* Writes the file whole or not at all: under a temporary name in the same folder, synced, renamed;
 * an older file of that name is replaced. Surfaces of other formats than ARGB8888 are refused
 * (OCT_E_ARG). OCT_E_IO or OCT_E_NO_SPACE name the file. */
enum oct_err oct_png_save(struct SDL_Surface *surface, const struct oct_view_caption *caption,
                          const char *path, struct oct_error *err);

/* As oct_png_save, under a name that is not taken yet: FOLDER/octview-YYYYMMDD-HHMMSS-NNN, the
 * caption's name and .png; `when` in local time, NNN from 001 on. A file has such a name only when
 * it is whole, and replaces none. The name is written to path (of path_bytes). */
enum oct_err oct_png_save_new(struct SDL_Surface *surface, const struct oct_view_caption *caption,
                              const char *folder, time_t when, char *path, size_t path_bytes,
                              struct oct_error *err);

#endif
