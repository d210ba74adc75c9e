#include "test/cuda_host/cuda_host.h"

#include "test/cuda_host/fibers.h"

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#define MAX_DEVICES 8
#define BLOCKS_WORTH_A_THREAD 4

/* ---- the machine ---- */

namespace
{

struct machine {
    std::mutex lock;
    std::condition_variable changed;
    unsigned n_devices = 1;
    bool has_driver = true, pins = true;
    size_t bytes = (size_t)1 << 30, shared_limit = 227 << 10;
    cuda_host_fault fault = CUDA_HOST_NO_FAULT;
    unsigned fault_at = 0, generation = 0, us_per_call = 0;
    unsigned n_calls = 0, n_operations = 0, n_objects = 0;
    size_t bytes_down = 0;
    unsigned n_launches[MAX_DEVICES] = {};
    bool lost = false;
    unsigned n_running = 0;                                              /* operations at work */
    std::map<void *, std::pair<size_t, int>> memory, pinned, registered; /* bytes, device */
    std::map<const void *, size_t> allowed_shared;
    std::vector<std::unique_ptr<block_runner>> idle_runners;
};

machine &the()
{
    static machine *m = new machine; /* outlives threads that hang until the end */
    return *m;
}

thread_local int device_now = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t note(cudaError_t code)
{
    if (code != cudaSuccess) /* "not ready" too, as the runtime does */
        last_error = code;
    return code;
}

/* Every call starts here; the lock is taken and released. Questions that are asked again and again
 * count once: how often that is depends on the time. */
cudaError_t enter_call(bool counts = true)
{
    machine &m = the();
    std::unique_lock<std::mutex> hold(m.lock);
    m.n_calls += counts;
    if (m.us_per_call) {
        const std::chrono::microseconds pace(m.us_per_call);
        hold.unlock();
        std::this_thread::sleep_for(pace);
        hold.lock();
    }
    if (!m.has_driver)
        return note(cudaErrorInsufficientDriver);
    if (m.n_calls == m.fault_at && m.fault == CUDA_HOST_CALL_FAILS)
        m.lost = true;
    if (counts && m.n_calls == m.fault_at &&
        (m.fault == CUDA_HOST_CALL_BLOCKS || m.fault == CUDA_HOST_CALL_LATE)) {
        bool is_late = m.fault == CUDA_HOST_CALL_LATE;
        unsigned mine = m.generation;
        m.changed.wait(hold, [&] { return m.generation != mine; });
        return note(is_late ? cudaSuccess : cudaErrorLaunchFailure);
    }
    if (m.lost) /* a device that reports an error has stopped: nothing writes to memory any more */
        m.changed.wait(hold, [&] { return m.n_running == 0; });
    return note(m.lost ? cudaErrorLaunchFailure : cudaSuccess);
}

/* Every operation in a stream; false: it is not to be done. leave_operation follows if true. */
bool enter_operation()
{
    machine &m = the();
    std::unique_lock<std::mutex> hold(m.lock);
    m.n_operations++;
    if (m.n_operations == m.fault_at && m.fault == CUDA_HOST_WORK_FAILS)
        m.lost = true;
    if (m.n_operations == m.fault_at && m.fault == CUDA_HOST_WORK_HANGS) {
        unsigned mine = m.generation;
        m.changed.wait(hold, [&] { return m.generation != mine; });
    } /* and then it is done after all: what follows may rely on it */
    m.n_running += !m.lost;
    return !m.lost;
}

bool is_lost()
{
    std::lock_guard<std::mutex> hold(the().lock);
    return the().lost;
}

void leave_operation()
{
    machine &m = the();
    std::lock_guard<std::mutex> hold(m.lock);
    m.n_running--;
    m.changed.notify_all();
}

} // namespace

extern "C" void cuda_host_reset(unsigned n_devices, size_t bytes)
{
    machine &m = the();
    std::lock_guard<std::mutex> hold(m.lock);
    m.n_devices = n_devices;
    m.bytes = bytes;
    m.has_driver = m.pins = true;
    m.shared_limit = 227 << 10;
    m.fault = CUDA_HOST_NO_FAULT;
    m.n_calls = m.n_operations = m.us_per_call = 0;
    for (unsigned &n : m.n_launches)
        n = 0;
    m.lost = false;
    m.generation++;
    m.changed.notify_all();
}

extern "C" void cuda_host_remove_driver(void)
{
    std::lock_guard<std::mutex> hold(the().lock);
    the().has_driver = false;
}

extern "C" void cuda_host_set_shared_limit(size_t bytes)
{
    std::lock_guard<std::mutex> hold(the().lock);
    the().shared_limit = bytes;
}

extern "C" void cuda_host_set_pinning(bool possible)
{
    std::lock_guard<std::mutex> hold(the().lock);
    the().pins = possible;
}

