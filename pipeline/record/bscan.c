#include "pipeline/record/bscan.h"

/* The runs of missing lines. */
static enum oct_err write_missing(struct oct_volume_writer *writer, const struct oct_raw_frame *raw,
                                  uint32_t n_lines, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint32_t j = 0, end; j < n_lines && e == OCT_OK; j = end) {
        for (end = j; end < n_lines && raw->line_valid[end] == raw->line_valid[j]; end++)
            ;
        if (raw->line_valid[j])
            continue;
        e = oct_volume_write_gap(writer,
                                 &(struct oct_gap){
                                     .acquisition = raw->info.acquisition,
                                     .first_line = raw->info.number * n_lines + j,
                                     .n_lines = end - j,
                                     .reason = OCT_LOSS_SOURCE,
                                 },
                                 err);
    }
    return e;
}

static enum oct_err write_gaps(struct oct_volume_writer *writer, const struct oct_kept *kept,
                               bool lost, uint32_t n_lines, struct oct_error *err)
{
    const struct oct_bscan_info *info = &kept->raw.info;
    if (lost)
        return oct_volume_write_gap(writer,
                                    &(struct oct_gap){
                                        .acquisition = info->acquisition,
                                        .first_line = info->number * n_lines,
                                        .n_lines = n_lines,
                                        .reason = OCT_LOSS_ENGINE,
                                    },
                                    err);
    return info->missing_lines > 0 ? write_missing(writer, &kept->raw, n_lines, err) : OCT_OK;
}

enum oct_err oct_record_bscan(struct oct_volume_writer *writer, const struct oct_kept *kept,
                              uint32_t row, const struct oct_geometry *geometry, bool spectra,
                              bool bscans, struct oct_error *err)
{
    struct oct_raw_frame raw = kept->raw;
    struct oct_image_frame image = kept->image;
    raw.info.bscan = image.info.bscan = row;
    bool lost = bscans && image.status != OCT_OK;
    enum oct_err e = write_gaps(writer, kept, lost, geometry->n_lines, err);
    if (e == OCT_OK && spectra)
        e = oct_volume_write_spectra(writer, &raw, err);
    if (e == OCT_OK)
        e = bscans ? oct_volume_write_image(writer, &image, err)
                   : oct_volume_write_row(writer, &raw.info, err);
    return e;
}
