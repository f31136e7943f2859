// Claims about the programs that kernels run, on the host: values bit by bit, bounds, every output byte written once.
#include <gtest/gtest.h>

#include <tuple>

#include "core/request_counter.hpp"
#include "strided_view.hpp"

namespace swizzle {
namespace {

constexpr Method kLayouts[] = {Method::kNaive, Method::kPadded, Method::kSwizzled};
constexpr Tile kTiles[] = {Tile::kScalar32, Tile::kVector, Tile::kVector128, Tile::kShortVector};

// Elements of a chunk of a tile, and the tile's edge along input rows.
int step_of(Tile tile, int bytes) {
  if (tile == Tile::kScalar32) return 1;
  return (tile == Tile::kShortVector ? short_vector_bytes(bytes) : 16) / bytes;
}
int cols_of(Tile tile, int bytes) {
  if (tile == Tile::kScalar32) return 32;
  return (tile == Tile::kVector || (tile == Tile::kShortVector && bytes >= 8) ? 256 : 128) / bytes;
}
int rows_of(Tile tile, int bytes) {
  if (tile == Tile::kShortVector) return 32;
  return tile == Tile::kVector && bytes == 1 ? 128 : cols_of(tile, bytes);
}

::testing::AssertionResult run_forced(const View& view, Method layout, Tile tile, bool* was_served = nullptr) {
  Arena arena(view);
  const Problem problem = arena.problem();
  Plan plan;
  const bool is_served = make_forced_plan(problem, reinterpret_cast<std::uintptr_t>(arena.src()),
                                          reinterpret_cast<std::uintptr_t>(arena.dst()), layout, tile, plan);
  if (was_served != nullptr) *was_served = is_served;
  if (!is_served) return ::testing::AssertionSuccess();
  return arena.run(plan, problem);
}

class Programs : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ElementBytes, Programs, ::testing::Values(1, 2, 4, 8, 16));

// The article's verification: every size up to two tiles.
TEST_P(Programs, TransposeEverySizeUpTo64) {
  const int bytes = GetParam();
  for (const Tile tile : kTiles) {
    for (const Method layout : kLayouts) {
      int served = 0;
      for (int rows = 1; rows <= 64; ++rows) {
        for (int cols = 1; cols <= 64; ++cols) {
          bool was_served = false;
          ASSERT_TRUE(run_forced(matrix_view(bytes, rows, cols, cols), layout, tile, &was_served))
              << name_of(tile) << " " << name_of(layout);
          const int step = step_of(tile, bytes);
          const bool fits = rows == 1 || cols == 1 || (rows % step == 0 && cols % step == 0);
          ASSERT_EQ(was_served, fits) << rows << " x " << cols;
          served += was_served ? 1 : 0;
        }
      }
      EXPECT_GT(served, 127);
    }
  }
}

// tile - 1, tile, tile + 1 (in steps of a chunk for the tiles of chunks), exact and pitched, one and several batches.
TEST_P(Programs, TransposeAroundTileEdges) {
  const int bytes = GetParam();
  for (const Tile tile : kTiles) {
    const int step = step_of(tile, bytes);
    const int edge = cols_of(tile, bytes);
    const int rows_edge = rows_of(tile, bytes);
    for (const Method layout : kLayouts) {
      for (const int rows : {rows_edge - step, rows_edge, rows_edge + step, 2 * rows_edge + step}) {
        for (const int cols : {step, edge - step, edge, edge + step}) {
          for (const int padding : {0, step, 3 * step}) {
            for (const int batches : {1, 3}) {
              bool was_served = false;
              ASSERT_TRUE(
                  run_forced(matrix_view(bytes, rows, cols, cols + padding, batches), layout, tile, &was_served))
                  << name_of(tile) << " " << name_of(layout);
              ASSERT_TRUE(was_served || rows == 1 || cols == 1);
            }
          }
        }
      }
    }
  }
}

TEST_P(Programs, TransposeFromAnyOffset) {
  const int bytes = GetParam();
  for (int shift = 0; shift <= 16 / bytes; ++shift) {
    View view = matrix_view(bytes, 48, 80, 96);
    view.offset_bytes = shift * bytes;
    for (const Method layout : kLayouts) {
      bool was_served = false;
      ASSERT_TRUE(run_forced(view, layout, Tile::kScalar32, &was_served));
      EXPECT_TRUE(was_served);
      ASSERT_TRUE(run_forced(view, layout, Tile::kVector, &was_served));
      EXPECT_TRUE(was_served) << "rows begin within a chunk, all at the same place";
      ASSERT_TRUE(run_forced(view, layout, Tile::kVector128, &was_served));
      EXPECT_EQ(was_served, view.offset_bytes % 16 == 0);
    }
  }
}

// Rows that begin and end anywhere within chunks and lines: in the first and the last tile, in a single one, in a chunk.
TEST_P(Programs, VectorsServeRowsThatCutChunks) {
  const int bytes = GetParam();
  const int step = 16 / bytes;
  const int line = 128 / bytes;
  const int edge = cols_of(Tile::kVector, bytes);
  const int rows_edge = rows_of(Tile::kVector, bytes);
  for (const int rows : {2 * step, rows_edge, rows_edge + step}) {
    for (const int cols : {2, step + 1, edge - 1, edge, edge + 1, 2 * edge + 3}) {
      for (const int shift : {0, 1, step - 1, step + 1, line - 1}) {
        for (const int batches : {1, 2}) {
          View view = matrix_view(bytes, rows, cols, ceil_div(cols, step) * step + step, batches);
          view.offset_bytes = shift * bytes;
          bool was_served = false;
          ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kVector, &was_served));
          ASSERT_TRUE(was_served) << view.describe();
        }
      }
    }
  }
  for (const Method layout : kLayouts) {
    View view = matrix_view(bytes, 2 * step, edge + 3, 2 * edge);
    view.offset_bytes = bytes;
    bool was_served = false;
    ASSERT_TRUE(run_forced(view, layout, Tile::kVector, &was_served));
    EXPECT_TRUE(was_served);
  }
  View one_row = matrix_view(bytes, 2 * step, edge + 3, 0);
  one_row.offset_bytes = bytes;
  EXPECT_TRUE(run_forced(one_row, Method::kAuto, Tile::kVector)) << "every row ends where the input does";
}

