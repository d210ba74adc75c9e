#define _GNU_SOURCE /* SO_COOKIE */
#include "pipeline/net/access.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "pipeline/net/connections.h"
#include "pipeline/net/key_folder.h"

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

#define LOOK_MS 1000                 /* the folder is read at least this often */
#define MOST_GONE OCT_MOST_KEY_FILES /* revoked keys that are remembered */
#define MOST_KEYS (OCT_MOST_KEY_FILES + MOST_GONE)
#define MOST_CHANGES 20 /* logged one by one after a reading of the folder */
#define MOST_FDS (1 << 20)
#define TOLD 64                             /* refusals the log remembers */
#define TELL_AGAIN_NS UINT64_C(60000000000) /* the same refusal once a minute */
#define MOST_LINES 20                       /* of different refusals in that time */

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

/* All keys that are or were allowed, in the order of strcmp. The thread builds a new table beside
 * the current one and then swaps the two: no caller waits for the building. */
struct key {
    char text[OCT_CURVE_KEY_BYTES];
    bool allowed;
};

struct key_table {
    struct key *keys; /* [MOST_KEYS], n of them used */
    uint32_t n;
};

/* What the folder held when it was read, and its keys in the order of strcmp, without
 * duplicates. */
struct reading {
    struct oct_key_folder folder;
    const struct oct_key_file **keys; /* [OCT_MOST_KEY_FILES], n of them used */
    uint32_t n;
};

/* The cookie is the kernel's name of a socket: the descriptor number alone may have been reused.
 * `number` orders connections and greetings: messages of this connection carry the number of a
 * greeting that is larger than its own; messages of earlier connections over the same descriptor
 * carry a smaller one. */
struct connection {
    uint64_t cookie, number;
    char key[OCT_CURVE_KEY_BYTES]; /* "": it has not sent anything yet */
};

struct oct_access {
    char secret[OCT_CURVE_KEY_BYTES];
    char *folder;
    pthread_t thread;
    int stop_fd, watch_fd; /* watch_fd: -1 without inotify */

    /* Owned by the thread: the newest reading, the one before it, and the table that is not in
     * use. */
    struct reading now, before;
    struct key_table other;

    pthread_mutex_t lock;           /* guards the rest */
    struct key_table table;         /* only the thread changes it */
    struct connection *connections; /* [n_connections], by descriptor; cookie 0: none */
    int n_connections;
    uint64_t number; /* the last number given out */
    struct oct_access_counts counts;
    struct {
        uint64_t hash, at_ns;
    } told[TOLD];
    uint64_t window_ns, n_told, n_untold;
};

/* ---- the log, which an intruder must not be able to fill ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    while (*text)
        hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
    return hash * 31 + 1;
}

/* Whether this refusal is logged now. */
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

/* A refusal to be logged after the lock was released: writing to the log may block. */
struct news {
    bool is_news;
    uint64_t n_untold; /* refusals before it that were not logged */
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
static void tell_refusal(struct news news, enum oct_refusal why, const char *peer, const char *key)
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

static int order_key(const void *text, const void *key)
{
    return strcmp(text, ((const struct key *)key)->text);
}

/* NULL: the key was never allowed, or it was revoked and has been forgotten. */
static const struct key *find_key(const struct key_table *table, const char *text)
{
    return table->n ? bsearch(text, table->keys, table->n, sizeof(*table->keys), order_key) : NULL;
}

static bool is_allowed(const struct key_table *table, const char *text)
{
    const struct key *key = find_key(table, text);
    return key && key->allowed;
}

static int by_key(const void *a, const void *b)
{
    const struct oct_key_file *one = *(const struct oct_key_file *const *)a;
    const struct oct_key_file *other = *(const struct oct_key_file *const *)b;
    int order = strcmp(one->key, other->key);
    return order ? order : strcmp(one->name, other->name);
}

/* Where several files hold the same key, the first by name counts. */
static void sort_keys(struct reading *reading)
{
    uint32_t n = 0;
    reading->n = 0;
    for (uint32_t i = 0; i < reading->folder.n; i++)
        if (reading->folder.files[i].state == OCT_KEY_FILE_HOLDS)
            reading->keys[n++] = &reading->folder.files[i];
    qsort(reading->keys, n, sizeof(const struct oct_key_file *), by_key);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || strcmp(reading->keys[i]->key, reading->keys[i - 1]->key) != 0)
            reading->keys[reading->n++] = reading->keys[i];
}

