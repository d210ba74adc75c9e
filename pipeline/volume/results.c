#include "pipeline/volume/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

unsigned oct_volume_results_n_streams(const struct oct_image_form *const *forms, unsigned n_forms)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_forms; i++)
        n += !forms[i]->of_volume;
    return n;
}

/* ---- life ---- */

static enum oct_err init_one(struct oct_volume_results *all, struct oct_volume_result *r,
                             struct oct_volume_queue *queue, uint32_t n_bscans,
                             struct oct_error *err)
{
    size_t bytes = oct_image_form_bytes(&r->form);
    r->n_rows = oct_image_form_rows(&r->form, n_bscans);
    r->rows = calloc(r->n_rows, sizeof(*r->rows));
    r->lo = calloc(r->n_rows, sizeof(*r->lo));
    r->hi = calloc(r->n_rows, sizeof(*r->hi));
    r->numbers = calloc((size_t)r->n_rows * OCT_IMAGE_MAX_NUMBERS, sizeof(*r->numbers));
    r->valid = calloc(r->n_rows, 1);
    if (r->form.of_volume)
        r->image = malloc(bytes);
    if (!r->rows || !r->lo || !r->hi || !r->numbers || !r->valid ||
        (r->form.of_volume && !r->image))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", all->file->path);
    return r->form.of_volume
               ? OCT_OK
               : oct_volume_stream_init(&r->stream, all->file, queue, r->layout.data, bytes, err);
}

enum oct_err oct_volume_results_init(struct oct_volume_results *results,
                                     struct oct_volume_file *file, struct oct_volume_queue *queue,
                                     const struct oct_volume_layout *layout,
                                     const struct oct_volume_about *about, uint32_t n_bscans,
                                     struct oct_error *err)
{
    size_t longest = 0;
    *results = (struct oct_volume_results){.file = file};
    if (about->n_forms == 0)
        return OCT_OK;
    results->results = calloc(about->n_forms, sizeof(*results->results));
    for (unsigned i = 0; i < about->n_forms; i++) {
        size_t bytes = oct_image_form_bytes(about->forms[i]);
        if (!about->forms[i]->of_volume && bytes > longest)
            longest = bytes;
    }
    results->row = malloc(longest + 1);
    if (!results->results || !results->row)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    for (unsigned i = 0; i < about->n_forms; i++) {
        struct oct_volume_result *r = &results->results[results->n++];
        r->form = *about->forms[i];
        r->layout = layout->results[i];
        enum oct_err e = init_one(results, r, queue, n_bscans, err);
        if (e != OCT_OK)
            return e;
    }
    return OCT_OK;
}

void oct_volume_results_finish(struct oct_volume_results *results)
{
    for (unsigned i = 0; i < results->n; i++) {
        struct oct_volume_result *r = &results->results[i];
        free(r->rows);
        free(r->lo);
        free(r->hi);
        free(r->numbers);
        free(r->valid);
        free(r->image);
    }
    free(results->results);
    free(results->row);
    *results = (struct oct_volume_results){0};
}

/* ---- accepting ---- */

static uint32_t row_of(const struct oct_volume_result *r, uint32_t bscan)
{
    return r->image ? 0 : r->form.bscans_an_image > 1 ? bscan / r->form.bscans_an_image : bscan;
}

/* The column of a number, [n_rows][n_values], in the memory of all of them. `first`: values of the
 * numbers before it. */
static double *number_at(const struct oct_volume_result *r, unsigned first)
{
    return r->numbers + (size_t)first * r->n_rows;
}

static void keep_numbers(const struct oct_volume_result *r, const double *values, uint32_t row)
{
    for (unsigned i = 0, first = 0; i < r->form.n_numbers; first += r->form.numbers[i++].n_values) {
        unsigned n = r->form.numbers[i].n_values;
        memcpy(number_at(r, first) + (size_t)row * n, values + first, n * sizeof(*values));
    }
}

bool oct_volume_result_fits(const struct oct_image_form *form, const struct oct_image_frame *frame)
{
    const struct oct_image_form *of = frame->form;
    if (!of || !frame->pixels || frame->dims[0] > form->dims[0])
        return false;
    for (unsigned i = 1; i < form->rank; i++)
        if (frame->dims[i] != form->dims[i])
            return false;
    return of == form ||
           (strcmp(of->name, form->name) == 0 && of->type == form->type && of->rank == form->rank &&
            of->of_volume == form->of_volume && of->bscans_an_image == form->bscans_an_image &&
            of->n_numbers == form->n_numbers &&
            memcmp(of->dims, form->dims, form->rank * sizeof(form->dims[0])) == 0);
}

