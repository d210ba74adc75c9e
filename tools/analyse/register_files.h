/* The files that register makes: what they may be, and what stands in them. */
#ifndef OCT_TOOLS_REGISTER_FILES_H
#define OCT_TOOLS_REGISTER_FILES_H

#include "tools/analyse/register.h"

struct oct_results;

/* The attributes source and all settings, given or not, of the options that the mode takes. */
void oct_register_write_settings(struct oct_results *results, const struct oct_register *r);

/* The files of n frames as the dataset `name`. */
void oct_register_write_paths(struct oct_results *results, const char *name, uint64_t n,
                              const struct oct_pictures *pictures);

/* "FILE-motion.png" beside --png "FILE.png"; the caller frees it. NULL: out of memory. */
char *oct_register_motion_path(const char *png);

/* Whether all files may be made; before any work. has_motion: a plot of motion stands beside
 * --png. */
enum oct_err oct_register_check_files(const struct oct_register *r, bool has_motion,
                                      struct oct_error *err);

/* Seconds of frame i since the first one that was read. NaN: it was not read, or the clock stands
 * still, as that of pictures without times. time_ns: [n]; is_read: [n], NULL: all were. */
double oct_register_seconds(const uint64_t *time_ns, const uint8_t *is_read, uint64_t n,
                            uint64_t i);

/* What makes the files of --csv and --png, each the whole file or nothing, and the summary. */
struct oct_register_writers {
    enum oct_err (*csv)(void *context, const char *path, bool force, struct oct_error *err);

    /* NULL: there is none. */
    enum oct_err (*picture)(void *context, const char *path, bool force, struct oct_error *err);
    enum oct_err (*motion)(void *context, const char *path, bool force, struct oct_error *err);

    enum oct_err (*print_json)(void *context, struct oct_error *err);
    void (*print)(void *context);
    void *context;
};

/* All files or none; then the summary. *results is taken over, and NULL then; it may be NULL
 * before. */
enum oct_err oct_register_publish(const struct oct_register *r, struct oct_results **results,
                                  const struct oct_register_writers *writers,
                                  struct oct_error *err);

#endif
