/* Browsers: pages, links that become cookies, and the WebSocket that a page speaks by
 * (libwebsockets). One thread, lws', owns all of it and waits for nothing but its sockets;
 * web/server.c has the requests, web/access.c who may come in, web/browser.c what is said to a
 * browser and what it asks for, web/playback.c what is done with recordings. What may wait for a
 * disk is done by two workers, one for the file of tokens and one for octd's folder, and by the
 * thread that each playback has.
 *
 * Everything that comes is untrusted. A browser has a cookie by which the file of tokens knows it,
 * and calls this machine by a name that is its own; a WebSocket comes from a page of the same
 * origin. There are OCT_WEB_MOST_CONNECTIONS at most, of which OCT_WEB_MOST_BROWSERS are
 * WebSockets, each with OCT_WEB_MOST_RX bytes a message and OCT_WEB_MOST_RATE messages a second.
 * What is sent to a browser waits for it alone: two pictures, and the newest of all else. */
#ifndef OCT_WEB_SERVER_H
#define OCT_WEB_SERVER_H

#include "config/config.h"
#include "pipeline/net/web_access.h"
#include "viewer/app.h"
#include "web/pace.h"
#include "web/view.h"
#include "web/worker.h"

#include <libwebsockets.h>
#include <limits.h>
#include <stdatomic.h>

#define OCT_WEB_MOST_CONNECTIONS 96u
#define OCT_WEB_MOST_BROWSERS 32u
#define OCT_WEB_MOST_PLAYBACKS 4u
#define OCT_WEB_MOST_RX 1024u
#define OCT_WEB_MOST_RATE 200u
#define OCT_WEB_MOST_STRANGERS 64u

/* What is counted, for /metrics. */
struct oct_web_counts {
    unsigned n_connections, n_browsers, n_playbacks;
    uint64_t n_pictures, n_bytes, n_actions;
    uint64_t refused_connections, refused_host, refused_token, refused_message, refused_role;
};

/* A recording that one browser plays. */
struct oct_web_playback {
    struct oct_view_model model;
    struct oct_play *play;
    struct oct_web_view *view;
};

/* Links of an address that were none, in the time that began then. */
struct oct_web_failures {
    char address[46];
    unsigned n;
    uint64_t since_ns;
};

struct oct_web_browser;

struct oct_web {
    const struct oct_config *config;
    oct_config_string tokens_path;
    bool tls;
    int port;
    struct lws_context *context;
    lws_sorted_usec_list_t tick, turn;
    bool turn_waits;
    uint64_t turned_ns;
    struct oct_view_app *app;
    struct oct_web_encoder *encoder;
    struct oct_web_view *live;
    struct oct_web_tokens tokens;
    struct timespec tokens_at;             /* the file's time of change, when it was read */
    ino_t tokens_inode;                    /* and its number */
    char tokens_why[OCT_ERROR_TEXT_BYTES]; /* why it could not be read; "": it could */
    uint64_t tokens_due_ns;
    bool tokens_are_read; /* a job of that is with the worker */
    struct oct_web_failures failures[OCT_WEB_MOST_STRANGERS];
    struct oct_web_worker *door, *folder; /* of the file of tokens; of octd's folder */
    atomic_uint n_left;                   /* playbacks that are gone and still counted */
    struct oct_web_counts counts;
    struct oct_web_browser *browsers; /* a list */
    bool ends;
    bool (*is_over)(void);
};

/* Listens; OCT_E_CONFIG says what is to be set, OCT_E_IO what is in use. */
enum oct_err oct_web_listen(struct oct_web *web, struct oct_error *err);

/* Serves until is_over says so. */
enum oct_err oct_web_serve(struct oct_web *web, struct oct_error *err);

/* False: a disk does not answer, threads wait for it, and nothing may be freed. */
bool oct_web_close(struct oct_web *web);

/* Any thread: something came. */
void oct_web_notify(void *web);

/* ---- a browser ---- */

struct oct_web_browser {
    struct oct_web_browser *next;
    struct lws *wsi;
    char name[OCT_WEB_NAME_BYTES];
    char sum[OCT_WEB_TOKEN_BYTES]; /* of its session */
    enum oct_web_role role;
    struct oct_web_playback *playback; /* NULL: it looks at live pictures; owned */
    uint32_t sent[OCT_WEB_N_KINDS];
    struct oct_web_pace pace;
    uint64_t due_ns[OCT_WEB_N_KINDS];
    uint32_t whole_since;             /* that B-scan or a newer one is wanted whole */
    uint32_t state_sent, state_waits; /* 0: it says that it has that */
    uint64_t state_ns; /* when the state was sent: once a second, as a sign of life */
    bool says_hello, frozen, wants_whole;
    char refusal[256]; /* to be said; "": nothing is */
    bool wants_list, wants_open, goes, slices;
    char list_of[NAME_MAX + 1], open[NAME_MAX + 1];
    double go, slice;              /* a B-scan, an A-line */
    struct oct_web_errand *errand; /* NULL: none is on its way */
    uint64_t folder_due_ns;        /* not before: the next one */
    unsigned char *list;           /* to be said, OCT_WEB_BEFORE behind; owned; NULL: nothing is */
    size_t n_list;
    uint64_t second_ns;
    unsigned n_messages; /* in the second that began then */
};

/* Greets, or sends what is newest. False: the connection is to end. */
bool oct_web_browser_write(struct oct_web *web, struct oct_web_browser *b);
/* Takes a whole message. False: it is none, and the connection is to end. */
bool oct_web_browser_hear(struct oct_web *web, struct oct_web_browser *b, const char *text,
                          size_t n);
void oct_web_browser_end(struct oct_web *web, struct oct_web_browser *b);
/* Asks lws for a turn where there is something to send. */
void oct_web_browser_wake(struct oct_web *web, struct oct_web_browser *b);

/* ---- recordings ---- */

/* What the worker of the folder does for a browser. */
struct oct_web_errand {
    struct oct_web_job job;
    struct oct_web *web;
    struct oct_web_browser *browser; /* NULL: it is gone */
    bool opens, is_off, is_told; /* else it lists; it is not wanted any more; that it takes long */
    uint64_t asked_ns;
    char what[NAME_MAX + 1]; /* the name, or what names have in them */
    bool has;
    unsigned char *list; /* as the browser's; owned */
    size_t n_list;
};

/* A turn of the recording that it plays, and of what it wants of the folder. */
void oct_web_playback_turn(struct oct_web *web, struct oct_web_browser *b, uint64_t now_ns);
/* Live pictures again: by the browser's wish, or because there is nothing to play. */
void oct_web_playback_live(struct oct_web *web, struct oct_web_browser *b);
void oct_web_playback_end(struct oct_web *web, struct oct_web_browser *b);

/* The view that it looks at. */
struct oct_web_view *oct_web_browser_view(const struct oct_web *web,
                                          const struct oct_web_browser *b);

#endif
