// A strided view in guarded memory, and the check of a planned transpose against element-by-element indexing.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/host_runner.hpp"

namespace swizzle {

/// Sizes and strides (elements) in the order of the output's dimensions; the source starts offset_bytes after an
/// address that is a multiple of 256, the destination dst_offset_bytes after one.
struct View {
  int element_bytes = 4;
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> stride;
  std::int64_t offset_bytes = 0;
  std::int64_t dst_offset_bytes = 0;

  std::int64_t count() const {
    std::int64_t result = 1;
    for (const std::int64_t s : size) result *= s;
    return result;
  }
  std::int64_t extent() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < size.size(); ++i) last += (size[i] - 1) * stride[i];
    return count() == 0 ? 0 : last + 1;
  }
  std::string describe() const {
    std::string text = std::to_string(element_bytes) + " bytes, sizes";
    for (const std::int64_t s : size) text += " " + std::to_string(s);
    text += ", strides";
    for (const std::int64_t s : stride) text += " " + std::to_string(s);
    return text + ", offset " + std::to_string(offset_bytes);
  }
};

/// rows x cols of a matrix of the given pitch, to be written as cols x rows; optional equal batches before it.
inline View matrix_view(int element_bytes, std::int64_t rows, std::int64_t cols, std::int64_t pitch,
                        std::int64_t batches = 1) {
  View view;
  view.element_bytes = element_bytes;
  view.size = {batches, cols, rows};
  view.stride = {rows * pitch, 1, pitch};
  return view;
}

/// A contiguous tensor of these sizes with its dimensions in another order.
inline View permuted_view(int element_bytes, const std::vector<std::int64_t>& sizes,
                          const std::vector<std::size_t>& dims) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  View view;
  view.element_bytes = element_bytes;
  for (const std::size_t dim : dims) {
    view.size.push_back(sizes[dim]);
    view.stride.push_back(strides[dim]);
  }
  return view;
}

/// Memory for a view: random source bytes, and a destination between two margins, all poisoned.
class Arena {
 public:
  explicit Arena(const View& view) : view_(view) {
    const auto source_bytes = static_cast<std::size_t>(view.extent() * view.element_bytes);
    src_storage_.resize(source_bytes + 512);
    dst_storage_.assign(static_cast<std::size_t>(view.count() * view.element_bytes) + 512 + 2 * kMargin, kPoison);
    std::mt19937_64 random(source_bytes + 1);
    for (std::size_t i = 0; i + 8 <= src_storage_.size(); i += 8) {
      const std::uint64_t bits = random();
      std::memcpy(src_storage_.data() + i, &bits, 8);
    }
    src_ = aligned(src_storage_.data()) + view.offset_bytes;
    dst_ = aligned(dst_storage_.data() + kMargin) + view.dst_offset_bytes;
    writes_.assign(static_cast<std::size_t>(view.count() * view.element_bytes), 0);
  }

  const unsigned char* src() const { return src_; }
  unsigned char* dst() { return dst_; }

  Problem problem() const {
    return canonicalize(static_cast<int>(view_.size.size()), view_.size.data(), view_.stride.data(),
                        view_.element_bytes, reinterpret_cast<std::uintptr_t>(src_),
                        reinterpret_cast<std::uintptr_t>(dst_));
  }

  HostMemory memory(std::vector<TracedRequest>* trace = nullptr) {
    return HostMemory({src_, src_ + view_.extent() * view_.element_bytes}, {dst_, dst_ + writes_.size()}, &writes_,
                      trace);
  }

  /// Runs a plan and checks values, margins and that every byte was written once.
  ::testing::AssertionResult run(const Plan& plan, const Problem& problem) {
    HostMemory host = memory();
    try {
      run_plan(plan, problem, src_, dst_, host);
    } catch (const std::out_of_range& error) {
      return ::testing::AssertionFailure() << view_.describe() << ": " << error.what();
    }
    if (plan.route != Route::kNothing && plan.route != Route::kCopy) {
      for (std::size_t i = 0; i < writes_.size(); ++i) {
        if (writes_[i] != 1)
          return ::testing::AssertionFailure()
                 << view_.describe() << ": byte " << i << " written " << int{writes_[i]} << " times";
      }
    }
    return check();
  }

 private:
  static constexpr unsigned char kPoison = 0xa5;
  static constexpr std::size_t kMargin = 256;

  static unsigned char* aligned(unsigned char* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return pointer + (256 - address % 256) % 256;
  }

  ::testing::AssertionResult check() {
    const std::int64_t count = view_.count();
    std::vector<std::int64_t> index(view_.size.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view_.stride[d];
      if (std::memcmp(dst_ + i * view_.element_bytes, src_ + offset * view_.element_bytes,
                      static_cast<std::size_t>(view_.element_bytes)) != 0) {
        return ::testing::AssertionFailure() << view_.describe() << ": element " << i << " is wrong";
      }
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == view_.size[d];) index[d] = 0;
    }
    for (const unsigned char* p = dst_storage_.data(); p < dst_; ++p) {
      if (*p != kPoison) return ::testing::AssertionFailure() << view_.describe() << ": written before the output";
    }
    for (const unsigned char* p = dst_ + writes_.size(); p < dst_storage_.data() + dst_storage_.size(); ++p) {
      if (*p != kPoison) return ::testing::AssertionFailure() << view_.describe() << ": written behind the output";
    }
    return ::testing::AssertionSuccess();
  }

  View view_;
  std::vector<unsigned char> src_storage_;
  std::vector<unsigned char> dst_storage_;
  std::vector<std::uint8_t> writes_;
  const unsigned char* src_ = nullptr;
  unsigned char* dst_ = nullptr;
};

}  // namespace swizzle
