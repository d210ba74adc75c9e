/* What goes into a snapshot: its name, the line, the JSON text. No SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    struct oct_view_model model;
    struct oct_view_caption caption;
};

static struct scene *open_scene(void)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct oct_view_picture picture = oct_scene_layered(30, 4); /* 120 A-lines of 100 pixels */

    assert_non_null(s);
    oct_view_model_init(&s->model, "x", true);
    picture.header.volume = 3;
    picture.header.bscan = 7;
    snprintf(picture.header.acquisition_id, sizeof(picture.header.acquisition_id), "a-1");
    oct_view_model_offer(&s->model, &picture);
    oct_view_picture_finish(&picture);
    snprintf(s->model.daemon.record.eye, sizeof(s->model.daemon.record.eye), "OD");
    snprintf(s->model.daemon.record.pseudonym, sizeof(s->model.daemon.record.pseudonym), "P/7");
    return s;
}

static void close_scene(struct scene *s)
{
    oct_view_model_finish(&s->model);
    free(s);
}

static cJSON *read_json(const struct scene *s)
{
    cJSON *json = cJSON_Parse(s->caption.json);
    assert_non_null(json);
    return json;
}

static double number(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *string(const cJSON *json, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    assert_non_null(text);
    return text;
}

static void a_name_is_safe_as_a_part_of_a_path(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"", "x"},
        {"P-7r_1.b", "x-P-7r_1.b"},
        {"../../etc/passwd", "x-.._.._etc_passwd"},
        {"a b\tc\nd\"'$`*?|<>:\\;&~", "x-a_b_c_d______________"},
        {"M\u00fcller-\u6f22\U0001F600", "x-M\u00fcller-\u6f22\U0001F600"},
        {"a\u202eb\u200bc\u00a0d\xc2\x85"
         "e\ufefff",
         "x-a_b_c_d_e_f"},
        {"a\xff\xc0\xafz\xe2\x82", "x-a___z__"},
        {"\xed\xa0\x80", "x-___"}, /* a surrogate */
    };
    char name[OCT_VIEW_NAME_WORDS_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(name, sizeof(name), "x");
        oct_view_caption_name_add(name, sizeof(name), cases[i].text);
        assert_string_equal(name, cases[i].name);
    }
    /* Every byte that a path cannot have is gone, whatever the text is. */
    for (unsigned c = 1; c < 256; c++) {
        char text[2] = {(char)c, 0};
        snprintf(name, sizeof(name), "x");
        oct_view_caption_name_add(name, sizeof(name), text);
        assert_int_equal(strlen(name), 3);
        assert_true(strchr("/ \\\n\"", name[2]) == NULL && (unsigned char)name[2] < 128);
    }
}

static void a_name_is_cut_between_letters(void **state)
{
    char name[10] = "x";

    oct_view_caption_name_add(name, sizeof(name), "abcdef\u00fc\u00fc");
    assert_string_equal(name, "x-abcdef"); /* the next letter has two bytes */
    oct_view_caption_name_add(name, sizeof(name), "g");
    assert_string_equal(name, "x-abcdef");
}

static void the_pseudonym_is_where_it_was_asked_for(void **state)
{
    struct scene *s = open_scene();

    oct_view_caption_make(&s->caption, &s->model, false, "window");
    assert_string_equal(s->caption.name, "-OD");
    assert_null(strstr(s->caption.json, "P/7"));
    assert_null(strstr(s->caption.json, "pseudonym"));
    assert_null(strstr(s->caption.line, "P/7"));
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "-OD-P_7");
    assert_non_null(strstr(s->caption.line, "; OD; P/7"));
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "pseudonym"), "P/7");
    cJSON_Delete(json);
    s->model.daemon.record.eye[0] = '\0';
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "-P_7");
    close_scene(s);
}