/* Allows the keys that were found and no others. Beyond MOST_GONE revoked keys some are forgotten:
 * their refusals are logged as unknown keys from then on. */
static void make_table(struct key_table *table, const struct key_table *old,
                       const struct reading *reading)
{
    uint32_t i = 0, k = 0, n_gone = 0;
    table->n = 0;
    while (i < reading->n || k < old->n) {
        int order = i == reading->n ? 1
                    : k == old->n   ? -1
                                    : strcmp(reading->keys[i]->key, old->keys[k].text);
        if (order > 0 && n_gone == MOST_GONE) {
            k++;
            continue;
        }
        struct key *key = &table->keys[table->n++];
        key->allowed = order <= 0;
        memcpy(key->text, order <= 0 ? reading->keys[i]->key : old->keys[k].text,
               sizeof(key->text));
        n_gone += order > 0;
        i += order <= 0;
        k += order >= 0;
    }
}

static void cut(struct oct_access *a, int fd, uint64_t cookie)
{
    a->counts.connections_cut += oct_connections_cut(fd, cookie);
}

/* Lock held. Cuts the connections whose key was revoked, and those whose key is not known yet: it
 * may be the revoked one. */
static void cut_connections(struct oct_access *a)
{
    for (int fd = 0; fd < a->n_connections; fd++) {
        struct connection *c = &a->connections[fd];
        if (!c->cookie || (c->key[0] && is_allowed(&a->table, c->key)))
            continue;
        cut(a, fd, c->cookie);
        c->cookie = 0;
    }
}

/* Logs what changed in the folder, in at most as many lines as a person reads at once. */
struct telling {
    struct oct_access *access;
    uint32_t n;
};

static bool may_tell(struct telling *t)
{
    return t->n++ < MOST_CHANGES;
}

static void complain(void *context, const struct oct_key_file *file, const char *text)
{
    struct telling *t = context;
    const struct oct_key_file *then = oct_key_folder_find(&t->access->before.folder, file->name);
    if ((!then || then->state != file->state) && may_tell(t))
        oct_log(OCT_LOG_WARNING, "security.allowed: %s; it lets nobody in%s", text,
                file->state == OCT_KEY_FILE_UNREADABLE ? " until it can be read" : "");
}

static void tell_changes(struct telling *t, bool at_start)
{
    const struct reading *now = &t->access->now, *before = &t->access->before;
    uint32_t i = 0, k = 0;
    while (i < now->n || k < before->n) {
        int order = i == now->n      ? 1
                    : k == before->n ? -1
                                     : strcmp(now->keys[i]->key, before->keys[k]->key);
        const char *name = order > 0 ? before->keys[k]->name : now->keys[i]->name;
        if (order && !at_start && may_tell(t))
            oct_log(OCT_LOG_INFO, "security.allowed: the key %s is %s", name,
                    order < 0 ? "allowed in" : "out, and its connections are cut");
        i += order <= 0;
        k += order >= 0;
    }
}

static void tell_listing(const struct oct_access *a, const struct oct_error *err)
{
    static const char *const meaning[] = {
        [OCT_KEYS_NO_FOLDER] = "nobody comes in",
        [OCT_KEYS_UNLISTED] = "each known key is looked at by its name, no new one comes in",
        [OCT_KEYS_TOO_MANY] = "those taken before stay, no new one comes in",
    };
    enum oct_key_listing listing = a->now.folder.listing;
    if (listing != OCT_KEYS_LISTED && listing != a->before.folder.listing)
        oct_log(OCT_LOG_ERROR, "%s; %s", err->text, meaning[listing]);
}

