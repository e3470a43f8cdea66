// A large array of which mostly little is used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace stackreel {

// `size` elements whose bytes are all 0 at first. The kernel gives a page of them when it is
// written to, and not before, where a vector writes to all of them.
template <typename T>
class ZeroedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  explicit ZeroedArray(size_t size) : elements_(Allocate(size)) {}
  [[nodiscard]] T& operator[](size_t i) { return elements_.get()[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { return elements_.get()[i]; }

 private:
  struct Free {
    void operator()(T* elements) const { std::free(elements); }  // NOLINT: of calloc
  };
  static T* Allocate(size_t size) {
    void* elements = std::calloc(size, sizeof(T));  // NOLINT: see above
    if (elements == nullptr) throw std::bad_alloc();
    return static_cast<T*>(elements);
  }
  std::unique_ptr<T, Free> elements_;
};

}  // namespace stackreel
