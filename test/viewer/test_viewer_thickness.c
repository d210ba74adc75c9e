/* Playback's maps in the window: each mean of the ETDRS grid stands in its own sector, the change
 * has its colours where it is, and the profile of the nerve fibres lies below its columns. The
 * linker leads oct_text_draw here (Makefile). */
#include "test/rig/tap.h"
#include "test/rig/viewer_maps.h"
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 400u

/* The words of a frame, and the middles of where they stand. */
static struct {
    struct {
        char text[64];
        int x, y;
    } word[MOST_WORDS];
    unsigned n;
} drawn;

/* The names are the linker's. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c) */
int __real_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb);
int __wrap_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb);

int __wrap_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb)
{
    const int w = __real_oct_text_draw(text, size, x, y, string, rgb);
    assert_true(drawn.n < MOST_WORDS);
    snprintf(drawn.word[drawn.n].text, sizeof(drawn.word[0].text), "%.60s", string);
    drawn.word[drawn.n].x = x + w / 2;
    drawn.word[drawn.n++].y = y + oct_text_line_height(text, size) / 2;
    return w;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c) */

static const int sizes[][2] = {{1920, 1080}, {3840, 2160}};

static struct oct_viewer_stage *open_maps(const int size[2], const char *eye,
                                          double (*fibres_um)(uint32_t j))
{
    struct oct_viewer_stage *s = oct_viewer_stage_open_at(size, NULL);
    struct oct_viewer_stage *of = oct_viewer_stage_open();
    oct_view_picture_swap(&s->model.shown, &of->model.shown);
    s->model.has_picture = true;
    oct_viewer_stage_close(of);
    oct_maps_play(s, eye, fibres_um);
    return s;
}

static const struct oct_view_layout *look(struct oct_viewer_stage *s)
{
    drawn.n = 0;
    return oct_viewer_stage_draw(s);
}

static double even(uint32_t j)
{
    return 40 + 0 * j;
}

/* ---- the ETDRS grid ---- */

/* Which sector a place of the window is, by its mm from the middle of the map. */
static enum oct_etdrs_sector sector_at(const struct oct_view_layout *l, int x, int y, bool is_od)
{
    const struct oct_view_rect r = l->thickness_at;
    return oct_etdrs_sector_at((x - r.x - r.w / 2.) / r.w * OCT_MAPS_MM,
                               -(y - r.y - r.h / 2.) / r.h * OCT_MAPS_MM, is_od);
}

TEST(each_mean_stands_in_its_sector)
{
    for (unsigned z = 0; z < 2; z++)
        for (unsigned is_od = 0; is_od < 2; is_od++) {
            struct oct_viewer_stage *s = open_maps(sizes[z], is_od ? "OD" : "OS", even);
            const struct oct_view_layout *l = look(s);
            unsigned found = 0;
            assert_true(abs(l->thickness_at.w - l->thickness_at.h) <= 1); /* the field is square */
            for (unsigned i = 0; i < drawn.n; i++) {
                char *end;
                const long mean = strtol(drawn.word[i].text, &end, 10);
                if (*end || mean < 200 || mean > 280 ||
                    !oct_view_rect_holds(l->thickness_at, drawn.word[i].x, drawn.word[i].y))
                    continue;
                assert_int_equal(sector_at(l, drawn.word[i].x, drawn.word[i].y, is_od),
                                 (mean - 200) / 10);
                found |= 1u << (mean - 200) / 10;
            }
            assert_int_equal(found, (1u << OCT_ETDRS_N_SECTORS) - 1);
            oct_viewer_stage_close(s);
        }
}

/* Circles of 1, 3 and 6 mm: dark from the middle towards nasal, where no spoke lies. */
TEST(circles_have_their_radii)
{
    static const double radii_mm[OCT_ETDRS_N_CIRCLES] = {0.5, 1.5, 3};
    struct oct_viewer_stage *s = open_maps(sizes[1], "OD", even);
    s->model.playback.wanted = s->model.playback.slice_line = 0; /* the cross is out of the way */
    const struct oct_view_layout *l = look(s);
    const struct oct_view_rect r = l->thickness_at;
    for (unsigned k = 0; k < OCT_ETDRS_N_CIRCLES; k++) {
        unsigned n_dark = 0;
        /* 20 degrees above the horizontal no number stands. */
        const double x = r.x + r.w / 2. + radii_mm[k] * cos(0.35) / OCT_MAPS_MM * r.w;
        const double y = r.y + r.h / 2. - radii_mm[k] * sin(0.35) / OCT_MAPS_MM * r.h;
        for (int d = -3; d <= 3; d++) {
            const uint32_t rgb = oct_viewer_stage_pixel(s, (int)x + d, (int)y);
            n_dark += (rgb >> 16 & 255) < 64 && (rgb >> 8 & 255) < 64 && (rgb & 255) < 64;
        }
        assert_in_range(n_dark, 1, 4);
    }
    oct_viewer_stage_close(s);
}

/* ---- the change ---- */

/* Thicker on the left of the upper half, thinner on its right; below unknown, then as it was. */
static double change_at(uint32_t bscan, uint32_t line)
{
    if (bscan < OCT_MAPS_BSCANS / 2)
        return line < OCT_MAPS_LINES / 2 ? 20 : -20;
    return line < OCT_MAPS_LINES / 2 ? NAN : 0;
}

