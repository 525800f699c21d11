// Learns the scale of a receiver's windows (RFC 7323, section 2) where its SYN was not captured.
//
// A receiver that does not read keeps the end of its window where it is: what the acknowledgement
// moves on, the window shrinks by. Their ratio is the scale. While it reads the ratio is larger, by
// anything: so of two scales that many segments speak for it is the smaller one.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tailward::diag {

class ScaleEstimator {
 public:
  static constexpr int kScaleMax = 14;  // RFC 7323, section 2.3

  // Every window as it stands in the header, with the acknowledgement beside it. Returns the scale
  // (0…14) once enough speaks for it; later only a smaller one.
  std::optional<std::uint8_t> add(std::uint16_t window, std::uint32_t ack);

 private:
  [[nodiscard]] std::optional<int> measure(std::uint16_t window, std::uint32_t ack, double& ratio);

  bool begun_ = false;
  std::uint16_t last_window_ = 0;
  // What the next window is compared with: it has not grown since.
  std::uint32_t anchor_ack_ = 0;
  std::uint16_t anchor_window_ = 0;
  std::optional<std::uint8_t> scale_;
  std::array<std::uint8_t, kScaleMax + 1> votes_{}, tries_{};
};

}  // namespace tailward::diag