TEST_P(Programs, VectorsLeaveOtherCutsAlone) {
  const int bytes = GetParam();
  const int step = 16 / bytes;
  bool was_served = false;
  for (const View& view :
       {matrix_view(bytes, 4 * step, 64, 64 * step + 1), matrix_view(bytes, 4 * step + 1, 64, 128)}) {
    ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kVector, &was_served));
    EXPECT_EQ(was_served, bytes == 16) << view.describe();
  }
}

// Elements a stride apart, at any pitch and address; whole and partial tiles.
TEST_P(Programs, ShortVectorsServeColumnsAStrideApart) {
  const int bytes = GetParam();
  const int step = step_of(Tile::kShortVector, bytes);
  const int edge = cols_of(Tile::kShortVector, bytes);
  for (const int rows : {step, 32, 32 + step}) {
    for (const int cols : {step, edge, edge + step}) {
      for (const int stride : {2, 3, 7}) {
        for (const int shift : {0, 1, 5}) {
          View view = matrix_view(bytes, rows, cols, cols * stride + shift, 2);
          view.stride[1] = stride;
          view.offset_bytes = shift * bytes;
          for (const Method layout : kLayouts) {
            bool was_served = false;
            ASSERT_TRUE(run_forced(view, layout, Tile::kShortVector, &was_served));
            ASSERT_EQ(was_served, bytes <= 2) << view.describe();
          }
        }
      }
    }
  }
}

