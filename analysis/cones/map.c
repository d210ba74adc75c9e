#include "analysis/cones/map.h"

#include "kernels/device/workers.h"

#include <stdlib.h>
#include <string.h>

/* What a worker has for itself. */
struct hand {
    struct oct_cones *finder;
    struct oct_picture tile;  /* empty without tiles */
    struct oct_error failure; /* of the run at hand; code OCT_OK: none */
};

struct oct_cones_map {
    struct oct_cones_map_setup setup;
    uint32_t rows, columns;
    unsigned n_hands;
    struct hand *hand;

    /* The run at hand. */
    const struct oct_picture *pictures;
    unsigned n;
    struct oct_cones_result *results;
    struct oct_cones_map_places *places;
    struct oct_error *why;     /* [n] of whole pictures */
    struct oct_cones *of_last; /* the finder that had the last picture */
};

void oct_cones_map_destroy(struct oct_cones_map *map)
{
    if (!map)
        return;
    for (unsigned i = 0; map->hand && i < map->n_hands; i++) {
        oct_cones_destroy(map->hand[i].finder);
        oct_picture_finish(&map->hand[i].tile);
    }
    free(map->hand);
    free(map);
}

static enum oct_err open_hand(const struct oct_cones_map *map, struct hand *hand,
                              struct oct_error *err)
{
    struct oct_cones_setup setup = map->setup.finder;
    if (map->setup.tile > 0) {
        setup.height = setup.width = map->setup.tile;
        enum oct_err e =
            oct_picture_init(&hand->tile, setup.height, setup.width, setup.masked, err);
        if (e)
            return e;
    }
    return oct_cones_create(&hand->finder, &setup, err);
}

enum oct_err oct_cones_map_create(struct oct_cones_map **out,
                                  const struct oct_cones_map_setup *setup, struct oct_error *err)
{
    const uint32_t height = setup->finder.height, width = setup->finder.width;
    *out = NULL;
    if (setup->tile > height || setup->tile > width)
        return oct_fail(err, OCT_E_ARG, "a tile of %u px is larger than a picture of %u x %u",
                        setup->tile, width, height);
    struct oct_cones_map *map = calloc(1, sizeof(*map));
    if (!map)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    map->setup = *setup;
    map->rows = map->columns = 1;
    if (setup->tile > 0) {
        if (setup->step == 0)
            map->setup.step = setup->tile > 1 ? setup->tile / 2 : 1;
        map->rows = (height - setup->tile) / map->setup.step + 1;
        map->columns = (width - setup->tile) / map->setup.step + 1;
    }
    map->n_hands = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    map->hand = calloc(map->n_hands, sizeof(*map->hand));
    enum oct_err e = map->hand ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (unsigned i = 0; !e && i < map->n_hands; i++)
        e = open_hand(map, &map->hand[i], err);
    if (e) {
        oct_cones_map_destroy(map);
        return e;
    }
    *out = map;
    return OCT_OK;
}

void oct_cones_map_size(const struct oct_cones_map *map, uint32_t *rows, uint32_t *columns)
{
    *rows = map->rows;
    *columns = map->columns;
}

static void cut(const struct oct_picture *from, uint32_t y, uint32_t x, struct oct_picture *to)
{
    for (uint32_t i = 0; i < to->height; i++) {
        const size_t at = (size_t)(y + i) * from->width + x;
        memcpy(to->pixels + (size_t)i * to->width, from->pixels + at,
               to->width * sizeof(*to->pixels));
        if (to->valid && from->valid)
            memcpy(to->valid + (size_t)i * to->width, from->valid + at, to->width);
        else if (to->valid)
            memset(to->valid + (size_t)i * to->width, 1, to->width);
    }
}

/* Whether a place of tile i of n is nearer to the middle of no other tile. */
static bool is_own(const struct oct_cones_map *map, double place, uint32_t i, uint32_t n)
{
    const double margin = ((double)map->setup.tile - map->setup.step) / 2 - 0.5;
    return (i == 0 || place >= margin) && (i + 1 == n || place < margin + map->setup.step);
}

static void give_places(const struct oct_cones_map *map, struct oct_cones *finder, unsigned piece)
{
    const uint32_t row = piece / map->columns % map->rows, column = piece % map->columns;
    struct oct_cones_map_places *to = &map->places[piece];
    *to = (struct oct_cones_map_places){.place = oct_cones_take_places(finder)};
    for (uint32_t i = 0; to->place && i < map->results[piece].count.n; i++) {
        struct oct_cone_place place = to->place[i];
        if (map->setup.tile > 0 &&
            (!is_own(map, place.y, row, map->rows) || !is_own(map, place.x, column, map->columns)))
            continue;
        place.y += (double)row * map->setup.step;
        place.x += (double)column * map->setup.step;
        to->place[to->n++] = place;
    }
}

static void do_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_cones_map *map = context;
    struct hand *hand = &map->hand[worker];
    const uint32_t n_tiles = map->rows * map->columns;
    const unsigned frame = piece / n_tiles;
    const uint32_t tile = piece % n_tiles;
    const struct oct_picture *picture = &map->pictures[frame];
    struct oct_error err;
    if (map->setup.tile > 0) {
        cut(picture, tile / map->columns * map->setup.step, tile % map->columns * map->setup.step,
            &hand->tile);
        picture = &hand->tile;
    }
    enum oct_err e = oct_cones_find(hand->finder, picture, &map->results[piece], &err);
    if (map->places)
        give_places(map, hand->finder, piece);
    if (frame + 1 == map->n && map->setup.tile == 0)
        map->of_last = hand->finder;
    if (e == OCT_E_ARG && map->setup.tile == 0)
        map->why[frame] = err;
    if (e && e != OCT_E_ARG)
        hand->failure = err;
}

enum oct_err oct_cones_map_run(struct oct_cones_map *map, const struct oct_picture *pictures,
                               unsigned n, struct oct_cones_result *results,
                               struct oct_cones_map_places *places, struct oct_error *why,
                               struct oct_error *err)
{
    map->pictures = pictures;
    map->n = n;
    map->results = results;
    map->places = places;
    map->why = why;
    map->of_last = NULL;
    for (unsigned i = 0; i < n; i++)
        why[i].code = OCT_OK;
    for (unsigned i = 0; i < map->n_hands; i++)
        map->hand[i].failure.code = OCT_OK;
    oct_workers_run(map->setup.workers, n * map->rows * map->columns, do_piece, map);
    for (unsigned i = 0; i < map->n_hands; i++)
        if (map->hand[i].failure.code)
            return oct_fail(err, map->hand[i].failure.code, "%s", map->hand[i].failure.text);
    return OCT_OK;
}

uint32_t oct_cones_map_profile(const struct oct_cones_map *map, const double **radius,
                               const double **c1d)
{
    return map->of_last ? oct_cones_profile(map->of_last, radius, c1d) : 0;
}
