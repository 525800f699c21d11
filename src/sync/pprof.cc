#include "sync/pprof.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "sync/modules.h"
#include "sync/profile.pb.h"
#include "sync/symbols.h"

namespace tailward::sync {
namespace {

// The functions through which a caller reaches the lock: without them the frame that remains is the
// caller's. Matched against the whole name, arguments cut off.
constexpr std::string_view kDropFrames =
    "tailward::sync::ProfiledMutex::.*|tailward::sync::ShardedMutex<.*>::.*|"
    "std::(lock_guard|unique_lock|scoped_lock)<.*>::.*|~?(lock_guard|unique_lock|scoped_lock)";

class Builder {
 public:
  Builder();

  void describe(const ContentionSnapshot& snapshot);
  void add(const ContentionRow& row);
  // A sample without a stack, under a name of its own.
  void add(std::string_view name, std::uint64_t contentions, Duration wait);
  [[nodiscard]] std::string serialized();

 private:
  std::int64_t text(std::string_view string);
  std::uint64_t location(std::uintptr_t return_address);
  std::uint64_t function(const SourceLine& line);
  pprof::Mapping* mapping_of(std::uintptr_t address);
  pprof::Sample* sample(std::uint64_t contentions, Duration wait);

  pprof::Profile profile_;
  Symbols symbols_;
  std::vector<Module> modules_ = loaded_modules();
  std::unordered_map<std::string, std::int64_t> texts_;
  std::unordered_map<std::uintptr_t, std::uint64_t> locations_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;  // by name and file
  std::uint64_t next_location_ = 1;
};

Builder::Builder() {
  text("");  // entry 0, by the format
  for (const auto& [type, unit] : {std::pair{"contentions", "count"}, {"delay", "nanoseconds"}}) {
    pprof::ValueType* value = profile_.add_sample_type();
    value->set_type(text(type));
    value->set_unit(text(unit));
  }
  *profile_.mutable_period_type() = profile_.sample_type(0);
  profile_.set_drop_frames(text(kDropFrames));
  for (const Module& module : modules_) {
    pprof::Mapping* mapping = profile_.add_mapping();
    mapping->set_id(static_cast<std::uint64_t>(profile_.mapping_size()));
    mapping->set_memory_start(module.start);
    mapping->set_memory_limit(module.limit);
    mapping->set_file_offset(module.file_offset);
    mapping->set_filename(text(module.path));
    mapping->set_build_id(text(module.build_id));
    // Until an address of it is found without: then a reader may look for itself.
    mapping->set_has_functions(true);
    mapping->set_has_filenames(true);
    mapping->set_has_line_numbers(true);
    mapping->set_has_inline_frames(true);
  }
}

void Builder::describe(const ContentionSnapshot& snapshot) {
  profile_.set_time_nanos(snapshot.taken_unix_ns);
  profile_.set_duration_nanos(snapshot.covered.count());
  profile_.set_period(std::max<std::int64_t>(1, snapshot.sample_every));
  const ContentionTotals& totals = snapshot.totals;
  const auto ns = [](Duration duration) { return duration.count(); };
  profile_.add_comment(text(
      fmt::format("exact: {} contentions, {} ns waited, of it {} ns hand-over, longest {} ns",
                  totals.contentions, ns(totals.wait), ns(totals.handover), ns(totals.wait_max))));
  profile_.add_comment(
      text(fmt::format("exact: {} contended holds, {} ns held, {} ns charged",
                       totals.contended_holds, ns(totals.hold), ns(totals.charged))));
  profile_.add_comment(
      text(snapshot.sample_every == 0
               ? "no stacks were kept"
               : fmt::format("stacks: 1 in {} contentions, drawn at random, each counted {} times",
                             snapshot.sample_every, snapshot.sample_every)));
}

void Builder::add(const ContentionRow& row) {
  if (row.stack.empty()) {
    add("[unknown stack]", row.contentions, row.wait);
    return;
  }
  pprof::Sample* added = sample(row.contentions, row.wait);
  for (const std::uintptr_t address : row.stack) added->add_location_id(location(address));
}

void Builder::add(std::string_view name, std::uint64_t contentions, Duration wait) {
  pprof::Location* place = profile_.add_location();
  place->set_id(next_location_++);
  place->add_line()->set_function_id(function({std::string(name), "", "", 0, 0}));
  sample(contentions, wait)->add_location_id(place->id());
}

std::string Builder::serialized() { return profile_.SerializeAsString(); }

std::int64_t Builder::text(std::string_view string) {
  const auto [at, is_new] =
      texts_.try_emplace(std::string(string), static_cast<std::int64_t>(texts_.size()));
  if (is_new) profile_.add_string_table(at->first);
  return at->second;
}

std::uint64_t Builder::location(std::uintptr_t return_address) {
  const auto [at, is_new] = locations_.try_emplace(return_address, next_location_);
  if (!is_new) return at->second;
  // The call comes before the place it returns to, which may be another line or another function.
  const std::uintptr_t address = return_address - 1;
  pprof::Location* place = profile_.add_location();
  place->set_id(next_location_++);
  place->set_address(address);
  const std::vector<SourceLine> lines = symbols_.at(address);
  for (const SourceLine& line : lines) {
    pprof::Line* added = place->add_line();
    added->set_function_id(function(line));
    added->set_line(line.line);
  }
  if (pprof::Mapping* mapping = mapping_of(address); mapping != nullptr) {
    place->set_mapping_id(mapping->id());
    const bool with_file = !lines.empty() && !lines.back().file.empty();
    mapping->set_has_functions(mapping->has_functions() && !lines.empty());
    mapping->set_has_filenames(mapping->has_filenames() && with_file);
    mapping->set_has_line_numbers(mapping->has_line_numbers() && with_file);
    mapping->set_has_inline_frames(mapping->has_inline_frames() && with_file);
  }
  return place->id();
}

std::uint64_t Builder::function(const SourceLine& line) {
  const auto [at, is_new] =
      functions_.try_emplace({line.function, line.file}, functions_.size() + 1);
  if (is_new) {
    pprof::Function* added = profile_.add_function();
    added->set_id(at->second);
    added->set_name(text(line.function));
    added->set_system_name(text(line.linkage.empty() ? line.function : line.linkage));
    added->set_filename(text(line.file));
    added->set_start_line(line.function_line);
  }
  return at->second;
}

pprof::Mapping* Builder::mapping_of(std::uintptr_t address) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (address >= modules_[i].start && address < modules_[i].limit) {
      return profile_.mutable_mapping(static_cast<int>(i));
    }
  }
  return nullptr;
}

