// A transposition: the view of a problem as equal matrices to be transposed, which is what the tile programs move.
#pragma once

#include "problem.hpp"

namespace swizzle {

/// Most dimensions outside the matrices: rank 8 in any order. Inputs beyond the limit are gathered element by element.
inline constexpr int kMaxOuterRank = 6;

/// Equal matrices, each `rows` x `cols` in the input and `cols` x `rows` in the output, whose rows are contiguous
/// there. Strides in elements; the stride between elements of an output row is 1.
struct Transposition {
  int element_bytes = 1;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t src_row_stride = 0;
  std::int64_t src_col_stride = 0;
  std::int64_t dst_col_stride = 0;
  int outer_rank = 0;
  std::int64_t outer_size[kMaxOuterRank];
  std::int64_t outer_src_stride[kMaxOuterRank];
  std::int64_t outer_dst_stride[kMaxOuterRank];

  std::int64_t outer_count() const {
    std::int64_t count = 1;
    for (int i = 0; i < outer_rank; ++i) count *= outer_size[i];
    return count;
  }
  std::int64_t byte_count() const { return rows * cols * outer_count() * element_bytes; }
};

/// Most dimensions that rows are folded over besides their own: each costs a division a row.
inline constexpr int kMaxFoldedDims = 2;

/// Matrices whose rows run over further dimensions: those that follow the rows in the output, from the innermost on. A
/// row's number then has an index along each dimension, and its place in the input is the sum of theirs.
struct FoldedRows {
  int dims = 0;  // besides the rows' own
  std::int64_t size[kMaxFoldedDims + 1];
  std::int64_t src_stride[kMaxFoldedDims + 1];
  Transposition matrices;  // with all rows, and without the dimensions that they run over
};

/// Folds the dimensions that follow the rows in the output into the rows, as many as there are and may be. `dims` is 0
/// where columns follow them at once, as in a transposed matrix.
inline FoldedRows fold_rows(const Transposition& problem) {
  FoldedRows folded;
  folded.matrices = problem;
  folded.size[0] = problem.rows;
  folded.src_stride[0] = problem.src_row_stride;
  Transposition& matrices = folded.matrices;
  for (int i = matrices.outer_rank - 1; i >= 0 && folded.dims < kMaxFoldedDims; --i) {
    if (matrices.outer_dst_stride[i] != matrices.rows || matrices.rows * matrices.outer_size[i] > INT32_MAX) break;
    ++folded.dims;
    folded.size[folded.dims] = matrices.outer_size[i];
    folded.src_stride[folded.dims] = matrices.outer_src_stride[i];
    matrices.rows *= matrices.outer_size[i];
    --matrices.outer_rank;
  }
  return folded;
}

/// Finds the matrices of a canonical problem: their rows run along the output's innermost dimension, their columns
/// along the dimension that is densest in the input. False where there is none to transpose: the innermost dimension of
/// the output is itself the densest of the input, or too many dimensions remain outside. `dst_stride` has an entry for
/// each dimension, 1 for the innermost.
inline bool find_transposition(const Problem& problem, const std::int64_t* dst_stride, Transposition& result) {
  const int innermost = problem.rank - 1;
  if (problem.is_empty || problem.rank < 2 || problem.rank - 2 > kMaxOuterRank) return false;
  int dense = -1;
  for (int i = 0; i < innermost; ++i) {
    if (problem.src_stride[i] == 0) continue;
    if (dense < 0 || problem.src_stride[i] < problem.src_stride[dense]) dense = i;
  }
  if (dense < 0) return false;
  const std::int64_t row_stride = problem.src_stride[innermost];
  if (row_stride != 0 && row_stride <= problem.src_stride[dense]) return false;

  result.element_bytes = problem.element_bytes;
  result.rows = problem.size[innermost];
  result.cols = problem.size[dense];
  result.src_row_stride = row_stride;
  result.src_col_stride = problem.src_stride[dense];
  result.dst_col_stride = dst_stride[dense];
  result.outer_rank = 0;
  for (int i = 0; i < innermost; ++i) {
    if (i == dense) continue;
    result.outer_size[result.outer_rank] = problem.size[i];
    result.outer_src_stride[result.outer_rank] = problem.src_stride[i];
    result.outer_dst_stride[result.outer_rank] = dst_stride[i];
    ++result.outer_rank;
  }
  return true;
}

/// The same for the contiguous output that a problem has unless said otherwise.
inline bool find_transposition(const Problem& problem, Transposition& result) {
  std::int64_t dst_stride[kMaxRank];
  std::int64_t extent = 1;
  for (int i = problem.rank - 1; i >= 0; --i) {
    dst_stride[i] = extent;
    extent *= problem.size[i];
  }
  return find_transposition(problem, dst_stride, result);
}

}  // namespace swizzle
