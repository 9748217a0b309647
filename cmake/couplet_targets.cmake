# One flag set for every target, and the two functions that each folder's CMakeLists.txt uses.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_package(Threads REQUIRED)

add_library(couplet_flags INTERFACE)
# Contraction is off everywhere: a fused multiply-add is written, never guessed by the compiler (docs/numerics.md).
target_compile_options(couplet_flags INTERFACE -ffp-contract=off -fno-fast-math)
target_compile_definitions(couplet_flags INTERFACE $<$<BOOL:${COUPLET_SPLIT_K}>:COUPLET_SPLIT_K>)
target_link_libraries(couplet_flags INTERFACE Threads::Threads)
if(COUPLET_STRICT)
  target_compile_options(couplet_flags INTERFACE -Wall -Wextra -Wconversion -Werror)
else()
  target_compile_options(couplet_flags INTERFACE -Wall -Wextra)
endif()

# couplet_library(base [dependency ...]): every .cpp of this folder except *_test.cpp, as couplet_<name>.
function(couplet_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/kernels/(avx2|avx512|amx|reference)/")
  add_library(couplet_${name} STATIC ${sources})
  target_link_libraries(couplet_${name} PUBLIC couplet_public couplet_flags)
  foreach(dependency ${ARGN})
    target_link_libraries(couplet_${name} PUBLIC couplet_${dependency})
  endforeach()
  couplet_tests(${name} couplet_${name})
endfunction()

# couplet_tests(name library ...): every *_test.cpp under this folder, as one GoogleTest program <name>_test.
function(couplet_tests name)
  if(NOT COUPLET_BUILD_TESTS)
    return()
  endif()
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "*_test.cpp")
  if(NOT tests)
    return()
  endif()
  add_executable(${name}_test ${tests})
  target_link_libraries(${name}_test PRIVATE ${ARGN} GTest::gtest_main)
  target_compile_definitions(${name}_test PRIVATE COUPLET_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                  COUPLET_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endfunction()
