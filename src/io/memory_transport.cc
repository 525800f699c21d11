#include "io/memory_transport.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"

namespace tailward::io {
namespace {

HostPort normalised(const HostPort& endpoint) {
  const bool local = endpoint.host.empty() || endpoint.host == "localhost";
  return local ? HostPort{"127.0.0.1", endpoint.port} : endpoint;
}

tl::unexpected<Error> reset_error() {
  return fail(ErrorKind::kDisconnected, "the connection was reset");
}

// One direction of a connection: from the writer's spans through the pieces on their way to the
// reader.
struct Path {
  enum class Mark { kNone, kEnd, kClosed, kReset };
  struct Piece {
    TimePoint arrives;
    std::string bytes;
    Mark mark;
  };

  PathFaults faults;

  std::span<const char> first, second;
  Stream::WriteCallback write_done;
  std::uint64_t taken = 0;
  bool writer_finished = false;
  bool silent = false;  // nothing more gets through: stalled, or the end was already sent
  bool unwritable = false;
  Timer write_event;

  std::deque<Piece> flying;
  std::size_t held = 0;  // bytes flying and arrived
  Timer arrival_event;

  std::string arrived;
  std::size_t read_at = 0;
  bool ended = false;
  bool broken = false;
  std::span<char> into;
  Stream::ReadCallback read_done;
  Timer read_event;

  [[nodiscard]] std::size_t unread() const { return arrived.size() - read_at; }
};

// Both directions; shared by the two streams. paths_[side] is what `side` writes.
class MemoryPipe : public std::enable_shared_from_this<MemoryPipe> {
 public:
  MemoryPipe(Timers& timers, std::size_t capacity, const ConnectionFaults& faults)
      : timers_(timers), capacity_(capacity) {
    paths_[0].faults = faults.to_server;
    paths_[1].faults = faults.to_client;
  }

  void read(int side, std::span<char> into, Stream::ReadCallback done) {
    Path& path = paths_[1 - side];
    TAILWARD_CHECK(!path.read_done);
    TAILWARD_CHECK(!into.empty());
    path.into = into;
    path.read_done = std::move(done);
    if (readable(path)) path.read_event = event(&MemoryPipe::complete_read, 1 - side);
  }

  void write(int side, std::span<const char> first, std::span<const char> second,
             Stream::WriteCallback done) {
    Path& path = paths_[side];
    TAILWARD_CHECK(!path.write_done);
    TAILWARD_CHECK(!path.writer_finished);
    path.first = first;
    path.second = second;
    path.write_done = std::move(done);
    take(side);
  }

  void finish_writing(int side) {
    Path& path = paths_[side];
    if (std::exchange(path.writer_finished, true)) return;
    if (!path.write_done) send(side, {}, Path::Mark::kEnd);
  }

  // The stream of `side` is gone.
  void close(int side) {
    Path& out = paths_[side];
    Path& in = paths_[1 - side];
    // The callbacks may own what comes back here when it is destroyed.
    const auto dropped_write = std::exchange(out.write_done, {});
    const auto dropped_read = std::exchange(in.read_done, {});
    out.write_event.cancel();
    in.read_event.cancel();
    out.first = out.second = {};
    // As TCP does it: closing with data unread sends a reset instead of a FIN.
    const bool leaves_bytes = in.held > 0;
    in.arrived.clear();
    in.read_at = 0;
    reader_gone_[1 - side] = true;
    send(side, {}, leaves_bytes ? Path::Mark::kReset : Path::Mark::kClosed);
  }

 private:
  using Step = void (MemoryPipe::*)(int);

  Timer event(Step step, int direction, Duration delay = Duration{0}) {
    return timers_.after(delay, [weak = weak_from_this(), step, direction] {
      // Both streams may be gone by the time of the event.
      if (const std::shared_ptr<MemoryPipe> link = weak.lock()) ((*link).*step)(direction);
    });
  }

