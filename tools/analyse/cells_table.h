/* Positions of cells from a table (formats/csv_read.h), whatever program made it. Columns are found
 * by the names of the header, in any order and of any case; others are passed over:
 *
 *     x_px or x, y_px or y: the position; frame or t: a whole number from 0
 *     track, id or track_id: a whole number from 0; empty: the cell belongs to no track
 */
#ifndef OCT_TOOLS_CELLS_TABLE_H
#define OCT_TOOLS_CELLS_TABLE_H

#include "analysis/cells/score.h"

#define OCT_CELLS_TABLE_MOST 20000000u /* rows */

struct oct_cells_table {
    struct oct_score_cell *cells; /* [n], as the rows; track: its number + 1, 0: none */
    size_t n;
};

/* *table is empty on error, and finished by the caller otherwise. OCT_E_FORMAT: no such table, with
 * file and line. OCT_E_IO. */
enum oct_err oct_cells_table_read(struct oct_cells_table *table, const char *path,
                                  struct oct_error *err);
void oct_cells_table_finish(struct oct_cells_table *table);

#endif
