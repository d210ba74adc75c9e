/* keygen, allow: make CURVE keys and manage the folder of allowed ones. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "pipeline/base/folder.h"
#include "pipeline/net/curve.h"
#include "pipeline/net/key_folder.h"
#include "tools/commands.h"
#include "tools/control/web.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#define PUBLIC_END ".key"
#define MOST_NAME (NAME_MAX - (sizeof(PUBLIC_END) - 1))
#define SECRET_END ".key_secret"

/* ---- keygen ---- */

static enum oct_err make_pair(char public[OCT_CURVE_KEY_BYTES], char secret[OCT_CURVE_KEY_BYTES],
                              struct oct_error *err)
{
    do /* a key must not look like an option or a comment on a command line */
        if (zmq_curve_keypair(public, secret) != 0)
            return oct_fail(err, OCT_E_IO, "no key can be made: %s", zmq_strerror(zmq_errno()));
    while (public[0] == '-' || public[0] == '#');
    return OCT_OK;
}

static int keygen(struct oct_config *config, int argc, char **argv)
{
    (void)config;
    char public[OCT_CURVE_KEY_BYTES], secret[OCT_CURVE_KEY_BYTES];
    char public_path[PATH_MAX], secret_path[PATH_MAX];
    int status = oct_options_read(&oct_command_keygen, NULL, &argc, argv);
    if (status)
        return status;
    const char *name = argc > 1 ? argv[1] : "octd";
    struct oct_error err;
    if (!name[0])
        return oct_command_misuse(argv[0], "give one name for the files, such as camera");
    if (snprintf(secret_path, sizeof(secret_path), "%s" SECRET_END, name) >= PATH_MAX ||
        snprintf(public_path, sizeof(public_path), "%s" PUBLIC_END, name) >= PATH_MAX)
        return oct_command_misuse(argv[0], "the name is too long");
    enum oct_err code = oct_curve_available(&err);
    code = code ? code : make_pair(public, secret, &err);
    code = code ? code : oct_curve_write(secret_path, public, secret, &err);
    if (!code && (code = oct_curve_write(public_path, public, NULL, &err)))
        unlink(secret_path); /* do not leave half a pair behind */
    explicit_bzero(secret, sizeof(secret));
    if (code)
        return oct_command_fail(argv[0], &err);
    printf("%s  secret: stays where it is used\n%s  public: for the other side\n%s\n", secret_path,
           public_path, public);
    return 0;
}

const struct oct_command oct_command_keygen = {
    .name = "keygen",
    .usage = "[NAME]",
    .help = "makes a pair of keys: NAME.key and NAME.key_secret",
    .n_most = 1,
    .words = OCT_WORDS_NONE,
    .run = keygen,
};

/* ---- allow ---- */

struct allowing {
    const char *folder, *what, *name, *remove, *web, *role;
    bool list;
    char name_buffer[MOST_NAME + 2];
};

static const struct oct_option options[] = {
    {"--name", "NAME", "its name in the folder (that of the file)", OCT_OPTION_TEXT,
     .at = offsetof(struct allowing, name)},
    {"--list", NULL, "the keys that are allowed in", OCT_OPTION_FLAG,
     .at = offsetof(struct allowing, list)},
    {"--remove", "NAME", "takes one out: its connections are cut within a second", OCT_OPTION_TEXT,
     .at = offsetof(struct allowing, remove)},
    {"--web", "NAME", "prints a link, good for one use within an hour, by which a browser looks in",
     OCT_OPTION_TEXT, .at = offsetof(struct allowing, web)},
    {"--role", "ROLE", "of that browser: look, operate, or none: takes its links and sessions away",
     OCT_OPTION_TEXT, .at = offsetof(struct allowing, role), .words = "look operate none"},
    {NULL},
};

/* A name becomes that of a file in the folder: it has no slash, and no dot in front. */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= MOST_NAME && name[0] != '.' && strspn(name, letters) == n;
}

static enum oct_err check_name(const char *name, struct oct_error *err)
{
    if (is_name(name))
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG,
                    "'%.80s' is no name for a key: 1 to %zu letters, digits, dots, dashes and "
                    "underscores, no dot first",
                    name ? name : "", MOST_NAME);
}

static void print_complaint(void *context, const struct oct_key_file *file, const char *text)
{
    (void)context;
    (void)file;
    fprintf(stderr, "octctl allow: %s\n", text);
}

