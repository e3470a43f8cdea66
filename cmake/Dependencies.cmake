# Every outside library, once. Versions are Debian 12's.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate>=1.14)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd>=1.5)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash>=0.8)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium>=1.0.18)
# Decoding x86-64 instructions.
find_package(Zydis 4 REQUIRED)
# Demangling as perf does it: without parameters, and Rust's both schemes. Linked statically; its
# licence (LGPL) has an exception for that.
find_path(LIBIBERTY_INCLUDE_DIR libiberty/demangle.h REQUIRED)
find_library(LIBIBERTY_LIBRARY iberty REQUIRED)
add_library(libiberty UNKNOWN IMPORTED)
set_target_properties(libiberty PROPERTIES IMPORTED_LOCATION ${LIBIBERTY_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${LIBIBERTY_INCLUDE_DIR}/libiberty
                      INTERFACE_COMPILE_DEFINITIONS HAVE_DECL_BASENAME=1)
if(STACKREEL_STATIC_LIBRARIES)
  # Finding and binding what lies in shared libraries takes as long as all else at the start. fmt's
  # package has no static library (Folder.cmake takes its headers alone), and its shared one would
  # bring libstdc++'s with it. Zydis has none either, and stays shared.
  foreach(name IN ITEMS deflate zstd sodium xxhash)
    find_library(STACKREEL_LIB${name} lib${name}.a)
    if(STACKREEL_LIB${name})
      set_target_properties(PkgConfig::${name} PROPERTIES
                            INTERFACE_LINK_LIBRARIES ${STACKREEL_LIB${name}})
    endif()
  endforeach()
  find_library(STACKREEL_LIBlzma liblzma.a)
  if(STACKREEL_LIBlzma)
    set_target_properties(LibLZMA::LibLZMA PROPERTIES
                          IMPORTED_LOCATION ${STACKREEL_LIBlzma}
                          IMPORTED_LOCATION_RELEASE ${STACKREEL_LIBlzma})
  endif()
endif()
if(STACKREEL_TESTS)
  find_package(GTest 1.12 REQUIRED)
  include(GoogleTest)
  # What our unwinder is compared with; the program itself does not use them.
  pkg_check_modules(libdw REQUIRED IMPORTED_TARGET libdw>=0.188)
  pkg_check_modules(libelf REQUIRED IMPORTED_TARGET libelf>=0.188)
endif()
if(STACKREEL_BENCH)
  find_package(benchmark 1.7 REQUIRED)
endif()
