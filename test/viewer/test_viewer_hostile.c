/* A hostile publisher, thousands of messages of it: headers, pictures and spectra with wild values,
 * wrong sizes and damaged bytes go the whole way, decoder, archive, model, drawing, between keys
 * pressed at random. The same dice make the same run. OCT_HOSTILE_ROUNDS makes it longer; make asan
 * runs it under AddressSanitizer and UBSan. */
#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"
#include "viewer/draw/draw.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_JSON 2048

static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "-1",
                                      "-0",
                                      "7",
                                      "99",
                                      "239",
                                      "240",
                                      "1023",
                                      "65535",
                                      "1048575",
                                      "0.5",
                                      "-1e-320",
                                      "1e308",
                                      "-1e308",
                                      "1e999",
                                      "4294967295",
                                      "4294967296",
                                      "9007199254740993",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "null",
                                      "true",
                                      "\"5\"",
                                      "[]",
                                      "{}",
                                      "[1,2]",
                                      "\"\"",
                                      "1e5",
                                      "60",
                                      "-60"};
static const char *const extents[] = {"1", "2", "3", "8", "61", "100", "256", "300"};
static const char *const bad_extents[] = {
    "0", "-6", "6x", "", " 8", "4294967296", "65536", "16777217", "99999999999999999999", "08"};
static const char *const texts[] = {
    "a",        "",
    "b",        "\\u0000x",
    "\\ud800",  "\xc3\xa4",
    "\xff\xfe", "0123456789012345678901234567890123456789012345678901234567890123"};
static const char damage[] = "\"{}[],:-0e9\\ \x01\xff";

#define PICK(dice, list) ((list)[dice_below((dice), sizeof(list) / sizeof((list)[0]))])

/* Mostly `usual`, so that what comes after it is reached too. */
static const char *now_and_then(struct dice *dice, unsigned one_in, const char *usual,
                                const char *else_)
{
    return dice_below(dice, one_in) == 0 ? else_ : usual;
}

static size_t harm(struct dice *dice, char *json, size_t n)
{
    for (unsigned k = dice_below(dice, 4); k > 0 && n > 0; k--)
        json[dice_below(dice, (uint32_t)n)] =
            dice_below(dice, 2) ? damage[dice_below(dice, sizeof(damage))] : (char)dice_roll(dice);
    return dice_below(dice, 4) == 0 ? dice_below(dice, (uint32_t)n + 1) : n;
}

/* A header's text; *image_bytes is what it says, when it says something. */
static size_t make_header(struct dice *dice, uint64_t frame_num, char *json, size_t *image_bytes)
{
    const char *m = PICK(dice, extents), *d = PICK(dice, extents);
    bool f32 = dice_below(dice, 3) == 0, shape_lies = dice_below(dice, 12) == 0;
    char frame[32];
    *image_bytes = (size_t)atoi(m) * (size_t)atoi(d) * (f32 ? 4 : 1);
    m = shape_lies ? PICK(dice, bad_extents) : m;
    snprintf(frame, sizeof(frame), "%llu", (unsigned long long)frame_num);
    int n = snprintf(
        json, MOST_JSON,
        "{\"frame_num\":%s,\"acquisition_id\":\"%s\",\"dtype\":\"%s\",\"dsize\":%zu,\"dataset\":"
        "\"bscans\",\"compression\":\"none\",\"shape\":[\"%s\",\"%s\"],\"time_ns\":%s,"
        "\"missing_lines\":%s,\"lo\":%s,\"hi\":%s,\"volume\":%s,\"bscan\":%s}",
        now_and_then(dice, 10, frame, PICK(dice, numbers)),
        now_and_then(dice, 10, "a", PICK(dice, texts)),
        now_and_then(dice, 30, f32 ? "float" : "uint8", "uint16"), *image_bytes, m, d,
        now_and_then(dice, 10, "5", PICK(dice, numbers)),
        now_and_then(dice, 10, "0", PICK(dice, numbers)),
        now_and_then(dice, 3, "-10", PICK(dice, numbers)),
        now_and_then(dice, 3, "50", PICK(dice, numbers)),
        now_and_then(dice, 8, "1", PICK(dice, numbers)),
        now_and_then(dice, 3, "3", PICK(dice, numbers)));
    assert_true(n > 0 && n < MOST_JSON);
    return dice_below(dice, 4) == 0 ? harm(dice, json, (size_t)n) : (size_t)n;
}

/* Memory of exactly n bytes: reading beyond it shows under ASan. */
static void *make_bytes(struct dice *dice, size_t n)
{
    uint8_t *bytes = malloc(n ? n : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t roll = dice_roll(dice);
        memcpy(bytes + i, &roll, n - i < sizeof(roll) ? n - i : sizeof(roll));
    }
    return bytes;
}

