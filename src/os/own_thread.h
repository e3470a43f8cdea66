// A thread that runs what it is handed, one after another: for what the kernel ties to a thread.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "os/urgent_section.h"

namespace stackreel::os {

class OwnThread {
 public:
  OwnThread() : thread_([this] { Work(); }) {}
  // Ends it: the kernel has undone what was tied to it when this returns.
  ~OwnThread() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
    // Who joins a thread hears of its end before the kernel has let go of what it traced.
    constexpr auto kPause = std::chrono::microseconds(20);
    while (syscall(SYS_tgkill, getpid(), tid_, 0) == 0) std::this_thread::sleep_for(kPause);
  }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  // From before its first turn on a CPU, for which a thread waits among all others of its policy.
  void RunBeforeOthers() { os::RunBeforeOthers(thread_.native_handle()); }

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
    tid_ = gettid();
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
  pid_t tid_ = 0;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace stackreel::os
