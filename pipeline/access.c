#define _GNU_SOURCE /* pthread_setname_np, SO_COOKIE */
#include "pipeline/access.h"

#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_MS 1000   /* at least so often the folder is read */
#define MOST_KEYS 4096 /* that are remembered, with those that have gone */
#define MOST_FDS (1 << 20)
#define NAME_BYTES 64
#define TOLD 64                             /* refusals the log remembers */
#define TELL_AGAIN_NS UINT64_C(60000000000) /* the same refusal once a minute */
#define MOST_LINES 20                       /* of different ones in that time */

const char *const oct_refusal_names[OCT_N_REFUSALS] = {
    [OCT_REFUSED_PLAIN] = "plain",
    [OCT_REFUSED_UNKNOWN_KEY] = "unknown_key",
    [OCT_REFUSED_REVOKED_KEY] = "revoked_key",
    [OCT_REFUSED_PROTOCOL] = "protocol",
    [OCT_REFUSED_BROKEN_OFF] = "broken_off",
};

static const char *const refusal_words[OCT_N_REFUSALS] = {
    [OCT_REFUSED_PLAIN] = "it speaks plain ZeroMQ: security.client_key is missing there",
    [OCT_REFUSED_UNKNOWN_KEY] = "its key is not in security.allowed: octctl allow",
    [OCT_REFUSED_REVOKED_KEY] = "its key has been taken out of security.allowed",
    [OCT_REFUSED_PROTOCOL] = "its handshake is wrong: another security.server_public?",
    [OCT_REFUSED_BROKEN_OFF] = "it went away in the middle of the handshake: has it no key?",
};

struct key {
    char text[OCT_CURVE_KEY_BYTES], name[NAME_BYTES];
    bool allowed, found; /* found: in the folder when it was last read */
    bool changed;        /* allowed has, when that was last read */
};

#define NOBODY UINT32_MAX

/* The cookie is the kernel's name of a socket: a descriptor number alone may long be another's.
 * `number` orders connections and greetings: the messages of a connection carry a greeting's number
 * that is larger than its own, those of the connections that had its descriptor before a smaller
 * one. */
struct connection {
    uint64_t cookie, number;
    uint32_t key; /* index into keys; NOBODY: it has not sent anything yet */
};

struct oct_access {
    char secret[OCT_CURVE_KEY_BYTES];
    char *folder;
    pthread_t thread;
    int stop_fd, watch_fd;          /* watch_fd: -1 without inotify */
    bool folder_failed, complained; /* the thread's */

    pthread_mutex_t lock; /* guards the rest */
    struct key *keys;     /* [n_keys] */
    uint32_t n_keys;
    struct connection *connections; /* [n_connections], by descriptor; cookie 0: none */
    int n_connections;
    uint64_t number; /* the last one given out */
    struct oct_access_counts counts;
    struct {
        uint64_t hash, at_ns;
    } told[TOLD];
    uint64_t window_ns, n_told, n_untold;
};

/* ---- the log, which an intruder must not fill ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    while (*text)
        hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
    return hash * 31 + 1;
}

/* Whether this refusal shall be told now. */
static bool is_news(struct oct_access *a, uint64_t hash)
{
    uint64_t now = oct_clock_ns();
    size_t oldest = 0;
    for (size_t i = 0; i < TOLD; i++) {
        if (a->told[i].at_ns && a->told[i].hash == hash && now - a->told[i].at_ns < TELL_AGAIN_NS)
            return false;
        if (a->told[i].at_ns < a->told[oldest].at_ns)
            oldest = i;
    }
    if (now - a->window_ns >= TELL_AGAIN_NS) {
        a->window_ns = now;
        a->n_told = 0;
    }
    if (a->n_told >= MOST_LINES)
        return false;
    a->n_told++;
    a->told[oldest].hash = hash;
    a->told[oldest].at_ns = now;
    return true;
}

/* A refusal to be told once the lock is free again: a log may make its writer wait. */
struct news {
    bool is_news;
    uint64_t n_untold; /* refusals before it */
};