struct stage {
    SDL_Surface *surface;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_archive *archive;
    struct oct_view_model model;
    struct oct_view_tally tally;
    struct oct_view_picture picture;
    struct oct_view_image image;
    uint64_t now_ns, n_good, n_bad;
    uint64_t n_good_images, n_bad_images;
};

static void stage_open(struct stage *s)
{
    memset(s, 0, sizeof(*s));
    s->surface = SDL_CreateRGBSurfaceWithFormat(0, 320, 240, 32, SDL_PIXELFORMAT_ARGB8888);
    assert_non_null(s->surface);
    s->renderer = SDL_CreateSoftwareRenderer(s->surface);
    assert_non_null(s->renderer);
    assert_int_equal(oct_draw_create(&s->draw, s->renderer, NULL, NULL), OCT_OK);
    s->archive = oct_view_archive_create(1 << 20);
    assert_non_null(s->archive);
    oct_view_model_init(&s->model, "x", true);
    s->model.archive = s->archive;
    s->now_ns = OCT_NS_PER_S;
}

static void stage_close(struct stage *s)
{
    oct_view_picture_finish(&s->picture);
    oct_view_image_finish(&s->image);
    oct_view_model_finish(&s->model);
    oct_view_archive_destroy(s->archive);
    oct_draw_destroy(s->draw);
    SDL_DestroyRenderer(s->renderer);
    SDL_FreeSurface(s->surface);
}

/* As the subscriber does. */
static void receive(struct stage *s, const char *json, size_t n, const void *image, size_t n_bytes)
{
    struct oct_picture_header header;
    struct oct_error err = {0};
    if (oct_picture_decode(&header, json, n, n_bytes, &err) ||
        oct_view_picture_set(&s->picture, &header, image, n_bytes, &err)) {
        assert_true(err.text[0] != '\0');
        s->n_bad++;
        return;
    }
    s->n_good++;
    s->picture.arrival_ns = s->now_ns;
    oct_view_archive_add(s->archive, &s->picture);
    oct_view_tally_add(&s->tally, &header, s->now_ns);
    oct_view_model_offer(&s->model, &s->picture);
}

static const char *const labels[] = {"snr_db",  "sharpness", "level_db", "blink",         "motion",
                                     "missing", "blinks",    "motions",  "snr_smooth_db", "x"};

/* A header's text of an en face picture, or of a row of the quality. */
static size_t make_image_header(struct dice *dice, bool enface, char *json, size_t *value_bytes)
{
    static const char *const rows[] = {"0", "1", "2", "3", "61", "300", "3000"};
    static const char *const odd[] = {"",
                                      "\"labels\":[],",
                                      "\"labels\":[\"a\",5],",
                                      "\"whole\":7,",
                                      "\"spacing_um\":[null],",
                                      "\"unit\":\"\\u0007\",",
                                      "\"rank\":9,",
                                      "\"labels\":null,"};
    const char *m = enface ? PICK(dice, extents) : "10";
    const char *v = enface ? PICK(dice, rows) : now_and_then(dice, 8, "1", PICK(dice, rows));
    bool u8 = dice_below(dice, 12) == 0, row = !enface && dice_below(dice, 2);
    char shape[64], words[512] = "";
    *value_bytes = (size_t)atoi(v) * (size_t)atoi(m) * (u8 ? 1 : 4);
    if (row) { /* of one axis */
        *value_bytes = u8 ? 10 : 40;
        snprintf(shape, sizeof(shape), "\"10\"");
    } else {
        snprintf(shape, sizeof(shape), "\"%s\",\"%s\"",
                 now_and_then(dice, 12, v, PICK(dice, bad_extents)), m);
    }
    for (unsigned i = 0; !enface && i < 10; i++)
        snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s\"%s\"",
                 i ? "," : "\"labels\":[", labels[i]);
    int n = snprintf(
        json, MOST_JSON,
        "{%s%s%s\"frame_num\":%s,\"acquisition_id\":\"%s\",\"dtype\":\"%s\",\"dsize\":%zu,"
        "\"dataset\":\"analysis/%s\",\"compression\":\"none\",\"shape\":[%s],\"time_ns\":%s,"
        "\"missing_lines\":%s,\"lo\":%s,\"hi\":%s,\"volume\":%s,\"bscan\":%s}",
        now_and_then(dice, 4, "", PICK(dice, odd)), words, enface ? "" : "],",
        now_and_then(dice, 10, "7", PICK(dice, numbers)),
        now_and_then(dice, 10, "a", PICK(dice, texts)), u8 ? "uint8" : "float", *value_bytes,
        now_and_then(dice, 20, enface ? "enface" : "quality", PICK(dice, texts)), shape,
        now_and_then(dice, 10, "5", PICK(dice, numbers)),
        now_and_then(dice, 10, "0", PICK(dice, numbers)),
        now_and_then(dice, 3, "-10", PICK(dice, numbers)),
        now_and_then(dice, 3, "50", PICK(dice, numbers)),
        now_and_then(dice, 8, "1", PICK(dice, numbers)),
        now_and_then(dice, 3, "3", PICK(dice, numbers)));
    assert_true(n > 0 && n < MOST_JSON);
    return dice_below(dice, 4) == 0 ? harm(dice, json, (size_t)n) : (size_t)n;
}

