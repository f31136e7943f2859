// The bank report: private operators that show what the bank model sees, of a full tile or of any addresses. CPU only.
#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/host_runner.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

// The requests of one full tile of a tile policy, as its kernel makes them.
std::vector<TracedRequest> trace_tile(std::string_view op, std::string_view method, std::string_view tile,
                                      std::int64_t element_bytes) {
  const Method layout = check_method(op, method);
  const Tile tile_kind = check_tile(op, tile);
  TORCH_CHECK_VALUE(layout != Method::kAuto, op, ": expected a method that names a layout, got 'auto'");
  TORCH_CHECK_VALUE(has_layout(tile_kind), op, ": expected a tile that leaves a choice of layout, got '", tile, "'");
  TORCH_CHECK_VALUE(
      element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8 || element_bytes == 16, op,
      ": expected element_bytes to be 1, 2, 4, 8 or 16, got ", element_bytes);
  std::vector<TracedRequest> trace;
  dispatch_element_bytes(static_cast<int>(element_bytes), [&](auto bytes) {
    dispatch_tile_program<decltype(bytes)::value>(tile_kind, layout, [&](auto program) {
      using Program = decltype(program);
      trace = trace_full_tile<Program>();
    });
  });
  return trace;
}

// A row (is_load, width in bytes, wavefronts, ideal) for each request of a full tile.
at::Tensor tile_wavefronts(std::string_view method, std::string_view tile, std::int64_t element_bytes) {
  const auto trace = trace_tile("swizzle::_tile_wavefronts", method, tile, element_bytes);
  at::Tensor report = at::empty({static_cast<std::int64_t>(trace.size()), 4}, at::kLong);
  auto* row = report.mutable_data_ptr<std::int64_t>();
  for (const TracedRequest& request : trace) {
    const Wavefronts wavefronts = count_wavefronts(request.lanes);
    *row++ = request.is_load ? 1 : 0;
    *row++ = request.lanes.width_bytes;
    *row++ = wavefronts.actual;
    *row++ = wavefronts.ideal;
  }
  return report;
}

// A row (is_load, width in bytes, warp, a byte offset for each lane or -1) for each request of a full tile.
at::Tensor tile_accesses(std::string_view method, std::string_view tile, std::int64_t element_bytes) {
  const auto trace = trace_tile("swizzle::_tile_accesses", method, tile, element_bytes);
  at::Tensor accesses = at::empty({static_cast<std::int64_t>(trace.size()), 3 + kLanes}, at::kLong);
  auto* row = accesses.mutable_data_ptr<std::int64_t>();
  for (const TracedRequest& request : trace) {
    *row++ = request.is_load ? 1 : 0;
    *row++ = request.lanes.width_bytes;
    *row++ = request.warp;
    for (int lane = 0; lane < kLanes; ++lane) *row++ = request.lanes.active[lane] ? request.lanes.offset[lane] : -1;
  }
  return accesses;
}

void check_lanes(std::string_view op, const char* name, const at::Tensor& tensor, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.scalar_type() == dtype, op,
                    ": expected ", name, " to be a dense CPU tensor of dtype ", dtype, ", got dtype ",
                    tensor.scalar_type(), " and layout ", tensor.layout(), " on ", tensor.device());
  TORCH_CHECK_VALUE(tensor.dim() == 2 && tensor.size(1) == kLanes, op, ": expected ", name,
                    " to have shape (requests, ", kLanes, "), got ", tensor.sizes());
}

// One request a row of `addresses`.
std::vector<WarpRequest> read_requests(std::string_view op, const at::Tensor& addresses, std::int64_t width,
                                       const std::optional<at::Tensor>& active, bool is_store) {
  TORCH_CHECK_VALUE(width == 1 || width == 2 || width == 4 || width == 8 || width == 16, op,
                    ": expected width to be 1, 2, 4, 8 or 16 bytes, got ", width);
  check_lanes(op, "addresses", addresses, at::kLong);
  at::Tensor live;
  if (active) {
    check_lanes(op, "active", *active, at::kBool);
    TORCH_CHECK_VALUE(active->size(0) == addresses.size(0), op, ": expected active to have the shape of addresses, ",
                      addresses.sizes(), ", got ", active->sizes());
    live = active->contiguous();
  }
  const at::Tensor packed = addresses.contiguous();
  const auto* address = packed.const_data_ptr<std::int64_t>();
  const bool* is_live = active ? live.const_data_ptr<bool>() : nullptr;
  std::vector<WarpRequest> requests(static_cast<std::size_t>(addresses.size(0)));
  for (WarpRequest& request : requests) {
    request.width_bytes = static_cast<int>(width);
    request.is_store = is_store;
    for (int lane = 0; lane < kLanes; ++lane, ++address) {
      request.active[lane] = is_live ? *is_live++ : true;
      if (!request.active[lane]) continue;
      TORCH_CHECK_VALUE(*address >= 0 && *address <= INT32_MAX && *address % width == 0, op,
                        ": expected addresses to be multiples of the width, ", width, " bytes, in 0 to ", INT32_MAX,
                        ", got ", *address);
      request.offset[lane] = static_cast<std::int32_t>(*address);
    }
  }
  return requests;
}