/* Lock held. */
static struct news note_refusal(struct oct_access *a, enum oct_refusal why, const char *peer,
                                const char *key)
{
    uint64_t hash = hash_text(hash_text((uint64_t)why + 1, peer), key);
    struct news news = {.is_news = is_news(a, hash), .n_untold = a->n_untold};
    a->counts.refused[why]++;
    a->n_untold = news.is_news ? 0 : a->n_untold + 1;
    return news;
}

/* Lock free. */
static void tell(struct news news, enum oct_refusal why, const char *peer, const char *key)
{
    char untold[64] = "";
    if (!news.is_news)
        return;
    if (news.n_untold)
        snprintf(untold, sizeof(untold), " (and %llu refusals not told)",
                 (unsigned long long)news.n_untold);
    oct_log(OCT_LOG_WARNING, "refused a connection from %s%s%s: %s%s", peer, key[0] ? ", key " : "",
            key, refusal_words[why], untold);
}

/* ---- keys ---- */

/* A lab has some ten keys: a search from end to end is quick. */
static struct key *find_key(struct oct_access *a, const char *text)
{
    for (uint32_t i = 0; i < a->n_keys; i++)
        if (strcmp(a->keys[i].text, text) == 0)
            return &a->keys[i];
    return NULL;
}

/* What the folder holds now, read without the lock: a disk may stall, and nobody waits for it. */
struct key_list {
    struct oct_access *access;
    struct key *keys; /* [n] */
    uint32_t n;
};

static bool collect(void *context, const char *name, const char *text)
{
    struct key_list *list = context;
    struct key *more =
        list->n < MOST_KEYS ? realloc(list->keys, (list->n + (size_t)1) * sizeof(*more)) : NULL;
    if (!more)
        return false;
    list->keys = more;
    struct key *key = &list->keys[list->n++];
    *key = (struct key){.found = true};
    snprintf(key->text, sizeof(key->text), "%s", text);
    snprintf(key->name, sizeof(key->name), "%.*s", NAME_BYTES - 1, name);
    return true;
}

static void complain(void *context, const char *text)
{
    struct oct_access *a = ((struct key_list *)context)->access;
    if (!a->complained)
        oct_log(OCT_LOG_WARNING, "security.allowed: %s; it lets nobody in", text);
    a->complained = true;
}

/* A place for one more key; one that has gone makes room. NULL: there is none. */
static struct key *new_key(struct oct_access *a)
{
    for (uint32_t i = 0; i < a->n_keys && a->n_keys == MOST_KEYS; i++)
        if (!a->keys[i].allowed && !a->keys[i].found)
            return &a->keys[i];
    struct key *more =
        a->n_keys < MOST_KEYS ? realloc(a->keys, (a->n_keys + (size_t)1) * sizeof(*more)) : NULL;
    if (!more)
        return NULL;
    a->keys = more;
    return &a->keys[a->n_keys++];
}

static void merge(struct oct_access *a, const struct key_list *list)
{
    for (uint32_t i = 0; i < a->n_keys; i++)
        a->keys[i].found = false;
    for (uint32_t i = 0; i < list->n; i++) {
        struct key *known = find_key(a, list->keys[i].text);
        struct key *key = known ? known : new_key(a);
        bool allowed = known && known->allowed;
        if (!key) /* out of memory: whom we cannot remember we cannot cut off */
            continue;
        *key = list->keys[i];
        key->allowed = allowed;
    }
}

static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

/* ZeroMQ sees the end of the stream and tidies up by itself; the descriptor stays its own. */
static void cut(struct oct_access *a, int fd, uint64_t cookie)
{
    if (cookie && cookie_of(fd) == cookie && shutdown(fd, SHUT_RDWR) == 0)
        a->counts.connections_cut++;
}

/* Those of the key, and those whose key we do not know yet: they may be its. */
static void cut_connections(struct oct_access *a, uint32_t key)
{
    for (int fd = 0; fd < a->n_connections; fd++)
        if (a->connections[fd].cookie &&
            (a->connections[fd].key == key || a->connections[fd].key == NOBODY)) {
            cut(a, fd, a->connections[fd].cookie);
            a->connections[fd].cookie = 0;
        }
}

/* What was found is allowed, everything else is not. */
static void take_over(struct oct_access *a)
{
    a->counts.n_allowed = 0;
    for (uint32_t i = 0; i < a->n_keys; i++) {
        struct key *key = &a->keys[i];
        a->counts.n_allowed += key->found;
        key->changed = key->allowed != key->found;
        if (!key->changed)
            continue;
        key->allowed = key->found;
        if (!key->allowed)
            cut_connections(a, i);
    }
}

