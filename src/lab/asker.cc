#include "lab/asker.h"

#include <utility>

namespace tailward::lab {

http::Request get(std::string target) {
  http::Request request;
  request.method = "GET";
  request.target = std::move(target);
  request.fields.add("Host", "localhost");
  return request;
}

void Asker::ask(std::string target, Done done) {
  done_ = std::move(done);
  body_.clear();
  status_ = 0;
  exchange_ = std::make_unique<net::Exchange>(pool_, *this);
  exchange_->start(get(std::move(target)));
}

void Asker::on_end() { std::exchange(done_, {})(status_ == 200); }

void Asker::on_error(Error, bool) { std::exchange(done_, {})(false); }

}  // namespace tailward::lab
