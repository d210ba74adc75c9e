#define _DEFAULT_SOURCE /* on_exit */
#include "kernels/device/cuda_worker.h"

#include "kernels/device/cuda_memory.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define DEADLINE_MS 2000u  /* no progress for so long: the device hangs */
#define START_US 60000000u /* contexts of many GPUs, code made for a new one */
#define TICK_US 50000u     /* between looks at the workers' clocks */
#define SPIN_US 30u        /* a worker looks this long before it sleeps between looks */
#define NAP_US 15u
#define LONGEST_NAP_US 1000u
#define LONGEST_LOOK_NS 200000000u /* more than that between two looks was the machine's doing */

void oct_cuda_crew_init(struct oct_cuda_crew *crew, const struct oct_cuda_crew_ops *ops,
                        void *owner, unsigned deadline_ms)
{
    *crew = (struct oct_cuda_crew){.ops = ops,
                                   .owner = owner,
                                   .deadline_us =
                                       (deadline_ms ? deadline_ms : DEADLINE_MS) * UINT64_C(1000),
                                   .looked_ns = oct_clock_ns()};
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    oct_condition_init(&crew->changed);
}

/* ---- clocks ---- */

/* Nanoseconds since the last look. What is more than a moment is not counted, so that a deadline
 * needs time and many looks. */
static uint64_t since_look(uint64_t *looked_ns)
{
    uint64_t now = oct_clock_ns(), passed_ns = now - *looked_ns;
    *looked_ns = now;
    return passed_ns < LONGEST_LOOK_NS ? passed_ns : LONGEST_LOOK_NS;
}

void oct_cuda_worker_set_busy(struct oct_cuda_worker *worker, bool busy)
{
    worker->busy = busy;
    worker->silent_ns = 0;
}

/* Gives the crew up if a worker shows no progress for longer than the deadline. Lock held. */
static void find_late_workers(struct oct_cuda_crew *crew)
{
    uint64_t passed_ns = since_look(&crew->looked_ns);
    for (struct oct_cuda_worker *w = crew->workers; w; w = w->next) {
        uint32_t n_calls = oct_cuda_signs_n_calls(&w->signs);
        bool moves = !w->busy || n_calls != w->n_calls;
        w->n_calls = n_calls;
        w->silent_ns = moves ? 0 : w->silent_ns + passed_ns;
        if (w->silent_ns <= crew->deadline_us * 1000)
            continue;
        struct oct_error why;
        oct_fail(&why, OCT_E_BACKEND, "GPU %u has not answered for %.1f s", w->device,
                 (double)w->silent_ns * 1e-9);
        oct_cuda_crew_give_up(crew, &why);
        return;
    }
}

/* Waits until `changed` is signalled, or for a tick. Lock held, released while it waits. */
static void wait_a_tick(struct oct_cuda_crew *crew, uint64_t timeout_us)
{
    oct_condition_wait_us(&crew->changed, &crew->lock, timeout_us < TICK_US ? timeout_us : TICK_US);
}

void oct_cuda_crew_wait(struct oct_cuda_crew *crew, uint64_t timeout_us)
{
    wait_a_tick(crew, timeout_us);
    find_late_workers(crew);
}

/* How long no call of a worker came back from the device and no thread ended. */
struct patience {
    uint64_t looked_ns, silent_ns, n_moves;
};

static uint64_t count_moves(const struct oct_cuda_crew *crew)
{
    uint64_t n_moves = 0;
    for (const struct oct_cuda_worker *w = crew->workers; w; w = w->next)
        n_moves += oct_cuda_signs_n_calls(&w->signs);
    return n_moves - crew->n_threads;
}

static struct patience begin_patience(const struct oct_cuda_crew *crew)
{
    return (struct patience){.looked_ns = oct_clock_ns(), .n_moves = count_moves(crew)};
}

/* Looks once more; returns true when there was no progress for longer than limit_us. Lock held. */
static bool lose_patience(struct patience *patience, const struct oct_cuda_crew *crew,
                          uint64_t limit_us)
{
    uint64_t passed_ns = since_look(&patience->looked_ns), n_moves = count_moves(crew);
    patience->silent_ns = n_moves == patience->n_moves ? patience->silent_ns + passed_ns : 0;
    patience->n_moves = n_moves;
    return patience->silent_ns > limit_us * 1000;
}

enum oct_err oct_cuda_worker_wait(const struct oct_cuda_worker *worker,
                                  enum oct_err (*poll)(void *context, struct oct_error *err),
                                  void *context, const char *what, struct oct_error *err)
{
    uint64_t looked_ns = oct_clock_ns(), waited_ns = 0;
    for (;;) {
        enum oct_err e = poll(context, err);
        if (e != OCT_E_AGAIN)
            return e;
        waited_ns += since_look(&looked_ns);
        const uint64_t waited_us = waited_ns / 1000;
        if (waited_us > worker->crew->deadline_us)
            return oct_fail(err, OCT_E_BACKEND, "GPU %u has not finished %s in %.1f s",
                            worker->device, what, (double)waited_us * 1e-6);
        if (waited_us < SPIN_US)
            continue;
        /* The sleep is an eighth of the time waited so far: the end is noticed at most an eighth
         * late, and long waits cost a core little. */
        uint64_t nap_us = waited_us / 8 < NAP_US ? NAP_US : waited_us / 8;
        nap_us = nap_us > LONGEST_NAP_US ? LONGEST_NAP_US : nap_us;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap_us * 1000}, NULL);
    }
}

/* ---- faults ---- */

