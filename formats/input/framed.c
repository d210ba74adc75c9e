#include "formats/input/framed.h"

#include "formats/input/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct oct_framed {
    int fd;
    struct oct_input_array *array;
};

enum oct_err oct_framed_open(struct oct_framed **framed, const struct oct_input_probe *probe,
                             const uint64_t n[3], unsigned sample_bytes,
                             const struct oct_input_wish *wish, struct oct_input_facts *facts,
                             struct oct_error *err)
{
    *framed = NULL;
    enum oct_err e = oct_input_check(probe->name, n[0], n[1], n[2], err);
    if (e)
        return e;
    struct oct_framed *made = calloc(1, sizeof(*made));
    if (!made)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", probe->name);
    made->fd = open(probe->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (made->fd < 0) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", probe->name);
        goto fail;
    }
    const struct oct_input_array_setup setup = {
        .name = probe->name,
        .order = {{n[0], n[1], n[2]}, {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE}},
        .kind = {'u', sample_bytes, false},
        .fd = made->fd,
    };
    if ((e = oct_input_array_create(&made->array, &setup, wish, facts, err)) != OCT_OK)
        goto fail;
    *framed = made;
    return OCT_OK;
fail:
    oct_framed_close(made);
    return e;
}

enum oct_err oct_framed_read(struct oct_framed *framed, uint64_t i, uint16_t *spectra,
                             struct oct_error *err)
{
    return oct_input_array_read(framed->array, i, spectra, err);
}

void oct_framed_close(struct oct_framed *framed)
{
    if (!framed)
        return;
    oct_input_array_destroy(framed->array);
    if (framed->fd >= 0)
        close(framed->fd);
    free(framed);
}