// Any pitch, base and output alignment; whole and partial tiles both ways.
TEST_P(Programs, WindowsServeEveryMisalignment) {
  const int bytes = GetParam();
  const int rows_owned = window_rows(bytes);
  const int cols_owned = window_row_bytes(bytes) / bytes;
  for (const int rows : {2, 31, 97, rows_owned - 1, rows_owned, rows_owned + 1, 2 * rows_owned + 35}) {
    for (const int cols : {2, 17, cols_owned - 1, cols_owned, cols_owned + 3}) {
      for (const int padding : {0, 1, 5}) {
        for (const int shift : {0, 1, 3}) {
          View view = matrix_view(bytes, rows, cols, cols + padding, 2);
          view.offset_bytes = shift * bytes;
          view.dst_offset_bytes = (2 * shift + padding) * bytes;
          bool was_served = false;
          ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kWindow, &was_served));
          ASSERT_EQ(was_served, bytes <= 8);
        }
      }
    }
  }
}

// Rows over one, two and three dimensions, the third of which stays outside, at any misalignment.
TEST_P(Programs, WindowsFoldRowsOverTheDimensionsBehindThem) {
  const int bytes = GetParam();
  for (const std::int64_t rows : {2, 29, 31, 97}) {
    for (const auto& [second, third, fourth] : {std::tuple{3, 1, 1}, {7, 5, 1}, {3, 2, 3}}) {
      for (const std::int64_t cols : {3, 17, 257}) {
        for (const int shift : {0, 1, 3}) {
          View view = permuted_view(bytes, {rows, second, third, fourth, cols}, {4, 3, 2, 1, 0});
          view.offset_bytes = shift * bytes;
          view.dst_offset_bytes = 2 * shift * bytes;
          bool was_served = false;
          ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kWindow, &was_served));
          ASSERT_EQ(was_served, bytes <= 8) << view.describe();
        }
      }
    }
  }
}

// Two to four columns; one and several blocks a matrix, one and several matrices.
TEST_P(Programs, DeinterleaveServesTwoToFourColumns) {
  const int bytes = GetParam();
  for (int cols = 1; cols <= 5; ++cols) {
    for (const int chunks : {127, 128, 129, 300}) {
      for (const int batches : {1, 3}) {
        const int rows = chunks * 16 / bytes;
        bool was_served = false;
        ASSERT_TRUE(
            run_forced(matrix_view(bytes, rows, cols, cols, batches), Method::kAuto, Tile::kDeinterleave, &was_served));
        EXPECT_EQ(was_served, cols == 1 || (bytes <= 8 && cols <= 4 && rows * bytes >= 2048)) << rows << " x " << cols;
      }
    }
  }
}

// Sides of 1 to 130: few columns, few rows, small matrices; whole and partial runs, at chunks and between them.
TEST_P(Programs, FlatServesShortSides) {
  const int bytes = GetParam();
  const int chunk = 16 / bytes;
  int served[3] = {};
  const auto count = [&](int kind, View view, int shift) {
    view.offset_bytes = shift * bytes;
    view.dst_offset_bytes = 3 * shift * bytes;
    bool was_served = false;
    const auto result = run_forced(view, Method::kAuto, Tile::kFlat, &was_served);
    served[kind] += was_served ? 1 : 0;
    return result;
  };
  for (const int side : {1, 2, 3, 5, 8, 12, 16, 24, 31, 49, 64, 96, 128, 130}) {
    const int whole = (40960 / side / bytes + 40) / chunk * chunk + 3 * chunk;
    for (const int length : {whole, whole + 1, whole + 5}) {
      for (const int shift : {0, 1, 5}) {
        for (const int batches : {1, 2}) {
          ASSERT_TRUE(count(0, matrix_view(bytes, length, side, side, batches), shift)) << length << " x " << side;
          ASSERT_TRUE(count(1, matrix_view(bytes, side, length, length + shift, batches), shift))
              << side << " x " << length;
        }
      }
    }
    for (const int shift : {0, 1, 2}) {
      for (const auto& [rows, cols, batches] :
           {std::tuple{side, side, 37}, {2, side, 1001}, {side, 3, 1001}, {side, 7, 5}, {side, 100, 3}}) {
        ASSERT_TRUE(count(2, matrix_view(bytes, rows, cols, cols, batches), shift)) << rows << " x " << cols;
      }
    }
  }
  EXPECT_GE(served[0], 200);
  EXPECT_GE(served[1], 200);
  EXPECT_GE(served[2], 150);
}

