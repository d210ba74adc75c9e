#include "test/cuda_host/fibers.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);
#define LEAVING(fake, bottom, size) __sanitizer_start_switch_fiber(fake, bottom, size)
#define ARRIVED(fake, bottom, size) __sanitizer_finish_switch_fiber(fake, bottom, size)
#else
#define LEAVING(fake, bottom, size) (void)0
#define ARRIVED(fake, bottom, size) (void)0
#endif

#if defined(__SANITIZE_THREAD__)
extern "C" void *__tsan_get_current_fiber(void);
extern "C" void *__tsan_create_fiber(unsigned flags);
extern "C" void __tsan_destroy_fiber(void *f);
extern "C" void __tsan_switch_to_fiber(void *f, unsigned flags);
extern "C" void __tsan_acquire(void *at);
extern "C" void __tsan_release(void *at);
#define NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#define TSAN_SWITCH(f) __tsan_switch_to_fiber(f, 1 /* no order by this */)
#define TSAN_ACQUIRE(at) __tsan_acquire(at)
#define TSAN_RELEASE(at) __tsan_release(at)
#else
#define NO_TSAN __attribute__((noinline))
#define TSAN_SWITCH(f) (void)0
#define TSAN_ACQUIRE(at) (void)0
#define TSAN_RELEASE(at) (void)0
#endif

#define STACK_BYTES ((size_t)256 << 10) /* touched only as far as it is used */

/* Stacks begin at different places of a page: at the same one a few ways of the cache would serve
 * them all. Multiples of 64, the number of places prime. */
#define PLACE_BYTES ((size_t)704)
#define N_PLACES ((size_t)61)

struct fiber {
    block_runner *runner;
    void *stack;
    void *fake; /* AddressSanitizer's */
    void *tsan;
    bool ended, waits_for_warp;
#if defined(__x86_64__)
    void *place; /* stack pointer while it waits */
#else
    ucontext_t place;
#endif
};

#if defined(__x86_64__)
extern "C" void cuda_host_switch(void **from, void *to);
asm(R"(
    .text
    .globl cuda_host_switch
    .type cuda_host_switch, @function
cuda_host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuda_host_switch, .-cuda_host_switch
)");
#else
static ucontext_t *home_of(void *home)
{
    return static_cast<ucontext_t *>(home);
}
#endif

static thread_local block_runner *entering; /* only from enter() to the first line of start() */

static fiber *new_fiber(block_runner *runner, size_t number, void (*start)())
{
    const size_t bytes = STACK_BYTES - number % N_PLACES * PLACE_BYTES;
    fiber *f = new fiber();
    f->runner = runner;
    f->stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED)
        abort();
#if defined(__x86_64__)
    void **top = reinterpret_cast<void **>(static_cast<char *>(f->stack) + bytes);
    *--top = nullptr; /* alignment: start() is entered as if called */
    *--top = reinterpret_cast<void *>(start);
    top -= 6;
    memset(top, 0, 6 * sizeof(*top));
    f->place = top;
#else
    getcontext(&f->place);
    f->place.uc_stack.ss_sp = f->stack;
    f->place.uc_stack.ss_size = bytes;
    makecontext(&f->place, start, 0);
#endif
#if defined(__SANITIZE_THREAD__)
    f->tsan = __tsan_create_fiber(0);
#endif
    return f;
}

block_runner::~block_runner()
{
    for (fiber *f : fibers) {
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(f->tsan);
#endif
        munmap(f->stack, STACK_BYTES);
        delete f;
    }
#if !defined(__x86_64__)
    delete home_of(home);
#endif
}

/* From run() into a fiber, until it leaves. */
NO_TSAN void block_runner::enter(fiber *f)
{
    now = f;
    entering = this;
    TSAN_SWITCH(f->tsan);
    LEAVING(&home_fake, f->stack, STACK_BYTES);
#if defined(__x86_64__)
    cuda_host_switch(&home, f->place);
#else
    if (!home)
        home = new ucontext_t();
    swapcontext(home_of(home), &f->place);
#endif
    ARRIVED(home_fake, nullptr, nullptr);
}

