# One library per room (folder below src/cortado): an archive, or a shared library with BUILD_SHARED_LIBS.
#   cortado_room(NAME [NO_HOT_LOOPS] USES ROOM... LIBRARIES TARGET... EXCLUDE FOLDER...)
# compiles every source of the folder and its subfolders, but those of subfolders EXCLUDEd (absent backends). A
# room with NO_HOT_LOOPS is built at -O1, in two thirds of the time.
find_package(fmt REQUIRED)
find_package(OpenMP REQUIRED)

# g++ 12 warns falsely about concatenated strings (its bug 105329: -Wrestrict, -Warray-bounds, -Wstringop-overflow).
add_library(cortado_flags INTERFACE)
set(not_cuda $<NOT:$<COMPILE_LANGUAGE:CUDA>>)  # nvcc does not know them
target_compile_options(cortado_flags INTERFACE "$<${not_cuda}:-Wall;-Wextra;-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-missing-field-initializers;-fno-math-errno;-march=${CORTADO_ARCH}>")
target_include_directories(cortado_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(cortado_flags INTERFACE fmt::fmt OpenMP::OpenMP_CXX)
# The rooms are Cortado's own: as shared libraries they lie in a folder of their own. What a build with another CORTADO_ARCH
# installs into glibc-hwcaps/ARCH there, the system's loader takes in their place on such processors.
set(CORTADO_LIBRARY_FOLDER lib/cortado CACHE STRING "Where shared libraries are installed, below the prefix")
if(BUILD_SHARED_LIBS)  # inlines as much as an archive does
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  target_compile_options(cortado_flags INTERFACE -fno-semantic-interposition)
elseif(CORTADO_PYTHON_FOUND)  # the archives become part of a shared library, the Python module
  target_compile_options(cortado_flags INTERFACE "$<${not_cuda}:-fPIC;-fno-semantic-interposition>")
endif()
if(CORTADO_WERROR)
  target_compile_options(cortado_flags INTERFACE $<${not_cuda}:-Werror>)
endif()
if(CORTADO_SANITIZE)
  target_compile_options(cortado_flags INTERFACE -fsanitize=${CORTADO_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(cortado_flags INTERFACE -fsanitize=${CORTADO_SANITIZE})
endif()

# What most sources include, read once: rooms that are compiled with the same options share it.
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without, which lets ccache share objects between folders.)
set(cortado_headers <algorithm> <cmath> <functional> <map> <memory> <optional> <span> <string> <vector> <fmt/format.h>)

# cortado_precompile(TARGET OWNER HEADERS HEADER... LIBRARIES LIBRARY...): TARGET shares the headers, and HEADERs
# besides, that OWNER has precompiled with the options of the first target that asked and those of LIBRARIES.
function(cortado_precompile target owner)
  cmake_parse_arguments(OF "" "" "HEADERS;LIBRARIES" ${ARGN})
  if(TARGET ${owner})
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${owner}.cpp "")
  add_library(${owner} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${owner}.cpp)
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(options)
    target_compile_options(${owner} PRIVATE ${options})
  endif()
  target_link_libraries(${owner} PRIVATE cortado_flags ${OF_LIBRARIES})
  target_precompile_headers(${owner} PRIVATE ${cortado_headers} ${OF_HEADERS})
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(cortado_room name)
  cmake_parse_arguments(ROOM "NO_HOT_LOOPS" "" "USES;LIBRARIES;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  foreach(folder ${ROOM_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "/${name}/${folder}/")
  endforeach()
  if(NOT sources)  # a room of headers only
    add_library(cortado_${name} INTERFACE)
    set(visibility INTERFACE)
  else()
    add_library(cortado_${name} ${sources})
    set(visibility PUBLIC)
  endif()
  target_link_libraries(cortado_${name} ${visibility} cortado_flags ${ROOM_LIBRARIES})
  foreach(used ${ROOM_USES})
    target_link_libraries(cortado_${name} ${visibility} cortado_${used})
  endforeach()
  if(sources)
    set_property(GLOBAL APPEND PROPERTY cortado_rooms cortado_${name})
    cortado_finish(cortado_${name} ${ROOM_NO_HOT_LOOPS})
    if(BUILD_SHARED_LIBS)
      set_target_properties(cortado_${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
      install(TARGETS cortado_${name} LIBRARY DESTINATION ${CORTADO_LIBRARY_FOLDER} COMPONENT libraries)
    endif()
  endif()
endfunction()

# Optimization and precompiled headers of a target of ours.
function(cortado_finish target no_hot_loops)
  if(no_hot_loops)
    target_compile_options(${target} PRIVATE -O1)
    cortado_precompile(${target} cortado_plain_headers HEADERS <nlohmann/json.hpp> LIBRARIES nlohmann_json::nlohmann_json)
  else()
    cortado_precompile(${target} cortado_fast_headers)
  endif()
endfunction()

set(CORTADO_TESTS_AT ${PROJECT_SOURCE_DIR} CACHE STRING "Where tests find the sources: elsewhere for a build that moves")
mark_as_advanced(CORTADO_TESTS_AT)

# cortado_test(NAME SOURCES FILE... ROOMS ROOM... [SHARDS NUMBER] [ENVIRONMENT VARIABLE=VALUE...])
# makes one GoogleTest program, and one test of it: with SHARDS, that many tests NAME_0... that share its cases.
# A folder has one program: each program reads the same headers anew.
function(cortado_test name)
  cmake_parse_arguments(TEST "" "SHARDS" "SOURCES;ROOMS;LIBRARIES;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE cortado_flags GTest::gtest_main ${TEST_LIBRARIES})
  # The tests' own code needs no speed, builds in half the time, and g++ 12 warns falsely about it at -O3.
  target_compile_options(${name} PRIVATE -O1)
  cortado_precompile(${name} cortado_test_headers HEADERS <gtest/gtest.h> LIBRARIES GTest::gtest_main)
  foreach(room ${TEST_ROOMS})
    target_link_libraries(${name} PRIVATE cortado_${room})
  endforeach()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE CORTADO_SOURCE_DIR="${CORTADO_TESTS_AT}")
  cortado_run_test(${name} ${name} SHARDS ${TEST_SHARDS} ENVIRONMENT ${TEST_ENVIRONMENT})
endfunction()

# cortado_run_test(NAME PROGRAM [SHARDS NUMBER] [ENVIRONMENT VARIABLE=VALUE...]): another test of a program.
function(cortado_run_test name program)
  cmake_parse_arguments(TEST "" "SHARDS" "ENVIRONMENT" ${ARGN})
  set(cost 0)
  if("${cortado_costs}" MATCHES "(^|;)${name}=([0-9]+)")
    set(cost ${CMAKE_MATCH_2})
  endif()
  if(NOT TEST_SHARDS)
    add_test(NAME ${name} COMMAND ${program})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 COST ${cost} ENVIRONMENT "${TEST_ENVIRONMENT}")
    return()
  endif()
  math(EXPR last "${TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_${shard} COMMAND ${program})
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 600 COST ${cost} ENVIRONMENT
      "${TEST_ENVIRONMENT};GTEST_TOTAL_SHARDS=${TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
