#include "test/rig/waiting_pictures.h"

static bool take_picture(struct oct_work_source *source, unsigned worker)
{
    struct oct_waiting_pictures *p = (struct oct_waiting_pictures *)source;
    (void)worker;
    p->is_next = !p->is_next;
    return p->is_next;
}

static void do_picture(struct oct_work_source *source, unsigned worker)
{
    (void)source;
    (void)worker;
}

static unsigned finish_picture(struct oct_work_source *source, unsigned worker, bool *wakes)
{
    (void)worker;
    (void)wakes;
    ((struct oct_waiting_pictures *)source)->n_done++;
    return 0;
}

static const struct oct_work_ops picture_ops = {
    .take = take_picture, .run = do_picture, .finish = finish_picture};

void oct_waiting_pictures_init(struct oct_waiting_pictures *pictures)
{
    *pictures =
        (struct oct_waiting_pictures){.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES}};
}

unsigned oct_waiting_pictures_done(struct oct_waiting_pictures *pictures, struct oct_workers *pool)
{
    pthread_mutex_lock(oct_workers_lock(pool));
    const unsigned n = pictures->n_done;
    pthread_mutex_unlock(oct_workers_lock(pool));
    return n;
}
