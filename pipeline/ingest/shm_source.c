#define _DEFAULT_SOURCE
#include "pipeline/ingest/shm_source.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/net/zsocket.h"
#include "pipeline/wire/shm_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#define MEND_EVERY_NS UINT64_C(1000000000) /* however often others damage it */
#define TELL_EVERY_NS UINT64_C(10000000000)
#define MOST_LISTENERS 8 /* listeners whose file was removed and whose drivers go on */
#define MESSAGE_BYTES 4096

enum harm { HARM_CUT, HARM_RENAMED, HARM_OVERWRITTEN, HARM_SOCKET, N_HARMS };

struct oct_shm_source {
    struct oct_shm_store *store; /* NULL: it will be created again */
    struct oct_shm_options options;
    char name[OCT_SHM_NAME_BYTES], *group;
    void *socket; /* borrowed; NULL: not bound yet */
    char endpoint[OCT_SHM_PATH_BYTES];
    const char *path;             /* of the endpoint; while this process owns it: */
    struct stat socket_file;      /* all zero: never bound */
    unsigned n_listeners;         /* listeners that have lost their file */
    uint64_t store_ns, socket_ns; /* when their creation was last tried */
    enum harm harm;               /* why there is no store */
    uint64_t n_mended_seen;       /* of the store */
    uint64_t reclaimed_before;    /* slots, of earlier stores */
    struct {
        uint64_t told_ns; /* the log */
        unsigned n_untold;
    } told[N_HARMS];
    atomic_uint_fast64_t reclaimed, mended;
};

/* err NULL: it was repaired. */
static void tell_harm(struct oct_shm_source *s, enum harm harm, const struct oct_error *err)
{
    static const char *const words[N_HARMS] = {
        [HARM_CUT] = "a driver cut the shared memory short; it was made anew",
        [HARM_RENAMED] = "somebody removed or replaced the shared memory; it was made anew",
        [HARM_OVERWRITTEN] = "somebody wrote over the header of the shared memory or changed its "
                             "size; it was put right",
        [HARM_SOCKET] = "somebody removed or replaced the socket of the shared memory; it was "
                        "made anew",
    };
    uint64_t now_ns = oct_clock_ns(), *told_ns = &s->told[harm].told_ns;
    unsigned *n_untold = &s->told[harm].n_untold;
    (*n_untold)++;
    if (!err)
        atomic_fetch_add_explicit(&s->mended, 1, memory_order_relaxed);
    if (*told_ns && now_ns - *told_ns < TELL_EVERY_NS)
        return;
    if (err)
        oct_log(OCT_LOG_ERROR, "%s: %s; it is tried again every second", err->text,
                s->store ? "no new driver comes in" : "no lines come in");
    else
        oct_log(OCT_LOG_WARNING, "%s%s: %s (%u times since this was last told)", OCT_SHM_SCHEME,
                s->name, words[harm], *n_untold);
    *told_ns = now_ns;
    *n_untold = 0;
}

/* ---- the file ---- */

static void let_go(struct oct_shm_source *s, enum harm harm)
{
    s->reclaimed_before += oct_shm_store_reclaimed(s->store);
    oct_shm_store_destroy(s->store);
    s->store = NULL;
    s->harm = harm;
    s->n_mended_seen = 0;
}

/* At once: drivers then see no daemon, and leave the memory before they access the missing
 * pages. */
void oct_shm_source_check(struct oct_shm_source *s)
{
    if (s->store && oct_shm_store_is_broken(s->store))
        let_go(s, HARM_CUT);
}

/* Creates another file under the same name, which drivers find. An old file that has lost its name
 * is destroyed only when the new one exists: if another octd has the name, attached drivers stay
 * here. */
static void make_anew(struct oct_shm_source *s, uint64_t now_ns)
{
    struct oct_shm_store *made;
    struct oct_error err;
    enum harm harm = s->store ? HARM_RENAMED : s->harm;
    if (now_ns - s->store_ns < MEND_EVERY_NS)
        return;
    s->store_ns = now_ns;
    enum oct_err e = oct_shm_store_create(&made, &s->options, &err);
    if (s->store && (e == OCT_OK || e == OCT_E_NO_MEMORY)) /* there is no room for both */
        let_go(s, harm);
    if (e == OCT_OK)
        s->store = made;
    tell_harm(s, harm, e ? &err : NULL);
}

static void look_at_store(struct oct_shm_source *s, bool drained, uint64_t now_ns)
{
    if (drained)
        oct_shm_store_drained(s->store);
    oct_shm_store_reclaim(s->store, now_ns);
    if (s->n_mended_seen != oct_shm_store_mended(s->store))
        tell_harm(s, HARM_OVERWRITTEN, NULL);
    s->n_mended_seen = oct_shm_store_mended(s->store);
    atomic_store_explicit(&s->reclaimed, s->reclaimed_before + oct_shm_store_reclaimed(s->store),
                          memory_order_relaxed);
    oct_shm_source_check(s);
}