TEST(the_change_has_its_colours_where_it_is)
{
    struct oct_viewer_stage *s = open_maps(sizes[0], "OD", even);
    oct_maps_compare(s, change_at);
    const struct oct_view_layout *l = look(s);
    const struct oct_view_rect r = l->thickness_at;
    const int x[2] = {r.x + r.w / 4, r.x + r.w * 3 / 4}, y[2] = {r.y + r.h / 4, r.y + r.h * 3 / 4};
    assert_int_equal(oct_viewer_stage_pixel(s, x[0], y[0]), 0xff2800); /* red: thicker */
    assert_int_equal(oct_viewer_stage_pixel(s, x[1], y[0]), 0x0040ff); /* blue: thinner */
    assert_int_equal(oct_viewer_stage_pixel(s, x[0], y[1]), RGB_AREA); /* not known */
    const uint32_t same = oct_viewer_stage_pixel(s, x[1], y[1]);
    assert_true((same & 255) > 240 && (same >> 16 & 255) > 240); /* white, nearly */
    bool has_ends[2] = {false};
    for (unsigned i = 0; i < drawn.n; i++) { /* nor has it a grid */
        has_ends[0] |= strcmp(drawn.word[i].text, "20 \u00b5m") == 0;
        has_ends[1] |= strcmp(drawn.word[i].text, "-20") == 0;
        assert_true(strcmp(drawn.word[i].text, "200") != 0);
    }
    assert_true(has_ends[0] && has_ends[1]);
    oct_viewer_stage_close(s);
}

/* ---- the nerve fibres ---- */

/* A ramp with a hole. */
static double ramp(uint32_t j)
{
    return j >= 50 && j < 60 ? NAN : 10.25 + 0.25 * j;
}

/* The height of the curve in a column of the window, as a share of the plot; NaN: there is none. */
static double curve_at(const struct oct_viewer_stage *s, struct oct_view_rect plot, int x)
{
    for (int y = plot.y; y < plot.y + plot.h; y++)
        if (oct_viewer_stage_pixel(s, x, y) == 0xf5e663)
            return (double)(plot.y + plot.h - 1 - y) / (plot.h - 1);
    return NAN;
}

static bool says(const char *words)
{
    bool is_there = false;
    for (unsigned i = 0; i < drawn.n; i++)
        is_there |= strcmp(drawn.word[i].text, words) == 0;
    return is_there;
}

TEST(the_nerve_fibres_lie_below_their_columns)
{
    for (unsigned z = 0; z < 2; z++) {
        struct oct_viewer_stage *s = open_maps(sizes[z], "OD", ramp);
        assert_int_equal(look(s)->fibres.w, 0); /* ILM to RPE has none */
        s->model.settings.all_layers = true;
        s->model.playback.slice_line = 90;
        const struct oct_view_layout *l = look(s);
        const struct oct_view_rect map = l->thickness_at;
        const int line = oct_draw_line_height(s->draw, OCT_TEXT_NORMAL);
        const struct oct_view_rect plot = {map.x, l->fibres.y + line, map.w,
                                           l->fibres.h - 2 * line};
        assert_true(l->fibres.w > 0 && map.y + map.h <= l->fibres.y);
        for (uint32_t j = 3; j < OCT_MAPS_LINES - 3; j++) {
            const int x = map.x + (int)((j + 0.5) / OCT_MAPS_LINES * map.w);
            const double share = curve_at(s, plot, x); /* of 75 um: the map's 50 and a fifth */
            if (j >= 51 && j < 59)
                assert_true(isnan(share));
            else if (j < 49 || j > 61)
                assert_true(fabs(75 * share - ramp(j)) < 75. * 4 / plot.h + 0.5 || j == 90);
        }
        const int x = map.x + (int)(90.5 / OCT_MAPS_LINES * map.w);
        const struct oct_view_rect column = {x, plot.y, 1, plot.h};
        const struct oct_view_rect beside = {x + 8, plot.y, 1, plot.h};
        uint32_t mark = oct_viewer_stage_pixel(s, x, plot.y + 2);
        assert_true((mark >> 8 & 255) > 0x80); /* RGB_GOOD, nearly */
        assert_true(oct_viewer_stage_count(s, column, mark) > (unsigned)plot.h / 2);
        assert_int_equal(oct_viewer_stage_count(s, beside, mark), 0);
        assert_true(says("nerve fibres, \u00b5m") && says("40"));
        assert_true(
            says(z ? "A-line 91: 33 \u00b5m; 25 \u00b5m in the mean" : "A-line 91: 33 \u00b5m"));
        s->model.playback.slice_line = 55;
        look(s);
        assert_true(
            says(z ? "A-line 56: not found; 25 \u00b5m in the mean" : "A-line 56: not found"));
        oct_viewer_stage_close(s);
    }
}

/* A wide field, whose map has no height for both: beside it. */
TEST(the_nerve_fibres_of_a_wide_field_stand_beside_the_map)
{
    struct oct_viewer_stage *s = open_maps(sizes[0], "OD", ramp);
    s->model.settings.all_layers = true;
    s->model.playback.file.slow_um /= 4;
    s->model.playback.file.axial_um /= 4;
    const struct oct_view_layout *l = look(s);
    const struct oct_view_rect map = l->thickness_at;
    assert_true(l->is_stacked && l->fibres.w > 0);
    assert_true(l->fibres.x >= map.x + map.w);
    assert_true(oct_viewer_stage_count(s, l->fibres, 0xf5e663) > (unsigned)l->fibres.w / 2);
    oct_viewer_stage_close(s);
}
