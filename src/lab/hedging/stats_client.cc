#include "lab/hedging/stats_client.h"

#include <utility>

namespace tailward::lab {

http::Request get(std::string target) {
  http::Request request;
  request.method = "GET";
  request.target = std::move(target);
  request.fields.add("Host", "localhost");
  return request;
}

void StatsClient::request(std::string target, Done done) {
  done_ = std::move(done);
  body_.clear();
  status_ = 0;
  exchange_ = std::make_unique<net::Exchange>(pool_, *this);
  exchange_->start(get(std::move(target)));
}

void StatsClient::on_end() { std::exchange(done_, {})(status_ == 200); }

void StatsClient::on_error(Error, bool) { std::exchange(done_, {})(false); }

}  // namespace tailward::lab
