// Responses: the same however they are cut, and the same again after our serialiser wrote them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cuts.h"
#include "http/codec.h"
#include "http/testing.h"

namespace {

namespace http = tailward::http;
using http::testing::run_responses;
using tailward::fuzz::without_framing;
using Methods = std::vector<std::string_view>;

void check_written_again(const http::Response& read, const Methods& methods) {
  std::string wire;
  http::append_head(wire, read);
  const auto outcome = run_responses(wire, {}, methods);
  TAILWARD_CHECK(outcome.heads.size() == 1);
  TAILWARD_CHECK(http::testing::describe(without_framing(outcome.heads[0])) ==
                 http::testing::describe(without_framing(read)));
}

void check(std::string_view bytes, const Methods& methods, bool eof) {
  http::Limits limits;  // small ones, so that they are met
  limits.head_bytes = 1024;
  limits.start_line_bytes = 256;
  limits.fields = 16;
  limits.body_bytes = 2048;
  const auto whole = run_responses(bytes, {}, methods, eof, limits);
  TAILWARD_CHECK(run_responses(bytes, tailward::fuzz::some_cuts(bytes), methods, eof, limits) ==
                 whole);
  if (bytes.size() <= 512) {
    TAILWARD_CHECK(run_responses(bytes, http::testing::every_byte(bytes), methods, eof, limits) ==
                   whole);
  }
  for (std::size_t i = 0; i < whole.heads.size(); ++i) {
    const std::string_view method = i < methods.size() ? methods[i] : "GET";
    check_written_again(whole.heads[i], {method});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, {}, true);
  check(bytes, {"HEAD", "GET", "HEAD", "CONNECT"}, false);
  return 0;
}