static enum oct_err check(const struct oct_volume_results *results, unsigned i,
                          const struct oct_image_frame *frame, struct oct_error *err)
{
    const char *part = results->file ? results->file->part : "";
    if (i >= results->n)
        return oct_fail(err, OCT_E_ARG, "%s: this file has no dataset %u", part, i);
    const struct oct_volume_result *r = &results->results[i];
    uint32_t bscan = frame->info.bscan;
    if (frame->status != OCT_OK)
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u is no result", part, r->form.name,
                        bscan);
    if (!oct_volume_result_fits(&r->form, frame))
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u has another form than its dataset",
                        part, r->form.name, bscan);
    if (r->image)
        return OCT_OK;
    uint32_t row = row_of(r, bscan);
    if (row >= r->n_rows)
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u: the volume has %u rows", part,
                        r->form.name, bscan, r->n_rows);
    if (row < r->next)
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u in row %u after %u: rows must rise",
                        part, r->form.name, bscan, row, r->next - 1);
    return OCT_OK;
}

static size_t used_bytes(const struct oct_image_form *form, uint32_t n_rows)
{
    return oct_image_form_bytes(form) / form->dims[0] * n_rows;
}

/* Of a buffer of f32; u8 knows no NaN and gets zeros. */
static void blank(const struct oct_image_form *form, unsigned char *to, size_t bytes)
{
    const float nan = NAN;
    memset(to, 0, bytes);
    for (size_t at = 0; form->type == OCT_SAMPLE_F32 && at < bytes; at += sizeof(nan))
        memcpy(to + at, &nan, sizeof(nan));
}

/* The whole extent of the form: what the frame does not use is NaN or 0. */
static void fill(const struct oct_image_form *form, const struct oct_image_frame *frame,
                 unsigned char *image)
{
    size_t bytes = oct_image_form_bytes(form), used = used_bytes(form, frame->dims[0]);
    memcpy(image, frame->pixels, used);
    blank(form, image + used, bytes - used);
}

enum oct_err oct_volume_results_accept(struct oct_volume_results *results, unsigned i,
                                       const struct oct_image_frame *frame, struct oct_error *err)
{
    enum oct_err e = check(results, i, frame, err);
    if (e != OCT_OK)
        return e;
    struct oct_volume_result *r = &results->results[i];
    uint32_t row = row_of(r, frame->info.bscan);
    const void *image = frame->pixels;
    if (r->image) {
        fill(&r->form, frame, r->image);
    } else if (frame->dims[0] < r->form.dims[0]) {
        fill(&r->form, frame, results->row);
        image = results->row;
    }
    if (!r->image)
        e = oct_volume_stream_append(&r->stream, row, image, err);
    if (e != OCT_OK)
        return e;
    r->rows[row] = frame->dims[0];
    r->lo[row] = frame->lo;
    r->hi[row] = frame->hi;
    keep_numbers(r, frame->numbers, row);
    r->valid[row] = 1;
    if (r->first_dirty == r->end_dirty)
        r->first_dirty = row;
    r->end_dirty = row + 1;
    r->next = r->image ? 0 : row + 1;
    return OCT_OK;
}

/* ---- writing ---- */

static bool is_dirty(const struct oct_volume_result *r)
{
    return r->first_dirty < r->end_dirty;
}

/* Rows between those accepted are zeros, as in the file. */
static enum oct_err put_column(struct oct_volume_results *results,
                               const struct oct_volume_result *r, int column, uint64_t *n_bytes,
                               struct oct_error *err)
{
    const void *values[OCT_N_RESULT_COLUMNS] = {
        [OCT_RESULT_ROWS] = r->rows,
        [OCT_RESULT_LO] = r->lo,
        [OCT_RESULT_HI] = r->hi,
        [OCT_RESULT_VALID] = r->valid,
    };
    size_t bytes = oct_volume_result_columns[column].bytes;
    size_t first = r->first_dirty * bytes, n = (r->end_dirty - r->first_dirty) * bytes;
    if (r->layout.column[column] == 0)
        return OCT_OK;
    *n_bytes += r->is_in_file ? 0 : n;
    return oct_volume_file_write(results->file, (const unsigned char *)values[column] + first, n,
                                 r->layout.column[column] + first, false, err);
}

static enum oct_err put_numbers(struct oct_volume_results *results,
                                const struct oct_volume_result *r, uint64_t *n_bytes,
                                struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0, first = 0; i < r->form.n_numbers && e == OCT_OK;
         first += r->form.numbers[i++].n_values) {
        size_t n_values = r->form.numbers[i].n_values, at = r->first_dirty * n_values;
        size_t n = (r->end_dirty - r->first_dirty) * n_values * sizeof(double);
        *n_bytes += r->is_in_file ? 0 : n;
        e = oct_volume_file_write(results->file, number_at(r, first) + at, n,
                                  r->layout.number[i] + at * sizeof(double), false, err);
    }
    return e;
}

