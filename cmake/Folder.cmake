# stackreel_folder(NAME [DEPS ...] [PRIVATE ...] [NOT_BELOW FOLDER])
# One folder under src/ is one static library `stackreel_NAME` of its *.cc, and one test program
# `NAME_test` of its *_test.cc. DEPS are folders or outside targets, seen by users of the folder.
# What lies below NOT_BELOW is built by that folder itself.

add_library(stackreel_flags INTERFACE)
target_compile_options(stackreel_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Werror=return-type -Werror=switch)
target_include_directories(stackreel_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(stackreel_flags INTERFACE
  STACKREEL_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
if(STACKREEL_SANITIZE)
  target_compile_options(stackreel_flags INTERFACE
    -fsanitize=${STACKREEL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(stackreel_flags INTERFACE -fsanitize=${STACKREEL_SANITIZE})
endif()
if(CMAKE_UNITY_BUILD)
  # A type declared in a header and defined beside an anonymous namespace is right; gcc sees that only
  # where the .cc is the file compiled.
  target_compile_options(stackreel_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(STACKREEL_FUZZ)
  target_compile_options(stackreel_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(stackreel_folder name)
  cmake_parse_arguments(arg "" "NOT_BELOW" "DEPS;PRIVATE" ${ARGN})
  if(STACKREEL_STATIC_LIBRARIES)
    list(TRANSFORM arg_PRIVATE REPLACE "^fmt::fmt$" fmt::fmt-header-only)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(arg_NOT_BELOW)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${arg_NOT_BELOW}/")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(stackreel_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(stackreel_${name} PRIVATE ${arg_PRIVATE})
  else()
    add_library(stackreel_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(stackreel_${name} ${scope} stackreel_flags)
  foreach(dep IN LISTS arg_DEPS)
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/${dep})
      target_link_libraries(stackreel_${name} ${scope} stackreel_${dep})
    else()
      target_link_libraries(stackreel_${name} ${scope} ${dep})
    endif()
  endforeach()
  if(STACKREEL_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE stackreel_${name} ${arg_PRIVATE} GTest::gmock
                          GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}."
                         PROPERTIES TIMEOUT 120)
  endif()
endfunction()
