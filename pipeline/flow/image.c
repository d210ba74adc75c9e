#include "pipeline/flow/image.h"

#include "pipeline/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *unit;
} quantities[OCT_N_QUANTITIES] = {
    [OCT_QUANTITY_INTENSITY] = {"intensity", "counts^2"},
    [OCT_QUANTITY_INTENSITY_DB] = {"intensity", "dB"},
    [OCT_QUANTITY_LENGTH] = {"length", "um"},
    [OCT_QUANTITY_DEPTH] = {"depth", "px"},
    [OCT_QUANTITY_DECORRELATION] = {"decorrelation", "1"},
    [OCT_QUANTITY_SIGNIFICANCE] = {"significance", "1"},
    [OCT_QUANTITY_VELOCITY] = {"velocity", "mm/s"},
    [OCT_QUANTITY_PHASE] = {"phase", "rad"},
    [OCT_QUANTITY_NUMBERS] = {"numbers", "as labelled"},
};

const char *oct_quantity_name(enum oct_quantity quantity)
{
    return quantities[quantity].name;
}

const char *oct_quantity_unit(enum oct_quantity quantity)
{
    return quantities[quantity].unit;
}

static size_t value_bytes(enum oct_sample_type type)
{
    return type == OCT_SAMPLE_F32 ? sizeof(float) : 1;
}

size_t oct_image_form_bytes(const struct oct_image_form *form)
{
    size_t n = value_bytes(form->type);
    for (unsigned i = 0; i < form->rank; i++)
        n *= form->dims[i];
    return n;
}

uint32_t oct_image_form_rows(const struct oct_image_form *form, uint32_t n_bscans)
{
    const uint32_t n = form->bscans_an_image > 1 ? form->bscans_an_image : 1;
    return form->of_volume ? 1 : n_bscans / n + (n_bscans % n > 0);
}

unsigned oct_image_form_n_values(const struct oct_image_form *form)
{
    unsigned n = 0;
    for (unsigned i = 0; i < form->n_numbers; i++)
        n += form->numbers[i].n_values;
    return n;
}

static bool is_name(const char *name)
{
    size_t n = strnlen(name, OCT_IMAGE_NAME_BYTES);
    return n > 0 && n < OCT_IMAGE_NAME_BYTES && *name >= 'a' && *name <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static bool has_right_size(const struct oct_image_form *form)
{
    uint64_t n = 1;
    if (form->rank < 1 || form->rank > OCT_IMAGE_MAX_RANK)
        return false;
    for (unsigned i = 0; i < form->rank; i++) {
        n *= form->dims[i];
        if (n == 0 || n > OCT_MAX_BSCAN_SAMPLES || !form->axes[i])
            return false;
    }
    return true;
}

static bool has_right_labels(const struct oct_image_form *form)
{
    uint32_t n = form->dims[form->rank - 1];
    if (!form->labels)
        return form->quantity != OCT_QUANTITY_NUMBERS;
    if (n > OCT_IMAGE_MAX_LABELS)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!form->labels[i])
            return false;
    return true;
}

static bool has_right_numbers(const struct oct_image_form *form)
{
    unsigned n = 0;
    if (form->n_numbers > OCT_IMAGE_MAX_NUMBERS)
        return false;
    for (unsigned i = 0; i < form->n_numbers; i++) {
        const struct oct_image_number *number = &form->numbers[i];
        if (!is_name(number->name) || number->n_values < 1 ||
            number->n_values > OCT_IMAGE_MAX_NUMBERS - n)
            return false;
        n += number->n_values;
    }
    return true;
}

/* The most bytes of a member's text: its name, quotes, colon, comma, and a number or a word. 0: a
 * name or a word cannot be. */
static size_t member_bytes(const char *key, const char *const *words)
{
    size_t longest = 16;
    if (!key || !is_name(key))
        return 0;
    for (; words && *words; words++) {
        if (!is_name(*words))
            return 0;
        longest = strlen(*words) + 2 > longest ? strlen(*words) + 2 : longest;
    }
    return strlen(key) + 4 + longest;
}

static bool has_right_objects(const struct oct_image_form *form)
{
    const struct oct_image_objects *o = form->objects;
    size_t row_bytes = 3;
    if (!o)
        return true;
    if (form->rank != 2 || form->type != OCT_SAMPLE_F32 || !form->labels || !o->name ||
        !is_name(o->name) || !o->keys)
        return false;
    for (uint32_t i = 0; i < form->dims[1]; i++) {
        const size_t n = member_bytes(o->keys[i], o->words ? o->words[i] : NULL);
        if (n == 0)
            return false;
        row_bytes += n;
    }
    return form->dims[0] <= OCT_IMAGE_MAX_OBJECT_BYTES / row_bytes;
}

enum oct_err oct_image_form_check(const struct oct_image_form *form, struct oct_error *err)
{
    if (!is_name(form->name))
        return oct_fail(err, OCT_E_ARG,
                        "an image has no name of lower-case letters, digits and '_'");
    if ((unsigned)form->quantity >= OCT_N_QUANTITIES)
        return oct_fail(err, OCT_E_ARG, "%s: no such quantity", form->name);
    if (form->type != OCT_SAMPLE_U8 && form->type != OCT_SAMPLE_F32)
        return oct_fail(err, OCT_E_ARG, "%s: values are neither u8 nor f32", form->name);
    if (!has_right_size(form))
        return oct_fail(err, OCT_E_ARG,
                        "%s: 1 to %u axes with names and at most %u values are possible",
                        form->name, OCT_IMAGE_MAX_RANK, OCT_MAX_BSCAN_SAMPLES);
    if (!has_right_labels(form))
        return oct_fail(err, OCT_E_ARG, "%s: columns of numbers need a label each, %u at most",
                        form->name, OCT_IMAGE_MAX_LABELS);
    if (!has_right_numbers(form))
        return oct_fail(err, OCT_E_ARG,
                        "%s: numbers need a name of lower-case letters each, %u values at most",
                        form->name, OCT_IMAGE_MAX_NUMBERS);
    if (!has_right_objects(form))
        return oct_fail(
            err, OCT_E_ARG,
            "%s: objects are the rows of a labelled f32 table, with names of lower-case "
            "letters, and take %u bytes at most",
            form->name, OCT_IMAGE_MAX_OBJECT_BYTES);
    return OCT_OK;
}

struct oct_spacing oct_spacing_of_field(const struct oct_plan *plan, double width_um,
                                        double height_um, uint32_t n_bscans,
                                        double refractive_index)
{
    const struct oct_scan *scan = &plan->scan;
    const double length_um = oct_scan_length_um(scan->pattern, width_um);
    return (struct oct_spacing){
        .bscan_um = oct_scan_is_raster(scan) && height_um > 0 ? height_um / n_bscans : NAN,
        .line_um = length_um > 0 ? length_um / plan->geometry.n_lines : NAN,
        .depth_um = plan->axial_um / (refractive_index > 0 ? refractive_index : 1),
    };
}

void oct_image_form_of_bscan(struct oct_image_form *form, const struct oct_geometry *geometry,
                             bool log, const struct oct_spacing *spacing)
{
    *form = (struct oct_image_form){
        .name = "bscan",
        .quantity = log ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY,
        .type = geometry->sample_type,
        .rank = 2,
        .dims = {geometry->n_lines, geometry->depth},
        .spacing_um = {spacing->line_um, spacing->depth_um},
        .axes = {"line", "depth"},
    };
}
