/* The parts of octctl calibrate: from a lab's own measurements to files that octd takes.
 *
 *     octctl calibrate PART ARGUMENTS...
 *
 * A part is a command of its own, in a file of its own (calibrate_PART.c) with its own table of
 * options; its name is "calibrate PART", which messages and the help show. To add one, declare it
 * here, give it a row in cmd_calibrate.c, and describe its options in docs/octctl.1. Its `run` gets
 * argv[0] = "calibrate PART" and argv[1] .. argv[argc - 1] what followed the word PART.
 *
 * "octctl calibrate --PART ..." is the same as "octctl calibrate PART ...". */
#ifndef OCT_TOOLS_CALIBRATE_H
#define OCT_TOOLS_CALIBRATE_H

#include "tools/commands.h"

extern const struct oct_command oct_command_calibrate_kmap;

/* The part that is named by `word` ("kmap", "--kmap"), NULL: none. */
const struct oct_command *oct_command_part(const struct oct_command *command, const char *word);

/* Parts of this kind; the rows are in cmd_calibrate.c. */
extern const struct oct_command oct_command_calibrate_dispersion;
extern const struct oct_command oct_command_calibrate_report;

#endif
