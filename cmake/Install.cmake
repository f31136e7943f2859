# Installs lib/, include/ and share/cmake/: the same tree under any prefix and inside the Python package.
# Component `python` adds _build_info.py, which only the Python package needs.

include(CMakePackageConfigHelpers)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(cmake_files share/cmake/torch_swizzle)
install(TARGETS torch_swizzle EXPORT torch_swizzleTargets LIBRARY DESTINATION lib)
install(DIRECTORY csrc/include/torch_swizzle DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY csrc/core/ DESTINATION include/torch_swizzle/core FILES_MATCHING PATTERN "*.hpp")
install(EXPORT torch_swizzleTargets NAMESPACE torch_swizzle:: DESTINATION ${cmake_files})

configure_package_config_file(cmake/torch_swizzleConfig.cmake.in torch_swizzleConfig.cmake
  INSTALL_DESTINATION ${cmake_files} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(torch_swizzleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES
    ${CMAKE_CURRENT_BINARY_DIR}/torch_swizzleConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/torch_swizzleConfigVersion.cmake
  DESTINATION ${cmake_files})

# Before the library on every build: a source that changes during the build then leaves a hash that is visibly stale.
add_custom_target(build_info
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/write_build_info.py
    ${CMAKE_CURRENT_BINARY_DIR}/_build_info.py
    "version=${PROJECT_VERSION}"
    "torch_version=${Torch_VERSION}"
    "cuda_version=${TORCH_SWIZZLE_TORCH_CUDA}"
    "cuda_architectures=${TORCH_SWIZZLE_CUDA_ARCHITECTURES}"
  COMMENT "Writing _build_info.py"
  VERBATIM)
add_dependencies(torch_swizzle build_info)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_build_info.py
  DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