/* ---- the socket's name ---- */

static bool is_socket_named(const struct oct_shm_source *s)
{
    struct stat there;
    return lstat(s->path, &there) == 0 && there.st_ino == s->socket_file.st_ino &&
           there.st_dev == s->socket_file.st_dev;
}

/* Gives the socket's file to the drivers' group and records which file it is. */
static enum oct_err share_socket(struct oct_shm_source *s, struct oct_error *err)
{
    enum oct_err e = oct_shm_store_share(s->store, s->path, err);
    if (e == OCT_OK && lstat(s->path, &s->socket_file) != 0)
        e = oct_fail_key_errno(err, OCT_E_IO, "ingest.endpoint", errno, "ingest.endpoint: %s",
                               s->path);
    return e;
}

/* A listener whose name is gone keeps its connected drivers; when there are too many such
 * listeners, all are closed, and their drivers connect again. A file at that name that is no socket
 * is removed if it belongs to this user. */
static enum oct_err bind_again(struct oct_shm_source *s, struct oct_error *err)
{
    struct stat there;
    if (lstat(s->path, &there) == 0 && !S_ISSOCK(there.st_mode) && there.st_uid == geteuid())
        unlink(s->path);
    if (s->n_listeners == MOST_LISTENERS) {
        zmq_unbind(s->socket, s->endpoint);
        s->n_listeners = 0;
    }
    enum oct_err e = oct_zsocket_bind_again(s->socket, s->endpoint, "ingest.endpoint", err);
    s->n_listeners += e == OCT_OK;
    return e ? e : share_socket(s, err);
}

static void look_at_socket(struct oct_shm_source *s, uint64_t now_ns)
{
    struct oct_error err;
    if (now_ns - s->socket_ns < MEND_EVERY_NS)
        return;
    s->socket_ns = now_ns;
    if (is_socket_named(s))
        return;
    enum oct_err e = bind_again(s, &err);
    tell_harm(s, HARM_SOCKET, e ? &err : NULL);
}

/* ---- from outside ---- */

enum oct_err oct_shm_source_create(struct oct_shm_source **out,
                                   const struct oct_shm_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_shm_source *s = calloc(1, sizeof(*s));
    if (s)
        s->group = strdup(options->group);
    if (!s || !s->group) {
        free(s);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the ingest");
    }
    snprintf(s->name, sizeof(s->name), "%s", options->name);
    oct_shm_socket_of(s->name, s->endpoint);
    s->path = s->endpoint + strlen("ipc://");
    s->options = *options;
    s->options.name = s->name;
    s->options.group = s->group;
    s->store_ns = s->socket_ns = oct_clock_ns();
    enum oct_err e = oct_shm_store_create(&s->store, &s->options, err);
    if (e) {
        oct_shm_source_destroy(s);
        return e;
    }
    *out = s;
    return OCT_OK;
}

/* The queue has room for every descriptor: the slots bound their number. */
enum oct_err oct_shm_source_bind(struct oct_shm_source *s, void *context, struct oct_door *door,
                                 void **socket, struct oct_error *err)
{
    char bound[OCT_ENDPOINT_BYTES];
    *socket = s->socket = oct_zsocket_bind(context, ZMQ_PULL, s->endpoint, "ingest.endpoint",
                                           OCT_SHM_MOST_SLOTS, MESSAGE_BYTES, door, bound, err);
    return s->socket ? share_socket(s, err) : OCT_E_IO;
}

void oct_shm_source_destroy(struct oct_shm_source *s)
{
    if (!s)
        return;
    if (s->socket && is_socket_named(s))
        unlink(s->path);
    oct_shm_store_destroy(s->store);
    free(s->group);
    free(s);
}

struct oct_shm_store *oct_shm_source_store(struct oct_shm_source *s)
{
    return s->store;
}

void oct_shm_source_look_after(struct oct_shm_source *s, bool drained)
{
    uint64_t now_ns = oct_clock_ns();
    if (!s->store || oct_shm_store_is_unnamed(s->store))
        make_anew(s, now_ns);
    if (s->store)
        look_at_store(s, drained, now_ns);
    if (s->store)
        look_at_socket(s, now_ns);
}

uint64_t oct_shm_source_reclaimed(const struct oct_shm_source *s)
{
    return atomic_load_explicit(&s->reclaimed, memory_order_relaxed);
}

uint64_t oct_shm_source_mended(const struct oct_shm_source *s)
{
    return atomic_load_explicit(&s->mended, memory_order_relaxed);
}