/* No lock is needed: this thread alone changes the table. */
static void take_over(struct oct_access *a)
{
    make_table(&a->other, &a->table, &a->now);
    bool gone = false;
    for (uint32_t k = 0; k < a->before.n && !gone; k++)
        gone = !is_allowed(&a->other, a->before.keys[k]->key);
    pthread_mutex_lock(&a->lock);
    struct key_table old = a->table;
    a->table = a->other;
    a->counts.n_allowed = a->now.n;
    a->counts.n_unreadable = a->now.folder.n_unreadable;
    a->counts.is_incomplete = a->now.folder.listing != OCT_KEYS_LISTED;
    if (gone)
        cut_connections(a);
    pthread_mutex_unlock(&a->lock);
    a->other = old;
}

/* Reads the folder; its keys are the allowed ones from now on. Logs the changes after they have
 * taken effect and without the lock, as writing to the log may block. */
static enum oct_err read_keys(struct oct_access *a, bool at_start, struct oct_error *err)
{
    struct reading last = a->before;
    struct telling t = {.access = a};
    a->before = a->now;
    a->now = last;
    enum oct_err e =
        oct_key_folder_read(&a->now.folder, &a->before.folder, a->folder, complain, &t, err);
    sort_keys(&a->now);
    take_over(a);
    if (!at_start)
        tell_listing(a, err);
    tell_changes(&t, at_start);
    if (t.n > MOST_CHANGES)
        oct_log(OCT_LOG_INFO, "security.allowed: and %u more such changes", t.n - MOST_CHANGES);
    return e;
}

/* ---- the watch ---- */