/* What the crew was lent goes back to its owner while threads may still be at work. Lock held. */
static void leave_threads(struct oct_cuda_crew *crew)
{
    for (struct oct_cuda_worker *w = crew->workers; w; w = w->next)
        oct_cuda_signs_give_up(&w->signs);
    if (!crew->ops->uses_lent_memory)
        return;
    if (!crew->holds_memory && crew->n_threads > 0)
        oct_cuda_memory_hold();
    crew->holds_memory = crew->n_threads > 0;
}

static void wake_workers(struct oct_cuda_crew *crew)
{
    pthread_cond_broadcast(&crew->work);
    if (crew->ops->wake)
        crew->ops->wake(crew->owner);
}

void oct_cuda_crew_give_up(struct oct_cuda_crew *crew, const struct oct_error *why)
{
    if (crew->dead)
        return;
    crew->dead = true;
    crew->why = *why;
    leave_threads(crew);
    crew->ops->lose(crew->owner, why);
    wake_workers(crew);
    pthread_cond_broadcast(&crew->changed);
}

void oct_cuda_crew_refuse(struct oct_cuda_crew *crew, const struct oct_error *why)
{
    pthread_mutex_lock(&crew->lock);
    if (!crew->dead) {
        crew->dead = true;
        crew->why = *why;
    }
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

/* ---- threads ---- */

/* Crews whose threads were left to themselves and have not ended; of the process, as the driver's
 * exit handlers are. */
static atomic_uint n_left;

/* The driver's exit handlers, which were there before, would wait for the device. */
static void leave_without_driver(int status, void *unused)
{
    (void)unused;
    if (atomic_load(&n_left) == 0)
        return;
    fflush(NULL);
    _Exit(status);
}

static void set_exit_handler(void)
{
    on_exit(leave_without_driver, NULL);
}

static void free_owner(struct oct_cuda_crew *crew)
{
    pthread_cond_destroy(&crew->work);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    crew->ops->free(crew->owner);
}

/* The last act of a thread. */
static void end_thread(struct oct_cuda_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    bool is_last = --crew->n_threads == 0 && crew->abandoned;
    if (crew->n_threads == 0 && crew->holds_memory)
        oct_cuda_memory_let_go();
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    if (!is_last)
        return;
    free_owner(crew);
    atomic_fetch_sub(&n_left, 1);
}

static void *run_worker(void *argument)
{
    struct oct_cuda_worker *worker = argument;
    struct oct_cuda_crew *crew = worker->crew;
    prctl(PR_SET_NAME, "octd-cuda");
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* naps of 15 us, not of 65 */
    worker->run(worker, worker->context);
    end_thread(crew);
    return NULL;
}

void oct_cuda_worker_is_ready(struct oct_cuda_worker *worker)
{
    pthread_mutex_lock(&worker->crew->lock);
    worker->ready = true;
    pthread_cond_broadcast(&worker->crew->changed);
    pthread_mutex_unlock(&worker->crew->lock);
}

/* Starts the thread detached: nobody has to join it. Lock held. */
static enum oct_err start_thread(struct oct_cuda_worker *worker, struct oct_error *err)
{
    struct oct_cuda_crew *crew = worker->crew;
    char what[64];
    snprintf(what, sizeof(what), "%s: a thread", crew->ops->name);
    enum oct_err e = oct_thread_start_detached(NULL, run_worker, worker, what, err);
    if (e)
        return e;
    crew->n_threads++;
    worker->next = crew->workers;
    crew->workers = worker;
    return OCT_OK;
}

enum oct_err oct_cuda_worker_start(struct oct_cuda_crew *crew, struct oct_cuda_worker *worker,
                                   void (*run)(struct oct_cuda_worker *worker, void *context),
                                   void *context, const char *what, struct oct_error *err)
{
    worker->crew = crew;
    worker->run = run;
    worker->context = context;
    pthread_mutex_lock(&crew->lock);
    enum oct_err e = start_thread(worker, err);
    struct patience patience = begin_patience(crew);
    while (!e && !worker->ready && !crew->dead) {
        if (lose_patience(&patience, crew, START_US))
            e = oct_fail(err, OCT_E_BACKEND, "%s did not answer within %u s", what,
                         START_US / 1000000);
        else
            wait_a_tick(crew, TICK_US);
    }
    if (!e && crew->dead) {
        e = crew->why.code;
        if (err)
            *err = crew->why;
    }
    pthread_mutex_unlock(&crew->lock);
    return e;
}

void oct_cuda_crew_finish(struct oct_cuda_crew *crew)
{
    static pthread_once_t exit_handler = PTHREAD_ONCE_INIT;
    const uint64_t limit_us = crew->deadline_us + crew->deadline_us / 2;
    const char *name = crew->ops->name;
    pthread_mutex_lock(&crew->lock);
    crew->stopping = true;
    wake_workers(crew);
    struct patience patience = begin_patience(crew);
    while (crew->n_threads > 0 && !lose_patience(&patience, crew, limit_us))
        wait_a_tick(crew, TICK_US);
    bool all_ended = crew->n_threads == 0;
    if (!all_ended) {
        crew->abandoned = true;
        leave_threads(crew);
        atomic_fetch_add(&n_left, 1);
        pthread_once(&exit_handler, set_exit_handler);
    }
    pthread_mutex_unlock(&crew->lock);
    if (all_ended)
        free_owner(crew);
    else /* the last thread may have freed the crew already */
        oct_log(OCT_LOG_WARNING, "%s: the device does not let go; its memory is left", name);
}
