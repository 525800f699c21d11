// Captures made up for tests. A Talk is one connection, told in the order in which its packets were
// captured:
//
//   Capture capture;
//   Talk talk(capture, kAtClient);
//   talk.opens();
//   talk.after(1ms).client().sends(200);
//   talk.answer(40ms).server().acks();       // 40 ms and the way to the server and back later
//   const PacketAnalysis analysis = capture.analyse();
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "diag/analysis.h"
#include "diag/network_diagnosis.h"
#include "diag/packet_analyser.h"
#include "tcp/sequence.h"

namespace tailward::diag::testing {

using namespace std::chrono_literals;

inline tcp::SocketAddress address(std::uint8_t last, std::uint16_t port) {
  tcp::SocketAddress made;
  made.address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  made.port = port;
  return made;
}

// There and back, from where the capture was made.
struct Place {
  Duration to_client{}, to_server{};
};
inline constexpr Place kAtServer{10ms, 20us};
inline constexpr Place kAtClient{20us, 10ms};
inline constexpr Place kBetweenThem{5ms, 5ms};
inline constexpr Place kOneHost{10us, 10us};
inline constexpr Place kPlaces[] = {kAtServer, kAtClient, kBetweenThem, kOneHost};

class Capture {
 public:
  void add(const tcp::Segment& segment) { segments_.push_back(segment); }
  std::vector<tcp::Segment>& segments() { return segments_; }

  PacketAnalysis analyse(PacketLimits limits = {}, std::vector<std::uint16_t> ports = {}) {
    std::stable_sort(segments_.begin(), segments_.end(),
                     [](const tcp::Segment& a, const tcp::Segment& b) { return a.at < b.at; });
    PacketAnalyser analyser(std::move(ports), limits);
    std::uint64_t number = 0;
    for (tcp::Segment& segment : segments_) {
      segment.number = ++number;
      analyser.add(segment);
    }
    return analyser.finish();
  }
  NetworkDiagnosis diagnose() {
    const PacketAnalysis analysis = analyse();
    return diagnose_network({.packets = &analysis});
  }

 private:
  std::vector<tcp::Segment> segments_;
};

// The names of the findings, in order: "nagle-delayed-ack packet-loss".
inline std::string names(const NetworkDiagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings) {
    text += (text.empty() ? "" : " ") + std::string(to_string(finding.cause));
  }
  return text;
}

class Talk {
 public:
  struct Options {
    std::uint16_t client_port = 40'000;
    std::uint16_t server_port = 80;
    Duration began = std::chrono::seconds(1'700'000'000);
    std::uint32_t client_isn = 1'000, server_isn = 900'000;
    std::uint16_t mss = 1460;
    bool timestamps = true;
    // Segments echo the other side's last captured time stamp: true where nobody speaks before that
    // has reached them.
    bool echoes = false;
    std::uint32_t client_window = 1 << 20, server_window = 1 << 20;
  };

  class End {
   public:
    End(Talk& talk, tcp::Side side) : talk_(talk), side_(side) {}
    // New data, which acknowledges everything captured so far.
    Talk& sends(std::uint32_t bytes) {
      tcp::Segment s = talk_.segment(side_, talk_.next_[side_], bytes);
      talk_.next_[side_] += bytes;
      return talk_.captured(s);
    }
    // Data that never came to where the capture was made.
    Talk& loses(std::uint32_t bytes) {
      talk_.next_[side_] += bytes;
      ++talk_.ip_id_[side_];
      return talk_;
    }
    // The bytes that begin `back` before the end of what has been sent.
    Talk& sends_again(std::uint32_t back, std::uint32_t bytes) {
      return talk_.captured(talk_.segment(side_, talk_.next_[side_] - back, bytes));
    }
    Talk& acks() { return talk_.captured(talk_.segment(side_, talk_.next_[side_], 0)); }
    // All but the last `missing_from` bytes, with a SACK for what came after the missing ones.
    Talk& sacks(std::uint32_t missing_from, std::uint32_t missing_until) {
      tcp::Segment s = talk_.segment(side_, talk_.next_[side_], 0);
      s.sack_count = 1;
      s.sack[0] = {s.ack - missing_until, s.ack};
      s.ack -= missing_from;
      return talk_.captured(s);
    }
    Talk& offers(std::uint32_t window) {
      talk_.window_[side_] = window;
      return acks();
    }
    Talk& probes_window() {
      return talk_.captured(talk_.segment(side_, talk_.next_[side_] - 1, 0));
    }
    Talk& ends() {
      tcp::Segment s = talk_.segment(side_, talk_.next_[side_]++, 0);
      s.fin = true;
      return talk_.captured(s);
    }
    Talk& resets() {
      tcp::Segment s = talk_.segment(side_, talk_.next_[side_], 0);
      s.rst = true;
      return talk_.captured(s);
    }