static void watch_folder(struct oct_access *a)
{
    char events[4096];
    while (a->watch_fd >= 0 && read(a->watch_fd, events, sizeof(events)) > 0)
        ;
    /* A watch belongs to a folder, not to its name: a new folder of the same name gets a new
     * watch. */
    if (a->watch_fd >= 0)
        inotify_add_watch(a->watch_fd, a->folder,
                          IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

static void *answer_requests(void *context)
{
    struct oct_access *a = context;
    struct pollfd wait[2] = {{.fd = a->stop_fd, .events = POLLIN},
                             {.fd = a->watch_fd, .events = POLLIN}};
    while (!(wait[0].revents & POLLIN)) {
        struct oct_error err;
        uint64_t began_ns = oct_clock_ns();
        watch_folder(a); /* before reading: a change during the reading causes another one */
        read_keys(a, false, &err);
        /* Pause for as long as the reading took: thousands of files that appear one by one take at
         * most half of a processor. */
        uint64_t took_ms = (oct_clock_ns() - began_ns) / 1000000;
        wait[0].revents = wait[1].revents = 0;
        if (poll(wait, 1, took_ms < LOOK_MS / 2 ? (int)took_ms : LOOK_MS / 2) == 0)
            poll(wait, 2, LOOK_MS); /* poll ignores a negative descriptor */
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
    oct_key_folder_finish(&a->now.folder);
    oct_key_folder_finish(&a->before.folder);
    free(a->now.keys);
    free(a->before.keys);
    free(a->table.keys);
    free(a->other.keys);
    free(a->folder);
    explicit_bzero(a->secret, sizeof(a->secret));
    free(a);
}

/* Allocates all that the thread will ever need: it can revoke keys even when memory has run out. */
static enum oct_err reserve(struct oct_access *a, const char *allowed, struct oct_error *err)
{
    a->folder = strdup(allowed);
    a->table.keys = calloc(MOST_KEYS, sizeof(*a->table.keys));
    a->other.keys = calloc(MOST_KEYS, sizeof(*a->other.keys));
    a->now.keys = calloc(OCT_MOST_KEY_FILES, sizeof(const struct oct_key_file *));
    a->before.keys = calloc(OCT_MOST_KEY_FILES, sizeof(const struct oct_key_file *));
    if (!a->folder || !a->table.keys || !a->other.keys || !a->now.keys || !a->before.keys ||
        a->stop_fd < 0)
        return oct_fail(err, OCT_E_NO_MEMORY, "security: out of memory or descriptors");
    enum oct_err e = oct_key_folder_init(&a->now.folder, err);
    return e ? e : oct_key_folder_init(&a->before.folder, err);
}

static enum oct_err start_thread(struct oct_access *a, const char *server_key, const char *allowed,
                                 struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = oct_curve_available(err);
    if (e)
        return e;
    if (oct_curve_read_secret(server_key, a->secret, &why))
        return oct_fail_key(err, OCT_E_CONFIG, "security.server_key", "security.server_key: %s",
                            why.text);
    if ((e = reserve(a, allowed, err)) || (e = read_keys(a, true, err)))
        return e;
    e = oct_thread_start(&a->thread, "octd-keys", answer_requests, a,
                         "security.allowed: no thread to watch it", err);
    return e ? oct_error_blame(err, e, "security.allowed") : OCT_OK;
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
    enum oct_err e = start_thread(a, server_key, allowed, err);
    if (e) {
        free_all(a);
        return e;
    }
    pthread_mutex_lock(&a->lock); /* the thread runs already */
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
    const struct key *key = find_key(&a->table, text);
    bool allowed = key && key->allowed;
    enum oct_refusal why = key ? OCT_REFUSED_REVOKED_KEY : OCT_REFUSED_UNKNOWN_KEY;
    struct news news = {.is_news = false};
    pass[0] = '\0';
    if (allowed)
        snprintf(pass, OCT_PASS_BYTES, "%s %" PRIu64, key->text, ++a->number);
    else
        news = note_refusal(a, why, peer, text);
    pthread_mutex_unlock(&a->lock);
    tell_refusal(news, why, peer, text);
    return allowed;
}

void oct_access_note_refusal(struct oct_access *a, enum oct_refusal why, const char *peer)
{
    pthread_mutex_lock(&a->lock);
    struct news news = note_refusal(a, why, peer, "");
    pthread_mutex_unlock(&a->lock);
    tell_refusal(news, why, peer, "");
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

/* If the cookie is known already, this call concerns an earlier connection over the same
 * descriptor, which has gone meanwhile: another door may have reported its successor first. */
void oct_access_note_accepted(struct oct_access *a, int fd)
{
    uint64_t cookie = fd >= 0 ? oct_connections_cookie(fd) : 0;
    if (!cookie)
        return;
    pthread_mutex_lock(&a->lock);
    struct connection *c = place_of(a, fd);
    if (!c) /* a connection that cannot be stored could not be cut later */
        cut(a, fd, cookie);
    else if (c->cookie != cookie)
        *c = (struct connection){.cookie = cookie, .number = ++a->number};
    pthread_mutex_unlock(&a->lock);
}

/* The key that a pass names; NULL: the pass was not issued by this process. */
static const struct key *read_pass(struct oct_access *a, const char *pass, uint64_t *number)
{
    char text[OCT_CURVE_KEY_BYTES];
    const char *space = pass ? strchr(pass, ' ') : NULL;
    if (!space || (size_t)(space - pass) >= sizeof(text))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", (int)(space - pass), pass);
    *number = strtoull(space + 1, NULL, 10);
    return find_key(&a->table, text);
}

bool oct_access_admits(struct oct_access *a, const char *pass, int fd)
{
    uint64_t number = 0;
    pthread_mutex_lock(&a->lock);
    const struct key *key = read_pass(a, pass, &number);
    bool allowed = key && key->allowed;
    /* A late message of a closed connection says nothing about the connection that has its
     * descriptor now. */
    struct connection *c = fd >= 0 && fd < a->n_connections && a->connections[fd].number < number
                               ? &a->connections[fd]
                               : NULL;
    if (c && allowed)
        memcpy(c->key, key->text, sizeof(c->key));
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
