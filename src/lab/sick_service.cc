#include <optional>

#include "lab/process.h"
#include "lab/sick.h"

namespace tailward::lab {

class SickService::Impl {
 public:
  ~Impl() {
    // A client that waits for an answer stops waiting when the server goes.
    if (clients) clients->begin_stop();
    server.reset();
  }
  std::unique_ptr<net::Link> link;
  std::optional<ServerProcess> server;
  std::unique_ptr<SickClients> clients;
  std::string host;
};

SickService::SickService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SickService::~SickService() = default;

Result<std::unique_ptr<SickService>> SickService::start(const SickModel& model,
                                                        std::uint16_t port) {
  auto impl = std::make_unique<Impl>();
  impl->host = "127.0.0.1";
  if (model.over_link) {
    Result<std::unique_ptr<net::Link>> link = net::Link::create(model.link, model.seed);
    if (!link) return fail(link.error());
    impl->link = std::move(*link);
    impl->host = net::Link::address(net::Link::End::kServer);
  }
  const std::vector<std::string> arguments{"lab-sick-server",
                                           "--sick",
                                           std::string(to_string(model.cause)),
                                           "--seed",
                                           std::to_string(model.seed),
                                           "--severity",
                                           std::to_string(model.severity),
                                           "--at",
                                           io::to_string(io::HostPort{impl->host, port})};
  Result<void> began;
  const auto begin = [&] {
    Result<ServerProcess> server = ServerProcess::start(arguments);
    if (server) {
      impl->server.emplace(std::move(*server));
    } else {
      began = fail(server.error());
    }
  };
  // A child is born into the network namespace of the thread that makes it.
  if (impl->link) {
    Result<void> entered = impl->link->run_inside(net::Link::End::kServer, begin);
    if (!entered) return fail(entered.error());
  } else {
    begin();
  }
  if (!began) return fail(began.error());
  std::unique_ptr<SickService> service(new SickService(std::move(impl)));
  const io::HostPort at{service->host(), service->port()};
  Result<void> entered = service->run_at_client(
      [&] { service->impl_->clients = std::make_unique<SickClients>(model, at); });
  if (!entered) return fail(entered.error());
  return service;
}

int SickService::server_pid() const { return impl_->server->pid(); }
std::uint16_t SickService::port() const { return impl_->server->port(); }
std::string SickService::host() const { return impl_->host; }
const net::Link* SickService::link() const { return impl_->link.get(); }
SickClients::Counts SickService::counts() const { return impl_->clients->counts(); }
bool SickService::server_running() { return impl_->server->running(); }

Result<void> SickService::run_at_client(UniqueFunction<void()> task) {
  if (impl_->link) return impl_->link->run_inside(net::Link::End::kClient, std::move(task));
  task();
  return {};
}

}  // namespace tailward::lab
