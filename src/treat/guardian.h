// A small process that makes the changes and undoes them, whatever becomes of its starter.
//
// For each connection the order is: it notes the old values and says so, then it makes the change,
// then it undoes it. It undoes everything that is left when it is told to, when its starter ends in
// any way (kill -9 included: the socket between the two closes), and when its starter has been
// silent for too long. It has a session of its own, so that Ctrl-C does not reach it. Should it be
// killed itself, its starter undoes the changes.
//
// Thread safety: one thread. The destructor undoes what is left and waits for the process's end.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "probe/sockets.h"
#include "treat/undo_log.h"

namespace tailward::treat {

// Messages to a guardian come at least this often, or it takes its starter for stopped.
inline constexpr Duration kGuardianPatience = std::chrono::seconds(20);

// How often a non-sticky option is set again on each connection: every 10 ms, and less often with
// very many connections, so that it takes a small part of one core.
Duration refresh_period(std::size_t connections);

class Guardian {
 public:
  // Forks: call it early, while the process has one thread and few descriptors. `processes` must
  // outlive it. Errors: kOverloaded (no process or descriptor to be had).
  static Result<std::unique_ptr<Guardian>> start(const std::vector<probe::Process>& processes,
                                                 std::vector<Setting> settings,
                                                 Duration patience = kGuardianPatience);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Notes the old values. With kDone, `id` names the connection from now on; nothing is changed.
  StepResult track(const Target& target);
  StepResult apply(std::uint32_t id);
  StepResult restore(std::uint32_t id);
  // "I am still here." False when the guardian is lost; then call finish().
  bool ping();
  // Undoes everything, or leaves it if `keep`; and ends the guardian. Once.
  Rollback finish(bool keep);

  [[nodiscard]] int pid() const { return pid_; }
  // The guardian ended before its time, and finish() undid its work from here.
  [[nodiscard]] bool lost() const { return lost_; }

 private:
  struct Request;
  Guardian(int pid, probe::Descriptor socket, UndoLog mirror)
      : pid_(pid), socket_(std::move(socket)), mirror_(std::move(mirror)) {}

  static void serve(int socket, UndoLog log, Duration patience);
  template <class T>
  bool ask(const Request& request, T& response);
  [[nodiscard]] StepResult lost_result();
  void wait_for_end();

  int pid_;
  probe::Descriptor socket_;
  UndoLog mirror_;  // what it was told to do, for the case that it is lost
  bool lost_ = false;
  bool finished_ = false;
};

}  // namespace tailward::treat
