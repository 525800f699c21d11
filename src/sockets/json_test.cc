#include "sockets/json.h"

#include <gtest/gtest.h>

#include "sockets/testing.h"

namespace tailward::sockets {
namespace {

using report::Json;

TEST(SocketsJsonTest, HasTheContractsNames) {
  probe::SocketList list = service(1);
  list.sockets[1].options.sndbuf_locked = true;
  list.sockets[1].tcp.ato_us = 40'000;
  const Json json = to_json(snapshot_of(std::move(list)), report::RunInfo{});
  ASSERT_EQ(json["sockets"].size(), 2U);
  const Json& socket = json["sockets"][1];
  EXPECT_EQ(socket["fd"], 10);
  EXPECT_EQ(socket["pid"], 100);
  EXPECT_EQ(socket["state"], "ESTABLISHED");
  EXPECT_EQ(socket["local"], "10.0.0.1:8080");
  EXPECT_EQ(socket["remote"], "10.0.0.2:40010");
  EXPECT_EQ(socket["options"]["nodelay"], true);
  EXPECT_EQ(socket["options"]["sndbuf"], 87'040);
  EXPECT_EQ(socket["options"]["buf_lock"], Json::array({"snd"}));
  EXPECT_EQ(socket["options"]["linger"], false);
  EXPECT_EQ(socket["options"]["linger_s"], nullptr);
  EXPECT_EQ(socket["tcp"]["rtt_us"], 1'500);
  EXPECT_EQ(socket["tcp"]["ato_us"], 40'000);
  for (const char* name : {"min_rtt_us", "notsent_bytes", "rwnd_limited_us", "sndbuf_limited_us"}) {
    EXPECT_TRUE(socket["tcp"].contains(name)) << name;
  }
  EXPECT_EQ(socket["remarks"][0]["code"], "not-default");
  EXPECT_EQ(socket["remarks"][0]["severity"], "note");
  EXPECT_EQ(json["processes"][0]["runtime"], "Go");
  EXPECT_EQ(json["counts"]["states"]["LISTEN"], 1);
  EXPECT_EQ(json["counts"]["remarks"]["not-default"], 1);
}

TEST(SocketsJsonTest, WhatIsNotKnownIsNullAndEverySocketHasTheSameKeys) {
  probe::SocketList list;
  list.sockets = {connection_facts(4, 2), tcp::SocketFacts{}};
  const Json json = to_json(snapshot_of(std::move(list)), report::RunInfo{});
  const Json& known = json["sockets"][0];
  const Json& unknown = json["sockets"][1];
  for (const char* part : {"options", "tcp"}) {
    ASSERT_EQ(known[part].size(), unknown[part].size());
    for (const auto& [key, value] : known[part].items()) {
      EXPECT_TRUE(unknown[part].contains(key)) << key;
    }
  }
  EXPECT_EQ(unknown["options"]["nodelay"], nullptr);
  EXPECT_EQ(unknown["options"]["buf_lock"], nullptr);
  EXPECT_EQ(unknown["tcp"]["rtt_us"], nullptr);
  EXPECT_EQ(unknown["memory"], nullptr);
  EXPECT_EQ(unknown["state"], "UNKNOWN");
}

TEST(SocketsJsonTest, KeysStandOnce) {
  const std::string text = report::to_text(to_json(snapshot_of(service(1)), report::RunInfo{}));
  // A parser of the strict kind tells doubled keys.
  int depth_keys = 0;
  Json::parser_callback_t count = [&depth_keys](int, Json::parse_event_t event, Json&) {
    depth_keys += event == Json::parse_event_t::key ? 1 : 0;
    return true;
  };
  const Json parsed = Json::parse(text, count);
  int kept = 0;
  const std::function<void(const Json&)> walk = [&](const Json& json) {
    for (const auto& [key, value] : json.items()) {
      kept += json.is_object() ? 1 : 0;
      if (value.is_structured()) walk(value);
    }
  };
  walk(parsed);
  EXPECT_EQ(kept, depth_keys);
}

TEST(SocketsJsonTest, TellsRatesAndRefusals) {
  const Snapshot earlier = snapshot_of(service(1));
  probe::SocketList list = service(1);
  list.sockets[1].tcp.bytes_sent = 2'048 + 500;
  list.denied = 2;
  list.why_denied = Error{ErrorKind::kDenied, "no", "ask"};
  Snapshot now = snapshot_of(std::move(list));
  compare(now, earlier, std::chrono::milliseconds(500));
  const Json json = to_json(now, report::RunInfo{});
  EXPECT_EQ(json["apart_ms"], 500);
  EXPECT_EQ(json["denied_why"], "no");
  EXPECT_EQ(json["counts"]["denied"], 2);
  EXPECT_DOUBLE_EQ(json["sockets"][1]["rates"]["sent_bytes_per_s"].get<double>(), 1'000);
}

}  // namespace
}  // namespace tailward::sockets
