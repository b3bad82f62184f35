// A TCP proxy that misbehaves: what lies between two processes of a test whose network fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"
#include "tests/support/http2_frames.h"

namespace lockstep::test {

// Accepts at one loopback address and connects to another for each connection. Thread-safe.
class FaultProxy {
 public:
  // Aborts when it cannot listen on `from`; port 0: any. Nobody need listen on `to` yet.
  FaultProxy(const std::string& from, const std::string& to);
  ~FaultProxy();

  // Where it listens.
  std::string address() const;

  // Bytes are taken from the caller, or from the one that is called, and passed on, or not: where
  // they are not, neither side is told, as where a cable is pulled. New connections are alike.
  void StopRequests(bool stop) { stops_[kRequests].store(stop); }
  void StopReplies(bool stop) { stops_[kReplies].store(stop); }
  void StopAll(bool stop) {
    StopRequests(stop);
    StopReplies(stop);
  }
  // Ends all connections with a reset.
  void CutConnections() { cut_.store(true); }
  // Of each direction of each connection; 0: as fast as it goes.
  void SetBytesPerSecond(int64_t rate) { rate_.store(rate); }
  // What is read stays so long, and up to `jitter` less or more, before it is passed on, in each
  // direction; zero: it does not.
  void SetLatency(absl::Duration latency, absl::Duration jitter) {
    jitter_ms_.store(absl::ToInt64Milliseconds(jitter));
    latency_ms_.store(absl::ToInt64Milliseconds(latency));
  }
  // Flips the lowest bit of a byte of a message, again and again after so many bytes of messages,
  // in both directions; 0: never. Only inside of HTTP/2 frames of 4 KiB or more, so that what
  // changes are tensors, not what gRPC writes around them: nothing but a checksum finds that.
  void FlipBits(int64_t bytes_between) { bytes_between_flips_.store(bytes_between); }
  int num_flips() const { return num_flips_.load(); }
  // That were passed on.
  int64_t num_bytes() const { return num_bytes_.load(); }

 private:
  enum Direction { kRequests, kReplies, kNumDirections };
  class Connection;

  void Run();
  void Accept();
  absl::Duration NextLatency();
  void FlipIn(std::span<char> bytes, Http2Frames* frames);

  const FileDescriptor listening_;
  const std::string to_;
  std::atomic<bool> stops_[kNumDirections] = {false, false};
  std::atomic<bool> cut_ = false;
  std::atomic<bool> ends_ = false;
  std::atomic<int64_t> rate_ = 0;
  std::atomic<int64_t> latency_ms_ = 0;
  std::atomic<int64_t> jitter_ms_ = 0;
  std::atomic<int64_t> bytes_between_flips_ = 0;
  std::atomic<int> num_flips_ = 0;
  std::atomic<int64_t> num_bytes_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // of the thread
  int64_t unflipped_bytes_ = 0;                           // of the thread
  std::minstd_rand random_;                               // of the thread: the jitter
  std::thread thread_;
};

}  // namespace lockstep::test
