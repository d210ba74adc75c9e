/* What octview remembers for a user between two runs: an INI file of its own. */
#ifndef OCT_VIEWER_SETTINGS_H
#define OCT_VIEWER_SETTINGS_H

#include "viewer/model/model.h"

/* XDG_CONFIG_HOME/octd/viewer.ini, else HOME/.config/octd/viewer.ini; false: neither is set. */
bool oct_view_settings_path(char *path, size_t n_bytes);

/* Reads what the file has into settings and contrast. No file is fine; a line that is wrong is
 * told in *err (OCT_E_FORMAT) and passed over, what is right counts. */
enum oct_err oct_view_settings_load(struct oct_view_model *model, const char *path,
                                    struct oct_error *err);

/* Writes the file, whole or not at all; its folder is made if need be. */
enum oct_err oct_view_settings_save(const struct oct_view_model *model, const char *path,
                                    struct oct_error *err);

#endif