// A single matrix, packed on both sides.
Transposition packed_matrix(int bytes, std::int64_t rows, std::int64_t cols) {
  Transposition matrix;
  matrix.element_bytes = bytes;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.src_row_stride = cols;
  matrix.src_col_stride = 1;
  matrix.dst_col_stride = rows;
  return matrix;
}

// Wavefronts of an average access of a kind.
template <class Program>
double average_wavefronts(const typename Program::Arguments& args, SharedAccess access) {
  RequestCounter counter;
  run_blocks<Program>(args, counter);
  double wavefronts = 0;
  double requests = 0;
  for (const RequestCount& count : counter.counts()) {
    if (count.access != access) continue;
    wavefronts += static_cast<double>(count.actual);
    requests += static_cast<double>(count.requests);
  }
  return wavefronts / requests;
}

// Of loads, of 32 bytes, of the gather of few rows.
template <int kElementBytes>
double wavefronts_of_few_rows(std::int64_t rows) {
  using Program = FlatProgram<kElementBytes, FlatRun::kColumns>;
  const Transposition matrix = packed_matrix(kElementBytes, rows, (std::int64_t{1} << 20) / rows / 16 * 16);
  return average_wavefronts<Program>(Program::make_arguments(matrix, nullptr, nullptr), SharedAccess::kLoad);
}

TEST(Flat, SegmentsOfFewRowsSpreadTheLanesOverTheBanks) {
  for (std::int64_t rows = 5; rows <= 31; rows += 2) {
    EXPECT_LE(wavefronts_of_few_rows<1>(rows), 2.5) << rows << " rows of bytes";
    EXPECT_LE(wavefronts_of_few_rows<2>(rows), 2.8) << rows << " rows of 2 bytes";
  }
}

// Few rows and small matrices, in pieces of 16 and of 4 bytes; whole and partial runs and vectors, at chunks and
TEST_P(Programs, ScatterServesFewRowsAndSmallMatricesInWholeWords) {
  const int bytes = GetParam();
  const int word = bytes <= 4 ? 4 / bytes : 1;
  int served[2] = {};
  const auto count = [&](int kind, View view, int shift, int dst_shift) {
    view.offset_bytes = shift * 4;
    view.dst_offset_bytes = dst_shift * 4;
    bool was_served = false;
    const auto result = run_forced(view, Method::kAuto, Tile::kScatter, &was_served);
    served[kind] += was_served ? 1 : 0;
    const bool has_chunks = shift % 4 == 0 && view.size[1] * bytes % 16 == 0 && view.stride[2] * bytes % 16 == 0;
    if (was_served != (bytes == 1 || (bytes <= 4 && has_chunks))) {
      return ::testing::AssertionFailure() << view.describe() << (was_served ? " was served" : " was refused");
    }
    return result;
  };
  for (const int words : {2, 3, 4, 5, 6, 8, 12, 25, 32}) {
    const int side = words * word;
    for (const int more : {0, 1, 3, 4, 8}) {
      const int length = (40960 / side / bytes / word / 4 * 4 + more) * word;
      for (const int shift : {0, 1, 3, 4}) {
        for (const int batches : {1, 2}) {
          ASSERT_TRUE(count(0, matrix_view(bytes, side, length, length + shift * word, batches), shift, shift / 2));
        }
      }
    }
    for (const int shift : {0, 1, 2, 4}) {
      for (const auto& [rows, cols, batches] :
           {std::tuple{side, side, 37}, {2 * word, side, 1001}, {side, 5 * word, 9}, {side, 4 * word, 33}}) {
        ASSERT_TRUE(count(1, matrix_view(bytes, rows, cols, cols, batches), shift, 3 * shift));
      }
    }
  }
  EXPECT_EQ(served[0], bytes == 1 ? 360 : bytes <= 4 ? 108 : 0);
  EXPECT_EQ(served[1], bytes == 1 ? 144 : bytes <= 4 ? 34 : 0);
}

