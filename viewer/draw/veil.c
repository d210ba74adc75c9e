/* What lies over a picture that is not live: a hatched frame and a word beside what is measured, or
 * shade, hatching and words over all of it. */
#include "viewer/draw/areas.h"
#include "viewer/model/words.h"

#define SHADE 150      /* of 255, over a picture that is old */
#define STRIPES 112    /* of 255, the light of the hatching over it */
#define N_STRIPES 40   /* at most: they are what a large window takes long for */
#define PLATE 216      /* of 255, behind words */
#define PART_COVER 5   /* letters are a fifth of the panel's height where they cover it, */
#define PART_FRAME 9   /* and a ninth where they stand in its corner */
#define SHARE_COVER 80 /* % of the panel's width at most, */
#define SHARE_FRAME 40

static uint32_t colour_of(const struct oct_view_veil *veil)
{
    return veil->plays ? RGB_PLAYBACK : oct_draw_tone(veil->tone);
}

/* Sets the height of the huge letters so that the words have room, once a change of the panel:
 * other letters are forgotten with them. Returns their width; 0: there is no room. */
static int fit_words(struct oct_draw *draw, struct oct_view_rect r, const char *words, int px,
                     int most_px)
{
    const int large = draw->layout.large_px;
    const int w_large = oct_draw_text_width(draw, OCT_TEXT_LARGE, words);

    if (w_large == 0)
        return 0;
    if ((double)px * w_large > (double)most_px * large)
        px = (int)((double)most_px * large / w_large);
    oct_text_set_huge(draw->text, px > large ? px : large);
    int w = oct_draw_text_width(draw, OCT_TEXT_HUGE, words);
    return w <= r.w ? w : 0;
}

/* Words and what stands below them, on a plate that keeps them readable on any picture; centred, or
 * in the lower right corner, where neither scale bars nor other words are. */
static void draw_words(struct oct_draw *draw, const struct oct_view_veil *veil)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int margin = draw->layout.margin, edge = draw->veil_px;
    const int part = veil->covers ? PART_COVER : PART_FRAME;
    int w = fit_words(draw, r, veil->words, r.h / part,
                      r.w * (veil->covers ? SHARE_COVER : SHARE_FRAME) / 100);
    int w_more = oct_draw_text_width(draw, OCT_TEXT_LARGE, veil->more);
    int h = oct_draw_line_height(draw, OCT_TEXT_HUGE);
    int h_more = w_more > 0 ? oct_draw_line_height(draw, OCT_TEXT_LARGE) : 0;

    if (w == 0 || h + h_more > r.h)
        return;
    w_more = w_more <= r.w - 2 * edge ? w_more : 0;
    int width = (w > w_more ? w : w_more) + 2 * margin, height = h + h_more;
    int x = r.x + (r.w - width) / 2, y = r.y + (r.h - height) / 2;
    if (!veil->covers) {
        x = r.x + r.w - width - edge;
        y = r.y + r.h - height - edge;
    }
    oct_draw_fill(draw, (struct oct_view_rect){x, y, width, height}, RGB_GROUND, PLATE);
    oct_draw_text(draw, OCT_TEXT_HUGE, x + (width - w) / 2, y, veil->words, colour_of(veil));
    if (w_more > 0)
        oct_draw_text(draw, OCT_TEXT_LARGE, x + (width - w_more) / 2, y + h, veil->more, RGB_PLAIN);
}

static void draw_frame(struct oct_draw *draw, const struct oct_view_veil *veil)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int edge = draw->veil_px, inner = r.h - 2 * edge;
    const struct oct_view_rect sides[] = {
        {r.x, r.y, r.w, edge},
        {r.x, r.y + r.h - edge, r.w, edge},
        {r.x, r.y + edge, edge, inner},
        {r.x + r.w - edge, r.y + edge, edge, inner},
    };

    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        oct_draw_fill(draw, sides[i], RGB_GROUND, PLATE);
        oct_draw_hatch(draw, sides[i], edge, 2 * edge, colour_of(veil), 255);
    }
}

/* Opaque: blending so many pixels takes a large window longer than drawing the picture. */
static void hatch(struct oct_draw *draw, struct oct_view_rect r, const struct oct_view_veil *veil)
{
    const int text = draw->layout.text_px, sparse = (r.w + r.h) / N_STRIPES;
    const int apart = sparse > 3 * text ? sparse : 3 * text;
    uint32_t rgb = 0;

    for (int shift = 0; shift < 24; shift += 8) {
        uint32_t ink = colour_of(veil) >> shift & 255, ground = RGB_GROUND >> shift & 255;
        rgb |= (ink * STRIPES + ground * (255 - STRIPES)) / 255 << shift;
    }
    oct_draw_hatch(draw, r, text / 3 + 1, apart, rgb, 255);
}

void oct_draw_veil(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_veil veil;

    draw->veil_px = 0;
    if (!oct_view_show_veil(model, &veil))
        return;
    if (veil.covers) { /* its pixels are dimmed already */
        hatch(draw, draw->layout.bscan, &veil);
    } else if (draw->layout.bscan.h > 8 * draw->layout.text_px) {
        draw->veil_px = draw->layout.text_px * 2 / 3;
        draw_frame(draw, &veil);
        draw_words(draw, &veil);
    }
}

void oct_draw_veil_panel(struct oct_draw *draw, const struct oct_view_model *model,
                         struct oct_view_rect r)
{
    struct oct_view_veil veil;

    if (!oct_view_show_veil(model, &veil) || !veil.covers)
        return;
    oct_draw_fill(draw, r, RGB_GROUND, SHADE);
    hatch(draw, r, &veil);
}

void oct_draw_veil_words(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_veil veil;

    if (oct_view_show_veil(model, &veil) && veil.covers)
        draw_words(draw, &veil);
}
