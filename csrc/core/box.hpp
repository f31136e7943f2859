// A box: the part of a problem that one block moves, as an extent along each dimension.
//
// Whatever the order of the dimensions, the box that fills a block's memory with the longest runs on both sides is made
// of the dimensions that are innermost in the input and those that are innermost in the output, short ones merged with
// their neighbours: a run of the input is the whole extent of its innermost dimensions and a part of the next one, and
// so is a run of the output. (Source of the idea: A.-P. Hynninen, D. I. Lyakh, "cuTT: A High-Performance Tensor Transpose
// Library for CUDA Compatible GPUs", arXiv:1705.01598, where it is called packed.)
#pragma once

#include "bank_model.hpp"
#include "chunk_skew.hpp"
#include "problem.hpp"

namespace swizzle {

/// Most dimensions of a problem that is moved in boxes.
inline constexpr int kMaxBoxRank = 8;
/// Most bytes of a box, and of its image in shared memory with everything that keeps its rows apart.
inline constexpr int kBoxBytes = 32 * 1024;
inline constexpr int kBoxImageBytes = 36 * 1024;
/// Most elements of the dimensions that an output run holds whole, but for the last: the length of the table by which
/// they are found.
inline constexpr int kMaxTableLength = 2048;

/// Boxes over a problem. Dimensions are numbered as the output's; strides in elements.
struct Box {
  int element_bytes = 1;
  int rank = 0;
  std::int64_t size[kMaxBoxRank];
  std::int64_t src_stride[kMaxBoxRank];
  std::int64_t dst_stride[kMaxBoxRank];
  int extent[kMaxBoxRank];
  /// Dimensions from the densest of the input on. The first `input_dims` of them are one piece of the input within a box;
  /// a run of the input is one piece or several that follow one another.
  int input_order[kMaxBoxRank];
  int input_dims = 0;
  int input_run = 1;
  /// The last `output_dims` dimensions are one run of the output within a box.
  int output_dims = 0;
  int output_run = 1;
  /// Dimensions in which runs end, which boxes may cut anywhere; -1 where a run has whole dimensions alone. Every other
  /// dimension is a multiple of its extent.
  int input_cut = -1;
  int output_cut = -1;
  /// Bytes between neighbours along a dimension, in the image of a box in shared memory. Equal to those of the input
  /// modulo 16, so that chunks of the input are chunks of the image.
  int image_pitch[kMaxBoxRank];
  int image_bytes = 0;
  int skew_shift = kNoSkew;  // the image is skewed by a chunk after every 2^skew_shift bytes
  bool is_aligned = false;   // every piece of the input begins at a multiple of 16 bytes

  std::int64_t tiles(int dim) const { return ceil_div(size[dim], extent[dim]); }
  std::int64_t block_count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= tiles(i);
    return count;
  }
  std::int64_t byte_count() const {
    std::int64_t count = element_bytes;
    for (int i = 0; i < rank; ++i) count *= size[i];
    return count;
  }
  /// Elements of a whole box.
  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= extent[i];
    return count;
  }
  bool is_in_input_piece(int dim) const {
    for (int i = 0; i < input_dims; ++i) {
      if (input_order[i] == dim) return true;
    }
    return false;
  }
  /// Elements of a piece of the input.
  int input_piece() const {
    int count = 1;
    for (int i = 0; i < input_dims; ++i) count *= extent[input_order[i]];
    return count;
  }
};

namespace detail {

// One side of a box while it grows: its dimensions from the innermost on.
struct BoxSide {
  int order[kMaxBoxRank];
  int count = 0;  // dimensions that can be one run
  std::int64_t max_whole = INT32_MAX;
  int position = 0;        // the dimension in which the run ends
  std::int64_t whole = 1;  // elements of the dimensions before it, all of which the run holds, at most max_whole
  bool is_done = false;

