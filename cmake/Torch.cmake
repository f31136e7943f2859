# Finds torch and keeps its nvcc flags away from ours: find_package(Torch) appends architecture and other flags to
# CMAKE_CUDA_FLAGS, which would reach the kernels a second time.

set(own_cuda_flags "${CMAKE_CUDA_FLAGS}")
set(own_arch_list "${TORCH_CUDA_ARCH_LIST}")
set(TORCH_CUDA_ARCH_LIST "9.0") # any known value: without one, torch compiles a program to look for GPUs
unset(CMAKE_CUDA_ARCHITECTURES CACHE) # torch warns where it is set; every target here states its own
unset(CMAKE_CUDA_ARCHITECTURES)

find_package(Torch REQUIRED)

set(CMAKE_CUDA_FLAGS "${own_cuda_flags}")
set(TORCH_CUDA_ARCH_LIST "${own_arch_list}")

if(NOT TARGET torch_cuda)
  message(FATAL_ERROR "torch_swizzle needs a torch that was built with CUDA; ${TORCH_INSTALL_PREFIX} was not.")
endif()

# The headers of torch 2.11 are C++17; those of 2.15 refuse less than C++20.
set(TORCH_SWIZZLE_TORCH_CXX 17)
if(Torch_VERSION VERSION_GREATER_EQUAL 2.12)
  set(TORCH_SWIZZLE_TORCH_CXX 20)
endif()

# The Python package also says which CUDA it was built with; LibTorch archives do not.
set(TORCH_SWIZZLE_TORCH_CUDA "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
if(EXISTS "${TORCH_INSTALL_PREFIX}/version.py")
  file(STRINGS "${TORCH_INSTALL_PREFIX}/version.py" cuda_line REGEX "^cuda.*= '[0-9.]+'")
  if(cuda_line)
    string(REGEX REPLACE ".*'([0-9.]+)'.*" "\\1" TORCH_SWIZZLE_TORCH_CUDA "${cuda_line}")
  endif()
endif()
