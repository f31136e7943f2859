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
