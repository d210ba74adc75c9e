/* What octview remembers for a user between two runs: an INI file of its own. */
#ifndef OCT_VIEWER_SETTINGS_H
#define OCT_VIEWER_SETTINGS_H

#include "viewer/model/model.h"

/* XDG_CONFIG_HOME/octd/viewer.ini, else HOME/.config/octd/viewer.ini; false: neither is set. */
bool oct_view_settings_path(char *path, size_t n_bytes);

/* Reads the file into settings and contrast. A missing file is no error. A wrong line is reported
 * in *err (OCT_E_FORMAT) and ignored; the other lines count. */
enum oct_err oct_view_settings_load(struct oct_view_model *model, const char *path,
                                    struct oct_error *err);

/* Writes the file, whole or not at all, and makes its folder if there is none. */
enum oct_err oct_view_settings_save(const struct oct_view_model *model, const char *path,
                                    struct oct_error *err);

#endif