// Bytes of small matrices one by one, whatever their columns and addresses.
TEST(ByteScatter, ServesSmallMatricesOfRowsThatCutAWord) {
  for (const int rows : {2, 3, 5, 7, 14, 17, 31, 35, 49, 66, 101, 126, 130}) {
    for (const int cols : {2, 3, 4, 5, 7, 8, 13, 35, 49, 101}) {
      for (const int shift : {0, 1, 2, 3, 7}) {
        View view = matrix_view(1, rows, cols, cols, 40000 / rows / cols + shift);
        view.offset_bytes = shift;
        view.dst_offset_bytes = 3 * shift;
        bool was_served = false;
        ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kScatter, &was_served));
        ASSERT_TRUE(was_served) << view.describe();
      }
    }
  }
}

TEST(ByteScatter, ServesRowsThatAreOneOrOverlap) {
  for (const int pitch : {0, 2, 3, 7}) {
    for (const int shift : {0, 1, 2, 3}) {
      View view = matrix_view(1, 33, 2000, pitch, 3);
      view.offset_bytes = shift;
      view.dst_offset_bytes = shift;
      bool was_served = false;
      ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kScatter, &was_served));
      ASSERT_TRUE(was_served) << view.describe();
    }
  }
}

// Rows four times an odd number, whose columns cut a word.
TEST(ByteScatter, ServesRowsOfWordsWithFourLanesAColumn) {
  for (const int rows : {68, 100, 508}) {
    for (const int cols : {23, 25, 49, 275}) {
      for (const int shift : {0, 1, 7}) {
        View view = matrix_view(1, rows, cols, cols, 3);
        view.offset_bytes = shift;
        view.dst_offset_bytes = 3 * shift;
        bool was_served = false;
        ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kScatter, &was_served));
        ASSERT_EQ(was_served, cols >= 25 && byte_row_lanes(rows, cols) == 4) << view.describe();
      }
    }
  }
  EXPECT_EQ(byte_row_lanes(72, 275), 0) << "would take eight lanes";
}

// Of stores of single bytes into the image of one block.
template <int kRowLanes>
double wavefronts_of_scattering(std::int64_t rows) {
  using Program = ByteScatterProgram<kRowLanes>;
  ScatterArguments args = Program::make_arguments(packed_matrix(1, rows, 200000), nullptr, nullptr);
  args.block_count = 1;
  return average_wavefronts<Program>(args, SharedAccess::kStore);
}

TEST(ByteScatter, LanesThatShareAColumnTakeTheBanksBetween) {
  EXPECT_GT(wavefronts_of_scattering<1>(66), 1.8);
  EXPECT_LT(wavefronts_of_scattering<2>(66), 1.1);
  EXPECT_GT(wavefronts_of_scattering<1>(276), 2.5);
  EXPECT_LT(wavefronts_of_scattering<4>(276), 1.1);
  EXPECT_LT(wavefronts_of_scattering<1>(265), 1.1);
}

TEST(ByteScatter, ServesFewRowsThatCutAWord) {
  for (const int rows : {2, 3, 5, 7, 14, 31, 49, 66, 68, 97, 126, 129, 191, 265, 276, 511}) {
    for (const int cols : {40000 / rows + 60, 80000 / rows, 80000 / rows + 1}) {
      for (const int padding : {0, 1, 5}) {
        View view = matrix_view(1, rows, cols, cols + padding, 2);
        view.offset_bytes = padding + 1;
        view.dst_offset_bytes = padding;
        bool was_served = false;
        ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kScatter, &was_served));
        ASSERT_TRUE(was_served) << view.describe();
      }
    }
  }
}

