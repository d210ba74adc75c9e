#include "viewer/model/daemon.h"

#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void oct_view_model_next_volumes(struct oct_view_model *model)
{
    static const int steps[] = {0, 1, 2, 4, 8};
    const char *waiting = oct_view_wishes_find(&model->wishes, OCT_WISH_VOLUMES);
    const double now = waiting ? strtod(waiting, NULL) : model->daemon.record.volumes;
    char text[16];
    int next = 0;

    if (model->has_control && model->daemon.known && isnan(now)) {
        oct_view_model_say(model, "this octd does not count volumes: a recording is stopped");
        return;
    }
    for (size_t i = sizeof(steps) / sizeof(steps[0]); i-- > 0;)
        next = steps[i] > now ? steps[i] : next;
    snprintf(text, sizeof(text), "%d", next);
    oct_view_model_wish(model, OCT_WISH_VOLUMES, text);
}

void oct_view_volumes_text(const char *number, char *text, size_t n_bytes)
{
    const double n = strtod(number, NULL);

    if (n > 0)
        snprintf(text, n_bytes, "%.0f volume%s", n, n > 1 ? "s" : "");
    else
        snprintf(text, n_bytes, "volumes until it is stopped");
}

void oct_view_volumes_add(const struct oct_view_model *model, bool is_numbered, char *text,
                          size_t n_bytes)
{
    const double n = model->daemon.record.volumes;

    text[0] = '\0';
    if (!(n > 0))
        return;
    if (is_numbered)
        snprintf(text, n_bytes, " of %.0f", n);
    else
        snprintf(text, n_bytes, "  (%.0f volume%s each)", n, n > 1 ? "s" : "");
}
