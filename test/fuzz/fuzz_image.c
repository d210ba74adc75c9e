/* The header of an image of any topic (JSON, 0x1e, values), as a client decodes it: what is
 * accepted fits the values, holds texts that may be shown, and comes back from the writer. */
#include "test/fuzz/fuzz.h"

#include "pipeline/base/utf8.h"
#include "pipeline/wire/image_header.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void must_be_line(const char *text, size_t room)
{
    char line[64];
    fuzz_must(memchr(text, '\0', room) != NULL);
    strcpy(line, text);
    oct_utf8_make_line(line);
    fuzz_must(strcmp(line, text) == 0);
}

static void look_at(const struct oct_image_header *h, size_t n_bytes)
{
    uint64_t n = h->type == OCT_SAMPLE_F32 ? sizeof(float) : 1;
    fuzz_must(h->rank >= 1 && h->rank <= OCT_IMAGE_MAX_RANK);
    for (unsigned i = 0; i < h->rank; i++) {
        fuzz_must(i == 0 || h->dims[i] > 0);
        n *= h->dims[i];
    }
    fuzz_must(n == n_bytes);
    for (unsigned i = 0; i < OCT_IMAGE_MAX_RANK; i++)
        fuzz_must(isnan(h->spacing_um[i]) || (h->spacing_um[i] > 0 && isfinite(h->spacing_um[i])));
    fuzz_must(isfinite(h->lo) && isfinite(h->hi));
    must_be_line(h->dataset, sizeof(h->dataset));
    must_be_line(h->acquisition_id, sizeof(h->acquisition_id));
    must_be_line(h->unit, sizeof(h->unit));
    fuzz_must(h->n_labels <= OCT_IMAGE_MAX_LABELS);
    fuzz_must(h->n_labels == 0 || h->n_labels == h->dims[h->rank - 1]);
    for (unsigned i = 0; i < h->n_labels; i++)
        must_be_line(h->labels[i], sizeof(h->labels[i]));
    fuzz_must(h->n_numbers <= OCT_IMAGE_MAX_NUMBERS);
    for (unsigned i = 0; i < h->n_numbers; i++) {
        const struct oct_image_header_number *number = &h->numbers[i];
        must_be_line(number->name, sizeof(number->name));
        fuzz_must(number->n_values >= 1 && number->n_values <= OCT_IMAGE_MAX_NUMBERS);
        for (unsigned k = 0; k < number->n_values; k++)
            fuzz_must(!isinf(number->values[k]));
        fuzz_must(isnan(oct_image_header_number(h, number->name, OCT_IMAGE_MAX_NUMBERS)));
    }
}

/* As many of the numbers as a form has room for; returns how many. */
static unsigned take_numbers(const struct oct_image_header *h, struct oct_image_number *numbers,
                             double *values)
{
    unsigned n = 0, n_values = 0;
    for (; n < h->n_numbers; n_values += h->numbers[n++].n_values) {
        if (h->numbers[n].n_values > OCT_IMAGE_MAX_NUMBERS - n_values)
            break;
        numbers[n] = (struct oct_image_number){h->numbers[n].name, h->numbers[n].n_values};
        memcpy(values + n_values, h->numbers[n].values, h->numbers[n].n_values * sizeof(*values));
    }
    return n;
}

static void must_be_same_numbers(const struct oct_image_header *a, const struct oct_image_header *b,
                                 unsigned n)
{
    fuzz_must(a->n_numbers == n);
    for (unsigned i = 0; i < n; i++) {
        fuzz_must(strcmp(a->numbers[i].name, b->numbers[i].name) == 0 &&
                  a->numbers[i].n_values == b->numbers[i].n_values);
        for (unsigned k = 0; k < a->numbers[i].n_values; k++) {
            const double x = a->numbers[i].values[k], y = b->numbers[i].values[k];
            fuzz_must(isnan(x) ? isnan(y) : fabs(x - y) <= 1e-6 * fabs(y));
        }
    }
}

/* The same image, written by us and read again. */
static void send_on(const struct oct_image_header *h, char *values, size_t n_bytes)
{
    static char json[OCT_IMAGE_HEADER_BYTES];
    const char *labels[OCT_IMAGE_MAX_LABELS];
    struct oct_image_number numbers[OCT_IMAGE_MAX_NUMBERS];
    struct oct_image_header again;
    struct oct_error err;
    struct oct_image_form form = {.name = "image",
                                  .quantity = OCT_QUANTITY_LENGTH,
                                  .type = h->type,
                                  .rank = h->rank,
                                  .axes = {"a", "b", "c"},
                                  .labels = h->n_labels ? labels : NULL,
                                  .numbers = numbers};
    struct oct_image_frame frame = {.info = {.number = h->frame_num >> 12, /* whole in a double */
                                             .volume = h->volume >> 12,
                                             .bscan = h->bscan,
                                             .missing_lines = h->missing_lines},
                                    .form = &form,
                                    .whole = h->whole,
                                    .lo = h->lo,
                                    .hi = h->hi,
                                    .pixels = values};
    for (unsigned i = 0; i < h->n_labels; i++)
        labels[i] = h->labels[i];
    form.n_numbers = take_numbers(h, numbers, frame.numbers);
    memcpy(form.spacing_um, h->spacing_um, sizeof(form.spacing_um));
    memcpy(frame.dims, h->dims, sizeof(frame.dims));
    size_t n = oct_image_header_encode(&frame, h->acquisition_id, json, sizeof(json));
    fuzz_must(n > 0 && n == strlen(json));
    fuzz_must(!oct_image_header_decode(&again, json, n, n_bytes, &err));
    fuzz_must(again.rank == h->rank && again.type == h->type && again.whole == h->whole &&
              again.n_labels == h->n_labels && again.frame_num == h->frame_num >> 12);
    fuzz_must(memcmp(again.dims, h->dims, sizeof(h->dims)) == 0);
    fuzz_must(memcmp(again.labels, h->labels, sizeof(h->labels)) == 0);
    fuzz_must(strcmp(again.acquisition_id, h->acquisition_id) == 0);
    must_be_same_numbers(&again, h, form.n_numbers);
    for (unsigned i = 0; i < OCT_IMAGE_MAX_RANK; i++)
        fuzz_must(isnan(again.spacing_um[i]) == isnan(h->spacing_um[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_image_header header;
    struct oct_error err = {.text = ""};
    size_t n_json, n_bytes;
    char *json = fuzz_piece(&in, false, &n_json), *values = fuzz_piece(&in, false, &n_bytes);
    if (oct_image_header_decode(&header, json, n_json, n_bytes, &err)) {
        fuzz_must(err.text[0] && header.rank == 0);
    } else {
        look_at(&header, n_bytes);
        send_on(&header, values, n_bytes);
        if (header.n_labels && header.type == OCT_SAMPLE_F32 && header.dims[0] > 0)
            oct_image_header_value(&header, (const float *)(const void *)values, header.labels[0]);
    }
    free(json);
    free(values);
    return 0;
}