TEST_P(Programs, ScatterRefusesSidesAndAddressesThatCutAWord) {
  const int bytes = GetParam();
  const int rows = max_of(48 / bytes, 3);
  std::vector<View> views = {matrix_view(bytes, rows, 1024, 1025),     matrix_view(bytes, rows, 1025, 1028),
                             matrix_view(bytes, rows + 1, 1024, 1024), matrix_view(bytes, 1024, 12, 12),
                             matrix_view(bytes, rows, 1024, 1024),     matrix_view(bytes, rows, 1024, 1024)};
  views[4].offset_bytes = bytes;
  views[5].dst_offset_bytes = bytes;
  for (std::size_t i = 0; i < views.size(); ++i) {
    bool was_served = true;
    ASSERT_TRUE(run_forced(views[i], Method::kAuto, Tile::kScatter, &was_served));
    // Rows of bytes that cut a word go byte by byte; elements of 4 bytes are words themselves.
    EXPECT_EQ(was_served, (bytes == 1 && i == 2) || (bytes == 4 && (i == 2 || i == 5))) << views[i].describe();
  }
}

TEST_P(Programs, FlatRefusesWhatIsLongOrNotPacked) {
  const int bytes = GetParam();
  for (const View& view : {matrix_view(bytes, 1024, 1024, 1024), matrix_view(bytes, 4096, 8, 9)}) {
    bool was_served = true;
    ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kFlat, &was_served));
    EXPECT_FALSE(was_served);
  }
}

TEST_P(Programs, TransposeStridedAndExpandedViews) {
  const int bytes = GetParam();
  View every_third_column = matrix_view(bytes, 40, 37, 150);
  every_third_column.stride[1] = 3;
  View expanded_rows = matrix_view(bytes, 64, 96, 0);
  View many_outer;
  many_outer.element_bytes = bytes;
  many_outer.size = {2, 3, 33, 2, 3, 35};
  many_outer.stride = {100000, 30000, 1, 9000, 2500, 40};
  for (const View& view : {every_third_column, expanded_rows, many_outer}) {
    for (const Method layout : kLayouts) {
      bool was_served = false;
      ASSERT_TRUE(run_forced(view, layout, Tile::kScalar32, &was_served)) << view.describe();
      EXPECT_TRUE(was_served) << view.describe();
    }
  }
}

TEST_P(Programs, GatherServesEverything) {
  const int bytes = GetParam();
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 7}, {7, 1}, {3, 1025}, {1025, 3}, {33, 65}}) {
    for (int shift = 0; shift < 3; ++shift) {
      View view = matrix_view(bytes, rows, cols, cols + shift, 2);
      view.offset_bytes = shift * bytes;
      ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kDirect));
    }
  }
}

// Runs of four elements end and begin dimensions anywhere, at every distance from the multiples they are stored at.
TEST_P(Programs, GatherWalksOverTheEndsOfDimensions) {
  const int bytes = GetParam();
  for (const std::vector<std::int64_t>& size :
       {std::vector<std::int64_t>{5}, {3, 2}, {2, 3, 1, 2}, {99, 2, 2}, {2, 2, 2, 2, 3}, {7, 3, 5, 2, 2, 2}}) {
    for (int shift = 0; shift < 4; ++shift) {
      View view;
      view.element_bytes = bytes;
      view.size = size;
      view.dst_offset_bytes = shift * bytes;
      // The reverse order of dimensions, with gaps.
      std::int64_t stride = 1 + shift % 2;
      for (const std::int64_t extent : size) {
        view.stride.push_back(stride);
        stride *= extent + 1;
      }
      ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kDirect)) << view.describe();
    }
  }
}

// More dimensions than the usual arguments hold, which no fusion removes.
TEST_P(Programs, GatherServesManyDimensions) {
  View view;
  view.element_bytes = GetParam();
  std::int64_t stride = 1;
  for (int i = 0; i < 11; ++i) {
    view.size.push_back(2);
    view.stride.push_back(stride);
    stride *= 3;
  }
  ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kDirect));
}

TEST_P(Programs, GatherRepeatsElementsInVectors) {
  const int bytes = GetParam();
  for (const std::int64_t repeats : {1, 2, 16, 17, 64, 4096}) {
    for (const int shift : {0, 1}) {
      View view;
      view.element_bytes = bytes;
      view.size = {7, 65, repeats};
      view.stride = {130, 2, 0};
      view.offset_bytes = shift * bytes;
      view.dst_offset_bytes = shift * bytes;
      ASSERT_TRUE(run_forced(view, Method::kAuto, Tile::kDirect));
    }
  }
}