static enum oct_err read_folder(struct oct_key_folder *keys, const char *path, bool telling,
                                struct oct_error *err)
{
    static const struct oct_key_folder never = {0};
    enum oct_err code = oct_key_folder_init(keys, err);
    return code ? code
                : oct_key_folder_read(keys, &never, path, telling ? print_complaint : NULL, NULL,
                                      err);
}

static enum oct_err list(const struct allowing *a, struct oct_error *err)
{
    struct oct_key_folder keys;
    enum oct_err code = read_folder(&keys, a->folder, true, err);
    for (uint32_t i = 0; i < keys.n; i++)
        if (keys.files[i].state == OCT_KEY_FILE_HOLDS)
            printf("%-20s %s\n", keys.files[i].name, keys.files[i].key);
    oct_key_folder_finish(&keys);
    return code;
}

/* The daemon does not start with more keys than OCT_MOST_KEY_FILES. */
static enum oct_err check_room(const struct allowing *a, struct oct_error *err)
{
    struct oct_key_folder keys;
    enum oct_err code = read_folder(&keys, a->folder, false, err);
    if (!code && keys.n == OCT_MOST_KEY_FILES)
        code = oct_fail(err, OCT_E_IO,
                        "security.allowed: %s: there are %d keys, as many as octd takes: --remove "
                        "one that nobody uses",
                        a->folder, OCT_MOST_KEY_FILES);
    oct_key_folder_finish(&keys);
    return code;
}

/* /some/where/camera.key_secret -> camera */
static void name_of_file(struct allowing *a)
{
    const char *slash = strrchr(a->what, '/');
    const char *base = slash ? slash + 1 : a->what;
    size_t n = strlen(base);
    static const char *const ends[] = {SECRET_END, PUBLIC_END};
    for (size_t i = 0; i < 2; i++) {
        size_t m = strlen(ends[i]);
        if (n > m && strcmp(base + n - m, ends[i]) == 0)
            n -= m;
    }
    /* A name that is too long stays too long and is refused: cut short it could be that of another
     * key. */
    snprintf(a->name_buffer, sizeof(a->name_buffer), "%.*s",
             n <= MOST_NAME ? (int)n : (int)MOST_NAME + 1, base);
    a->name = a->name_buffer;
}

static enum oct_err key_of(struct allowing *a, char key[OCT_CURVE_KEY_BYTES], struct oct_error *err)
{
    if (!a->what)
        return oct_fail(err, OCT_E_ARG, "which key?");
    if (oct_curve_is_key(a->what) && access(a->what, F_OK) != 0) {
        if (!a->name)
            return oct_fail(err, OCT_E_ARG, "a key alone needs --name NAME");
        memcpy(key, a->what, OCT_CURVE_KEY_BYTES);
        return OCT_OK;
    }
    if (!a->name)
        name_of_file(a);
    return oct_curve_read_public(a->what, key, err);
}

static enum oct_err make_folder(const char *folder, struct oct_error *err)
{
    bool made = mkdir(folder, 0755) == 0;
    /* octd may run as another user: the mode must not depend on the umask. */
    if (made ? chmod(folder, 0755) != 0 : errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "security.allowed: %s", folder);
    return made ? oct_folder_sync_parent(folder, err) : OCT_OK;
}

/* Adds the file whole or not at all: octd may read the folder at any moment. */
static enum oct_err add_key(struct allowing *a, struct oct_error *err)
{
    char key[OCT_CURVE_KEY_BYTES], there[OCT_CURVE_KEY_BYTES];
    char path[PATH_MAX], work[PATH_MAX];
    enum oct_err code = key_of(a, key, err);
    if (code || (code = check_name(a->name, err)))
        return code;
    if ((code = make_folder(a->folder, err)))
        return code;
    if (snprintf(path, sizeof(path), "%s/%s" PUBLIC_END, a->folder, a->name) >= PATH_MAX ||
        snprintf(work, sizeof(work), "%s/.allow.%ld", a->folder, (long)getpid()) >= PATH_MAX)
        return oct_fail(err, OCT_E_ARG, "security.allowed: the path is too long");
    if (access(path, F_OK) == 0) {
        if (oct_curve_read_public(path, there, NULL) == OCT_OK && strcmp(there, key) == 0)
            return OCT_OK;
        return oct_fail(err, OCT_E_IO,
                        "%s: another key has this name: --remove it or choose --name", path);
    }
    if ((code = check_room(a, err)) || (code = oct_curve_write(work, key, NULL, err)))
        return code;
    if (link(work, path) != 0) /* unlike rename, link replaces no file */
        code = oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    unlink(work);
    return code ? code : oct_folder_sync(a->folder, err);
}