/* From the running fiber back into run(). */
NO_TSAN void block_runner::leave(bool ended)
{
    fiber *f = now;
    f->ended = ended;
    TSAN_SWITCH(home_tsan);
    LEAVING(&f->fake, home_bottom, home_size);
#if defined(__x86_64__)
    cuda_host_switch(&f->place, home);
#else
    swapcontext(&f->place, home_of(home));
#endif
    ARRIVED(f->fake, &home_bottom, &home_size); /* run() may be on another thread by now */
}

/* The first thread ended without a barrier, so all must: they need no fiber of their own. If one
 * meets a barrier after all, run() sees that some ended. */
NO_TSAN void block_runner::run_the_rest()
{
#if !defined(__SANITIZE_THREAD__)
    while (n_ended + 1 < n_threads && !met_barrier) {
        (*before)(++n_ended);
        (*body)();
    }
#endif
}

NO_TSAN void block_runner::start()
{
    block_runner *runner = entering;
    ARRIVED(nullptr, &runner->home_bottom, &runner->home_size);
    for (;;) {
        TSAN_ACQUIRE(&runner->fence);
        (*runner->body)();
        TSAN_RELEASE(&runner->fence);
        runner->run_the_rest();
        runner->leave(true);
    }
}

NO_TSAN void block_runner::barrier()
{
    met_barrier = true;
    TSAN_RELEASE(&fence);
    leave(false);
    TSAN_ACQUIRE(&fence);
}

NO_TSAN void block_runner::warp_barrier()
{
    now->waits_for_warp = met_barrier = true;
    TSAN_RELEASE(&fence);
    leave(false);
    TSAN_ACQUIRE(&fence);
}

/* A fiber, up to its next barrier or its end. */
NO_TSAN void block_runner::go_on(unsigned at)
{
    fiber *f = fibers[at];
    f->waits_for_warp = false;
    (*before)(at);
    enter(f);
    n_ended += f->ended;
}

/* As long as the lanes of a warp wait for each other. */
NO_TSAN void block_runner::run_warp(unsigned first, unsigned end)
{
    for (unsigned phase = 0; fibers[first]->waits_for_warp; phase++) {
        for (unsigned i = first; i < end; i++)
            if (!fibers[i]->waits_for_warp) {
                fprintf(stderr, "a warp's threads part at a barrier\n");
                abort();
            }
        for (unsigned i = first; i < end; i++)
            go_on(phase % 2 ? i : end - 1 - (i - first));
    }
    for (unsigned i = first; i < end; i++)
        if (fibers[i]->waits_for_warp) {
            fprintf(stderr, "a warp's threads part at a barrier\n");
            abort();
        }
}

NO_TSAN void block_runner::run(unsigned n, const std::function<void(unsigned)> &before_,
                               const std::function<void()> &body_)
{
    while (fibers.size() < n)
        fibers.push_back(new_fiber(this, fibers.size(), start));
#if defined(__SANITIZE_THREAD__)
    home_tsan = __tsan_get_current_fiber();
#endif
    before = &before_;
    body = &body_;
    slots.resize((n + 31) / 32 * 64);
    n_threads = n;
    n_ended = 0;
    met_barrier = false;
    TSAN_RELEASE(&fence); /* all of the above is before the fibers */
    for (unsigned phase = 0; n_ended == 0; phase++) {
        for (unsigned i = 0; i < n && n_ended <= i; i++)
            go_on(phase % 2 ? n - 1 - i : i);
        for (unsigned i = 0; i < n; i += 32)
            run_warp(i, i + 32 < n ? i + 32 : n);
        if (n_ended != 0 && n_ended != n) {
            fprintf(stderr, "a block's threads part at a barrier: %u of %u ended\n", n_ended, n);
            abort();
        }
    }
    TSAN_ACQUIRE(&fence);
}