static void it_says_what_is_shown(void **state)
{
    struct scene *s = open_scene();
    cJSON *json, *item;

    s->model.daemon.lateral_um = 5;
    s->model.daemon.axial_um = 2;
    oct_view_model_set_caliper(&s->model, (struct oct_view_point){10, 20},
                               (struct oct_view_point){10, 70});
    assert_true(oct_view_model_add_caliper(&s->model, (struct oct_view_point){10, 20},
                                           (struct oct_view_point){50, 20}));
    oct_view_model_mark(&s->model, (struct oct_view_point){60, 31});
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_caption_make(&s->caption, &s->model, false, "picture");
    json = read_json(s);
    assert_string_equal(string(json, "shows"), "picture");
    assert_string_equal(string(json, "state"), "frozen");
    assert_string_equal(string(json, "acquisition"), "a-1");
    assert_string_equal(string(json, "eye"), "OD");
    assert_string_equal(string(json, "unit"), "dB");
    assert_true(number(json, "volume") == 3 && number(json, "bscan") == 7);
    assert_true(number(json, "n_lines") == 120 && number(json, "depth") == 100);
    item = cJSON_GetObjectItem(json, "spacing_um");
    assert_true(number(item, "line") == 5 && number(item, "depth") == 2);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(item, "bscan"))); /* not known */
    item = cJSON_GetObjectItem(json, "contrast");
    assert_true(number(item, "black") == s->model.contrast.lo &&
                number(item, "white") == s->model.contrast.hi);
    assert_string_equal(string(item, "range"), "published");
    item = cJSON_GetObjectItem(json, "calipers");
    assert_int_equal(cJSON_GetArraySize(item), 2);
    assert_true(number(cJSON_GetArrayItem(item, 0), "um") == 100);
    assert_true(number(cJSON_GetArrayItem(item, 1), "um") == 200);
    assert_true(number(cJSON_GetArrayItem(item, 1), "number") == 2);
    assert_true(number(cJSON_GetObjectItem(json, "mark"), "value") == 70); /* the layer */
    cJSON_Delete(json);
    assert_string_equal(
        s->caption.line,
        "B-scan 7 of volume 3, acquisition a-1, frozen; OD; 5 x 2 \u00b5m a pixel; black 10, "
        "white 70 dB, gamma 1; 1: 100.0 \u00b5m (across 0.0, deep 100.0); 2: 200.0 \u00b5m "
        "(across 200.0, deep 0.0)");
    close_scene(s);
}

static void there_need_be_no_picture(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    oct_view_model_init(&s->model, "x", true);
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "");
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "state"), "waiting");
    cJSON_Delete(json);
    close_scene(s);
}

static void playback_speaks_of_its_file(void **state)
{
    struct scene *s = open_scene();
    struct oct_view_file *file = &s->model.playback.file;

    s->model.playback.active = true;
    s->model.playback.bscan = 12;
    file->n_bscans = 40;
    file->axial_um = 3;
    file->lateral_um = file->slow_um = NAN;
    snprintf(file->name, sizeof(file->name), "20261123T101112123Z_1.h5");
    snprintf(file->eye, sizeof(file->eye), "OS");
    snprintf(file->pseudonym, sizeof(file->pseudonym), "Q");
    oct_view_caption_make(&s->caption, &s->model, true, "picture");
    assert_string_equal(s->caption.name, "-OS-Q"); /* not those of the recordings to come */
    assert_non_null(
        strstr(s->caption.line, "B-scan 12 of 40 of 20261123T101112123Z_1.h5, playback"));
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "file"), "20261123T101112123Z_1.h5");
    assert_null(cJSON_GetObjectItem(json, "acquisition"));
    assert_true(number(json, "bscan") == 12);
    assert_true(number(cJSON_GetObjectItem(json, "spacing_um"), "depth") == 3);
    cJSON_Delete(json);
    close_scene(s);
}

/* The longest of everything still is one text. */
static void the_longest_fits(void **state)
{
    struct scene *s = open_scene();
    struct oct_picture_header *h = &s->model.shown.header;

    memset(h->acquisition_id, 1, sizeof(h->acquisition_id) - 1); /* six letters each in JSON */
    memset(s->model.daemon.record.pseudonym, 1, OCT_VIEW_LABEL_BYTES - 1);
    s->model.daemon.lateral_um = s->model.daemon.axial_um = s->model.daemon.slow_um = 1 / 3.0;
    h->time_ns = h->frame_num = h->volume = UINT64_MAX;
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        assert_true(oct_view_model_add_caliper(&s->model, (struct oct_view_point){1 / 3.0, 2 / 3.0},
                                               (struct oct_view_point){100 / 3.0, 200 / 3.0}));
    oct_view_model_mark(&s->model, (struct oct_view_point){1 / 3.0, 2 / 3.0});
    oct_view_caption_make(&s->caption, &s->model, true, "picture");
    cJSON *json = read_json(s);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "calipers")), 9);
    assert_int_equal(strlen(string(json, "pseudonym")), OCT_VIEW_LABEL_BYTES - 1);
    cJSON_Delete(json);
    assert_non_null(strstr(s->caption.line, "; 9: "));
    close_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_safe_as_a_part_of_a_path),
        cmocka_unit_test(a_name_is_cut_between_letters),
        cmocka_unit_test(the_pseudonym_is_where_it_was_asked_for),
        cmocka_unit_test(it_says_what_is_shown),
        cmocka_unit_test(there_need_be_no_picture),
        cmocka_unit_test(playback_speaks_of_its_file),
        cmocka_unit_test(the_longest_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
