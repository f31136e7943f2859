// Claims about layouts and their proofs: what ships is one-to-one and conflict-free where it says so, and mutations
// fail.
#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "strided_view.hpp"

namespace swizzle {
namespace {

// Shipped layouts are held to their claims when ProvenProgram is instantiated, here and in every kernel.
template <class Policy>
void expect_proofs() {
  for (const Method method : {Method::kNaive, Method::kPadded, Method::kSwizzled}) {
    dispatch_layout<Policy>(method, [&](auto program) {
      using Program = decltype(program);
      EXPECT_TRUE(is_unique_v<Program>);
      EXPECT_EQ(is_conflict_free_v<Program>, method != Method::kNaive);
      int worst_load = 0;
      int worst_store = 0;
      int ideal = 0;
      for (const TracedRequest& request : trace_full_tile<Program>()) {
        const Wavefronts wavefronts = count_wavefronts(request.lanes);
        int& worst = request.is_load ? worst_load : worst_store;
        worst = max_of(worst, wavefronts.actual);
        ideal = max_of(ideal, wavefronts.ideal);
      }
      EXPECT_EQ(worst_store, ideal) << "rows are written without conflicts in every layout";
      if (method == Method::kNaive) {
        EXPECT_GT(worst_load, ideal);
      } else {
        EXPECT_EQ(worst_load, ideal);
      }
      EXPECT_EQ(ideal, kLanes / lanes_per_group(Policy::kChunkBytes));
    });
  }
}

template <int kElementBytes>
void expect_proofs_of_all_tiles() {
  expect_proofs<Scalar32Policy<kElementBytes>>();
  expect_proofs<VectorPolicy<kElementBytes>>();
  expect_proofs<Vector128Policy<kElementBytes>>();
  expect_proofs<ShortVectorPolicy<kElementBytes>>();
}

TEST(Layout, TheProofAgreesWithTheTracedProgram) {
  expect_proofs_of_all_tiles<1>();
  expect_proofs_of_all_tiles<2>();
  expect_proofs_of_all_tiles<4>();
  expect_proofs_of_all_tiles<8>();
  expect_proofs_of_all_tiles<16>();
}

// The article's experiment: wavefronts of a column read of the 32 x 32 tile.
TEST(Layout, TheArticlesNaiveTileConflictsAsTheModelSays) {
  const auto worst_column_read = [](auto bytes) {
    using Program = TileProgram<Scalar32Policy<decltype(bytes)::value>,
                                typename LayoutsFor<Scalar32Policy<decltype(bytes)::value>>::Naive>;
    int worst = 0;
    for (const TracedRequest& request : trace_full_tile<Program>()) {
      if (request.is_load) worst = max_of(worst, count_wavefronts(request.lanes).actual);
    }
    return worst;
  };
  EXPECT_EQ(worst_column_read(std::integral_constant<int, 1>{}), 8);
  EXPECT_EQ(worst_column_read(std::integral_constant<int, 2>{}), 16);
  EXPECT_EQ(worst_column_read(std::integral_constant<int, 4>{}), 32);
  EXPECT_EQ(worst_column_read(std::integral_constant<int, 8>{}), 32);
  EXPECT_EQ(worst_column_read(std::integral_constant<int, 16>{}), 32);
}

// The window program has no layout to choose; its own is conflict-free at every pitch and address.
template <int kElementBytes>
void expect_windows_without_conflicts() {
  using Program = WindowProgram<WindowPolicy<kElementBytes>>;
  for (const std::int64_t pitch : {64, 65, 67, 71}) {
    for (int shift = 0; shift < 16 / kElementBytes; ++shift) {
      View view = matrix_view(kElementBytes, Program::kOwnedRows, Program::kCols, Program::kCols + pitch);
      view.offset_bytes = shift * kElementBytes;
      view.dst_offset_bytes = 5 * shift * kElementBytes;
      Arena arena(view);
      Transposition matrices;
      ASSERT_TRUE(find_transposition(arena.problem(), matrices));
      std::vector<TracedRequest> trace;
      HostMemory memory = arena.memory(&trace);
      run_tile_program<Program>(matrices, arena.src(), arena.dst(), memory);
      for (const TracedRequest& request : trace) {
        ASSERT_EQ(count_wavefronts(request.lanes).excess() * request.is_load, 0) << view.describe();
      }
    }
  }
}

TEST(Layout, WindowsAreGatheredWithoutConflicts) {
  expect_windows_without_conflicts<1>();
  expect_windows_without_conflicts<2>();
  expect_windows_without_conflicts<4>();
  expect_windows_without_conflicts<8>();
}

// Folded rows have any misalignments: lanes meet by twos.
template <int kElementBytes>
void expect_folded_windows_in_two_wavefronts() {
  using Program = WindowProgram<WindowPolicy<kElementBytes>, FoldedWindowRows>;
  Arena arena(permuted_view(kElementBytes, {29, 31, 13, 137}, {3, 2, 1, 0}));
  Transposition matrices;
  ASSERT_TRUE(find_transposition(arena.problem(), matrices));
  ASSERT_TRUE(windows_fold_rows(matrices));
  std::vector<TracedRequest> trace;
  HostMemory memory = arena.memory(&trace);
  run_tile_program<Program>(matrices, arena.src(), arena.dst(), memory);
  double actual = 0;
  double ideal = 0;
  for (const TracedRequest& request : trace) {
    if (!request.is_load) continue;
    actual += count_wavefronts(request.lanes).actual;
    ideal += count_wavefronts(request.lanes).ideal;
  }
  EXPECT_LE(actual / ideal, 2.1) << kElementBytes;
}

TEST(Layout, WindowsOfFoldedRowsTakeAboutTwoWavefronts) {
  expect_folded_windows_in_two_wavefronts<1>();
  expect_folded_windows_in_two_wavefronts<2>();
  expect_folded_windows_in_two_wavefronts<4>();
  expect_folded_windows_in_two_wavefronts<8>();
}

TEST(Layout, TheSwizzleIsTheXorOfTheWholeOffset) {
  using Xor = Swizzle<3, 4, 6>;
  using Layout = Swizzled<256, Xor>;
  for (int row = 0; row < 64; ++row) {
    for (int byte = 0; byte < 256; ++byte) ASSERT_EQ(Layout::offset(row, byte), Xor::apply(row * 256 + byte));
  }
}

TEST(Layout, TheSwizzleIsItsOwnInverse) {
  using Xor = Swizzle<5, 2, 5>;
  for (int offset = 0; offset < 8192; ++offset) ASSERT_EQ(Xor::apply(Xor::apply(offset)), offset);
}

// Mutations. Each must be caught by a proof, by the count, or by the values.
using Policy = Scalar32Policy<4>;
template <int kBits>
using WithXorBits = TileProgram<Policy, Swizzled<128, Swizzle<kBits, 2, 5>>>;

template <class Program>
int worst_load() {
  int worst = 0;
  for (const TracedRequest& request : trace_full_tile<Program>()) {
    if (request.is_load) worst = max_of(worst, count_wavefronts(request.lanes).actual);
  }
  return worst;
}

TEST(LayoutMutation, EveryXorBitCounts) {
  static_assert(is_conflict_free_v<WithXorBits<5>>);
  static_assert(!is_conflict_free_v<WithXorBits<4>>, "one bit fewer must break the claim");
  static_assert(!is_conflict_free_v<WithXorBits<0>>, "an XOR with nothing must break the claim");
  EXPECT_EQ(worst_load<WithXorBits<5>>(), 1);
  EXPECT_EQ(worst_load<WithXorBits<4>>(), 2);
  EXPECT_EQ(worst_load<WithXorBits<3>>(), 4);
  EXPECT_EQ(worst_load<WithXorBits<2>>(), 8);
  EXPECT_EQ(worst_load<WithXorBits<0>>(), 32);
}

// The same for every shipped tile and element size, at compile time.
template <class Policy>
constexpr bool breaks_with_one_bit_fewer() {
  using Xor = typename LayoutsFor<Policy>::Xor;
  using Bits = typename Xor::Exchange;
  using Fewer = Swizzled<Policy::kRowBytes, Swizzle<Bits::kBits - 1, Bits::kBase, Bits::kShift>>;
  using None = Swizzled<Policy::kRowBytes, Swizzle<0, Bits::kBase, Bits::kShift>>;
  return is_conflict_free_v<TileProgram<Policy, Xor>> && !is_conflict_free_v<TileProgram<Policy, Fewer>> &&
         !is_conflict_free_v<TileProgram<Policy, None>>;
}
template <int kElementBytes>
constexpr bool every_tile_breaks_with_one_bit_fewer() {
  return breaks_with_one_bit_fewer<Scalar32Policy<kElementBytes>>() &&
         breaks_with_one_bit_fewer<VectorPolicy<kElementBytes>>() &&
         breaks_with_one_bit_fewer<Vector128Policy<kElementBytes>>() &&
         breaks_with_one_bit_fewer<ShortVectorPolicy<kElementBytes>>();
}

TEST(LayoutMutation, EveryXorBitCountsInEveryShippedTile) {
  static_assert(every_tile_breaks_with_one_bit_fewer<1>());
  static_assert(every_tile_breaks_with_one_bit_fewer<2>());
  static_assert(every_tile_breaks_with_one_bit_fewer<4>());
  static_assert(every_tile_breaks_with_one_bit_fewer<8>());
  static_assert(every_tile_breaks_with_one_bit_fewer<16>());
}

struct PadDeclaredButUnused : Padded<128, 4, 1> {
  static constexpr int offset(int row, int byte) { return RowMajor<128>::offset(row, byte); }
};

TEST(LayoutMutation, APadThatTheIndexIgnoresBreaksTheClaim) {
  static_assert(PadDeclaredButUnused::kClaimsConflictFree);
  static_assert(is_conflict_free_v<TileProgram<Policy, Padded<128, 4, 1>>>);
  static_assert(!is_conflict_free_v<TileProgram<Policy, PadDeclaredButUnused>>);
  EXPECT_EQ((worst_load<TileProgram<Policy, PadDeclaredButUnused>>()), 32);
}

struct FoldedRows : RowMajor<128> {
  static constexpr int offset(int row, int byte) { return RowMajor<128>::offset(row % 16, byte); }
};

TEST(LayoutMutation, AFoldedIndexIsNotOneToOne) {
  static_assert(is_unique_v<TileProgram<Policy, RowMajor<128>>>);
  static_assert(!is_unique_v<TileProgram<Policy, FoldedRows>>);
}

// Rows of 33 words, joined as if their bits did not carry.
struct CarryingRows : Padded<128, 4, 1> {
  static constexpr int join(int offset, int step) { return offset ^ step; }
};
// The XOR of Swizzled, joined by addition.
struct AddedXor : Swizzled<128, Swizzle<5, 2, 5>> {
  static constexpr int join(int offset, int step) { return offset + step; }
};

TEST(LayoutMutation, StepsThatTheLayoutIsNotLinearInAreFound) {
  static_assert(has_linear_steps_v<TileProgram<Policy, Padded<128, 4, 1>>>);
  static_assert(has_linear_steps_v<TileProgram<Policy, Swizzled<128, Swizzle<5, 2, 5>>>>);
  static_assert(!has_linear_steps_v<TileProgram<Policy, CarryingRows>>);
  static_assert(!has_linear_steps_v<TileProgram<Policy, AddedXor>>);
}

// Undoes the XOR on the reading side only.
template <class Xor>
class OneSidedMemory : public HostMemory {
 public:
  using HostMemory::HostMemory;
  template <class T>
  T load_shared(int step, int offset) {
    return HostMemory::load_shared<T>(step, Xor::apply(offset));
  }
};

TEST(LayoutMutation, AnXorOnOneSideOnlyGivesWrongValues) {
  using Xor = Swizzle<5, 2, 5>;
  using Program = TileProgram<Policy, Swizzled<128, Xor>>;
  Transposition tile;
  tile.element_bytes = 4;
  tile.rows = tile.cols = 32;
  tile.src_row_stride = tile.dst_col_stride = 32;
  tile.src_col_stride = 1;
  std::vector<std::uint32_t> src(1024);
  for (std::uint32_t i = 0; i < 1024; ++i) src[i] = i;
  std::vector<std::uint32_t> dst(1024);
  const auto* src_bytes = reinterpret_cast<const unsigned char*>(src.data());
  auto* dst_bytes = reinterpret_cast<unsigned char*>(dst.data());
  const auto wrong_values = [&](auto& memory) {
    const TileArguments args = Program::make_arguments(tile, src_bytes, dst_bytes);
    const auto origin = Program::locate(args, 0);
    memory.enter_block(0, Program::kSharedBytes);
    for (int thread = 0; thread < Program::kThreads; ++thread) Program::load(memory, args, origin, thread);
    for (int thread = 0; thread < Program::kThreads; ++thread) Program::store(memory, args, origin, thread);
    int wrong = 0;
    for (int row = 0; row < 32; ++row) {
      for (int col = 0; col < 32; ++col) wrong += dst[col * 32 + row] != src[row * 32 + col] ? 1 : 0;
    }
    return wrong;
  };
  HostMemory both_sides({src_bytes, src_bytes + 4096}, {dst_bytes, dst_bytes + 4096});
  EXPECT_EQ(wrong_values(both_sides), 0);
  OneSidedMemory<Xor> one_side({src_bytes, src_bytes + 4096}, {dst_bytes, dst_bytes + 4096});
  EXPECT_GT(wrong_values(one_side), 900);
}

}  // namespace
}  // namespace swizzle
