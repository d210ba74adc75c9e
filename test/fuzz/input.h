/* What the fuzz targets of other programs' recordings share. */
#ifndef OCT_TEST_FUZZ_INPUT_H
#define OCT_TEST_FUZZ_INPUT_H

#include "formats/input/input.h"

/* Opens a file with this format alone, if the format takes it, and reads B-scans. dataset: the
 * user's file.dataset. */
void fuzz_open_input(const struct oct_input_ops *ops, const char *path, const char *dataset);

#endif