extern "C" void cuda_host_set_pace(unsigned us_per_call)
{
    std::lock_guard<std::mutex> hold(the().lock);
    the().us_per_call = us_per_call;
}

static bool counts_calls(enum cuda_host_fault fault)
{
    return fault == CUDA_HOST_CALL_FAILS || fault == CUDA_HOST_CALL_BLOCKS ||
           fault == CUDA_HOST_CALL_LATE;
}

extern "C" void cuda_host_set_fault(enum cuda_host_fault fault, unsigned n)
{
    std::lock_guard<std::mutex> hold(the().lock);
    the().fault = fault;
    the().fault_at = n + (counts_calls(fault) ? the().n_calls : the().n_operations);
}

extern "C" unsigned cuda_host_n_calls(void)
{
    std::lock_guard<std::mutex> hold(the().lock);
    return the().n_calls;
}

extern "C" unsigned cuda_host_n_operations(void)
{
    std::lock_guard<std::mutex> hold(the().lock);
    return the().n_operations;
}

extern "C" unsigned cuda_host_n_launches(unsigned device)
{
    std::lock_guard<std::mutex> hold(the().lock);
    return the().n_launches[device];
}

extern "C" size_t cuda_host_bytes_in_use(void)
{
    std::lock_guard<std::mutex> hold(the().lock);
    size_t bytes = 0;
    for (const auto &m : the().memory)
        bytes += m.second.first;
    for (const auto &m : the().pinned)
        bytes += m.second.first;
    for (const auto &m : the().registered)
        bytes += m.second.first;
    return bytes;
}

extern "C" size_t cuda_host_bytes_down(void)
{
    std::lock_guard<std::mutex> guard(the().lock);
    return the().bytes_down;
}

extern "C" unsigned cuda_host_n_objects(void)
{
    std::lock_guard<std::mutex> hold(the().lock);
    return the().n_objects;
}

/* ---- streams and events ---- */

struct cuda_host_stream {
    int device = 0;
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    bool busy = false, stopping = false;
    std::thread worker;

    void push(std::function<void()> operation)
    {
        std::lock_guard<std::mutex> hold(lock);
        queue.push_back(std::move(operation));
        changed.notify_all();
    }

    void work()
    {
        std::unique_lock<std::mutex> hold(lock);
        for (;;) {
            changed.wait(hold, [&] { return stopping || !queue.empty(); });
            if (queue.empty())
                return;
            std::function<void()> operation = std::move(queue.front());
            queue.pop_front();
            busy = true;
            hold.unlock();
            if (enter_operation()) {
                operation();
                leave_operation();
            }
            operation = nullptr;
            hold.lock();
            busy = false;
            changed.notify_all();
        }
    }

    void drain()
    {
        std::unique_lock<std::mutex> hold(lock);
        changed.wait(hold, [&] { return queue.empty() && !busy; });
    }
};

struct cuda_host_event {
    std::mutex lock;
    unsigned n_recorded = 0, n_passed = 0,
             n_asked = 0; /* n_asked: n_recorded at the last question */
    std::shared_ptr<std::atomic<unsigned>> passed = std::make_shared<std::atomic<unsigned>>(0);
    std::chrono::steady_clock::time_point at;
};

static cudaError_t lost_or(cudaError_t code)
{
    std::lock_guard<std::mutex> hold(the().lock);
    return note(the().lost ? cudaErrorLaunchFailure : code);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    *stream = new cuda_host_stream;
    (*stream)->device = device_now;
    (*stream)->worker = std::thread([s = *stream] { s->work(); });
    std::lock_guard<std::mutex> hold(the().lock);
    the().n_objects++;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    stream->drain();
    return lost_or(cudaSuccess);
}

/* What can be given back is given back even when the device is lost, so that leaks show. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t code = enter_call();
    stream->drain();
    {
        std::lock_guard<std::mutex> hold(stream->lock);
        stream->stopping = true;
        stream->changed.notify_all();
    }
    stream->worker.join();
    delete stream;
    std::lock_guard<std::mutex> hold(the().lock);
    the().n_objects--;
    return code;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    *event = new cuda_host_event;
    std::lock_guard<std::mutex> hold(the().lock);
    the().n_objects++;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    {
        std::lock_guard<std::mutex> hold(event->lock);
        event->n_recorded++;
    }
    stream->push([event] {
        std::lock_guard<std::mutex> hold(event->lock);
        event->n_passed++;
        ++*event->passed;
        event->at = std::chrono::steady_clock::now();
    });
    return cudaSuccess;
}

/* The event may be destroyed meanwhile. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    std::lock_guard<std::mutex> hold(event->lock);
    stream->push([passed = event->passed, wanted = event->n_recorded] {
        while (*passed < wanted && !is_lost()) /* what a lost device skips does not come */
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    bool asked_before;
    {
        std::lock_guard<std::mutex> hold(event->lock);
        asked_before = event->n_asked == event->n_recorded;
        event->n_asked = event->n_recorded;
    }
    cudaError_t code = enter_call(!asked_before);
    if (code)
        return code;
    std::unique_lock<std::mutex> hold(event->lock);
    if (event->n_passed == event->n_recorded)
        return cudaSuccess;
    hold.unlock(); /* who asks again and again leaves the processor to the device that it waits for */
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return note(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    std::scoped_lock hold(from->lock, to->lock);
    *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t code = enter_call();
    delete event;
    std::lock_guard<std::mutex> hold(the().lock);
    the().n_objects--;
    return code;
}