  static bool readable(const Path& path) { return path.unread() > 0 || path.ended || path.broken; }

  // Moves bytes from the writer into the pipe, as far as there is room and no fault is in the way.
  void take(int direction) {
    Path& path = paths_[direction];
    const PathFaults& faults = path.faults;
    while (!path.unwritable && !(path.first.empty() && path.second.empty())) {
      if (path.taken >= faults.write_error_after) {
        path.unwritable = true;
        break;
      }
      std::span<const char>& from = path.first.empty() ? path.second : path.first;
      std::size_t count = from.size();
      const auto stop_at = [&](std::uint64_t limit) {
        if (limit > path.taken) count = std::min<std::uint64_t>(count, limit - path.taken);
      };
      stop_at(faults.write_error_after);
      if (!at_limit(direction)) {
        count = std::min(count, capacity_ - std::min(capacity_, path.held));
        // No room: complete_read() comes back here once the reader has made some.
        if (count == 0) return;
        // Bytes up to the fault's place still get through, exactly.
        stop_at(faults.stall_after);
        stop_at(faults.reset_after);
        stop_at(faults.finish_after);
        send(direction, std::string(from.data(), count), Path::Mark::kNone);
      }
      path.taken += count;
      from = from.subspan(count);
    }
    at_limit(direction);
    if (path.write_done && !path.write_event.armed()) {
      path.write_event = event(&MemoryPipe::complete_write, direction);
    }
  }

  // Puts the fault into effect whose place has been reached; true when nothing more gets through.
  bool at_limit(int direction) {
    Path& path = paths_[direction];
    if (path.silent) return true;
    if (path.taken >= path.faults.reset_after) send(direction, {}, Path::Mark::kReset);
    if (path.taken >= path.faults.finish_after) send(direction, {}, Path::Mark::kEnd);
    if (path.taken >= path.faults.stall_after) path.silent = true;
    return path.silent;
  }

  void send(int direction, std::string bytes, Path::Mark mark) {
    Path& path = paths_[direction];
    if (path.silent && mark != Path::Mark::kClosed && mark != Path::Mark::kReset) return;
    if (path.taken >= path.faults.stall_after && bytes.empty()) return;
    if (mark != Path::Mark::kNone) path.silent = true;
    if (reader_gone_[direction]) return;
    path.held += bytes.size();
    // One delay for all, so pieces never overtake each other.
    path.flying.push_back({timers_.now() + path.faults.delay, std::move(bytes), mark});
    if (!path.arrival_event.armed()) {
      path.arrival_event = event(&MemoryPipe::arrive, direction, path.faults.delay);
    }
  }

  void arrive(int direction) {
    Path& path = paths_[direction];
    while (!path.flying.empty() && path.flying.front().arrives <= timers_.now()) {
      Path::Piece piece = std::move(path.flying.front());
      path.flying.pop_front();
      if (reader_gone_[direction]) {
        path.held -= piece.bytes.size();
        continue;
      }
      path.arrived += piece.bytes;
      if (piece.mark == Path::Mark::kEnd || piece.mark == Path::Mark::kClosed) path.ended = true;
      if (piece.mark == Path::Mark::kClosed) break_path(1 - direction, false);
      if (piece.mark == Path::Mark::kReset) {
        break_path(direction, true);
        break_path(1 - direction, true);
      }
    }
    if (!path.flying.empty()) {
      path.arrival_event =
          event(&MemoryPipe::arrive, direction, path.flying.front().arrives - timers_.now());
    }
    if (reader_gone_[direction]) {
      take(direction);
    } else if (path.read_done && readable(path) && !path.read_event.armed()) {
      complete_read(direction);
    }
  }

  // Nobody will read what is written on this path any more; with `reset` its reader hears of it
  // too.
  void break_path(int direction, bool reset) {
    Path& path = paths_[direction];
    path.unwritable = true;
    if (path.write_done && !path.write_event.armed()) {
      path.write_event = event(&MemoryPipe::complete_write, direction);
    }
    if (!reset || std::exchange(path.broken, true)) return;
    if (path.read_done && !path.read_event.armed()) {
      path.read_event = event(&MemoryPipe::complete_read, direction);
    }
  }

