// Locks that know what waiting for them costs, and the profile that says where the time went.
//
//   tailward::ContentionProfile profile;
//   tailward::ShardedMutex<16> locks(profile);
//   { const auto guard = locks.lock_for(order_id); … }
//   tailward::write_pprof(profile, "mutex.pb.gz");   // then: go tool pprof -top mutex.pb.gz
//
// Each of the headers below states thread safety, ownership, units and errors.
#pragma once

#include "sync/contention_profile.h"
#include "sync/pprof.h"
#include "sync/profiled_mutex.h"
#include "sync/sharded_mutex.h"

namespace tailward {

using sync::ContentionOptions;
using sync::ContentionProfile;
using sync::ContentionSnapshot;
using sync::ContentionTotals;
using sync::ContentionView;
using sync::ProfiledMutex;
using sync::ShardedMutex;
using sync::write_pprof;

}  // namespace tailward
