#include "viewer/play/rebuild.h"

struct oct_play_rebuild {
    int unused;
};

enum oct_err oct_play_rebuild_open(struct oct_play_rebuild **rebuild, const char *path,
                                   struct oct_view_file *file, struct oct_error *err)
{
    (void)file;
    *rebuild = NULL;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: it holds spectra and no pictures: octctl recon %s makes them", path, path);
}

void oct_play_rebuild_close(struct oct_play_rebuild *rebuild)
{
    (void)rebuild;
}

enum oct_err oct_play_rebuild_read(struct oct_play_rebuild *rebuild, uint32_t v, float *pixels,
                                   struct oct_picture_header *header, struct oct_error *err)
{
    (void)rebuild;
    (void)v;
    (void)pixels;
    (void)header;
    return oct_fail(err, OCT_E_STATE, "no spectra");
}