   private:
    Talk& talk_;
    tcp::Side side_;
  };

  Talk(Capture& capture, Place place) : Talk(capture, place, Options{}) {}
  Talk(Capture& capture, Place place, Options options)
      : capture_(capture), place_(place), options_(options), now_(options.began) {
    next_[tcp::kClient] = options.client_isn + 1;
    next_[tcp::kServer] = options.server_isn + 1;
    window_[tcp::kClient] = options.client_window;
    window_[tcp::kServer] = options.server_window;
  }

  Talk& after(Duration duration) {
    now_ += duration;
    return *this;
  }
  End client() { return {*this, tcp::kClient}; }
  End server() { return {*this, tcp::kServer}; }
  // Who speaks next does so in answer to what was captured last.
  class Answer {
   public:
    Answer(Talk& talk, Duration think) : talk_(talk), think_(think) {}
    End client() { return talk_.after(talk_.place_.to_client + think_).client(); }
    End server() { return talk_.after(talk_.place_.to_server + think_).server(); }

   private:
    Talk& talk_;
    Duration think_;
  };
  [[nodiscard]] Answer answer(Duration think = 0us) { return {*this, think}; }

  Talk& syn() {
    tcp::Segment s = segment(tcp::kClient, options_.client_isn, 0);
    s.ack_flag = false;
    s.ack = 0;
    return captured(with_options(s));
  }
  Talk& syn_ack() { return captured(with_options(segment(tcp::kServer, options_.server_isn, 0))); }
  Talk& opens() {
    syn();
    after(place_.to_server).syn_ack();
    return answer().client().acks();
  }
  // A whole turn: the request, `think` at the server, an answer of one segment, its ACK.
  Talk& exchange(std::uint32_t request, Duration think, std::uint32_t response) {
    client().sends(request);
    answer(think).server().sends(response);
    return answer().client().acks();
  }
  [[nodiscard]] Duration now() const { return now_; }
  tcp::Segment& last() { return capture_.segments().back(); }

 private:
  friend class End;

  [[nodiscard]] tcp::SocketAddress where(tcp::Side side) const {
    return side == tcp::kClient ? address(1, options_.client_port)
                                : address(2, options_.server_port);
  }
  tcp::Segment segment(tcp::Side side, std::uint32_t seq, std::uint32_t bytes) {
    tcp::Segment s;
    s.at = now_;
    s.from = where(side);
    s.to = where(tcp::other(side));
    s.seq = seq;
    s.ack = next_[tcp::other(side)];
    s.ack_flag = true;
    s.payload = bytes;
    s.window = static_cast<std::uint16_t>(window_[side] >> kScale);
    s.ip_id = ++ip_id_[side];
    if (options_.timestamps) {
      s.ts_value = stamp_[side] = static_cast<std::uint32_t>(now_ / 1ms);
      if (options_.echoes) s.ts_echo = stamp_[tcp::other(side)];
    }
    return s;
  }
  tcp::Segment& with_options(tcp::Segment& s) {
    s.syn = true;
    s.mss = options_.mss;
    s.window_scale = kScale;
    s.window = static_cast<std::uint16_t>(std::min<std::uint32_t>(0xffff, window_[tcp::kClient]));
    return s;
  }
  tcp::Segment& with_options(tcp::Segment&& s) { return with_options(s); }
  Talk& captured(const tcp::Segment& s) {
    capture_.add(s);
    return *this;
  }

  static constexpr std::uint8_t kScale = 7;
  Capture& capture_;
  Place place_;
  Options options_;
  Duration now_;
  std::uint32_t next_[2]{}, window_[2]{};
  std::uint16_t ip_id_[2]{100, 500};
  std::uint32_t stamp_[2]{};
};

}  // namespace tailward::diag::testing