/* Lock free: only the thread that reads the folder, which we are, ever changes the keys. */
static void tell_changes(const struct oct_access *a)
{
    for (uint32_t i = 0; i < a->n_keys; i++)
        if (a->keys[i].changed)
            oct_log(OCT_LOG_INFO, "security.allowed: the key %s is %s", a->keys[i].name,
                    a->keys[i].allowed ? "allowed in" : "out, and its connections are cut");
}

/* With the folder gone nobody is allowed; when it only cannot be read now, what was read stays. */
static enum oct_err read_keys(struct oct_access *a, bool telling, struct oct_error *err)
{
    struct key_list list = {.access = a};
    enum oct_err e = oct_access_read_folder(a->folder, collect, complain, &list, err);
    if (e && telling && !a->folder_failed)
        oct_log(OCT_LOG_WARNING, "%s; %s", err->text,
                e == OCT_E_IO ? "the keys stay as they were" : "nobody comes in");
    a->folder_failed = e != OCT_OK;
    if (e != OCT_E_IO) {
        pthread_mutex_lock(&a->lock);
        merge(a, &list);
        take_over(a);
        pthread_mutex_unlock(&a->lock);
        if (telling)
            tell_changes(a);
    }
    free(list.keys);
    return e;
}

/* ---- the watch ---- */

