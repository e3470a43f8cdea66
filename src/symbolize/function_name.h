// Demangled names without what only tells overloads apart.
#pragma once

#include <string>
#include <string_view>

namespace stackreel::symbolize {

// A C++ function's demangled text without the parameters, qualifiers, clone suffix and return type
// of the function itself (those inside it, of a lambda's function say, stay), as perf shows names:
//   "void std::sort<int*>(int*, int*)"           → "std::sort<int*>"
//   "A::f(int)::{lambda(int)#1}::operator()(int) const" → "A::f(int)::{lambda(int)#1}::operator()"
// Other text comes back as it is.
std::string_view WithoutParameters(std::string_view demangled);

// Demangle, and for functions WithoutParameters. Of "vtable for …", "guard variable for …" and
// thunks all is kept.
std::string FunctionName(std::string_view mangled);

}  // namespace stackreel::symbolize
