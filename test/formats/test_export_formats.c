/* The table of formats, and pictures from planes. */
#include "formats/export/export.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>

TEST(the_name_chooses_the_format)
{
    static const struct {
        const char *path, *to;
        const struct oct_export_format *format;
    } cases[] = {
        {"a.npy", NULL, &oct_export_npy},
        {"a.NPY", NULL, &oct_export_npy},
        {"a.mat", NULL, &oct_export_mat},
        {"a.png", NULL, &oct_export_png},
        {"a/", NULL, &oct_export_png},
        {"a.ome.tif", NULL, &oct_export_ome_tiff},
        {"a.OME.TIFF", NULL, &oct_export_ome_tiff},
        {"a.nii", NULL, &oct_export_nifti},
        {"a.nii.gz", NULL, &oct_export_nifti},
        {"a.dcm", NULL, &oct_export_dicom},
        {"a.npy", "mat", &oct_export_mat},
        {"a", "NIfTI", &oct_export_nifti},
        {"a.npy/", NULL, &oct_export_png},
        {".npy", NULL, NULL},
        {"a.npy.txt", NULL, NULL},
        {"a", NULL, NULL},
        {"a.gz", NULL, NULL},
        {"a.npy", "tif", NULL},
        {"a.npy", "", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct oct_export_format *format = &oct_export_npy;
        struct oct_error err = {.code = OCT_OK};
        const enum oct_err e = oct_export_format_find(&format, cases[i].path, cases[i].to, &err);
        assert_ptr_equal(format, cases[i].format);
        assert_int_equal(e, cases[i].format ? OCT_OK : OCT_E_ARG);
        if (!cases[i].format)
            assert_non_null(strstr(err.text, "ome-tiff (.ome.tif)"));
    }
}

TEST(names_and_suffixes_are_of_one_format_each)
{
    for (const struct oct_export_format *const *f = oct_export_formats; *f; f++) {
        const struct oct_export_format *found;
        assert_non_null((*f)->meaning);
        assert_non_null((*f)->write);
        assert_int_equal(oct_export_format_find(&found, "x", (*f)->name, NULL), OCT_OK);
        assert_ptr_equal(found, *f);
        for (size_t i = 0; i < 4 && (*f)->suffixes[i]; i++) {
            char path[32];
            snprintf(path, sizeof(path), "x%s", (*f)->suffixes[i]);
            assert_int_equal(oct_export_format_find(&found, path, NULL, NULL), OCT_OK);
            assert_ptr_equal(found, *f);
        }
    }
}

TEST(folders_are_made_by_name_or_for_want_of_one)
{
    assert_true(oct_export_makes_folder(&oct_export_png, "a/"));
    assert_true(oct_export_makes_folder(&oct_export_png, "a"));
    assert_true(oct_export_makes_folder(&oct_export_png, "a.png/"));
    assert_false(oct_export_makes_folder(&oct_export_png, "a.PNG"));
    assert_false(oct_export_makes_folder(&oct_export_npy, "a/"));
}

/* ---- pictures ---- */

static double value_at(enum oct_export_sample sample, const void *values, size_t i)
{
    return sample == OCT_EXPORT_U8    ? ((const uint8_t *)values)[i]
           : sample == OCT_EXPORT_U16 ? ((const uint16_t *)values)[i]
                                      : (double)((const float *)values)[i];
}

static void put(enum oct_export_sample sample, void *values, size_t i)
{
    if (sample == OCT_EXPORT_U8)
        ((uint8_t *)values)[i] = (uint8_t)(i * 7 + 3);
    else if (sample == OCT_EXPORT_U16)
        ((uint16_t *)values)[i] = (uint16_t)(i * 7919 + 3);
    else
        ((float *)values)[i] = (float)i + 0.5f;
}

static enum oct_err read_numbered(void *context, uint32_t plane, void *pixels,
                                  struct oct_error *err)
{
    const struct oct_export_form *form = context;
    if (plane == 1)
        return oct_fail(err, OCT_E_IO, "no plane 1");
    for (size_t i = 0; i < (size_t)form->dims[1] * form->dims[2]; i++)
        put(form->sample, pixels, i);
    return OCT_OK;
}

/* Sides below, at and above the tiles of the turn. */
TEST(depth_points_down)
{
    static const uint32_t sides[][2] = {{1, 1}, {1, 70}, {70, 1}, {32, 32}, {33, 65}, {64, 31}};
    for (size_t s = 0; s < sizeof(sides) / sizeof(*sides); s++)
        for (int sample = OCT_EXPORT_U8; sample <= OCT_EXPORT_F32; sample++)
            for (int is_upright = 0; is_upright < 2; is_upright++) {
                const uint32_t rows = sides[s][0], columns = sides[s][1];
                struct oct_export_source source = {
                    .form = {.dims = {2, rows, columns},
                             .um = {1, 2, 3},
                             .is_upright = is_upright,
                             .sample = (enum oct_export_sample)sample},
                    .read = read_numbered};
                uint32_t height, width;
                double um[2];
                float pixels[70 * 70], scratch[70 * 70], plane[70 * 70];
                source.context = &source.form;
                oct_export_picture_size(&source.form, &height, &width, um);
                assert_int_equal(height, is_upright ? rows : columns);
                assert_int_equal(width, is_upright ? columns : rows);
                assert_true(um[0] == (is_upright ? 2 : 3) && um[1] == (is_upright ? 3 : 2));
                assert_int_equal(oct_export_read_picture(&source, 0, pixels, scratch, NULL), 0);
                read_numbered(&source.form, 0, plane, NULL);
                for (uint32_t y = 0; y < height; y++)
                    for (uint32_t x = 0; x < width; x++)
                        assert_true(value_at(source.form.sample, pixels, (size_t)y * width + x) ==
                                    value_at(source.form.sample, plane,
                                             is_upright ? (size_t)y * columns + x
                                                        : (size_t)x * columns + y));
                assert_int_equal(oct_export_read_picture(&source, 1, pixels, scratch, NULL),
                                 OCT_E_IO);
            }
    assert_int_equal(oct_export_sample_bytes(OCT_EXPORT_U8), 1);
    assert_int_equal(oct_export_sample_bytes(OCT_EXPORT_U16), 2);
    assert_int_equal(oct_export_sample_bytes(OCT_EXPORT_F32), 4);
}
