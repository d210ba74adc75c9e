#include "tools/analyse/register_volumes_points.h"

#include "formats/csv.h"
#include "formats/csv_read.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- reading ---- */

/* Where the three numbers stand; the columns of a header, if the row is one. */
static bool read_header(const char *const *cells, unsigned n, unsigned column[3])
{
    static const char *const names[3] = {"bscan", "line", "depth"};
    double number;
    bool is_header = false;
    for (unsigned k = 0; k < 3; k++) {
        column[k] = k;
        is_header = is_header || (k < n && !oct_csv_to_number(cells[k], &number));
        for (unsigned i = 0; i < n; i++)
            if (strcasecmp(cells[i], names[k]) == 0)
                column[k] = i, is_header = true;
    }
    return is_header;
}

static enum oct_err read_row(const struct oct_volumes_run *run, const struct oct_csv_reader *csv,
                             const char *const *cells, unsigned n, const unsigned column[3],
                             double point[3], struct oct_error *err)
{
    const uint32_t *dims = run->grid.dims;
    for (unsigned k = 0; k < 3; k++) {
        if (column[k] >= n || !oct_csv_to_number(cells[column[k]], &point[k]))
            return oct_csv_refuse(csv, err, "needs three numbers: B-scan, A-line, depth");
        if (!(point[k] >= -0.5 && point[k] <= dims[k] - 0.5))
            return oct_csv_refuse(csv, err, "%g lies outside 0 to %u, voxels of %s", point[k],
                                  dims[k] - 1, run->fixed_path);
    }
    return OCT_OK;
}

static enum oct_err append(struct oct_volumes_run *run, const double point[3],
                           struct oct_error *err)
{
    const size_t n = run->n_points;
    if ((n & (n + 1)) == 0) { /* room for twice as many, and one more */
        double(*more)[3] = realloc(run->points, (2 * n + 1) * sizeof(*more));
        if (!more)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", run->given->points);
        run->points = more;
    }
    memcpy(run->points[run->n_points++], point, 3 * sizeof(double));
    return OCT_OK;
}

enum oct_err oct_volumes_read_points(struct oct_volumes_run *run, struct oct_error *err)
{
    struct oct_csv_reader *csv;
    const char *const *cells;
    unsigned n, column[3] = {0, 1, 2};
    bool is_first = true;
    if (!run->given->points)
        return OCT_OK;
    enum oct_err e = oct_csv_open(&csv, run->given->points, err);
    while (!e) {
        double point[3];
        e = oct_csv_next(csv, &cells, &n, err);
        if (e || n == 0)
            break;
        if (!is_first || !read_header(cells, n, column)) {
            e = read_row(run, csv, cells, n, column, point, err);
            e = e ? e : append(run, point, err);
        }
        is_first = false;
    }
    oct_csv_close(csv);
    if (!e && run->n_points == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: has no places", run->given->points);
    return e;
}

/* ---- mapping and writing ---- */

enum oct_err oct_volumes_map_points(struct oct_volumes_run *run, unsigned i,
                                    const float *displacement, struct oct_error *err)
{
    struct oct_volumes_pair *pair = &run->pairs[i];
    if (run->n_points == 0)
        return OCT_OK;
    pair->points = malloc(run->n_points * sizeof(*pair->points));
    if (!pair->points)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu places", run->n_points);
    for (size_t p = 0; p < run->n_points; p++) {
        oct_warp_point(&run->grid, displacement, run->points[p], pair->points[p]);
        for (unsigned k = 0; k < 3; k++)
            pair->points[p][k] =
                pair->placing.origin[k] + pair->placing.scale[k] * pair->points[p][k];
    }
    return OCT_OK;
}

enum oct_err oct_volumes_write_points(void *context, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_volumes_run *run = context;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(
        &csv, path, force,
        "moving,bscan,line,depth,moving_bscan,moving_line,moving_depth,moving_file", err);
    if (e)
        return e;
    for (unsigned i = 0; i < run->n_moving; i++)
        for (size_t p = 0; p < run->n_points; p++) {
            oct_csv_count(csv, i + 1);
            for (unsigned k = 0; k < 3; k++)
                oct_csv_number(csv, run->points[p][k]);
            for (unsigned k = 0; k < 3; k++)
                oct_csv_number(csv, run->pairs[i].points[p][k]);
            oct_csv_text(csv, run->pairs[i].path);
            oct_csv_end_row(csv);
        }
    return oct_csv_publish(csv, err);
}