pprof::Sample* Builder::sample(std::uint64_t contentions, Duration wait) {
  pprof::Sample* added = profile_.add_sample();
  added->add_value(static_cast<std::int64_t>(contentions));
  added->add_value(wait.count());
  return added;
}

Result<std::string> gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;  // 32 KiB, with gzip's header
  constexpr int kMemory = 8;            // zlib's default
  z_stream stream{};
  if (bytes.size() > std::numeric_limits<uInt>::max() ||
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(ErrorKind::kInternal, "cannot compress the profile");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail(ErrorKind::kInternal, "cannot compress the profile");
  return packed;
}

}  // namespace

Result<std::string> pprof_bytes(const ContentionSnapshot& snapshot, ContentionView view) {
  Builder builder;
  builder.describe(snapshot);
  const ContentionRows& rows = snapshot.rows(view);
  for (const ContentionRow& row : rows.rows) builder.add(row);
  if (rows.lost.samples > 0) {
    builder.add("[stacks beyond the limit]", rows.lost.contentions, rows.lost.wait);
  }
  if (view == ContentionView::kHolders && snapshot.totals.handover > Duration::zero()) {
    builder.add("[hand-over: unlocked, the waiter not yet running]", 0, snapshot.totals.handover);
  }
  return gzip(builder.serialized());
}

Result<void> write_pprof(const ContentionProfile& profile, const std::string& path,
                         ContentionView view) {
  auto bytes = pprof_bytes(profile.snapshot(), view);
  if (!bytes) return fail(bytes.error().in(path));
  return write_file_atomically(path, *bytes);
}

}  // namespace tailward::sync