static enum oct_err take_out(const struct allowing *a, struct oct_error *err)
{
    char path[PATH_MAX];
    enum oct_err code = check_name(a->remove, err);
    if (code)
        return code;
    if (snprintf(path, sizeof(path), "%s/%s" PUBLIC_END, a->folder, a->remove) >= PATH_MAX)
        return oct_fail(err, OCT_E_ARG, "security.allowed: the path is too long");
    if (unlink(path) == 0) /* sync the folder: the key must not come back after a power cut */
        return oct_folder_sync(a->folder, err);
    if (errno == ENOENT)
        return oct_fail(err, OCT_E_IO, "no key of the name %s is allowed: see octctl allow --list",
                        a->remove);
    return oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
}

static int read_options(struct allowing *a, int argc, char **argv)
{
    int status = oct_options_read(&oct_command_allow, a, &argc, argv);
    if (status)
        return status;
    a->what = argv[1]; /* or NULL */
    if ((a->what != NULL) + (a->remove != NULL) + a->list + (a->web != NULL) != 1)
        return oct_command_misuse(argv[0],
                                  "give one of KEYFILE, KEY, --list, --remove NAME, --web NAME");
    if ((a->web != NULL) != (a->role != NULL))
        return oct_command_misuse(argv[0], "--web NAME goes with --role look, operate or none");
    if (a->name && !a->what)
        return oct_command_misuse(argv[0], "--name goes with a key");
    return 0;
}

/* ---- browsers ---- */

enum oct_err oct_web_link_print(const struct oct_config *config, const char *name,
                                enum oct_web_role role, struct oct_error *err)
{
    static const char any[] = "0.0.0.0", any6[] = "[::]";
    const char *endpoint = config->web.endpoint, *port = strrchr(endpoint, ':');
    char link[OCT_WEB_TOKEN_BYTES], host[256] = "";
    oct_config_string path;
    enum oct_err code = oct_config_web_tokens(config, path, err);
    if (code || (code = oct_web_link_add(path, name, role, link, err)))
        return code;
    const size_t n = port ? (size_t)(port - endpoint) : strlen(endpoint);
    if ((n == strlen(any) && strncmp(endpoint, any, n) == 0) ||
        (n == strlen(any6) && strncmp(endpoint, any6, n) == 0))
        gethostname(host, sizeof(host) - 1);
    else
        snprintf(host, sizeof(host), "%.*s", (int)n, endpoint);
    printf("%s://%s%s/#%s\n", config->web.certificate[0] ? "https" : "http", host, port ? port : "",
           link);
    explicit_bzero(link, sizeof(link));
    return OCT_OK;
}

static int allow_web(const struct oct_config *config, const struct allowing *a, const char *command)
{
    const int role = oct_option_word(a->role, oct_web_role_names, OCT_WEB_N_ROLES);
    struct oct_error err;
    oct_config_string path;
    enum oct_err code;
    if (strcmp(a->role, "none") == 0) {
        code = oct_config_web_tokens(config, path, &err);
        code = code ? code : oct_web_name_remove(path, a->web, &err);
        if (!code)
            printf("%s is out\n", a->web);
    } else if (role < 0) {
        return oct_command_misuse(command, "--role is look, operate or none");
    } else {
        code = oct_web_link_print(config, a->web, (enum oct_web_role)role, &err);
    }
    return code ? oct_command_fail(command, &err) : 0;
}

static int allow(struct oct_config *config, int argc, char **argv)
{
    struct allowing a = {.folder = config->security.allowed};
    struct oct_error err;
    enum oct_err code;
    int status = read_options(&a, argc, argv);
    if (status)
        return status;
    if (a.web)
        return allow_web(config, &a, argv[0]);
    if (!a.folder[0])
        return oct_command_misuse(argv[0], "security.allowed is not set: --config FILE or --set "
                                           "security.allowed=FOLDER");
    if (a.list)
        code = list(&a, &err);
    else if (a.remove)
        code = take_out(&a, &err);
    else
        code = add_key(&a, &err);
    if (code)
        return oct_command_fail(argv[0], &err);
    if (a.remove)
        printf("%s is out\n", a.remove);
    else if (!a.list)
        printf("%s is allowed in\n", a.name);
    return 0;
}

const struct oct_command oct_command_allow = {
    .name = "allow",
    .usage = "KEYFILE|KEY",
    .help = "lets a key into the daemon, or a browser into octweb",
    .options = options,
    .n_most = 1,
    .is_plain = oct_curve_is_key,
    .run = allow,
};