/* ---- devices ---- */

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    default:
        return "some other error";
    }
}

const char *cudaGetErrorName(cudaError_t code)
{
    return code == cudaErrorLaunchFailure        ? "cudaErrorLaunchFailure"
           : code == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver"
           : code == cudaErrorMemoryAllocation   ? "cudaErrorMemoryAllocation"
                                                 : "cudaErrorOther";
}

cudaError_t cudaGetLastError()
{
    cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code == cudaSuccess ? lost_or(cudaSuccess) : code;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    cudaError_t code = enter_call();
    *n = code ? 0 : (int)the().n_devices;
    return code ? code : *n ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    if (device < 0 || (unsigned)device >= the().n_devices)
        return note(cudaErrorInvalidDevice);
    device_now = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    cudaError_t code = enter_call();
    if (!code)
        snprintf(properties->name, sizeof(properties->name), "host stand-in %d", device);
    return code;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    cudaError_t code = enter_call();
    std::lock_guard<std::mutex> hold(the().lock);
    *value = (int)the().shared_limit;
    return code;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
    *attributes = {};
    return enter_call();
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute, int value)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    std::lock_guard<std::mutex> hold(the().lock);
    if ((size_t)value > the().shared_limit)
        return note(cudaErrorInvalidValue);
    the().allowed_shared[kernel] = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    return enter_call(); /* the calls outside streams are done when they return */
}

/* ---- memory ---- */

static size_t used_on(int device)
{
    size_t bytes = 0;
    for (const auto &m : the().memory)
        bytes += m.second.second == device ? m.second.first : 0;
    return bytes;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    cudaError_t code = enter_call();
    std::lock_guard<std::mutex> hold(the().lock);
    *total = the().bytes;
    *available = the().bytes - used_on(device_now);
    return code;
}

/* Without a call: cuFFT takes its work areas so. */
cudaError_t cuda_host_take(void **memory, size_t bytes)
{
    std::lock_guard<std::mutex> hold(the().lock);
    if (used_on(device_now) + bytes > the().bytes)
        return note(cudaErrorMemoryAllocation);
    *memory = malloc(bytes);
    if (!*memory)
        abort();
    memset(*memory, 0xff, bytes); /* NaNs: whoever reads before writing is found out */
    the().memory[*memory] = {bytes, device_now};
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t code = enter_call();
    return code ? code : cuda_host_take(memory, bytes);
}

static void give_back(std::map<void *, std::pair<size_t, int>> &from, void *memory)
{
    std::lock_guard<std::mutex> hold(the().lock);
    if (!memory)
        return;
    if (from.erase(memory) != 1) {
        fprintf(stderr, "memory is given back that was not taken\n");
        abort();
    }
    free(memory);
}

void cuda_host_give_back(void *memory)
{
    give_back(the().memory, memory);
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t code = enter_call();
    cuda_host_give_back(memory);
    return code;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    if (!the().pins)
        return note(cudaErrorMemoryAllocation);
    *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*memory)
        abort();
    memset(*memory, 0xff, bytes);
    std::lock_guard<std::mutex> hold(the().lock);
    the().pinned[*memory] = {bytes, device_now};
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t code = enter_call();
    give_back(the().pinned, memory);
    return code;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    cudaError_t code = enter_call();
    if (code)
        return code;
    if (!the().pins)
        return note(cudaErrorMemoryAllocation);
    std::lock_guard<std::mutex> hold(the().lock);
    the().registered[memory] = {bytes, device_now};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    cudaError_t code = enter_call();
    std::lock_guard<std::mutex> hold(the().lock);
    if (the().registered.erase(memory) != 1) {
        fprintf(stderr, "memory is unregistered that was not registered\n");
        abort();
    }
    return code;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    cudaError_t code = enter_call();
    if (!code)
        memcpy(to, from, bytes);
    return code;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    cudaError_t code = enter_call();
    if (!code)
        memset(memory, value, bytes);
    return code;
}

