// Memory as a program on the device sees it: global pointers, shared-memory addresses, asynchronous copies. The device
// twin of HostMemory (core/host_runner.hpp).
#pragma once

#include <cstdint>

#include "core/register_transpose.hpp"

namespace swizzle {

/// Global memory alone, for programs that use no shared memory.
struct DeviceGlobalMemory {
  template <class T>
  __device__ T load_global(const unsigned char* address) const {
    return *reinterpret_cast<const T*>(address);
  }
  template <class T>
  __device__ void store_global(unsigned char* address, const T& value) const {
    *reinterpret_cast<T*>(address) = value;
  }
};

/// Global and shared memory. Shared memory is addressed by 32-bit numbers in PTX. Through C++ pointers the compiler
/// computes the base anew at every predicated access (S2R SR_CgaCtaId, MOV, LEA on sm_90): 3 of about 10 instructions
/// an access.
///
/// kKeepsInput: asynchronous copies ask the L2 cache to evict last what they read.
template <bool kKeepsInput>
class DeviceMemory : public DeviceGlobalMemory {
 public:
  __device__ explicit DeviceMemory(unsigned char* shared) {
    asm volatile("{ .reg .u64 address; cvta.to.shared.u64 address, %1; cvt.u32.u64 %0, address; }"
                 : "=r"(shared_)
                 : "l"(shared));
    if constexpr (kKeepsInput) {
      asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(l2_policy_));
      // Zero, but unknown to the compiler: keeps the address out of uniform registers. ptxas 13.0.88 encodes a copy
      // with a cache policy and an address of the form [R + UR] as an illegal instruction.
      asm volatile("{ .reg .u32 zero; mov.u32 zero, %%laneid; shr.u32 zero, zero, 5; add.u32 %0, %0, zero; }"
                   : "+r"(shared_));
    }
  }

  template <class T>
  __device__ T load_shared(int /*step*/, int offset) const {
    T value;
    load(shared_ + offset, value);
    return value;
  }
  template <class T>
  __device__ void store_shared(int /*step*/, int offset, const T& value) const {
    store(shared_ + offset, value);
  }

  /// 16 bytes from global to shared memory without registers, complete after await_copies and a barrier.
  template <class T>
  __device__ void copy_to_shared(int /*step*/, int offset, const unsigned char* address) const {
    static_assert(sizeof(T) == 16, "cp.async.cg moves 16 bytes");
    const std::uint32_t to = shared_ + offset;
    if constexpr (kKeepsInput) {
      asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(address),
                   "l"(l2_policy_)
                   : "memory");
    } else {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(address) : "memory");
    }
  }
  __device__ void copy_window_to_shared(int step, int offset, const unsigned char* address) const {
    copy_to_shared<Opaque<16>>(step, offset, address);
  }
  __device__ void await_copies() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
  /// Every load so far is under way before what follows. ptxas 13.0.88 moves loads behind stores to shared memory that
  /// wait for the first ones (four of the eight of scalar32 for 2 bytes), but not over this.
  __device__ void issue_loads() const { __syncwarp(); }

 private:
  __device__ static void load(std::uint32_t address, Opaque<1>& value) {
    std::uint32_t byte;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(address) : "memory");
    value.value = static_cast<std::uint8_t>(byte);
  }
  __device__ static void load(std::uint32_t address, Opaque<2>& value) {
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value.value) : "r"(address) : "memory");
  }
  __device__ static void load(std::uint32_t address, Opaque<4>& value) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value.value) : "r"(address) : "memory");
  }
  __device__ static void load(std::uint32_t address, Opaque<8>& value) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.word[0]), "=r"(value.word[1])
                 : "r"(address)
                 : "memory");
  }
  __device__ static void load(std::uint32_t address, Opaque<16>& value) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
                 : "r"(address)
                 : "memory");
  }

  __device__ static void store(std::uint32_t address, const Opaque<1>& value) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"(static_cast<std::uint32_t>(value.value)) : "memory");
  }
  __device__ static void store(std::uint32_t address, const Opaque<2>& value) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(value.value) : "memory");
  }
  __device__ static void store(std::uint32_t address, const Opaque<4>& value) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value.value) : "memory");
  }
  __device__ static void store(std::uint32_t address, const Opaque<8>& value) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(value.word[0]), "r"(value.word[1]) : "memory");
  }
  __device__ static void store(std::uint32_t address, const Opaque<16>& value) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.word[0]), "r"(value.word[1]),
                 "r"(value.word[2]), "r"(value.word[3])
                 : "memory");
  }

  std::uint32_t shared_;
  std::uint64_t l2_policy_;
};

}  // namespace swizzle
