// A large array of which mostly little is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace stackreel {

// `size` elements whose bytes are all 0 at first, aligned as T is. The kernel gives a page of them
// when it is written to, and not before, where a vector writes to all of them.
template <typename T>
class ZeroedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  explicit ZeroedArray(size_t size)
      : memory_(Allocate(size * sizeof(T) + kPadding)), elements_(AlignedIn(memory_.get())) {}
  [[nodiscard]] T& operator[](size_t i) { return elements_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { return elements_[i]; }

 private:
  // What calloc's own alignment may lack.
  static constexpr size_t kPadding = alignof(T) > alignof(std::max_align_t) ? alignof(T) : 0;

  struct Free {
    void operator()(void* memory) const { std::free(memory); }  // NOLINT: of calloc
  };
  static void* Allocate(size_t bytes) {
    void* memory = std::calloc(bytes, 1);  // NOLINT: see above
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  static T* AlignedIn(void* memory) {
    const size_t past = reinterpret_cast<uintptr_t>(memory) % alignof(T);
    return reinterpret_cast<T*>(static_cast<char*>(memory) + (past == 0 ? 0 : alignof(T) - past));
  }

  std::unique_ptr<void, Free> memory_;
  T* elements_;
};

}  // namespace stackreel
