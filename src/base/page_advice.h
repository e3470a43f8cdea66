// What is about to be done with large pieces of memory, told to whoever may make system calls:
// pages can then be made in one go, which is cheaper than a page fault each.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace stackreel {

struct PageAdvice {
  // All of it is going to be written; there is nothing in it yet. It may lie inside pages that have
  // something else in them.
  void (*will_write)(void* start, size_t size) = nullptr;
  // All of it is going to be read.
  void (*will_read)(const void* start, size_t size) = nullptr;
};
// Set by main, before there is a second thread; does nothing unless set.
inline PageAdvice page_advice;

inline void WillWrite(void* start, size_t size) {
  if (page_advice.will_write != nullptr) page_advice.will_write(start, size);
}
inline void WillRead(ByteView bytes) {
  if (page_advice.will_read != nullptr) page_advice.will_read(bytes.data(), bytes.size());
}

}  // namespace stackreel
