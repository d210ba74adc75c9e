/* Links for browsers. */
#ifndef OCT_TOOLS_CONTROL_WEB_H
#define OCT_TOOLS_CONTROL_WEB_H

#include "config/config.h"
#include "pipeline/net/web_access.h"

/* Makes a link for that name and prints it in a line, as a browser takes it. */
enum oct_err oct_web_link_print(const struct oct_config *config, const char *name,
                                enum oct_web_role role, struct oct_error *err);

#endif