TEST(GatherPieces, MakeUpTheWholeProblem) {
  const View view = matrix_view(4, 37, 53, 61, 5);
  Arena arena(view);
  const Problem problem = arena.problem();
  HostMemory memory = arena.memory();
  int pieces = 0;
  for_each_piece(problem, 100, [&](const Problem& piece, std::int64_t src_offset, std::int64_t dst_offset) {
    EXPECT_LE(piece.element_count(), 100);
    run_gather_program<4>(piece, arena.src() + src_offset, arena.dst() + dst_offset, memory);
    ++pieces;
    return 0;
  });
  EXPECT_GE(pieces, 5 * 37 * 53 / 100);
  Plan already_run;
  already_run.route = Route::kNothing;
  EXPECT_TRUE(arena.run(already_run, problem));
}

TEST(GatherPieces, StopAtTheFirstFailure) {
  const View view = matrix_view(4, 16, 16, 16);
  const Problem problem = Arena(view).problem();
  int calls = 0;
  const int status =
      for_each_piece(problem, 64, [&](const Problem&, std::int64_t, std::int64_t) { return ++calls == 2 ? 7 : 0; });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(calls, 2);
}

// A block's tile is found by 64-bit offsets: a pitch of 2^31 elements, checked by addresses alone.
TEST(Locate, ReachesBeyond32Bits) {
  using Program = TileProgram<Scalar32Policy<1>, LayoutsFor<Scalar32Policy<1>>::Xor>;
  Transposition huge = packed_matrix(1, 46341, 46341);
  huge.src_row_stride = std::int64_t{1} << 31;
  const TileArguments args = Program::make_arguments(huge, nullptr, nullptr);
  const std::int64_t blocks = args.block_count;
  EXPECT_EQ(blocks, 1449 * 1449);
  const auto last = Program::locate(args, static_cast<std::uint32_t>(blocks - 1));
  EXPECT_EQ(last.rows, 46341 - 1448 * 32);
  EXPECT_EQ(last.cols, 46341 - 1448 * 32);
  EXPECT_EQ(last.src_offset, (std::int64_t{1} << 31) * 1448 * 32 + 1448 * 32);
  EXPECT_EQ(last.dst_offset, std::int64_t{46341} * 1448 * 32 + 1448 * 32);
}

// A grid of row tiles by column tiles holds the tiles of the numbered blocks, in their order.
TEST(Locate, FindsTheSameTileByNumberAndByPlace) {
  using Program = TileProgram<Scalar32Policy<2>, LayoutsFor<Scalar32Policy<2>>::Xor, MatrixArguments>;
  const MatrixArguments args = Program::make_arguments(packed_matrix(2, 462, 1025), nullptr, nullptr);
  const std::uint32_t row_tiles = args.row_tiles.divisor;
  ASSERT_EQ(static_cast<std::uint32_t>(args.block_count) % row_tiles, 0u);
  for (std::uint32_t y = 0; y < args.block_count / row_tiles; ++y) {
    for (std::uint32_t x = 0; x < row_tiles; ++x) {
      const auto numbered = Program::locate(args, y * row_tiles + x);
      const auto placed = Program::locate(args, TilePosition{x, y, args.src, args.dst});
      ASSERT_EQ(numbered.src_offset, placed.src_offset);
      ASSERT_EQ(numbered.dst_offset, placed.dst_offset);
      ASSERT_EQ(numbered.rows, placed.rows);
      ASSERT_EQ(numbered.cols, placed.cols);
    }
  }
}

