# Tests of csrc/core with a plain C++ compiler: every header compiles alone, then GoogleTest over tests/core.

include(FetchContent)
FetchContent_Declare(googletest
  URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
  URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
  FIND_PACKAGE_ARGS NAMES GTest)
FetchContent_MakeAvailable(googletest)
include(GoogleTest)

file(GLOB core_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/core/*.hpp)
set(header_sources "")
foreach(header IN LISTS core_headers)
  string(REPLACE "/" "_" name "${header}")
  set(header_source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
  file(CONFIGURE OUTPUT ${header_source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND header_sources ${header_source})
endforeach()
add_library(core_headers_alone OBJECT ${header_sources})
target_include_directories(core_headers_alone PRIVATE csrc)
target_compile_options(core_headers_alone PRIVATE -Wall -Wextra -Wpedantic -Werror)

file(GLOB core_test_sources CONFIGURE_DEPENDS tests/core/*.cpp)
add_executable(core_tests ${core_test_sources})
target_include_directories(core_tests PRIVATE csrc)
target_compile_options(core_tests PRIVATE -Wall -Wextra -Wpedantic)
target_link_libraries(core_tests PRIVATE GTest::gtest_main)
gtest_discover_tests(core_tests DISCOVERY_MODE PRE_TEST)

# Random strided views through canonicalisation, plans and programs, under sanitizers: with clang as a libFuzzer target,
# `fuzz_programs CORPUS`, elsewhere with a driver of its own, which ctest runs for a bounded time.
add_executable(fuzz_programs tests/core/fuzz/programs.cpp)
target_include_directories(fuzz_programs PRIVATE csrc)
target_compile_options(fuzz_programs PRIVATE -O1 -g)
target_link_libraries(fuzz_programs PRIVATE GTest::gtest)
set(fuzz_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
set(fuzz_arguments 30)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND fuzz_sanitizers -fsanitize=fuzzer)
  target_compile_definitions(fuzz_programs PRIVATE SWIZZLE_LIBFUZZER)
  set(fuzz_arguments -max_total_time=30 -max_len=128 -len_control=0)
endif()
target_compile_options(fuzz_programs PRIVATE ${fuzz_sanitizers})
target_link_options(fuzz_programs PRIVATE ${fuzz_sanitizers})
add_test(NAME Fuzz.Programs COMMAND fuzz_programs ${fuzz_arguments})

# Builds that must fail, each with its sentence; the first shows that the file builds where the sizes are right.
function(add_chunked_tile_build name element_bytes chunk_bytes cols sentence)
  add_test(NAME ChunkSwizzleBuild.${name} COMMAND ${CMAKE_CXX_COMPILER} -std=c++17 -fsyntax-only
    -I${PROJECT_SOURCE_DIR}/csrc -DELEMENT_BYTES=${element_bytes} -DCHUNK_BYTES=${chunk_bytes} -DCOLS=${cols}
    ${PROJECT_SOURCE_DIR}/tests/core/refused/chunked_tile.cpp)
  if(sentence)
    set_tests_properties(ChunkSwizzleBuild.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${sentence}")
  endif()
endfunction()
add_chunked_tile_build(PowersOfTwoAreAccepted 4 16 32 "")
foreach(cols IN ITEMS 20 24 33 48)
  add_chunked_tile_build(RowsOf${cols}AreRefused 4 4 ${cols} "the number of columns is a power of two")
endforeach()
add_chunked_tile_build(ElementsOf12BytesAreRefused 12 16 32 "an element has a power of two of bytes")
add_chunked_tile_build(ChunksOf12BytesAreRefused 4 12 32 "a chunk has a power of two of bytes")
add_chunked_tile_build(ChunksBelowAnElementAreRefused 8 4 32 "a chunk holds at least one whole element")
add_chunked_tile_build(ChunksBeyondARowAreRefused 4 16 2 "a chunk is not longer than the row")
