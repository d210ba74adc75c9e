/* What is said to a browser, and what it asks for. */
#include "web/server.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/json_text.h"
#include "pipeline/base/log.h"
#include "pipeline/base/utf8.h"
#include "web/recordings.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(OCT_WEB_BEFORE >= LWS_PRE, "lws writes before a message");

#define BSCAN_NS (28 * OCT_NS_PER_MS)
#define OTHERS_NS (200 * OCT_NS_PER_MS) /* of the best level; of each other twice that before */

struct oct_web_view *oct_web_browser_view(const struct oct_web *web,
                                          const struct oct_web_browser *b)
{
    return b->playback ? b->playback->view : web->live;
}

void oct_web_browser_end(struct oct_web *web, struct oct_web_browser *b)
{
    struct oct_web_browser **at = &web->browsers;
    oct_web_playback_end(web, b);
    if (b->errand)
        b->errand->browser = NULL;
    b->errand = NULL;
    free(b->list);
    b->list = NULL;
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at)
        *at = b->next;
}

/* ---- what is said ---- */

static bool send_bytes(struct oct_web *web, struct oct_web_browser *b, unsigned char *bytes,
                       size_t n, enum lws_write_protocol how)
{
    /* Names of files may be no UTF-8, and a browser leaves for a text that is none. */
    if (how == LWS_WRITE_TEXT) {
        oct_utf8_repair((char *)bytes);
        n = strlen((char *)bytes);
    }
    web->counts.n_bytes += n;
    return lws_write(b->wsi, bytes, n, how) >= 0;
}

/* Whether a key asks octweb for something, ever. */
static bool is_here(enum oct_view_action action)
{
    return oct_web_right_of(false, action) != OCT_WEB_RIGHT_NONE ||
           oct_web_right_of(true, action) != OCT_WEB_RIGHT_NONE;
}

static bool say_hello(struct oct_web *web, struct oct_web_browser *b)
{
    unsigned char buffer[LWS_PRE + 16384];
    struct oct_json_text t;
    char keys[128];
    oct_json_begin(&t, (char *)buffer + LWS_PRE, sizeof(buffer) - LWS_PRE);
    oct_json_raw(&t, "{\"hello\":{");
    oct_json_member_string(&t, "name", b->name);
    oct_json_member_string(&t, "role", oct_web_role_names[b->role]);
    oct_json_key(&t, "help");
    oct_json_raw(&t, "[");
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        if (!oct_view_key_help(i, keys, sizeof(keys)))
            continue;
        oct_json_separate(&t);
        oct_json_raw(&t, "[");
        oct_json_string(&t, keys);
        oct_json_separate(&t);
        oct_json_string(&t, oct_view_keys[i].meaning);
        oct_json_separate(&t);
        oct_json_u64(&t, is_here(oct_view_keys[i].action));
        oct_json_raw(&t, "]");
    }
    oct_json_raw(&t, "]}}");
    return send_bytes(web, b, buffer + LWS_PRE, oct_json_end(&t), LWS_WRITE_TEXT);
}

static bool say_list(struct oct_web *web, struct oct_web_browser *b)
{
    const bool good = send_bytes(web, b, b->list + OCT_WEB_BEFORE, b->n_list, LWS_WRITE_TEXT);
    free(b->list);
    b->list = NULL;
    return good;
}

static bool say_refused(struct oct_web *web, struct oct_web_browser *b)
{
    unsigned char buffer[LWS_PRE + 2048];
    struct oct_json_text t;
    oct_json_begin(&t, (char *)buffer + LWS_PRE, sizeof(buffer) - LWS_PRE);
    oct_json_raw(&t, "{");
    oct_json_member_string(&t, "refused", b->refusal);
    oct_json_raw(&t, "}");
    b->refusal[0] = '\0';
    return send_bytes(web, b, buffer + LWS_PRE, oct_json_end(&t), LWS_WRITE_TEXT);
}

/* The next one goes when the one before was heard, however slow the link is. */
static bool has_state(const struct oct_web_view *view, const struct oct_web_browser *b,
                      uint64_t now_ns)
{
    const uint32_t serial = oct_web_view_state_serial(view);
    return serial && !b->state_waits &&
           (serial != b->state_sent || now_ns - b->state_ns >= OCT_NS_PER_S);
}

static bool is_due(const struct oct_web *web, const struct oct_web_browser *b,
                   enum oct_web_kind kind, uint64_t now_ns)
{
    const uint32_t serial = oct_web_view_serial(oct_web_browser_view(web, b), kind);
    return serial && serial != b->sent[kind] && now_ns >= b->due_ns[kind] &&
           !(kind == OCT_WEB_BSCAN && b->frozen) && oct_web_pace_has_room(&b->pace, kind, now_ns);
}

