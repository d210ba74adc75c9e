/* Recordings: which images of analyses one file may hold together, and the room that they take. */
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/layout.h"
#include "test/rig/result_forms.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum oct_err create_with(const struct oct_image_form *const *some, unsigned n,
                                struct oct_error *err)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    struct stat st;
    about.forms = some;
    about.n_forms = n;
    enum oct_err e = oct_volume_create(&w, "forms.h5", &plan, &about, true, true, err);
    if (e == OCT_OK)
        oct_volume_close(w, NULL);
    else
        assert_true(stat("forms.h5.part", &st) != 0);
    unlink("forms.h5");
    return e;
}

TEST(names_that_collide_are_refused_at_the_start)
{
    struct oct_image_form other = form_enface, line = form_picture, many[OCT_VOLUME_MAX_FORMS + 1];
    const struct oct_image_form *two[2] = {&form_enface, &other}, *all[OCT_VOLUME_MAX_FORMS + 1];
    struct oct_error err;
    assert_int_equal(create_with(two, 2, &err), OCT_E_ARG);
    snprintf(other.name, sizeof(other.name), "enface_valid");
    must_fail(create_with(two, 2, &failure), OCT_E_ARG, "enface_valid");
    snprintf(other.name, sizeof(other.name), "enface_depth");
    assert_int_equal(create_with(two, 2, &err), OCT_OK);
    two[0] = &line;
    snprintf(line.name, sizeof(line.name), "line");
    assert_int_equal(create_with(two, 1, &err), OCT_E_ARG);
    line.rank = 0;
    snprintf(line.name, sizeof(line.name), "lines");
    assert_int_equal(create_with(two, 1, &err), OCT_E_ARG);
    for (unsigned i = 0; i <= OCT_VOLUME_MAX_FORMS; i++) {
        many[i] = form_picture;
        snprintf(many[i].name, sizeof(many[i].name), "form%u", i);
        all[i] = &many[i];
    }
    assert_int_equal(create_with(all, OCT_VOLUME_MAX_FORMS + 1, &err), OCT_E_ARG);
    assert_int_equal(create_with(all, OCT_VOLUME_MAX_FORMS, &err), OCT_OK);
}

TEST(the_estimate_is_an_upper_bound_of_the_length)
{
    const char *long_labels[OCT_IMAGE_MAX_LABELS],
        *text = "a label of a hundred and twenty letters, as nobody should ever write one into a "
                "table of "
                "numbers, because it is long";
    struct oct_image_form many[OCT_VOLUME_MAX_FORMS];
    const struct oct_image_form *all[OCT_VOLUME_MAX_FORMS];
    struct oct_volume_about about = volume_about;
    struct oct_volume_layout layout;
    struct oct_hdf5_image image;
    for (unsigned i = 0; i < OCT_IMAGE_MAX_LABELS; i++)
        long_labels[i] = text;
    for (unsigned i = 0; i < OCT_VOLUME_MAX_FORMS; i++) {
        many[i] = i % 2 ? form_shadow : form_table;
        many[i].labels = i % 2 ? NULL : long_labels;
        many[i].dims[1] = OCT_IMAGE_MAX_LABELS;
        snprintf(many[i].name, sizeof(many[i].name), "form%u", i);
        all[i] = &many[i];
    }
    about.forms = all;
    about.n_forms = OCT_VOLUME_MAX_FORMS;
    for (uint32_t v = 1; v < 3000; v = v * 7 + 1) {
        struct oct_plan plan = volume_plan(N, M, v, D, OCT_SAMPLE_U8);
        oct_hdf5_image_init(&image, -1, 0);
        must(oct_volume_layout_build(&image, &layout, "x", &plan, &about, true, true, &failure));
        assert_true(oct_volume_layout_estimate(&plan, &about, true, true) >= layout.file_bytes);
        for (unsigned i = 0; i < OCT_VOLUME_MAX_FORMS; i++)
            assert_true(layout.results[i].data > 0 && layout.results[i].data % 4096 == 0);
        oct_hdf5_image_finish(&image);
    }
}
