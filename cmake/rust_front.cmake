# rust/front, the one Rust library (Hugging Face chat templates), as the target couplet_front. Without a cargo of at
# least 1.87 the target is not made: everything else builds, and a model with a chat template says why it can't chat.

set(COUPLET_RUST AUTO CACHE STRING "Build rust/front: AUTO (where cargo >= 1.87 is found), ON (or fail), OFF")
set_property(CACHE COUPLET_RUST PROPERTY STRINGS AUTO ON OFF)

# COUPLET_CARGO: the first cargo that is new enough, from PATH or from the system.
function(couplet_find_cargo)
  set(COUPLET_CARGO "" PARENT_SCOPE)
  find_program(cargo_from_path cargo PATHS "$ENV{HOME}/.cargo/bin" NO_CACHE)
  foreach(cargo "${cargo_from_path}" /usr/bin/cargo)
    if(NOT EXISTS "${cargo}")
      continue()
    endif()
    execute_process(COMMAND "${cargo}" --version OUTPUT_VARIABLE version ERROR_QUIET)
    if(version MATCHES "^cargo ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 1.87)
      set(COUPLET_CARGO "${cargo}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

if(NOT COUPLET_RUST STREQUAL "OFF")
  couplet_find_cargo()
  if(COUPLET_CARGO)
    set(front "${CMAKE_SOURCE_DIR}/rust/front")
    set(front_target_dir "${CMAKE_BINARY_DIR}/rust")
    set(front_library "${front_target_dir}/release/libcouplet_front.a")
    file(GLOB_RECURSE front_sources CONFIGURE_DEPENDS "${front}/src/*.rs")
    add_custom_command(
      OUTPUT "${front_library}"
      COMMAND "${CMAKE_COMMAND}" -E env "CARGO_TARGET_DIR=${front_target_dir}"
              "${COUPLET_CARGO}" build --quiet --release --locked --manifest-path "${front}/Cargo.toml"
      COMMAND "${CMAKE_COMMAND}" -E touch "${front_library}"
      DEPENDS ${front_sources} "${front}/Cargo.toml" "${front}/Cargo.lock"
      COMMENT "Building rust/front"
      VERBATIM)
    add_custom_target(couplet_front_build DEPENDS "${front_library}")
    add_library(couplet_front STATIC IMPORTED GLOBAL)
    add_dependencies(couplet_front couplet_front_build)
    set_target_properties(couplet_front PROPERTIES
      IMPORTED_LOCATION "${front_library}"
      INTERFACE_INCLUDE_DIRECTORIES "${front}"
      INTERFACE_COMPILE_DEFINITIONS COUPLET_HAS_RUST
      INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m;gcc_s")
  elseif(COUPLET_RUST STREQUAL "ON")
    message(FATAL_ERROR "COUPLET_RUST=ON: expected cargo >= 1.87 on PATH or at /usr/bin/cargo (Debian: cargo-web)")
  else()
    message(STATUS "No cargo >= 1.87: building without chat templates")
  endif()
endif()