  void complete_read(int direction) {
    Path& path = paths_[direction];
    if (!path.read_done) return;
    Stream::ReadCallback done = std::exchange(path.read_done, {});
    // A slice of 0 would mean the end of the data.
    const std::size_t count =
        std::min({path.into.size(), path.unread(), std::max<std::size_t>(path.faults.slice, 1)});
    if (count == 0) {
      if (path.broken && !path.ended) return done(reset_error());
      return done(std::size_t{0});
    }
    std::copy_n(path.arrived.data() + path.read_at, count, path.into.data());
    path.read_at += count;
    path.held -= count;
    if (path.read_at == path.arrived.size()) {
      path.arrived.clear();
      path.read_at = 0;
    }
    take(direction);
    done(count);
  }

  void complete_write(int direction) {
    Path& path = paths_[direction];
    if (!path.write_done) return;
    Stream::WriteCallback done = std::exchange(path.write_done, {});
    path.first = path.second = {};
    if (path.unwritable) return done(reset_error());
    if (path.writer_finished) send(direction, {}, Path::Mark::kEnd);
    done({});
  }

  Timers& timers_;
  std::size_t capacity_;
  Path paths_[2];
  bool reader_gone_[2] = {false, false};
};

class MemoryStream : public Stream {
 public:
  MemoryStream(std::shared_ptr<MemoryPipe> link, int side, HostPort peer,
               std::shared_ptr<std::size_t> open)
      : link_(std::move(link)), side_(side), peer_(std::move(peer)), open_(std::move(open)) {
    ++*open_;
  }
  ~MemoryStream() override {
    --*open_;
    link_->close(side_);
  }
  void read(std::span<char> buffer, ReadCallback done) override {
    link_->read(side_, buffer, std::move(done));
  }
  void write(std::span<const char> first, std::span<const char> second,
             WriteCallback done) override {
    link_->write(side_, first, second, std::move(done));
  }
  void finish_writing() override { link_->finish_writing(side_); }
  [[nodiscard]] HostPort peer() const override { return peer_; }

 private:
  std::shared_ptr<MemoryPipe> link_;
  int side_;
  HostPort peer_;
  std::shared_ptr<std::size_t> open_;
};

}  // namespace

class MemoryTransport::MemoryListener : public Listener {
 public:
  MemoryListener(MemoryTransport& transport, HostPort local, AcceptCallback accepted)
      : transport_(transport),
        local_(std::move(local)),
        accepted_(std::make_shared<AcceptCallback>(std::move(accepted))) {
    transport_.listeners_[to_string(local_)] = this;
  }
  ~MemoryListener() override { transport_.listeners_.erase(to_string(local_)); }
  [[nodiscard]] HostPort local() const override { return local_; }

  void offer(std::unique_ptr<Stream> stream) {
    backlog_.push_back(std::move(stream));
    if (!event_.armed()) arm();
  }

 private:
  void arm() {
    event_ = transport_.timers_.after(Duration{0}, [this] { accept_one(); });
  }
  void accept_one() {
    std::unique_ptr<Stream> stream = std::move(backlog_.front());
    backlog_.pop_front();
    if (!backlog_.empty()) arm();
    // The callback may destroy this listener.
    const std::shared_ptr<AcceptCallback> accepted = accepted_;
    (*accepted)(std::move(stream));
  }

  MemoryTransport& transport_;
  HostPort local_;
  std::shared_ptr<AcceptCallback> accepted_;
  std::deque<std::unique_ptr<Stream>> backlog_;
  Timer event_;
};

class MemoryTransport::MemoryConnecting : public Connecting {
 public:
  MemoryConnecting(MemoryTransport& transport, HostPort to, ConnectionFaults faults,
                   std::uint16_t from_port, ConnectCallback done)
      : transport_(transport),
        to_(std::move(to)),
        faults_(faults),
        from_port_(from_port),
        done_(std::move(done)) {
    if (faults_.unanswered) return;
    event_ = transport_.timers_.after(faults_.connect_delay, [this] { finish(); });
  }