  void advance(const Box& box) {
    while (position < count && box.extent[order[position]] == box.size[order[position]] &&
           whole * box.size[order[position]] <= max_whole) {
      whole *= box.size[order[position]];
      ++position;
    }
    is_done = is_done || position == count || box.extent[order[position]] == box.size[order[position]];
  }
  bool is_cut(const Box& box) const { return position < count && box.extent[order[position]] > 1; }
  std::int64_t run(const Box& box) const { return position < count ? whole * box.extent[order[position]] : whole; }
};

// The smallest number of `whole` elements that is a multiple of a 32-byte sector.
inline std::int64_t sector_step(std::int64_t whole, int element_bytes) {
  std::int64_t step = 1;
  while (step < 32 && step * whole * element_bytes % 32 != 0) step *= 2;
  return step;
}

// Doubles the extent where the shorter side's run ends, in turns, until the box is full. Runs of the output grow twice as
// long as those of the input for elements of up to 4 bytes, whose ends are stored one by one, and half as long for 16
// bytes. Share of a copy's speed, geometric mean of the boxes among 200 random permutes (H200, 2026-11-30), output to
// input 2:1 / 1:1 / 1:2: 1 byte .60 / .57 / .50, 2 bytes .72 / .67 / .67, 4 bytes .83 / .81 / .78, 8 bytes .84 / .84 / .83,
// 16 bytes .82 / .84 / .87.
inline std::int64_t grow_box(Box& box, BoxSide& input, BoxSide& output, std::int64_t max_elements) {
  const int output_weight = box.element_bytes <= 4 ? 2 : 1;
  const int input_weight = box.element_bytes == 16 ? 2 : 1;
  std::int64_t elements = 1;
  for (;;) {
    input.advance(box);
    output.advance(box);
    if (input.is_done && output.is_done) return elements;
    const bool takes_input =
        output.is_done || (!input.is_done && output_weight * input.run(box) < input_weight * output.run(box));
    BoxSide& side = takes_input ? input : output;
    const int dim = side.order[side.position];
    const std::int64_t limit = max_elements / (elements / box.extent[dim]);
    std::int64_t extent = min_of<std::int64_t>(box.size[dim], 2 * std::int64_t{box.extent[dim]});
    if (extent > limit) {
      const std::int64_t step = sector_step(side.whole, box.element_bytes);
      extent = limit >= 4 * step ? limit / step * step : limit;
    }
    if (extent <= box.extent[dim]) {
      side.is_done = true;
      continue;
    }
    elements = elements / box.extent[dim] * extent;
    box.extent[dim] = static_cast<int>(extent);
  }
}

// Where both runs are as long as they may be, a box takes several of them: a divisor of another dimension.
inline void fill_box(Box& box, std::int64_t elements, std::int64_t max_elements) {
  for (int i = box.rank - 1; i >= 0; --i) {
    if (box.extent[i] != 1) continue;
    std::int64_t extent = min_of(box.size[i], max_elements / elements);
    while (extent > 1 && box.size[i] % extent != 0) --extent;
    box.extent[i] = static_cast<int>(max_of<std::int64_t>(extent, 1));
    elements *= box.extent[i];
  }
}

// Makes the boxes along a cut dimension equally long, in whole sectors where that costs little.
inline void balance_cut(Box& box, const BoxSide& side) {
  if (!side.is_cut(box)) return;
  const int dim = side.order[side.position];
  const std::int64_t step = sector_step(side.whole, box.element_bytes);
  const std::int64_t tiles = box.tiles(dim);
  std::int64_t even = ceil_div(box.size[dim], tiles);
  const std::int64_t rounded = ceil_div(even, step) * step;
  if (7 * rounded * tiles <= 8 * box.size[dim]) even = rounded;
  if (even < box.extent[dim]) box.extent[dim] = static_cast<int>(even);
}

// Makes what follows a whole number of chunks, at least a line of them, pieces of their own: that costs nothing, and
// pitches between them can be chosen.
inline void split_input_run(Box& box) {
  std::int64_t bytes = box.element_bytes;
  for (int i = 0; i < box.input_dims; ++i) {
    if (bytes >= kLineBytes && bytes % 16 == 0) box.input_dims = i;
    bytes *= box.extent[box.input_order[i]];
  }
}

// Whether every piece of the input begins at a multiple of 16 bytes.
inline bool has_aligned_pieces(const Box& box) {
  for (int i = 0; i < box.rank; ++i) {
    // Within a piece only the step from box to box moves its beginning.
    const std::int64_t step = !box.is_in_input_piece(i) ? box.src_stride[i]
                              : box.tiles(i) > 1        ? box.src_stride[i] * box.extent[i]
                                                        : 0;
    if (step * box.element_bytes % 16 != 0) return false;
  }
  return true;
}

// Lays the pieces of the input out, with `spare_chunks` more than are needed between those that are neighbours in the
// output; false where the image would be larger than kBoxImageBytes.
inline bool lay_out_pieces(Box& box, int spare_chunks) {
  const int bytes = box.element_bytes;
  // Pieces keep 30 bytes apart where the chunks that cover them may overhang on both ends.
  std::int64_t end = std::int64_t{box.input_piece()} * bytes + (box.is_aligned ? 0 : 30);
  for (int i = box.rank - 1; i >= 0; --i) {
    if (box.is_in_input_piece(i)) {
      box.image_pitch[i] = static_cast<int>(min_of<std::int64_t>(box.src_stride[i] * bytes, INT32_MAX));
    } else if (box.extent[i] == 1) {
      box.image_pitch[i] = 0;
    } else {
      const std::int64_t residue = box.src_stride[i] * bytes % 16;
      const std::int64_t pitch = (ceil_div(end - residue, 16) + spare_chunks) * 16 + residue;
      if (pitch * box.extent[i] > kBoxImageBytes) return false;
      box.image_pitch[i] = static_cast<int>(pitch);
      end = pitch * box.extent[i];
      spare_chunks = 0;
    }
  }
  box.image_bytes = static_cast<int>((end + 15) / 16 * 16 + 16);
  return box.image_bytes <= kBoxImageBytes;
}

// Lanes of a warp along one run of the output at most, as a power of two: eight write a line of it. The others take
// neighbouring runs where there are any.
inline int most_lanes_shift(std::int64_t runs) { return runs >= 3 ? 3 : runs == 2 ? 4 : log2_floor(kLanes); }

// Groups of lanes that are served together when a warp gathers vectors along output runs: where in the box their
// elements lie.
class GatherSample {
 public:
  static constexpr int kGroups = 2;

