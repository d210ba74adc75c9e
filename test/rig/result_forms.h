/* Images of analyses of each kind that a recording may hold: for the tests of recordings. */
#ifndef OCT_TEST_RIG_RESULT_FORMS_H
#define OCT_TEST_RIG_RESULT_FORMS_H

#include "pipeline/flow/image.h"

enum { N = 40, M = 5, V = 12, D = 16, ROWS = 4, COLUMNS = 3 };

/* f32 [ROWS][COLUMNS] with labels and u8 [2][M][D], of a B-scan; f32 [V][M] and u8 of several
 * blocks of the file, of a volume. */
extern const struct oct_image_form form_table, form_picture, form_enface, form_shadow;

#endif
