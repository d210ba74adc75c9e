/* The options of an octctl command, read by its table (config/options.h). */
#ifndef OCT_TOOLS_OPTIONS_H
#define OCT_TOOLS_OPTIONS_H

#include "config/options.h"

struct oct_command;

/* Stores the defaults of the rows into `values`, where the others stand already, reads argv[1] ..
 * argv[*argc - 1] into it, and leaves the plain arguments alone in argv[1] .. argv[*argc - 1];
 * argv[*argc] is NULL then. Returns 0, or the exit status once it has said on stderr what is
 * wrong. */
int oct_options_read(const struct oct_command *command, void *values, int *argc, char **argv);

#endif
