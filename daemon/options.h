/* octd's command line. */
#ifndef OCT_DAEMON_OPTIONS_H
#define OCT_DAEMON_OPTIONS_H

#include "config/config.h"
#include "daemon/watch.h"

/* Reads the options into config. true: the program ends here with *status (--help, --version, or a
 * mistake that was reported). */
bool oct_daemon_options(struct oct_config *config, struct oct_file_watch *watch, int argc,
                        char **argv, int *status);

#endif
