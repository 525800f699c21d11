// Logs: whatever the bytes and the format, the same samples or the same refusal however they come,
// and figures that can be true of them. The first byte chooses the format.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cuts.h"
#include "plan/hdr.h"
#include "plan/testing.h"

namespace {

using namespace tailward::plan;
using tailward::Result;

const std::array<ReadOptions, 9>& choices() {
  static const std::array<ReadOptions, 9> kChoices{
      {{.format = "auto"},
       {.format = "list"},
       {.format = "csv", .column = "ms"},
       {.format = "csv", .column = "1"},
       {.format = "nginx"},
       {.format = "nginx:[$time_local] \"$request\" $upstream_response_time"},
       {.format = "envoy"},
       {.format = "hdr"},
       {.format = "hdr", .column = "a"}}};
  return kChoices;
}

// The bytes in pieces that end at the cuts.
ByteSource cut(std::string_view bytes, std::vector<std::size_t> cuts) {
  cuts.push_back(bytes.size());
  return [bytes, cuts = std::move(cuts), at = std::size_t{0}, next = std::size_t{0}](
             char* into, std::size_t size) mutable -> Result<std::size_t> {
    while (next < cuts.size() && cuts[next] <= at) ++next;
    if (next == cuts.size()) return std::size_t{0};
    const std::size_t count = std::min(size, cuts[next] - at);
    std::copy_n(bytes.data() + at, count, into);
    at += count;
    return count;
  };
}

void check_same(const Result<Reading>& a, const Result<Reading>& b) {
  TAILWARD_CHECK(a.has_value() == b.has_value());
  if (!a) {
    TAILWARD_CHECK(a.error().message == b.error().message && !a.error().message.empty());
    return;
  }
  TAILWARD_CHECK(a->lines == b->lines && a->latencies == b->latencies);
  TAILWARD_CHECK(a->skipped.lines == b->skipped.lines);
  TAILWARD_CHECK(a->understood == b->understood);
  TAILWARD_CHECK(a->samples.histogram.max() == b->samples.histogram.max());
  TAILWARD_CHECK(a->samples.resolution == b->samples.resolution);
}

void check_sane(const Reading& reading) {
  const auto& histogram = reading.samples.histogram;
  TAILWARD_CHECK(reading.latencies > 0 && reading.latencies == histogram.count());
  TAILWARD_CHECK(histogram.max() > tailward::Duration{0});
  if (reading.format != "hdr") {
    TAILWARD_CHECK(reading.latencies + reading.skipped.lines <= reading.lines);
    TAILWARD_CHECK(histogram.max() <= std::chrono::hours(24));
  }
  std::uint64_t fine = 0;
  for (const std::uint64_t count : reading.samples.fine.counts()) fine += count;
  TAILWARD_CHECK(fine <= reading.latencies);
}

// A histogram's inside is behind a checksum that no fuzzer guesses.
void check_histogram(std::string_view plain) {
  const testing::HdrWriter writer;
  const std::string inner = testing::compressed(plain, testing::kZlibWrap);
  std::uint64_t highest = 0;
  bool any = false;
  static_cast<void>(decode_hdr(writer.wrapped(inner), [&](const HdrCount& count) {
    TAILWARD_CHECK(count.times > 0 && count.low <= count.high);
    TAILWARD_CHECK(!any || count.low > highest);
    highest = count.high;
    any = true;
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] >= 'a' + choices().size()) {
    check_histogram(bytes);
    return 0;
  }
  const std::size_t choice = data[0] < 'a' ? data[0] % choices().size() : data[0] - 'a';
  const ReadOptions& options = choices()[choice];
  const Result<Reading> whole = read_latencies(bytes_of(bytes), options);
  check_same(whole, read_latencies(cut(bytes, tailward::fuzz::some_cuts(bytes)), options));
  if (whole) check_sane(*whole);
  return 0;
}
