/* The numbers at the bottom of the window, each in a field of so many letters, so that none moves
 * when another grows. No SDL. */
#ifndef OCT_VIEWER_MODEL_FIELDS_H
#define OCT_VIEWER_MODEL_FIELDS_H

#include "viewer/model/status.h"

#define OCT_VIEW_MOST_FIELDS 16

struct oct_view_field {
    struct oct_view_phrase phrase; /* longer than the field: the window cuts it */
    unsigned n_letters;            /* always the same for the field of this number */
};

/* The status line, the most important field first: what the picture is, B-scans a second, volume
 * and B-scan, losses, the disk, what the mouse does, the keys for more. Returns how many; the
 * number does not depend on the model. */
unsigned oct_view_fields(const struct oct_view_model *model,
                         struct oct_view_field fields[OCT_VIEW_MOST_FIELDS]);

/* All other numbers, which a key shows above the status line. */
unsigned oct_view_details(const struct oct_view_model *model,
                          struct oct_view_field fields[OCT_VIEW_MOST_FIELDS]);

#endif