/* As the subscriber does. */
static void receive_image(struct stage *s, bool enface, const char *json, size_t n,
                          const void *values, size_t n_bytes)
{
    struct oct_image_header header;
    struct oct_error err = {0};
    if (oct_image_header_decode(&header, json, n, n_bytes, &err) ||
        (enface ? oct_view_enface_check : oct_view_quality_check)(&header, &err) ||
        oct_view_image_set(&s->image, &header, values, n_bytes, &err)) {
        assert_true(err.text[0] != '\0');
        s->n_bad_images++;
        return;
    }
    s->n_good_images++;
    s->image.arrival_ns = s->now_ns;
    if (enface)
        oct_view_overlay_take(&s->model, &oct_view_overlay_enface, &s->image);
    else
        oct_view_archive_add_quality(s->archive, &s->image);
}

/* An octd that says anything of its en face picture; now and then it answers. */
static void tell_settings(struct stage *s, struct dice *dice)
{
    static const char *const shares[] = {"0", "1", "0.4", "0.5", "-1", "2", "null", "1e-320"};
    static const char *const projections[] = {"mean", "max", "slab", "maximum", ""};
    struct oct_view_daemon d = {0};
    struct oct_view_answer answer = {.wish = s->model.asked, .ok = dice_below(dice, 3) > 0};
    char json[256], text[OCT_VIEW_LABEL_BYTES];
    int n = snprintf(json, sizeof(json),
                     "{\"ok\":true,\"state\":\"running\",\"analysis\":[{\"name\":\"%s\","
                     "\"projection\":\"%s\",\"slab_first\":%s,\"slab_last\":%s}]}",
                     now_and_then(dice, 5, "enface", "x"), PICK(dice, projections),
                     PICK(dice, shares), PICK(dice, shares));
    assert_int_equal(oct_view_daemon_read(&d, json, (size_t)n, NULL), OCT_OK);
    d.reachable = true;
    d.answer_ns = s->now_ns;
    oct_view_model_hear(&s->model, &d, &answer);
    oct_view_model_take_wish(&s->model, text);
    const struct oct_view_enface_wishes *w = &s->model.enface_wishes;
    if (w->known) {
        assert_true(w->octds.projection < OCT_N_PROJECTIONS);
        assert_true(w->wanted.projection < OCT_N_PROJECTIONS);
        assert_true(w->wanted.slab.first >= 0 && w->wanted.slab.last <= 1);
        assert_true(w->octds.slab.first >= 0 && w->octds.slab.last <= 1);
    }
}

static void press(struct stage *s, struct dice *dice)
{
    enum oct_view_action action = (enum oct_view_action)(1 + dice_below(dice, OCT_N_ACTIONS - 1));
    struct oct_view_point a = {dice_below(dice, 400) - 50.0, dice_below(dice, 400) - 50.0};
    struct oct_view_point b = {1e300, -1e300};
    oct_view_model_apply(&s->model, action, 1 + dice_below(dice, 5));
    if (s->model.settings.operators)
        oct_view_model_apply(&s->model, OCT_ACTION_LOCK, 1);
    if (dice_below(dice, 5) == 0)
        oct_view_model_set_caliper(&s->model, a, b);
    if (dice_below(dice, 5) == 0)
        oct_view_model_mark(&s->model, a);
    tell_settings(s, dice);
}

static void look(struct stage *s)
{
    const struct oct_view_contrast *c = &s->model.contrast;
    oct_view_model_tick(&s->model, s->now_ns);
    oct_view_model_report(&s->model, &s->tally, true);
    assert_true(isfinite(c->lo) && isfinite(c->hi) && c->lo < c->hi);
    assert_true(c->published_lo < c->published_hi);
    assert_true(isfinite(s->model.quality.snr_db) && isfinite(s->model.quality.sharpness));
    assert_true(s->model.enface.n_rows <= OCT_VIEW_ENFACE_MOST);
    assert_true(s->model.enface.n_columns <= OCT_VIEW_ENFACE_MOST);
    if (s->model.enface.n_rows > 0)
        assert_true(s->model.enface.lo < s->model.enface.hi &&
                    s->model.enface.newest_row < s->model.enface.n_rows);
    if (s->model.has_picture)
        assert_true(s->model.cursor_line >= 0 &&
                    s->model.cursor_line < s->model.shown.header.n_lines);
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    SDL_RenderFlush(s->renderer);
    oct_view_model_presented(&s->model, s->now_ns);
}

