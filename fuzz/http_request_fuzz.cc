// Requests: the same however they are cut, and the same again after our serialiser wrote them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cuts.h"
#include "http/codec.h"
#include "http/testing.h"

namespace {

namespace http = tailward::http;
using http::testing::run_requests;
using tailward::fuzz::without_framing;

void check_written_again(const http::Request& read) {
  std::string wire;
  http::append_head(wire, read);
  const auto outcome = run_requests(wire, {});
  TAILWARD_CHECK(outcome.heads.size() == 1);
  TAILWARD_CHECK(http::testing::describe(without_framing(outcome.heads[0])) ==
                 http::testing::describe(without_framing(read)));
  http::Request forwarded = read;
  http::remove_hop_by_hop(forwarded.fields);
  wire.clear();
  http::append_head(wire, forwarded);
  TAILWARD_CHECK(run_requests(wire, {}).heads.size() == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  http::Limits limits;  // small ones, so that they are met
  limits.head_bytes = 1024;
  limits.start_line_bytes = 256;
  limits.fields = 16;
  limits.body_bytes = 2048;
  const auto whole = run_requests(bytes, {}, limits);
  TAILWARD_CHECK(run_requests(bytes, tailward::fuzz::some_cuts(bytes), limits) == whole);
  if (bytes.size() <= 512) {
    TAILWARD_CHECK(run_requests(bytes, http::testing::every_byte(bytes), limits) == whole);
  }
  for (const http::Request& request : whole.heads) check_written_again(request);
  return 0;
}
