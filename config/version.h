/* What --version prints, in one layout for every program. */
#ifndef OCT_CONFIG_VERSION_H
#define OCT_CONFIG_VERSION_H

#include <stdio.h>

/* "PROGRAM VERSION", then a line for each library and the compiler it was built with, and the
 * engines in it. own_libraries: lines for what only this program has ("libuv 1.44.2\n"), or "". */
void oct_version_write(FILE *out, const char *program, const char *own_libraries);

#endif