static unsigned rounds(void)
{
    const char *text = getenv("OCT_HOSTILE_ROUNDS");
    int n = text ? atoi(text) : 0;
    return n > 0 ? (unsigned)n : 3000;
}

TEST(hostile_pictures_go_the_whole_way)
{
    struct dice dice = {17};
    struct stage s;
    char json[MOST_JSON];
    stage_open(&s);
    for (unsigned i = 0; i < rounds(); i++) {
        size_t n_bytes, n = make_header(&dice, i, json, &n_bytes);
        char *text = malloc(n ? n : 1);
        assert_non_null(text);
        memcpy(text, json, n);
        if (dice_below(&dice, 20) == 0)
            n_bytes = dice_below(&dice, 2000);
        void *image = make_bytes(&dice, n_bytes);
        s.now_ns += dice_below(&dice, 50) ? 10 * OCT_NS_PER_MS : 30 * OCT_NS_PER_S;
        receive(&s, text, n, image, n_bytes);
        free(image);
        free(text);
        if (dice_below(&dice, 3) == 0)
            press(&s, &dice);
        if (dice_below(&dice, 5) == 0)
            look(&s);
    }
    /* Neither all refused nor all let through: both ways were gone. */
    assert_true(s.n_good > rounds() / 5 && s.n_bad > rounds() / 5);
    stage_close(&s);
}

/* Values as bits: NaN and infinity among them, and now and then a number as it should be. */
static void make_values(struct dice *dice, float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dice_below(dice, 2))
            values[i] = (float)dice_below(dice, 100) / 2 - 10;
}

TEST(hostile_images_go_the_whole_way)
{
    struct dice dice = {29};
    struct stage s;
    char json[MOST_JSON];
    stage_open(&s);
    s.model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    for (unsigned i = 0; i < rounds(); i++) {
        bool enface = dice_below(&dice, 2);
        size_t n_bytes, n = make_image_header(&dice, enface, json, &n_bytes);
        char *text = malloc(n ? n : 1);
        assert_non_null(text);
        memcpy(text, json, n);
        if (dice_below(&dice, 20) == 0)
            n_bytes = dice_below(&dice, 2000);
        void *values = make_bytes(&dice, n_bytes);
        make_values(&dice, values, n_bytes / 4);
        s.now_ns += dice_below(&dice, 50) ? 10 * OCT_NS_PER_MS : 30 * OCT_NS_PER_S;
        receive_image(&s, enface, text, n, values, n_bytes);
        free(values);
        free(text);
        if (dice_below(&dice, 3) == 0)
            press(&s, &dice);
        if (dice_below(&dice, 5) == 0)
            look(&s);
    }
    assert_true(s.n_good_images > rounds() / 5 && s.n_bad_images > rounds() / 5);
    stage_close(&s);
}

TEST(hostile_spectra_are_read_or_refused)
{
    static const char *const shapes[] = {"4", "0", "1", "832", "65536", "-4", "4294967297", "x"};
    struct dice dice = {23};
    struct oct_view_spectrum spectrum = {0};
    char json[MOST_JSON];
    unsigned n_good = 0;
    for (unsigned i = 0; i < rounds(); i++) {
        const char *shape = PICK(&dice, shapes);
        int n = snprintf(json, sizeof(json),
                         "{\"frame_num\":%s,\"line\":%s,\"dtype\":\"%s\",\"shape\":[\"%s\"],"
                         "\"limit\":%s,\"saturated\":%s}",
                         now_and_then(&dice, 5, "5", PICK(&dice, numbers)),
                         now_and_then(&dice, 5, "3", PICK(&dice, numbers)),
                         now_and_then(&dice, 20, "uint16", "uint8"), shape,
                         now_and_then(&dice, 5, "4095", PICK(&dice, numbers)),
                         now_and_then(&dice, 5, "2", PICK(&dice, numbers)));
        size_t length = dice_below(&dice, 4) == 0 ? harm(&dice, json, (size_t)n) : (size_t)n;
        size_t n_bytes = dice_below(&dice, 10) == 0 ? dice_below(&dice, 100)
                                                    : (size_t)(atoi(shape) & 0xffff) * 2;
        char *text = malloc(length ? length : 1);
        void *samples = make_bytes(&dice, n_bytes);
        assert_non_null(text);
        memcpy(text, json, length);
        if (oct_view_spectrum_set(&spectrum, text, length, samples, n_bytes, NULL) == OCT_OK) {
            n_good++;
            assert_true(spectrum.n_samples > 0 && spectrum.n_samples * 2ull == n_bytes);
        }
        free(samples);
        free(text);
    }
    assert_true(n_good > rounds() / 10 && n_good < rounds());
    oct_view_spectrum_finish(&spectrum);
}
