/* The threads of one block as fibers of one thread. They change hands only at barriers, of the
 * block or of a warp, and at their end; a phase runs them in rising order, the next in falling, so
 * that code that forgets a barrier computes nonsense. ThreadSanitizer sees each as a thread of its
 * own, ordered by barriers only. */
#ifndef OCT_TEST_FIBERS_H
#define OCT_TEST_FIBERS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

struct fiber;

class block_runner
{
  public:
    block_runner() = default;
    ~block_runner();
    block_runner(const block_runner &) = delete;
    block_runner &operator=(const block_runner &) = delete;

    /* Runs body(0) .. body(n - 1) to their ends. before(i) is called each time fiber i is about to
     * go on. Aborts when some end, or wait for their warp, while others wait at a barrier. */
    void run(unsigned n, const std::function<void(unsigned)> &before,
             const std::function<void()> &body);

    /* Called by a fiber: all of the block, or the 32 of its warp, meet. */
    void barrier();
    void warp_barrier();

    /* What the lanes of warps exchange, [warps][2][32]. */
    std::vector<uint64_t> slots;

  private:
    friend struct fiber;
    std::vector<fiber *> fibers;
    std::function<void()> const *body = nullptr;
    std::function<void(unsigned)> const *before = nullptr;
    unsigned n_threads = 0, n_ended = 0;
    bool met_barrier = false;
    fiber *now = nullptr;
    void *home = nullptr;      /* where run() continues */
    void *home_fake = nullptr; /* sanitizers' view of run()'s stack */
    const void *home_bottom = nullptr;
    size_t home_size = 0;
    void *home_tsan = nullptr;
    char fence = 0; /* ThreadSanitizer's handle on barriers */

    void enter(fiber *f);
    void leave(bool ended);
    void go_on(unsigned at);
    void run_warp(unsigned first, unsigned end);
    void run_the_rest();
    static void start();
};

#endif
