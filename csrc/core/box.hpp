// A box: the part of a problem that one block moves, as an extent along each dimension.
//
// Whatever the order of the dimensions, the box that fills a block's memory with the longest runs on both sides is made
// of the dimensions that are innermost in the input and those that are innermost in the output, short ones merged with
// their neighbours: a run of the input is the whole extent of its innermost dimensions and a part of the next one, and
// so is a run of the output. (Source of the idea: A.-P. Hynninen, D. I. Lyakh, "cuTT: A High-Performance Tensor
// Transpose Library for CUDA Compatible GPUs", arXiv:1705.01598, where it is called packed.)
#pragma once

#include <initializer_list>

#include "bank_model.hpp"
#include "chunk_skew.hpp"
#include "problem.hpp"

namespace swizzle {

/// Most dimensions of a problem that is moved in boxes.
inline constexpr int kMaxBoxRank = 8;
/// Most bytes of a box: five blocks share an SM of 227 KiB.
inline constexpr int kBoxBytes = 32 * 1024;
/// Most bytes of a box of bytes that is cut nowhere: four blocks share an SM. Share of a copy with 32 / 40 KiB (H200,
/// 2026-11-30): (7, 33, 92, 168, 32) .60 / .72, (69, 53, 61, 10, 57) .67 / .75; but boxes that stay cut are slower.
inline constexpr int kWholeBoxBytes = 40 * 1024;
/// What the image of a box in shared memory may take besides, to keep its rows apart, and what the tables may by which
/// a block finds its way (core/box_program.hpp).
inline constexpr int kBoxSpareBytes = 4 * 1024;
inline constexpr int kBoxTableBytes = 8 * 1024;
inline constexpr int kMaxBoxImageBytes = kWholeBoxBytes + kBoxSpareBytes;
/// Most shared memory of a block.
inline constexpr int kMaxBoxSharedBytes = kMaxBoxImageBytes + kBoxTableBytes;
/// A sector: the least that device memory moves.
inline constexpr int kSectorBytes = 32;
/// Most elements of a run of the output as it is stored.
inline constexpr int kMaxRunElements = 2048;

/// Boxes over a problem. Dimensions are numbered as the output's; strides in elements.
struct Box {
  int element_bytes = 1;
  int rank = 0;
  std::int64_t size[kMaxBoxRank];
  std::int64_t src_stride[kMaxBoxRank];
  std::int64_t dst_stride[kMaxBoxRank];
  int extent[kMaxBoxRank];
  /// Dimensions from the densest of the input on. The first `input_dims` of them are one piece of the input within a
  /// box; a run of the input is one piece or several that follow one another.
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
  /// Runs of the output are stored in parts that repeat: `run_steps` steps of dimension `run_dim` with everything
  /// inside it. Where they can, parts begin at the same place of a 16-byte vector, and lanes find their elements once
  /// for all.
  int run_dim = 0;
  int run_steps = 1;
  /// Bytes between neighbours along a dimension, in the image of a box in shared memory. Equal to those of the input
  /// modulo 16, so that chunks of the input are chunks of the image.
  int image_pitch[kMaxBoxRank];
  int image_bytes = 0;
  int skew_dim = -1;  // a chunk is left free after every 2^skew_shift steps along this dimension
  int skew_shift = kNoSkew;
  int most_image_bytes = 0;  // that its layout may take
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
  int pieces() const { return static_cast<int>(element_count() / input_piece()); }
  /// Elements of one step of run_dim.
  int run_step() const {
    int count = 1;
    for (int i = rank - 1; i > run_dim; --i) count *= extent[i];
    return count;
  }
  /// Elements of a stored part of a run, and how many parts there are.
  int run_elements() const { return run_step() * run_steps; }
  int runs() const {
    return static_cast<int>(element_count() / run_step() / extent[run_dim] * ceil_div(extent[run_dim], run_steps));
  }
  /// Where index `index` along a dimension lies in the image, in bytes from index 0.
  int image_offset(int dim, int index) const {
    return index * image_pitch[dim] + (dim == skew_dim ? (index >> skew_shift) * 16 : 0);
  }
  /// Bytes of shared memory for the image and its tables: 16 a run, 8 a piece, 2 an element of a run and of one vector
  /// more.
  int shared_bytes() const {
    return image_bytes + 16 * runs() + 8 * pieces() + 2 * (run_elements() + 16 / element_bytes - 1);
  }
};

namespace detail {

// One side of a box while it grows: its dimensions from the innermost on.
struct BoxSide {
  int order[kMaxBoxRank];
  int count = 0;           // dimensions that can be one run
  int position = 0;        // the dimension in which the run ends
  std::int64_t whole = 1;  // elements of the dimensions before it, all of which the run holds
  bool is_done = false;