  /// Lanes as BoxProgram has them.
  explicit GatherSample(const Box& box) {
    const int first_inside = box.rank - box.output_dims;
    std::int64_t runs = 1;
    int neighbour = 0;  // the dimension along which the next run lies
    for (int i = box.rank - 1; i >= 0; --i) {
      if (box.input_order[i] >= first_inside || box.extent[box.input_order[i]] == 1) continue;
      neighbour = box.input_order[i];
      runs *= box.extent[neighbour];
    }
    int lanes = lanes_per_group(box.element_bytes);
    const int along = min_of(1 << most_lanes_shift(runs), lanes);
    int bytes = box.element_bytes;
    // Neighbouring runs one element apart: their lanes count as one that wants all of it.
    if (along < lanes && box.src_stride[neighbour] == 1) {
      bytes *= lanes / along;
      lanes = along;
    }
    words_ = max_of(bytes, kWordBytes) / kWordBytes;
    const int vector = 16 / box.element_bytes;
    for (int group = 0; group < kGroups; ++group) {
      for (int lane = 0; lane < lanes; ++lane) {
        std::int64_t element = (std::int64_t{group} * along + lane % along) * vector + 3 * group % vector;
        if (element >= box.output_run) continue;
        fixed_[count_] = 0;
        add(box, neighbour, lane / along);
        for (int dim = box.rank - 1; dim >= first_inside; --dim) {
          const auto rest = static_cast<int>(element) / box.extent[dim];
          add(box, dim, static_cast<int>(element) - rest * box.extent[dim]);
          element = rest;
        }
        ++count_;
      }
      end_[group] = count_;
    }
  }

  /// Wavefronts that the groups take in the box's image with a skew, in all.
  int count_wavefronts(const Box& box, int skew_shift) const {
    int sum = 0;
    for (int group = 0, i = 0; group < kGroups; ++group) {
      int wanted[kBanks] = {};
      int busiest = 0;
      for (; i < end_[group]; ++i) {
        int byte = fixed_[i];
        for (int d = 0; d < chosen_count_; ++d) byte += index_[i][d] * box.image_pitch[chosen_[d]];
        byte = skewed(byte, skew_shift);
        for (int word = 0; word < words_; ++word) {
          busiest = max_of(busiest, ++wanted[(byte / kWordBytes + word) % kBanks]);
        }
      }
      sum += busiest;
    }
    return sum;
  }

 private:
  // Moves the lane at hand along a dimension: by a known pitch within a piece of the input, by a chosen one elsewhere.
  void add(const Box& box, int dim, int steps) {
    if (box.is_in_input_piece(dim)) {
      fixed_[count_] += steps * box.image_pitch[dim];
      return;
    }
    int d = 0;
    while (d < chosen_count_ && chosen_[d] != dim) ++d;
    if (d == chosen_count_) chosen_[chosen_count_++] = dim;
    index_[count_][d] = steps;
  }

