#include "os/thread_pool.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "os/proc.h"

namespace stackreel::os {

namespace {

class ThreadPool : public BackgroundExecutor {
 public:
  explicit ThreadPool(size_t concurrency) {
    threads_.reserve(concurrency - 1);
    for (size_t worker = 1; worker < concurrency; ++worker) {
      auto thread = StartThread([this, worker] { ThreadMain(worker); });
      if (!thread) break;  // those that are there do the work
      threads_.push_back(*std::move(thread));
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] size_t concurrency() const override { return threads_.size() + 1; }

  void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) override {
    Begin(count, work);
    End();
  }
  void Start(size_t count, std::function<void(size_t, size_t)> work) override {
    started_ = std::move(work);
    Begin(count, started_);
  }
  void Finish() override {
    End();
    started_ = nullptr;
  }

 private:
  void Begin(size_t count, const std::function<void(size_t, size_t)>& work) {
    {
      const std::lock_guard lock(mutex_);
      CHECK(work_ == nullptr);
      work_ = &work;
      count_ = count;
      next_.store(0, std::memory_order_relaxed);
      round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    start_.notify_all();
  }
  // A thread that has not come yet is not waited for: on a busy machine it may take long to.
  void End() {
    TakeIndexes(*work_, count_, 0);
    {
      const std::lock_guard lock(mutex_);
      work_ = nullptr;
    }
    WaitAwake([this] { return busy_.load(std::memory_order_acquire) == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }
  // Falling asleep and being woken takes tens of microseconds, in virtual machines more: so long
  // what may soon be there is waited for awake.
  template <typename Condition>
  static void WaitAwake(Condition condition) {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries && !condition(); ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }
  void TakeIndexes(const std::function<void(size_t, size_t)>& work, size_t count, size_t worker) {
    for (size_t i = next_.fetch_add(1); i < count; i = next_.fetch_add(1)) work(i, worker);
  }

  void ThreadMain(size_t worker) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      lock.unlock();
      WaitAwake([&] { return round_.load(std::memory_order_acquire) != seen; });
      lock.lock();
      start_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      const auto* work = work_;
      const size_t count = count_;
      if (work == nullptr) continue;  // all is taken
      ++busy_;
      lock.unlock();
      TakeIndexes(*work, count, worker);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::vector<std::thread> threads_;
  const std::function<void(size_t, size_t)>* work_ = nullptr;  // while it may be joined in
  std::function<void(size_t, size_t)> started_;                // by Start
  size_t count_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> busy_ = 0;     // threads that take indexes
  std::atomic<uint64_t> round_ = 0;  // counts the calls of ParallelFor
  bool stopping_ = false;
};

}  // namespace

Result<std::thread> StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return Fail(ErrorKind::kIo, fmt::format("cannot start a thread: {}", error.what()));
  }
}

std::unique_ptr<BackgroundExecutor> MakeThreadPool(size_t threads) {
  if (threads == 0) threads = AvailableCpuCount();
  return std::make_unique<ThreadPool>(threads);
}

}  // namespace stackreel::os
