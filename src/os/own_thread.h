// A thread that runs what it is handed, one after another: for what the kernel ties to a thread.
#pragma once

#include <signal.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stackreel::os {

class OwnThread {
 public:
  OwnThread() : thread_([this] { Work(); }) {}
  // Ends it: the kernel undoes what was tied to it.
  ~OwnThread() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
  }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  // Runs `work` there, and gives what it returns. One caller at a time.
  template <typename Work>
  auto Run(Work work) {
    decltype(work()) result;
    Do([&] { result = work(); });
    return result;
  }
  // The same, and ends the thread at once behind it. Nothing can be run afterwards.
  template <typename Work>
  auto RunLast(Work work) {
    return Run([&] {
      ends_ = true;
      return work();
    });
  }

 private:
  void Do(const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [this] { return work_ == nullptr; });
  }
  void Work() {
    // Signals are for the threads that expect them.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || work_ != nullptr; });
      if (work_ == nullptr) return;
      (*work_)();
      work_ = nullptr;
      changed_.notify_all();
      if (ends_) return;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool ends_ = false;
  std::jthread thread_;  // the last member: it uses the others, and is joined first
};

}  // namespace stackreel::os
