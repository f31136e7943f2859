// Symbol visibility of the library's public functions.
#pragma once

#if defined(__GNUC__)
#define TORCH_SWIZZLE_API __attribute__((visibility("default")))
#else
#define TORCH_SWIZZLE_API
#endif
