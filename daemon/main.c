/* octd: the daemon's start, its loop and its end. */
#define _GNU_SOURCE /* mallopt */
#include "daemon/control.h"
#include "daemon/options.h"
#include "pipeline/log.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include <uv.h>

#define LOOK_AROUND_MS 100

struct loop {
    uv_loop_t uv;
    uv_signal_t signals[3];
    uv_timer_t timer;
    struct oct_daemon daemon;
    struct oct_control *control;
};

static void shut_down(struct loop *loop)
{
    if (uv_is_closing((uv_handle_t *)&loop->timer))
        return;
    uv_close((uv_handle_t *)&loop->timer, NULL);
    oct_control_destroy(loop->control);
    loop->control = NULL;
    for (int i = 0; i < 3; i++)
        uv_unref((uv_handle_t *)&loop->signals[i]);
}

/* Signals are watched to the very end: a second one must not cut short what the first began. */
static void finish(struct loop *loop)
{
    oct_daemon_finish(&loop->daemon);
    for (int i = 0; i < 3; i++)
        uv_close((uv_handle_t *)&loop->signals[i], NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_loop_close(&loop->uv);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct loop *loop = signal->data;
    if (uv_is_closing((uv_handle_t *)&loop->timer))
        return;
    oct_log(OCT_LOG_INFO, "signal %d: draining and closing files", number);
    shut_down(loop);
}

static void on_timer(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    oct_control_serve(loop->control);
    oct_daemon_look_around(&loop->daemon);
    if (loop->daemon.want_shutdown) {
        oct_log(OCT_LOG_INFO, "shutdown asked for: draining and closing files");
        shut_down(loop);
    }
}

static void watch_signals(struct loop *loop)
{
    static const int numbers[3] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++) {
        uv_signal_init(&loop->uv, &loop->signals[i]);
        loop->signals[i].data = loop;
        uv_signal_start(&loop->signals[i], on_signal, numbers[i]);
    }
    uv_timer_init(&loop->uv, &loop->timer);
    loop->timer.data = loop;
    uv_timer_start(&loop->timer, on_timer, LOOK_AROUND_MS, LOOK_AROUND_MS);
}

static enum oct_err run(struct loop *loop, const struct oct_config *config,
                        const struct oct_file_watch *watch, struct oct_error *err)
{
    uv_loop_init(&loop->uv);
    /* Signals are watched before the session is built: a stop during a long start is kept. */
    watch_signals(loop);
    enum oct_err e = oct_daemon_init(&loop->daemon, config, err);
    loop->daemon.watch = *watch;
    if (e == OCT_OK)
        e = oct_control_create(&loop->control, &loop->uv, &loop->daemon, err);
    if (e)
        shut_down(loop);
    else
        oct_log(OCT_LOG_INFO, "octd %s is ready (%s)", OCT_VERSION,
                oct_state_names[oct_daemon_state(&loop->daemon)]);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    finish(loop);
    return e;
}

int main(int argc, char **argv)
{
    struct oct_config config;
    struct oct_file_watch watch;
    struct oct_error err;
    int status;

    /* Message bodies are some 100 kB each: kept on the heap instead of mapped and unmapped. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of the recording, not our end */
    if (oct_daemon_options(&config, &watch, argc, argv, &status))
        return status;
    static struct loop loop; /* large; zeroed */
    enum oct_err e = run(&loop, &config, &watch, &err);
    if (e) {
        oct_log(OCT_LOG_ERROR, "%s", err.text);
        return oct_exit_status(e);
    }
    oct_log(OCT_LOG_INFO, "octd has ended");
    return 0;
}