/* Sets `valid` of images that are about to be replaced to 0, and syncs that. */
static enum oct_err retract(struct oct_volume_results *results, struct oct_error *err)
{
    const uint8_t no = 0;
    bool any = false;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++) {
        const struct oct_volume_result *r = &results->results[i];
        if (!r->is_in_file || !is_dirty(r))
            continue;
        any = true;
        e = oct_volume_file_write(results->file, &no, 1, r->layout.column[OCT_RESULT_VALID], false,
                                  err);
    }
    return e == OCT_OK && any ? oct_volume_file_sync(results->file, err) : e;
}

static enum oct_err push_one(struct oct_volume_results *results, struct oct_volume_result *r,
                             uint64_t *n_bytes, struct oct_error *err)
{
    size_t bytes = oct_image_form_bytes(&r->form);
    enum oct_err e = OCT_OK;
    if (r->image && is_dirty(r)) {
        e = oct_volume_file_write(results->file, r->image, bytes, r->layout.data, false, err);
        *n_bytes += r->is_in_file ? 0 : bytes;
    }
    for (int c = 0; c < OCT_RESULT_VALID && e == OCT_OK && is_dirty(r); c++)
        e = put_column(results, r, c, n_bytes, err);
    return e == OCT_OK && is_dirty(r) ? put_numbers(results, r, n_bytes, err) : e;
}

enum oct_err oct_volume_results_push(struct oct_volume_results *results, uint64_t *n_bytes,
                                     struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++)
        if (!results->results[i].image)
            e = oct_volume_stream_push(&results->results[i].stream, err);
    e = e ? e : retract(results, err);
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++)
        e = push_one(results, &results->results[i], n_bytes, err);
    return e;
}

bool oct_volume_results_are_new(const struct oct_volume_results *results)
{
    for (unsigned i = 0; i < results->n; i++)
        if (is_dirty(&results->results[i]))
            return true;
    return false;
}

enum oct_err oct_volume_results_push_valid(struct oct_volume_results *results, uint64_t *n_bytes,
                                           struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++) {
        struct oct_volume_result *r = &results->results[i];
        if (!is_dirty(r))
            continue;
        e = put_column(results, r, OCT_RESULT_VALID, n_bytes, err);
        r->is_in_file = r->image != NULL;
        r->first_dirty = r->end_dirty = 0;
    }
    return e;
}

/* Pictures of B-scans take much of the disk: what never came of them stays a hole, as in /bscans.
 */
static bool knows_nan(const struct oct_image_form *form)
{
    const bool is_picture =
        form->quantity == OCT_QUANTITY_INTENSITY || form->quantity == OCT_QUANTITY_INTENSITY_DB;
    return form->type == OCT_SAMPLE_F32 && (form->of_volume || !is_picture);
}

/* Rows that no result came for: NaN. */
static enum oct_err blank_rows(struct oct_volume_results *results, struct oct_volume_result *r,
                               struct oct_error *err)
{
    const size_t bytes = oct_image_form_bytes(&r->form);
    unsigned char *image = r->image ? r->image : results->row;
    enum oct_err e = OCT_OK;
    blank(&r->form, image, bytes);
    for (uint32_t row = 0; row < r->n_rows && e == OCT_OK; row++) {
        if (r->valid[row])
            continue;
        r->lo[row] = r->hi[row] = NAN;
        for (unsigned i = 0, first = 0; i < r->form.n_numbers;
             first += r->form.numbers[i++].n_values)
            for (unsigned k = 0; k < r->form.numbers[i].n_values; k++)
                number_at(r, first)[(size_t)row * r->form.numbers[i].n_values + k] = NAN;
        if (knows_nan(&r->form))
            e = oct_volume_file_write(results->file, image, bytes, r->layout.data + row * bytes,
                                      false, err);
    }
    r->first_dirty = 0;
    r->end_dirty = r->n_rows;
    return e;
}

enum oct_err oct_volume_results_end(struct oct_volume_results *results, uint64_t *n_bytes,
                                    struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++) {
        struct oct_volume_result *r = &results->results[i];
        if (!memchr(r->valid, 0, r->n_rows))
            continue;
        e = blank_rows(results, r, err);
        for (int c = 0; c < OCT_RESULT_VALID && e == OCT_OK; c++)
            e = put_column(results, r, c, n_bytes, err);
        e = e ? e : put_numbers(results, r, n_bytes, err);
        r->first_dirty = r->end_dirty = 0;
    }
    return e == OCT_OK ? oct_volume_file_sync(results->file, err) : e;
}

void oct_volume_results_give_back(const struct oct_volume_results *results)
{
    for (unsigned i = 0; i < results->n; i++) {
        const struct oct_volume_result *r = &results->results[i];
        if (!knows_nan(&r->form))
            oct_volume_file_give_back_rows(results->file, r->layout.data,
                                           oct_image_form_bytes(&r->form), r->valid, r->n_rows);
    }
}

uint64_t oct_volume_results_bytes(const struct oct_volume_results *results)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < results->n; i++)
        n += results->results[i].stream.n_bytes;
    return n;
}