  int words_ = 1;
  int count_ = 0;
  int end_[kGroups] = {};
  int fixed_[kGroups * kLanes];
  int chosen_count_ = 0;
  int chosen_[kMaxBoxRank];
  int index_[kGroups * kLanes][kMaxBoxRank];
};

// Chooses the image's pitches and its skew so that lanes which walk along the output meet the banks in turn. Elements of
// 16 bytes have pitches alone. The pieces must have been laid out.
inline void spread_over_banks(Box& box) {
  const bool can_skew = box.element_bytes < 16;
  const int first_shift = can_skew ? kMinSkewShift : kNoSkew;
  const int last_shift = can_skew ? kMinSkewShift + 1 : kNoSkew;
  const int most_spare_chunks = box.element_bytes < 8 ? 3 : 7;
  const GatherSample sample(box);
  int least = INT32_MAX;
  int spare_chunks = 0;
  for (int spare = 0; spare <= most_spare_chunks && least > GatherSample::kGroups; ++spare) {
    if (!lay_out_pieces(box, spare)) break;
    for (int shift = first_shift; shift <= last_shift; ++shift) {
      const int wavefronts = sample.count_wavefronts(box, shift);
      if (wavefronts >= least) continue;
      least = wavefronts;
      spare_chunks = spare;
      box.skew_shift = shift;
    }
  }
  lay_out_pieces(box, spare_chunks);
}

}  // namespace detail

/// The boxes for a canonical problem, of at most `max_bytes`. False where boxes do not serve: the input's innermost
/// dimension has gaps, something is expanded, or there are too many dimensions.
inline bool find_box(const Problem& problem, std::uint64_t src_address, std::int64_t max_bytes, Box& box) {
  if (problem.is_empty || problem.rank < 1 || problem.rank > kMaxBoxRank) return false;
  box.element_bytes = problem.element_bytes;
  box.rank = problem.rank;
  std::int64_t dst_stride = 1;
  for (int i = box.rank - 1; i >= 0; --i) {
    if (problem.src_stride[i] == 0) return false;
    box.size[i] = problem.size[i];
    box.src_stride[i] = problem.src_stride[i];
    box.dst_stride[i] = dst_stride;
    dst_stride *= problem.size[i];
  }
  detail::BoxSide input;
  detail::BoxSide output;
  for (int i = 0; i < box.rank; ++i) {
    int place = i;
    for (; place > 0 && box.src_stride[box.input_order[place - 1]] > box.src_stride[i]; --place) {
      box.input_order[place] = box.input_order[place - 1];
    }
    box.input_order[place] = i;
    output.order[i] = box.rank - 1 - i;
  }
  if (box.src_stride[box.input_order[0]] != 1) return false;
  output.count = box.rank;
  output.max_whole = kMaxTableLength;
  for (input.count = 1; input.count < box.rank; ++input.count) {
    const int inner = box.input_order[input.count - 1];
    if (box.src_stride[box.input_order[input.count]] != box.src_stride[inner] * box.size[inner]) break;
  }
  for (int i = 0; i < box.rank; ++i) input.order[i] = box.input_order[i];

  for (std::int64_t bytes = max_bytes; bytes >= 1024; bytes -= bytes / 4) {
    for (int i = 0; i < box.rank; ++i) box.extent[i] = 1;
    detail::BoxSide in = input;
    detail::BoxSide out = output;
    const std::int64_t elements = detail::grow_box(box, in, out, bytes / box.element_bytes);
    detail::balance_cut(box, in);
    detail::balance_cut(box, out);
    box.input_cut = in.is_cut(box) ? in.order[in.position] : -1;
    box.output_cut = out.is_cut(box) ? out.order[out.position] : -1;
    box.input_dims = in.position + (in.is_cut(box) ? 1 : 0);
    box.output_dims = out.position + (out.is_cut(box) ? 1 : 0);
    box.input_run = static_cast<int>(in.run(box));
    box.output_run = static_cast<int>(out.run(box));
    if (src_address % 16 == 0) detail::split_input_run(box);
    detail::fill_box(box, elements, bytes / box.element_bytes);
    box.is_aligned = src_address % 16 == 0 && detail::has_aligned_pieces(box);
    if (!detail::lay_out_pieces(box, 0)) continue;
    detail::spread_over_banks(box);
    return box.block_count() <= INT32_MAX;
  }
  return false;
}

}  // namespace swizzle
