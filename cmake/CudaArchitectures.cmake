# Reads TORCH_CUDA_ARCH_LIST (variable or environment), for example "8.0;9.0+PTX". Sets TORCH_SWIZZLE_CUDA_ARCHITECTURES,
# the same list as one string, and TORCH_SWIZZLE_CMAKE_ARCHITECTURES, the list in CMake's words ("80-real;90-real;90-virtual").
# Unset: the GPUs in sight, else 9.0+PTX. A release is built with "8.0;8.6;8.9;9.0;10.0;12.0+PTX".

if(NOT TORCH_CUDA_ARCH_LIST)
  set(TORCH_CUDA_ARCH_LIST "$ENV{TORCH_CUDA_ARCH_LIST}")
endif()
if(NOT TORCH_CUDA_ARCH_LIST)
  find_program(NVIDIA_SMI nvidia-smi)
  if(NVIDIA_SMI)
    execute_process(
      COMMAND ${NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE TORCH_CUDA_ARCH_LIST OUTPUT_STRIP_TRAILING_WHITESPACE
      RESULT_VARIABLE nvidia_smi_result ERROR_QUIET)
    if(NOT nvidia_smi_result EQUAL 0)
      set(TORCH_CUDA_ARCH_LIST "")
    endif()
  endif()
endif()
if(NOT TORCH_CUDA_ARCH_LIST)
  set(TORCH_CUDA_ARCH_LIST "9.0+PTX")
endif()
string(REGEX REPLACE "[;, \n]+" ";" TORCH_CUDA_ARCH_LIST "${TORCH_CUDA_ARCH_LIST}")
list(REMOVE_DUPLICATES TORCH_CUDA_ARCH_LIST)

set(TORCH_SWIZZLE_CMAKE_ARCHITECTURES "")
foreach(architecture IN LISTS TORCH_CUDA_ARCH_LIST)
  if(NOT architecture MATCHES "^([0-9]+)\\.([0-9][af]?)(\\+PTX)?$")
    message(FATAL_ERROR "TORCH_CUDA_ARCH_LIST: \"${architecture}\" is not of the form 9.0, 9.0a or 9.0+PTX.")
  endif()
  list(APPEND TORCH_SWIZZLE_CMAKE_ARCHITECTURES "${CMAKE_MATCH_1}${CMAKE_MATCH_2}-real")
  if(CMAKE_MATCH_3)
    list(APPEND TORCH_SWIZZLE_CMAKE_ARCHITECTURES "${CMAKE_MATCH_1}${CMAKE_MATCH_2}-virtual")
  endif()
endforeach()
string(REPLACE ";" " " TORCH_SWIZZLE_CUDA_ARCHITECTURES "${TORCH_CUDA_ARCH_LIST}")
message(STATUS "torch_swizzle: CUDA architectures ${TORCH_SWIZZLE_CUDA_ARCHITECTURES}")