 private:
  void finish() {
    ConnectCallback done = std::move(done_);
    const auto found = transport_.listeners_.find(to_string(to_));
    if (faults_.refuse || found == transport_.listeners_.end()) {
      return done(fail(ErrorKind::kDisconnected, to_string(to_) + " refused the connection"));
    }
    const auto link =
        std::make_shared<MemoryPipe>(transport_.timers_, transport_.options_.capacity, faults_);
    auto client = std::make_unique<MemoryStream>(link, 0, to_, transport_.open_streams_);
    found->second->offer(std::make_unique<MemoryStream>(link, 1, HostPort{"127.0.0.1", from_port_},
                                                        transport_.open_streams_));
    done(std::unique_ptr<Stream>(std::move(client)));
  }

  MemoryTransport& transport_;
  HostPort to_;
  ConnectionFaults faults_;
  std::uint16_t from_port_;
  ConnectCallback done_;
  Timer event_;
};

MemoryTransport::MemoryTransport(Timers& timers, FaultInjector* faults, Options options)
    : timers_(timers),
      faults_(faults),
      options_(options),
      open_streams_(std::make_shared<std::size_t>(0)) {
  TAILWARD_CHECK(options_.capacity > 0);
}

MemoryTransport::~MemoryTransport() { TAILWARD_CHECK(listeners_.empty()); }

Result<std::unique_ptr<Listener>> MemoryTransport::listen(const HostPort& at,
                                                          AcceptCallback accepted) {
  HostPort local = normalised(at);
  while (local.port == 0) {
    const HostPort candidate{local.host, next_port_++};
    if (candidate.port != 0 && !listeners_.contains(to_string(candidate))) local = candidate;
  }
  if (listeners_.contains(to_string(local))) {
    return fail(ErrorKind::kInvalid, to_string(local) + " is in use", "choose another port");
  }
  return std::unique_ptr<Listener>(
      std::make_unique<MemoryListener>(*this, std::move(local), std::move(accepted)));
}

std::unique_ptr<Connecting> MemoryTransport::connect(const HostPort& to, ConnectCallback done) {
  const std::uint64_t number = connects_++;
  const ConnectionFaults faults =
      faults_ == nullptr ? ConnectionFaults{} : faults_->on_connect(to, number);
  const auto from_port = static_cast<std::uint16_t>(1024 + number % 30'000);
  return std::make_unique<MemoryConnecting>(*this, normalised(to), faults, from_port,
                                            std::move(done));
}

Duration RandomFaults::draw_delay() {
  const auto below = static_cast<std::uint64_t>(odds_.delay_max.count());
  return below == 0 ? Duration{0} : Duration{static_cast<std::int64_t>(rng_.below(below))};
}

PathFaults RandomFaults::draw_path() {
  PathFaults faults;
  faults.delay = draw_delay();
  const auto place = [&](double odds) {
    return rng_.chance(odds) ? rng_.below(odds_.within) : PathFaults::kNowhere;
  };
  faults.stall_after = place(odds_.stall);
  faults.reset_after = place(odds_.reset);
  faults.finish_after = place(odds_.finish);
  faults.write_error_after = place(odds_.write_error);
  if (rng_.chance(odds_.slice)) faults.slice = 1 + static_cast<std::size_t>(rng_.below(16));
  return faults;
}

ConnectionFaults RandomFaults::on_connect(const HostPort&, std::uint64_t) {
  ConnectionFaults faults;
  faults.refuse = rng_.chance(odds_.refuse);
  faults.connect_delay = draw_delay();
  faults.to_server = draw_path();
  faults.to_client = draw_path();
  return faults;
}

}  // namespace tailward::io