  void advance(const Box& box) {
    while (position < count && box.extent[order[position]] == box.size[order[position]]) {
      whole *= box.size[order[position]];
      ++position;
    }
    is_done = is_done || position == count;
  }
  bool is_cut(const Box& box) const { return position < count && box.extent[order[position]] > 1; }
  std::int64_t run(const Box& box) const { return position < count ? whole * box.extent[order[position]] : whole; }
};

// The smallest number of `whole` elements that is a multiple of a sector.
inline std::int64_t sector_step(std::int64_t whole, int element_bytes) {
  std::int64_t step = 1;
  while (step < kSectorBytes && step * whole * element_bytes % kSectorBytes != 0) step *= 2;
  return step;
}

// Doubles the extent where the shorter side's run ends, in turns, until the box is full. Runs of the output grow twice
// as long as those of the input for elements of up to 4 bytes, whose ends are stored one by one, and half as long for
// 16 bytes. Share of a copy's speed, geometric mean of the boxes among 200 random permutes (H200, 2026-11-30), output
// to input 2:1 / 1:1 / 1:2: 1 byte .60 / .57 / .50, 2 bytes .72 / .67 / .67, 4 bytes .83 / .81 / .78, 8 bytes .84 / .84
// / .83, 16 bytes .82 / .84 / .87.
inline void grow_box(Box& box, BoxSide& input, BoxSide& output, std::int64_t max_elements) {
  const int output_weight = box.element_bytes <= 4 ? 2 : 1;
  const int input_weight = box.element_bytes == 16 ? 2 : 1;
  std::int64_t elements = 1;
  for (;;) {
    input.advance(box);
    output.advance(box);
    if (input.is_done && output.is_done) return;
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

// Makes the boxes along a cut dimension equally long, in whole sectors where that costs little, and as few as fit
// `max_elements`: what another dimension gave up is taken up here.
inline void balance_cut(Box& box, const BoxSide& side, std::int64_t max_elements) {
  if (!side.is_cut(box)) return;
  const int dim = side.order[side.position];
  const std::int64_t step = sector_step(side.whole, box.element_bytes);
  const std::int64_t limit = max_elements / (box.element_count() / box.extent[dim]);
  const std::int64_t tiles = ceil_div(box.size[dim], limit);
  std::int64_t extent = ceil_div(box.size[dim], tiles);
  for (const std::int64_t whole : {ceil_div(extent, step) * step, extent / step * step}) {
    if (whole < 1 || whole > limit || 7 * whole * ceil_div(box.size[dim], whole) > 8 * box.size[dim]) continue;
    extent = whole;
    break;
  }
  box.extent[dim] = static_cast<int>(min_of(extent, box.size[dim]));
}

// Makes what follows a whole number of chunks, at least `least_bytes`, pieces of their own, so that pitches between
// them can be chosen.
inline void split_input_run(Box& box, int least_bytes) {
  std::int64_t bytes = box.element_bytes;
  for (int i = 0; i < box.input_dims; ++i) {
    if (bytes >= least_bytes && bytes % 16 == 0) box.input_dims = i;
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
// output; false where the image would be larger than it may.
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
      if (pitch * box.extent[i] > box.most_image_bytes) return false;
      box.image_pitch[i] = static_cast<int>(pitch);
      end = box.image_offset(i, box.extent[i] - 1) + pitch;
      spare_chunks = 0;
    }
  }
  box.image_bytes = static_cast<int>((end + 15) / 16 * 16 + 16);
  return box.image_bytes <= box.most_image_bytes;
}

// Chooses the parts in which runs of the output are stored: whole runs where they are short or many; else parts of
// about kPartBytes along the outermost dimension whose steps are not much longer, or as many steps as come back to the
// same place of a vector if that leaves enough parts.
inline void choose_parts(Box& box) {
  constexpr int kPartBytes = 512;
  constexpr int kMinRuns = 8;
  const int first = min_of(box.rank - box.output_dims, box.rank - 1);
  box.run_dim = first;
  box.run_steps = box.extent[first];
  const std::int64_t run = box.run_elements();
  if (run <= kMaxRunElements && (run * box.element_bytes < 2 * kPartBytes || box.runs() >= kMinRuns)) return;
  for (int dim = first; dim < box.rank; ++dim) {
    box.run_dim = dim;
    const int step_bytes = box.run_step() * box.element_bytes;
    if (step_bytes > 2 * kPartBytes) continue;
    int period = 1;
    while (period * step_bytes % 16 != 0) period *= 2;
    box.run_steps = max_of(period, kPartBytes / step_bytes / period * period);
    const bool may_align = box.run_elements() <= kMaxRunElements && box.runs() >= kMinRuns;
    if (!may_align) box.run_steps = max_of(1, kPartBytes / step_bytes);
    if (2 * box.run_steps <= box.extent[dim]) return;
  }
  box.run_dim = first;
  while (box.run_step() > kMaxRunElements) ++box.run_dim;
  box.run_steps = min_of(box.extent[box.run_dim], kMaxRunElements / box.run_step());
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
    for (int i = 0; i < box.rank; ++i) {
      if (box.extent[i] > 1) dims_[dims_count_++] = i;
    }
    const int runs = box.runs();
    int lanes = lanes_per_group(box.element_bytes);
    const int along = min_of(1 << most_lanes_shift(runs), lanes);
    int bytes = box.element_bytes;
    // Neighbouring runs one element apart: their lanes count as one that wants all of it.
    int neighbour = 0;
    while (neighbour < box.rank - 1 &&
           (box.extent[box.input_order[neighbour]] == 1 || box.input_order[neighbour] >= box.run_dim)) {
      ++neighbour;
    }
    if (along < lanes && box.input_order[neighbour] < box.run_dim && box.src_stride[box.input_order[neighbour]] == 1) {
      bytes *= lanes / along;
      lanes = along;
    }
    words_ = max_of(bytes, kWordBytes) / kWordBytes;
    const int vector = 16 / box.element_bytes;
    for (int group = 0; group < kGroups; ++group) {
      for (int lane = 0; lane < lanes; ++lane) {
        int element = (group * along + lane % along) * vector + 3 * group % vector;
        int run = lane / along;
        if (element >= box.run_elements() || run >= runs) continue;
        for (int i = box.rank - 1; i > box.run_dim; --i) {
          index_[count_][i] = element % box.extent[i];
          element /= box.extent[i];
        }
        index_[count_][box.run_dim] = element;
        for (int k = 0; k < box.rank; ++k) {
          const int i = box.input_order[k];
          if (i >= box.run_dim) continue;
          index_[count_][i] = run % box.extent[i];
          run /= box.extent[i];
        }
        index_[count_][box.run_dim] += run * box.run_steps;
        ++count_;
      }
      end_[group] = count_;
    }
  }

  /// Wavefronts that the groups take in the box's image, in all.
  int count_wavefronts(const Box& box) const {
    int sum = 0;
    for (int group = 0, i = 0; group < kGroups; ++group) {
      BankTally tally;
      for (; i < end_[group]; ++i) {
        int byte = 0;
        for (int d = 0; d < dims_count_; ++d) byte += box.image_offset(dims_[d], index_[i][dims_[d]]);
        for (int word = 0; word < words_; ++word) tally.add(byte / kWordBytes + word);
      }
      sum += tally.busiest();
    }
    return sum;
  }

 private:
  int words_ = 1;
  int count_ = 0;
  int end_[kGroups] = {};
  int dims_count_ = 0;  // that boxes extend along
  int dims_[kMaxBoxRank];
  int index_[kGroups * kLanes][kMaxBoxRank];
};

// Chooses the image's pitches, and along which dimension of a run it is skewed, so that lanes which walk along the
// output meet the banks in turn. Returns the wavefronts of a GatherSample, INT32_MAX where no image fits.
inline int spread_over_banks(Box& box) {
  const int most_spare_chunks = box.element_bytes < 8 ? 3 : 7;
  box.skew_dim = -1;
  box.skew_shift = kNoSkew;
  if (!lay_out_pieces(box, 0)) return INT32_MAX;
  const GatherSample sample(box);
  int least = INT32_MAX;
  int best_spare = 0;
  int best_dim = -1;
  int best_shift = kNoSkew;
  for (int spare = 0; spare <= most_spare_chunks && least > GatherSample::kGroups; ++spare) {
    box.skew_dim = -1;
    if (!lay_out_pieces(box, spare)) break;
    // Along a dimension, a lane's next vector is so many steps on.
    int steps = 16 / box.element_bytes;
    for (int dim = box.rank; dim >= box.run_dim && least > GatherSample::kGroups; --dim) {  // number `rank`: no skew
      if (dim < box.rank) {
        box.skew_shift = log2_floor(max_of(steps, 1));
        steps /= box.extent[dim];
        if (box.is_in_input_piece(dim) || box.extent[dim] == 1) continue;
        // Parts of a run must lie alike in the image.
        const bool has_parts = dim == box.run_dim && box.run_steps < box.extent[dim];
        if (has_parts && box.run_steps % (1 << box.skew_shift) != 0) continue;
        box.skew_dim = dim;
        if (!lay_out_pieces(box, spare)) continue;
      }
      const int wavefronts = sample.count_wavefronts(box);
      if (wavefronts >= least) continue;
      least = wavefronts;
      best_spare = spare;
      best_dim = box.skew_dim;
      best_shift = box.skew_shift;
    }
  }
  box.skew_dim = best_dim;
  box.skew_shift = best_shift;
  lay_out_pieces(box, best_spare);
  return least;
}

// Lays out the image of a box whose extents are chosen. Pieces of an aligned input are split at lines, which costs
// nothing, or at sectors where lanes would meet in few banks otherwise. False where the image or its tables do not fit.
inline bool lay_out_image(Box& box, bool can_split) {
  constexpr int kMostWavefronts = 3 * GatherSample::kGroups;
  const Box unsplit = box;
  int least = INT32_MAX;
  for (const int piece_bytes : {kLineBytes, kSectorBytes}) {
    Box split = unsplit;
    if (can_split) split_input_run(split, piece_bytes);
    split.is_aligned = can_split && has_aligned_pieces(split);
    const int wavefronts = spread_over_banks(split);
    if (wavefronts < least && split.shared_bytes() <= split.most_image_bytes + kBoxTableBytes) {
      least = wavefronts;
      box = split;
    }
    if (!can_split || least <= kMostWavefronts) break;
  }
  return least < INT32_MAX;
}

}  // namespace detail

/// The boxes for a canonical problem, of at most `max_bytes`. False where boxes do not serve: the input's innermost
/// dimension has gaps, something is expanded, or there are too many dimensions.
inline bool find_box(const Problem& problem, std::uint64_t src_address, std::int64_t max_bytes, Box& box) {
  if (problem.is_empty || problem.rank < 1 || problem.rank > kMaxBoxRank) return false;
  box.element_bytes = problem.element_bytes;
  box.rank = problem.rank;
  box.most_image_bytes = static_cast<int>(max_of<std::int64_t>(max_bytes, kBoxBytes)) + kBoxSpareBytes;
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
  for (input.count = 1; input.count < box.rank; ++input.count) {
    const int inner = box.input_order[input.count - 1];
    if (box.src_stride[box.input_order[input.count]] != box.src_stride[inner] * box.size[inner]) break;
  }
  for (int i = 0; i < box.rank; ++i) input.order[i] = box.input_order[i];

  for (std::int64_t bytes = max_bytes; bytes >= 1024; bytes -= bytes / 8) {
    for (int i = 0; i < box.rank; ++i) box.extent[i] = 1;
    detail::BoxSide in = input;
    detail::BoxSide out = output;
    detail::grow_box(box, in, out, bytes / box.element_bytes);
    detail::balance_cut(box, out, bytes / box.element_bytes);
    detail::balance_cut(box, in, bytes / box.element_bytes);
    in.advance(box);
    box.input_cut = in.is_cut(box) ? in.order[in.position] : -1;
    box.output_cut = out.is_cut(box) ? out.order[out.position] : -1;
    box.input_dims = in.position + (in.is_cut(box) ? 1 : 0);
    box.output_dims = out.position + (out.is_cut(box) ? 1 : 0);
    box.input_run = static_cast<int>(in.run(box));
    box.output_run = static_cast<int>(out.run(box));
    detail::fill_box(box, box.element_count(), bytes / box.element_bytes);
    detail::choose_parts(box);
    if (detail::lay_out_image(box, src_address % 16 == 0)) return box.block_count() <= INT32_MAX;
  }
  return false;
}

}  // namespace swizzle
