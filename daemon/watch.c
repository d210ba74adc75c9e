#include "daemon/watch.h"

#include "pipeline/base/clock.h"

#define LOOK_NS UINT64_C(1000000000)

void oct_file_watch_add(struct oct_file_watch *w, const char *path)
{
    if (w->n_files == OCT_CONFIG_MAX_SOURCES || stat(path, &w->files[w->n_files].then) != 0)
        return; /* the reader of the file will report what is wrong */
    w->files[w->n_files].changed = false;
    w->files[w->n_files++].path = path;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void compare_files(uv_work_t *work)
{
    struct oct_file_watch *w = work->data;
    for (int i = 0; i < w->n_files; i++) {
        struct stat there;
        /* A pipe (--config <(...)) changes when it is read; it is not watched. */
        if (!w->differs[i] && S_ISREG(w->files[i].then.st_mode))
            w->differs[i] =
                stat(w->files[i].path, &there) != 0 || !is_same(&there, &w->files[i].then);
    }
}

static void after(uv_work_t *work, int status)
{
    struct oct_file_watch *w = work->data;
    (void)status; /* never cancelled */
    w->is_looking = false;
}

const char *oct_file_watch_look(struct oct_file_watch *w, uv_loop_t *loop)
{
    uint64_t now = oct_clock_ns();
    if (w->is_looking || w->n_files == 0)
        return NULL;
    for (int i = 0; i < w->n_files; i++)
        if (w->differs[i] && !w->files[i].changed) {
            w->files[i].changed = true;
            return w->files[i].path; /* the other files at the next call */
        }
    if (w->looked_ns && now - w->looked_ns < LOOK_NS)
        return NULL;
    w->looked_ns = now;
    w->is_looking = true;
    w->work.data = w;
    uv_queue_work(loop, &w->work, compare_files, after);
    return NULL;
}

bool oct_file_watch_changed(const struct oct_file_watch *w)
{
    for (int i = 0; i < w->n_files; i++)
        if (w->files[i].changed)
            return true;
    return false;
}
