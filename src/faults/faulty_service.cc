#include "faults/faulty_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "faults/server_process.h"

namespace tailward::faults {

class FaultyService::Impl {
 public:
  ~Impl() {
    // The server goes first: a client that waits for a response then stops waiting.
    if (clients) clients->begin_stop();
    server.reset();
  }
  std::unique_ptr<net::Link> link;
  std::optional<ServerProcess> server;
  std::unique_ptr<FaultClients> clients;
  std::string host;
};

FaultyService::FaultyService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FaultyService::~FaultyService() = default;

Result<std::unique_ptr<FaultyService>> FaultyService::start(const FaultModel& model,
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
  // A child process starts in the network namespace of the thread that starts it.
  if (impl->link) {
    Result<void> entered = impl->link->run_inside(net::Link::End::kServer, begin);
    if (!entered) return fail(entered.error());
  } else {
    begin();
  }
  if (!began) return fail(began.error());
  std::unique_ptr<FaultyService> service(new FaultyService(std::move(impl)));
  const io::HostPort at{service->host(), service->port()};
  Result<void> entered = service->run_at_client(
      [&] { service->impl_->clients = std::make_unique<FaultClients>(model, at); });
  if (!entered) return fail(entered.error());
  return service;
}

int FaultyService::server_pid() const { return impl_->server->pid(); }
std::uint16_t FaultyService::port() const { return impl_->server->port(); }
std::string FaultyService::host() const { return impl_->host; }
FaultClients::Counts FaultyService::counts() const { return impl_->clients->counts(); }
bool FaultyService::server_running() { return impl_->server->running(); }

Result<void> FaultyService::run_at_client(UniqueFunction<void()> task) {
  if (impl_->link) return impl_->link->run_inside(net::Link::End::kClient, std::move(task));
  task();
  return {};
}

}  // namespace tailward::faults