static bool is_whole_due(const struct oct_web_view *view, const struct oct_web_browser *b,
                         uint64_t now_ns)
{
    return b->wants_whole && oct_web_view_has_whole(view, b->whole_since, now_ns);
}

static bool send_state(struct oct_web *web, struct oct_web_browser *b,
                       const struct oct_web_message *state, uint64_t now_ns)
{
    b->state_sent = b->state_waits = state->serial;
    b->state_ns = now_ns;
    return send_bytes(web, b, state->bytes, state->n, LWS_WRITE_TEXT);
}

static bool send_picture(struct oct_web *web, struct oct_web_browser *b, enum oct_web_kind kind,
                         bool whole, uint64_t now_ns)
{
    struct oct_web_view *view = oct_web_browser_view(web, b);
    const unsigned level = oct_web_pace_level(&b->pace, now_ns);
    /* Of one that cannot be made, too. */
    b->due_ns[kind] = now_ns + (kind == OCT_WEB_BSCAN ? BSCAN_NS : OTHERS_NS << level);
    const struct oct_web_message *m =
        whole ? oct_web_view_whole(view, now_ns) : oct_web_view_picture(view, kind, level);
    if (!m)
        return true;
    b->sent[kind] = m->serial;
    oct_web_pace_sent(&b->pace, kind, m->serial, !whole, now_ns);
    web->counts.n_pictures++;
    return send_bytes(web, b, m->bytes, m->n, LWS_WRITE_BINARY);
}

/* lws keeps what the system does not take of a message, and asks again when it has. */
bool oct_web_browser_write(struct oct_web *web, struct oct_web_browser *b)
{
    struct oct_web_view *view = oct_web_browser_view(web, b);
    const struct oct_web_message *state = oct_web_view_state(view);
    const uint64_t now_ns = oct_clock_ns();
    bool good = true;
    if (b->says_hello) {
        b->says_hello = false;
        good = say_hello(web, b);
    } else if (b->refusal[0]) {
        good = say_refused(web, b);
    } else if (b->list) {
        good = say_list(web, b);
    } else if (has_state(view, b, now_ns)) {
        good = send_state(web, b, state, now_ns);
    } else if (is_whole_due(view, b, now_ns)) {
        b->wants_whole = false;
        good = send_picture(web, b, OCT_WEB_BSCAN, true, now_ns);
    } else {
        for (unsigned kind = 0; kind < OCT_WEB_N_KINDS; kind++)
            if (is_due(web, b, (enum oct_web_kind)kind, now_ns)) {
                good = send_picture(web, b, (enum oct_web_kind)kind, false, now_ns);
                break;
            }
    }
    if (good)
        oct_web_browser_wake(web, b);
    return good;
}

void oct_web_browser_wake(struct oct_web *web, struct oct_web_browser *b)
{
    const struct oct_web_view *view = oct_web_browser_view(web, b);
    const uint64_t now_ns = oct_clock_ns();
    bool has = b->says_hello || b->refusal[0] || b->list || has_state(view, b, now_ns) ||
               is_whole_due(view, b, now_ns);
    for (unsigned kind = 0; kind < OCT_WEB_N_KINDS; kind++)
        has |= is_due(web, b, (enum oct_web_kind)kind, now_ns);
    if (has)
        lws_callback_on_writable(b->wsi);
}

/* ---- what it asks for ---- */

static void hear_state(struct oct_web_browser *b, double serial)
{
    const uint64_t now_ns = oct_clock_ns();
    if (!b->state_waits || (double)b->state_waits != serial)
        return;
    b->state_waits = 0;
    oct_web_pace_answered(&b->pace, (double)(now_ns - b->state_ns) / 1e6, now_ns);
}

static void want_whole(struct oct_web *web, struct oct_web_browser *b)
{
    b->wants_whole = true;
    b->whole_since = oct_web_view_serial(oct_web_browser_view(web, b), OCT_WEB_BSCAN);
}

static void hear_freeze(struct oct_web *web, struct oct_web_browser *b, bool freezes, bool whole)
{
    b->frozen = freezes;
    b->wants_whole = false;
    if (freezes && whole)
        want_whole(web, b);
}