static void note_copy(size_t bytes, cudaMemcpyKind kind)
{
    std::lock_guard<std::mutex> guard(the().lock);
    the().bytes_down += kind == cudaMemcpyDeviceToHost ? bytes : 0;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    cudaError_t code = enter_call();
    note_copy(bytes, kind);
    if (!code)
        stream->push([=] { memcpy(to, from, bytes); });
    return code;
}

/* Pinned memory ends where it ends, whatever lies behind it. */
static bool is_in_one_block(const void *memory, size_t bytes)
{
    std::lock_guard<std::mutex> hold(the().lock);
    const char *at = (const char *)memory;
    for (const auto *blocks : {&the().pinned, &the().registered})
        for (const auto &m : *blocks) {
            const char *begin = (const char *)m.first, *end = begin + m.second.first;
            if (at >= begin && at < end)
                return at + bytes <= end;
        }
    return true;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t code = enter_call();
    note_copy(width * height, kind);
    if (!code && (to_pitch < width || from_pitch < width ||
                  !is_in_one_block(to, (height - 1) * to_pitch + width) ||
                  !is_in_one_block(from, (height - 1) * from_pitch + width)))
        return note(cudaErrorInvalidValue);
    if (!code)
        stream->push([=] {
            for (size_t row = 0; row < height; row++)
                memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
        });
    return code;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t code = enter_call();
    if (!code)
        stream->push([=] { memset(memory, value, bytes); });
    return code;
}

void cuda_host_in_stream(cudaStream_t stream, std::function<void()> operation)
{
    stream->push(std::move(operation));
}

/* ---- kernels ---- */

/* Atomic without order: ThreadSanitizer is to see the kernels' own races, not this one. */
static thread_local std::atomic<cuda_host_thread *> thread_now;
static thread_local block_runner *runner_now;

cuda_host_thread *cuda_host_current()
{
    return thread_now.load(std::memory_order_relaxed);
}

void *cuda_host_shared()
{
    return cuda_host_current()->shared;
}

void __syncthreads()
{
    runner_now->barrier();
}

void __syncwarp()
{
    runner_now->warp_barrier();
}

uint64_t *cuda_host_slots()
{
    return runner_now->slots.data();
}

/* Blocks begin, begin + step, ... of a launch, on the calling thread. */
static void run_blocks(dim3 grid, dim3 block, size_t shared_bytes,
                       const std::function<void()> &body, size_t begin, size_t step)
{
    std::unique_ptr<block_runner> runner;
    {
        std::lock_guard<std::mutex> hold(the().lock);
        if (!the().idle_runners.empty()) {
            runner = std::move(the().idle_runners.back());
            the().idle_runners.pop_back();
        }
    }
    if (!runner)
        runner = std::make_unique<block_runner>();
    const unsigned n = block.x * block.y * block.z;
    const size_t n_blocks = (size_t)grid.x * grid.y * grid.z;
    std::vector<cuda_host_thread> threads(n);
    runner_now = runner.get();
    for (size_t b = begin; b < n_blocks; b += step) {
        void *shared = malloc(shared_bytes ? shared_bytes : 1);
        if (!shared)
            abort();
        memset(shared, 0xff, shared_bytes);
        for (unsigned i = 0; i < n; i++)
            threads[i] = {{i % block.x, i / block.x % block.y, i / block.x / block.y},
                          {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                           (unsigned)(b / grid.x / grid.y)},
                          shared,
                          0};
        runner->run(
            n, [&](unsigned i) { thread_now.store(&threads[i], std::memory_order_relaxed); }, body);
        free(shared);
    }
    std::lock_guard<std::mutex> hold(the().lock);
    the().idle_runners.push_back(std::move(runner));
}

void cuda_host_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                      const void *kernel, std::function<void()> body)
{
    {
        std::lock_guard<std::mutex> hold(the().lock);
        size_t allowed = (size_t)48 << 10;
        auto set = the().allowed_shared.find(kernel);
        if (set != the().allowed_shared.end() && set->second > allowed)
            allowed = set->second;
        bool fits = grid.x && grid.y && grid.z && grid.y < 65536 && grid.z < 65536;
        if (shared_bytes > allowed || block.x * block.y * block.z > 1024 || !fits) {
            note(cudaErrorInvalidValue);
            return;
        }
        the().n_launches[stream->device]++;
        if (the().fault == CUDA_HOST_KERNEL_SKIPPED && --the().fault_at == 0)
            return;
    }
    stream->push([=] {
        const size_t n_blocks = (size_t)grid.x * grid.y * grid.z;
        if (n_blocks < BLOCKS_WORTH_A_THREAD) {
            run_blocks(grid, block, shared_bytes, body, 0, 1);
            return;
        }
        std::thread other([&] { run_blocks(grid, block, shared_bytes, body, 1, 2); });
        run_blocks(grid, block, shared_bytes, body, 0, 2);
        other.join();
    });
}
