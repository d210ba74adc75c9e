/* The files that register makes: what they may be, and what stands in them. */
#ifndef OCT_TOOLS_REGISTER_FILES_H
#define OCT_TOOLS_REGISTER_FILES_H

#include "tools/register.h"

/* "FILE-motion.png" beside --png "FILE.png"; the caller frees it. NULL: out of memory. */
char *oct_register_motion_path(const char *png);

/* Whether all files may be made; before any work. */
enum oct_err oct_register_check_files(const struct oct_register *r, struct oct_error *err);

#endif
