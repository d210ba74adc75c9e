/* What an exported array is, as JSON: for formats that have no place of their own for it. */
#ifndef OCT_FORMATS_EXPORT_DESCRIBE_H
#define OCT_FORMATS_EXPORT_DESCRIBE_H

#include "formats/export/export.h"

/* {"dataset": ..., "axes": [plane, row, column], "spacing_um": [...], ...}; null: unknown. Pictures
 * are described as oct_export_read_picture gives them. as_picture false: as the array lies.
 * malloc'd UTF-8; NULL: out of memory. */
char *oct_export_describe(const struct oct_export_form *form, bool as_picture);

#endif