static enum oct_view_action action_of(const char *key)
{
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        const size_t n = strlen(key);
        for (const char *at = oct_view_keys[i].keys; n && at; at = strchr(at, ' ')) {
            at += *at == ' ';
            if (strncmp(at, key, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
                return oct_view_keys[i].action;
        }
    }
    return OCT_ACTION_NOTHING;
}

static bool may(struct oct_web *web, struct oct_web_browser *b, enum oct_web_right right)
{
    if (right == OCT_WEB_RIGHT_ALL ||
        (right == OCT_WEB_RIGHT_OPERATE && b->role == OCT_WEB_OPERATE)) {
        web->counts.n_actions++;
        return true;
    }
    if (right == OCT_WEB_RIGHT_OPERATE) {
        snprintf(b->refusal, sizeof(b->refusal), "%s may only look", b->name);
        web->counts.refused_role++;
    }
    return false;
}

static void hear_key(struct oct_web *web, struct oct_web_browser *b, const char *key)
{
    struct oct_view_model *model = oct_web_view_model(oct_web_browser_view(web, b));
    const enum oct_view_action action = action_of(key);
    if (action == OCT_ACTION_PSEUDONYM ||
        !may(web, b, oct_web_right_of(model->playback.active, action)))
        return; /* what is typed is typed in the browser */
    if (action == OCT_ACTION_LEAVE)
        oct_view_patient_cancel(model);
    else
        oct_view_model_apply(model, action, 1);
}

/* of, was: the recording ("": live) and the pseudonym that the browser showed when typing began. */
static void hear_pseudonym(struct oct_web *web, struct oct_web_browser *b, const char *text,
                           const char *of, const char *was)
{
    struct oct_view_model *model = oct_web_view_model(oct_web_browser_view(web, b));
    const char *is_of = model->playback.active ? model->playback.file.name : "";
    if (!oct_view_letters_are(text) || !may(web, b, OCT_WEB_RIGHT_OPERATE))
        return;
    if (!of || !was || strcmp(of, is_of) != 0 ||
        strcmp(was, oct_view_patient_pseudonym(model)) != 0) {
        snprintf(b->refusal, sizeof(b->refusal), "not taken over: it was typed for another one");
        return;
    }
    oct_view_model_apply(model, OCT_ACTION_PSEUDONYM, 1);
    if (!model->typing)
        return;
    if (text[0])
        oct_view_model_type(model, text);
    else
        oct_view_model_rub_out(model); /* all of it, at first */
    oct_view_model_end_typing(model, true);
}

/* What is no name ends the connection; of the folder is asked with the next turn. */
static bool hear_open(struct oct_web_browser *b, const char *name)
{
    if (!oct_web_recordings_is_name(name))
        return false;
    snprintf(b->open, sizeof(b->open), "%s", name);
    b->wants_open = true;
    return true;
}

static void hear_list(struct oct_web_browser *b, const char *of)
{
    snprintf(b->list_of, sizeof(b->list_of), "%.100s", of ? of : "");
    b->wants_list = true;
}

static double number_of(const cJSON *message, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(message, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *text_of(const cJSON *message, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, name));
}

static bool hear_message(struct oct_web *web, struct oct_web_browser *b, const cJSON *message)
{
    const double seen = number_of(message, "seen"), go = number_of(message, "go");
    const double line = number_of(message, "line"), heard = number_of(message, "heard");
    const char *key = text_of(message, "key"), *pseudonym = text_of(message, "pseudonym");
    const char *open = text_of(message, "open");
    const cJSON *freeze = cJSON_GetObjectItemCaseSensitive(message, "freeze");
    if (seen > 0 && seen <= UINT32_MAX)
        oct_web_pace_seen(&b->pace, (uint32_t)seen, oct_clock_ns());
    else if (heard > 0)
        hear_state(b, heard);
    else if (cJSON_IsBool(freeze)) /* one that was frozen before it came again keeps its picture */
        hear_freeze(web, b, cJSON_IsTrue(freeze),
                    !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(message, "whole")));
    else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, "whole")))
        want_whole(web, b);
    else if (key)
        hear_key(web, b, key);
    else if (pseudonym)
        hear_pseudonym(web, b, pseudonym, text_of(message, "of"), text_of(message, "was"));
    else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, "list")))
        hear_list(b, text_of(message, "of"));
    else if (open)
        return hear_open(b, open);
    else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, "live")))
        oct_web_playback_live(web, b);
    else if (isfinite(go)) { /* the newest is gone to with the next turn */
        b->goes = true;
        b->go = go;
    } else if (isfinite(line)) {
        b->slices = true;
        b->slice = line;
    } else
        return false;
    return true;
}

bool oct_web_browser_hear(struct oct_web *web, struct oct_web_browser *b, const char *text,
                          size_t n)
{
    const uint64_t now_ns = oct_clock_ns();
    if (now_ns - b->second_ns > OCT_NS_PER_S) {
        b->second_ns = now_ns;
        b->n_messages = 0;
    }
    cJSON *message = ++b->n_messages <= OCT_WEB_MOST_RATE ? cJSON_ParseWithLength(text, n) : NULL;
    const bool good = cJSON_IsObject(message) && hear_message(web, b, message);
    cJSON_Delete(message);
    web->counts.refused_message += !good;
    if (good)
        oct_web_browser_wake(web, b);
    return good;
}