TEST(Locate, TakesShortArgumentsOnlyWhere32BitsAndAGridReach) {
  EXPECT_TRUE(is_near_matrix(packed_matrix(1, 30000, 60000)));
  EXPECT_FALSE(is_near_matrix(packed_matrix(2, 30000, 60000))) << "3.6 GB";
  EXPECT_TRUE(is_near_matrix(packed_matrix(1, 32, 8 * 65535)));
  EXPECT_FALSE(is_near_matrix(packed_matrix(1, 32, 8 * 65535 + 1))) << "more column tiles than a grid has";
  Transposition columns = packed_matrix(1, 1 << 20, 3);
  columns.outer_rank = 1;
  columns.outer_size[0] = 600;
  columns.outer_src_stride[0] = columns.outer_dst_stride[0] = 3 << 20;
  EXPECT_FALSE(is_near_matrix(columns));
  EXPECT_TRUE(is_near_batch(columns));
  columns.outer_size[0] = 700;
  EXPECT_FALSE(is_near_batch(columns)) << "2.2 GB";
}

// Counts loads by address, without memory behind the addresses.
struct CountingMemory {
  std::int64_t whole_chunks = 0;
  std::int64_t single_bytes = 0;
  void copy_window_to_shared(int, int, const unsigned char*) { ++whole_chunks; }
  void await_copies() const {}
  void issue_loads() const {}
  template <class T>
  T load_global(const unsigned char*) {
    ++single_bytes;
    return T{};
  }
  template <class T>
  void store_shared(int, int, const T&) {}
};

// 6 GB of bytes at an odd pitch: only the very last chunk may be loaded byte by byte.
TEST(Windows, OfAHugeInputAreCutAtItsEndAlone) {
  using Program = WindowProgram<WindowPolicy<1>>;
  const Transposition huge = packed_matrix(1, 77777, 77777);
  const auto* src = reinterpret_cast<const unsigned char*>(std::uintptr_t{1} << 40);
  const TileArguments args = Program::make_arguments(huge, src, nullptr);
  const auto single_bytes_of = [&](std::int64_t block) {
    const auto tile = Program::locate(args, static_cast<std::uint32_t>(block));
    CountingMemory memory;
    for (int thread = 0; thread < Program::kThreads; ++thread) Program::load(memory, args, tile, thread);
    EXPECT_GT(memory.whole_chunks, 0);
    return memory.single_bytes;
  };
  const std::int64_t blocks = args.block_count;
  for (const std::int64_t block : {std::int64_t{0}, std::int64_t{1}, blocks / 3, blocks / 2, blocks - 700}) {
    EXPECT_EQ(single_bytes_of(block), 0) << "block " << block;
  }
  EXPECT_EQ(single_bytes_of(blocks - 1), std::int64_t{77777} * 77777 % 16);
}

TEST(Windows, LoadNoHaloWhereOutputRowsBeginWithASegment) {
  using Program = WindowProgram<WindowPolicy<4>>;
  const auto chunks_of_a_row = [](std::int64_t rows) {
    const TileArguments args = Program::make_arguments(packed_matrix(4, rows, 128), nullptr, nullptr);
    const auto tile = Program::locate(args, 1);
    CountingMemory memory;
    for (int thread = 0; thread < Program::kThreads; ++thread) Program::load(memory, args, tile, thread);
    return static_cast<double>(memory.whole_chunks) / (128 * 4 / 16);
  };
  EXPECT_EQ(chunks_of_a_row(1024), window_rows(4));
  EXPECT_EQ(chunks_of_a_row(1025), window_rows(4) + 8);
}

TEST(HostMemory, RefusesWhatAKernelMustNotDo) {
  alignas(16) unsigned char bytes[64] = {};
  HostMemory memory({bytes, bytes + 32}, {bytes + 32, bytes + 64});
  memory.enter_block(0, 16);
  EXPECT_THROW(memory.load_global<Opaque<4>>(bytes + 30), std::out_of_range);
  EXPECT_THROW(memory.load_global<Opaque<4>>(bytes + 2), std::out_of_range);
  EXPECT_THROW(memory.store_global(bytes, Opaque<4>{}), std::out_of_range);
  EXPECT_THROW(memory.store_shared(0, 14, Opaque<4>{}), std::out_of_range);
  EXPECT_THROW(memory.load_shared<Opaque<4>>(0, 2), std::out_of_range);
}

}  // namespace
}  // namespace swizzle