// A row (wavefronts, ideal, lines) for each request.
at::Tensor bank_wavefronts(const at::Tensor& addresses, std::int64_t width, const std::optional<at::Tensor>& active,
                           bool is_store) {
  const auto requests = read_requests("swizzle::_bank_wavefronts", addresses, width, active, is_store);
  at::Tensor report = at::empty({static_cast<std::int64_t>(requests.size()), 3}, at::kLong);
  auto* row = report.mutable_data_ptr<std::int64_t>();
  for (const WarpRequest& request : requests) {
    const Wavefronts wavefronts = count_wavefronts(request);
    *row++ = wavefronts.actual;
    *row++ = wavefronts.ideal;
    *row++ = wavefronts.lines;
  }
  return report;
}

// (requests, lanes, words of an access, 3): the group in which a lane is served, a word that it wants, and the word's
// bank. All -1 for an inactive lane.
at::Tensor bank_words(const at::Tensor& addresses, std::int64_t width, const std::optional<at::Tensor>& active,
                      bool is_store) {
  const auto requests = read_requests("swizzle::_bank_words", addresses, width, active, is_store);
  const int words = words_per_access(static_cast<int>(width));
  at::Tensor result = at::full({static_cast<std::int64_t>(requests.size()), kLanes, words, 3}, -1, at::kLong);
  auto* entry = result.mutable_data_ptr<std::int64_t>();
  for (const WarpRequest& request : requests) {
    const LaneGroups groups = lane_groups(request);
    int group = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lane == groups.begin[group + 1]) ++group;
      for (int i = 0; i < words; ++i, entry += 3) {
        if (!request.active[lane]) continue;
        const std::int32_t word = request.offset[lane] / kWordBytes + i;
        entry[0] = group;
        entry[1] = word;
        entry[2] = bank_of(word);
      }
    }
  }
  return result;
}

// (requests, groups, banks): distinct words that each group of lanes wants from each bank.
at::Tensor bank_loads(const at::Tensor& addresses, std::int64_t width, const std::optional<at::Tensor>& active,
                      bool is_store) {
  const auto requests = read_requests("swizzle::_bank_loads", addresses, width, active, is_store);
  const int most_groups = kLanes / lanes_per_group(static_cast<int>(width));
  at::Tensor result = at::zeros({static_cast<std::int64_t>(requests.size()), most_groups, kBanks}, at::kLong);
  auto* row = result.mutable_data_ptr<std::int64_t>();
  for (const WarpRequest& request : requests) {
    const LaneGroups groups = lane_groups(request);
    for (int g = 0; g < groups.count; ++g) {
      const BankLoads loads = count_bank_loads(request, groups.begin[g], groups.begin[g + 1]);
      std::copy(std::begin(loads.words), std::end(loads.words), row + g * kBanks);
    }
    row += most_groups * kBanks;
  }
  return result;
}

// For each request, the least wavefronts of any layout that keeps chunks whole; addresses in the row-major tile.
at::Tensor least_of_any_layout(const at::Tensor& addresses, std::int64_t width, std::int64_t chunk_bytes,
                               const std::optional<at::Tensor>& active, bool is_store) {
  const auto requests = read_requests("swizzle::_least_wavefronts", addresses, width, active, is_store);
  TORCH_CHECK_VALUE(
      chunk_bytes >= width && chunk_bytes <= kMaxSwizzledRowBytes && is_power_of_two(static_cast<int>(chunk_bytes)),
      "swizzle::_least_wavefronts: expected chunk_bytes to be a power of two, at least the width, ", width, ", got ",
      chunk_bytes);
  at::Tensor result = at::empty({static_cast<std::int64_t>(requests.size())}, at::kLong);
  auto* entry = result.mutable_data_ptr<std::int64_t>();
  for (const WarpRequest& request : requests) *entry++ = least_wavefronts(request, static_cast<int>(chunk_bytes));
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CompositeExplicitAutograd, m) {
  if (!owns_operators()) return;
  m.impl("_tile_wavefronts", &tile_wavefronts);
  m.impl("_tile_accesses", &tile_accesses);
  m.impl("_bank_wavefronts", &bank_wavefronts);
  m.impl("_bank_words", &bank_words);
  m.impl("_bank_loads", &bank_loads);
  m.impl("_least_wavefronts", &least_of_any_layout);
}

}  // namespace swizzle