static void watch_folder(struct oct_access *a)
{
    char events[4096];
    while (a->watch_fd >= 0 && read(a->watch_fd, events, sizeof(events)) > 0)
        ;
    /* The same folder keeps its watch; another of the same name gets one. */
    if (a->watch_fd >= 0)
        inotify_add_watch(a->watch_fd, a->folder,
                          IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

static void *run(void *context)
{
    struct oct_access *a = context;
    struct pollfd wait[2] = {{.fd = a->stop_fd, .events = POLLIN},
                             {.fd = a->watch_fd, .events = POLLIN}};
    while (!(wait[0].revents & POLLIN)) {
        struct oct_error err;
        watch_folder(a); /* first: what changes while we read is read again */
        read_keys(a, true, &err);
        wait[0].revents = 0;
        poll(wait, 2, LOOK_MS); /* a negative descriptor is passed over */
    }
    return NULL;
}

/* ---- life ---- */

static void free_all(struct oct_access *a)
{
    if (a->watch_fd >= 0)
        close(a->watch_fd);
    if (a->stop_fd >= 0)
        close(a->stop_fd);
    pthread_mutex_destroy(&a->lock);
    free(a->connections);
    free(a->keys);
    free(a->folder);
    explicit_bzero(a->secret, sizeof(a->secret));
    free(a);
}

static enum oct_err start(struct oct_access *a, const char *server_key, const char *allowed,
                          struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = oct_curve_available(err);
    if (e)
        return e;
    if (oct_curve_read_secret(server_key, a->secret, &why))
        return oct_fail(err, OCT_E_CONFIG, "security.server_key: %s", why.text);
    a->folder = strdup(allowed);
    if (!a->folder || a->stop_fd < 0)
        return oct_fail(err, OCT_E_NO_MEMORY, "security: out of memory or descriptors");
    if ((e = read_keys(a, false, err)))
        return e;
    int status = pthread_create(&a->thread, NULL, run, a);
    if (status)
        return oct_fail_errno(err, OCT_E_IO, status, "security.allowed: no thread to watch it");
    pthread_setname_np(a->thread, "octd-keys");
    return OCT_OK;
}

enum oct_err oct_access_create(struct oct_access **out, const char *server_key, const char *allowed,
                               struct oct_error *err)
{
    *out = NULL;
    struct oct_access *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "security: out of memory");
    pthread_mutex_init(&a->lock, NULL);
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    a->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    enum oct_err e = start(a, server_key, allowed, err);
    if (e) {
        free_all(a);
        return e;
    }
    pthread_mutex_lock(&a->lock); /* the folder is watched already */
    unsigned long long n_allowed = a->counts.n_allowed;
    pthread_mutex_unlock(&a->lock);
    oct_log(OCT_LOG_INFO, "CURVE on all sockets; %llu keys are allowed in", n_allowed);
    *out = a;
    return OCT_OK;
}

void oct_access_destroy(struct oct_access *a)
{
    if (!a)
        return;
    eventfd_write(a->stop_fd, 1);
    pthread_join(a->thread, NULL);
    free_all(a);
}

const char *oct_access_secret(const struct oct_access *a)
{
    return a->secret;
}

/* ---- questions ---- */

bool oct_access_greets(struct oct_access *a, const char *text, const char *peer,
                       char pass[OCT_PASS_BYTES])
{
    pthread_mutex_lock(&a->lock);
    const struct key *key = find_key(a, text);
    bool allowed = key && key->allowed;
    enum oct_refusal why = key ? OCT_REFUSED_REVOKED_KEY : OCT_REFUSED_UNKNOWN_KEY;
    struct news news = {.is_news = false};
    pass[0] = '\0';
    if (allowed)
        snprintf(pass, OCT_PASS_BYTES, "%s %" PRIu64, key->text, ++a->number);
    else
        news = note_refusal(a, why, peer, text);
    pthread_mutex_unlock(&a->lock);
    tell(news, why, peer, text);
    return allowed;
}

void oct_access_note_refusal(struct oct_access *a, enum oct_refusal why, const char *peer)
{
    pthread_mutex_lock(&a->lock);
    struct news news = note_refusal(a, why, peer, "");
    pthread_mutex_unlock(&a->lock);
    tell(news, why, peer, "");
}

/* NULL: no memory for as many. */
static struct connection *place_of(struct oct_access *a, int fd)
{
    if (fd >= a->n_connections) {
        int n = fd < MOST_FDS ? fd + 64 : 0;
        struct connection *more = n ? realloc(a->connections, (size_t)n * sizeof(*more)) : NULL;
        if (!more)
            return NULL;
        memset(more + a->n_connections, 0, (size_t)(n - a->n_connections) * sizeof(*more));
        a->connections = more;
        a->n_connections = n;
    }
    return &a->connections[fd];
}

/* With the cookie that is known already this is news of a connection that had the descriptor before
 * and has gone in the meantime: another door may have told of its successor first. */
void oct_access_note_accepted(struct oct_access *a, int fd)
{
    uint64_t cookie = fd >= 0 ? cookie_of(fd) : 0;
    if (!cookie)
        return;
    pthread_mutex_lock(&a->lock);
    struct connection *c = place_of(a, fd);
    if (!c) /* whom we cannot remember we could not cut later */
        cut(a, fd, cookie);
    else if (c->cookie != cookie)
        *c = (struct connection){.cookie = cookie, .number = ++a->number, .key = NOBODY};
    pthread_mutex_unlock(&a->lock);
}

/* The key that a pass names; NULL: we never gave it out. */
static struct key *read_pass(struct oct_access *a, const char *pass, uint64_t *number)
{
    char text[OCT_CURVE_KEY_BYTES];
    const char *space = pass ? strchr(pass, ' ') : NULL;
    if (!space || (size_t)(space - pass) >= sizeof(text))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", (int)(space - pass), pass);
    *number = strtoull(space + 1, NULL, 10);
    return find_key(a, text);
}

bool oct_access_admits(struct oct_access *a, const char *pass, int fd)
{
    uint64_t number = 0;
    pthread_mutex_lock(&a->lock);
    const struct key *key = read_pass(a, pass, &number);
    bool allowed = key && key->allowed;
    /* A late message, of a connection that has gone, says nothing about the one that has its
     * descriptor now. */
    struct connection *c = fd >= 0 && fd < a->n_connections && a->connections[fd].number < number
                               ? &a->connections[fd]
                               : NULL;
    if (c && allowed)
        c->key = (uint32_t)(key - a->keys);
    if (!allowed) {
        a->counts.messages_refused++;
        if (c)
            cut(a, fd, c->cookie);
    }
    pthread_mutex_unlock(&a->lock);
    return allowed;
}

void oct_access_get_counts(struct oct_access *a, struct oct_access_counts *counts)
{
    pthread_mutex_lock(&a->lock);
    *counts = a->counts;
    pthread_mutex_unlock(&a->lock);
}
