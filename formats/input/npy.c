/* Arrays of numpy: [B-scan][A-line][sample] or [A-line][sample], integers of 8 to 64 bits and
 * floats, of either order of bytes and axes (npy_header.h). */
#include "formats/input/array.h"
#include "formats/input/formats.h"
#include "formats/input/npy_header.h"

#include <inttypes.h>
#include <string.h>

static bool npy_is(const struct oct_input_probe *probe)
{
    return probe->n_start >= sizeof(oct_npy_magic) &&
           memcmp(probe->start, oct_npy_magic, sizeof(oct_npy_magic)) == 0;
}

/* Whether the values that the header claims are in the file. */
static enum oct_err check_size(const struct oct_input_probe *probe, const struct oct_npy_header *h,
                               const struct oct_input_order *o, struct oct_error *err)
{
    const uint64_t n_bytes =
        o->n[0] * o->n[1] * o->n[2] * h->sample.bytes; /* limits of geometry.h */
    const uint64_t n_there = probe->size < h->first_byte ? 0 : probe->size - h->first_byte;
    if (n_there < n_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: truncated .npy file: its array has %" PRIu64 " bytes, and %" PRIu64
                        " are there",
                        probe->name, n_bytes, n_there);
    return OCT_OK;
}

static enum oct_err npy_open(struct oct_input *input, const struct oct_input_probe *probe,
                             const struct oct_input_wish *wish, struct oct_input_facts *facts,
                             struct oct_calibration *cal, struct oct_error *err)
{
    (void)cal;
    struct oct_npy_header h;
    struct oct_input_array_setup setup = {.name = probe->name, .fd = probe->fd};
    enum oct_err e = oct_npy_header_read(&h, probe->fd, probe->name, err);
    if (!e && h.sample.kind == '\0')
        e = oct_fail(err, OCT_E_FORMAT,
                     "%s: samples of type %s; save them as integers of 8 to 64 bits, float32 or "
                     "float64",
                     probe->name, h.type);
    e = e ? e
          : oct_input_order_find(&setup.order, probe->name, h.n_axes, h.dims, h.is_fortran, wish,
                                 err);
    e = e ? e : check_size(probe, &h, &setup.order, err);
    if (e)
        return e;
    setup.kind = h.sample;
    setup.first_byte = h.first_byte;
    return oct_input_array_create(&input->array, &setup, wish, facts, err);
}

const struct oct_input_ops oct_input_npy = {
    .name = "npy",
    .is = npy_is,
    .open = npy_open,
};
