/* What the viewer remembers from one run to the next. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "viewer/model/model.h"
#include "viewer/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void settings_come_back_and_wrong_ones_are_passed_over(void **state)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[512];
    struct oct_view_model a, b;
    struct oct_error err = {0};

    snprintf(path, sizeof(path), "%s/new-%ld/folder/viewer.ini", folder, (long)getpid());
    oct_view_model_init(&a, "x", true);
    oct_view_model_init(&b, "x", true);
    assert_int_equal(oct_view_settings_load(&a, path, &err), OCT_OK); /* none yet */
    oct_view_model_apply(&a, OCT_ACTION_LAYOUT, 1);
    oct_view_model_apply(&a, OCT_ACTION_PALETTE, 1);
    oct_view_model_apply(&a, OCT_ACTION_LEVEL_UP, 7);
    oct_view_model_apply(&a, OCT_ACTION_GAMMA_UP, 1);
    oct_view_model_apply(&a, OCT_ACTION_CELLS, 1);
    oct_view_model_apply(&a, OCT_ACTION_AVERAGE, 1);
    oct_view_model_apply(&a, OCT_ACTION_LAYERS, 1);
    oct_view_model_apply(&a, OCT_ACTION_ROLLOFF, 1);
    oct_view_model_apply(&a, OCT_ACTION_DIM, 1);
    oct_view_model_apply(&a, OCT_ACTION_SOUND, 1);
    assert_false(b.settings.sound || b.settings.light != OCT_LIGHT_FULL);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_OK);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_TWO);
    assert_int_equal(b.contrast.palette, OCT_PALETTE_INVERTED);
    assert_true(b.settings.average && !b.settings.cells && !b.settings.layers &&
                !b.settings.rolloff);
    assert_true(b.settings.light == OCT_LIGHT_HALF && b.settings.sound);
    assert_true(b.contrast.range == OCT_CONTRAST_MANUAL && b.contrast.lo == 7 &&
                b.contrast.hi == 67);
    assert_true(fabs(b.contrast.gamma - 1.1) < 1e-5);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[view]\nlayout = seven\ngamma = nan\nblack = 9\nwhite = 3\nunknown = 1\n", file);
    fclose(file);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_E_FORMAT);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_TWO);
    assert_true(b.contrast.hi > b.contrast.lo);
    /* What an octview wrote that made the en face picture itself: octd's now, and no mistake. */
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("[view]\nlayout = four\nen_face = maximum\nslab_first = 0.3\nslab_last = 0.7\n", file);
    fclose(file);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_OK);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_FOUR);
    assert_false(b.enface_wishes.wants_projection || b.enface_wishes.wants_first);
    remove(path);
    assert_int_equal(oct_view_settings_save(&a, "/dev/null/a/b.ini", &err), OCT_E_IO);
    oct_view_model_finish(&a);
    oct_view_model_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_come_back_and_wrong_ones_are_passed_over),
    };
    return cmocka_run_group_tests_name("viewer settings", tests, NULL, NULL);
}
