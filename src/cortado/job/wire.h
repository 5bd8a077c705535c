#pragma once

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cortado {

// What the process that starts a job and its ranks say to each other: lines of words over TCP.
//   rank to parent:  hello TOKEN RANK PID HOST | snapshot ITERATION PATH | goodbye CODE ITERATION MESSAGE |
//                   here QUESTION ITERATION PROGRESS waits|works RANKS|* WHAT-IT-DOES |
//                   iteration N (its last, as it stops) | aborted | orphaned | unheard |
//                   stopped (the work, before its end, because it was asked to) |
//                   holds BEGAN FIRST LAST AGREED | holds-none WHY | written PATH (if any) | unwritten WHY
//   parent to rank:  welcome RANKS RESTARTS SNAPSHOT (if any) | there? QUESTION | signal N | hold |
//                   write ITERATION RANKS | stop
// hold and write are about what the ranks that are left keep of their work (rank_state.h).
// A connection that ends without goodbye means that its process is gone. A rank stands still if it does not
// answer while its host does. Both ends let TCP find out when a host is gone.

// Where the parent listens. It reaches the ranks in the environment variable CORTADO_JOB.
struct JobAddress {
  std::string token;  // every rank says it, so nobody else on the network passes for one
  int port = 0;
  int peer_seconds = 60;           // how long a host may be out of reach
  std::vector<std::string> hosts;  // all addresses of the parent's host
};
inline constexpr const char* job_variable = "CORTADO_JOB";
std::string to_text(const JobAddress& address);
std::optional<JobAddress> parse_job_address(std::string_view text);

// Owns a socket and closes it; -1: none.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { close(); }
  void close();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Lines over a connection; nothing blocks, but for flush().
class LineSocket {
 public:
  static constexpr size_t longest_line = 8192;  // what is longer is cut and ends in "..."
  LineSocket() = default;
  // A host that cannot be reached for `peer_seconds` ends the connection.
  LineSocket(Socket socket, int peer_seconds);
  int fd() const { return socket_.fd(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() { socket_.close(); }

  // Sends a line, now or, where the connection takes no more, with the next one. Lines that its reader does
  // not take for long are lost, but whole ones.
  void send(std::string_view line);
  // Waits until the other side's system has all that was sent, or for so long.
  void flush(std::chrono::milliseconds most);
  // True when the other side's system has not taken all that was sent.
  bool unreached() const;
  // Reads what is there; false once the connection has ended. Lines that came before are there to be taken.
  bool receive();
  std::optional<std::string> take_line();
  // More has come than a line has bytes, and no line.
  bool overlong() const { return input_.size() > longest_line; }
  bool timed_out() const { return error_ == ETIMEDOUT || error_ == EHOSTUNREACH || error_ == ENETUNREACH; }
  // Address of the other side, in numbers.
  std::string address() const;

 private:
  void push();

  Socket socket_;
  std::string input_, unsent_;
  int error_ = 0;  // that ended the connection
};

// Listens at a port that the system chooses, at `address` (in numbers) of this host alone; empty: at every
// one. Throws UserError.
Socket listen_at(const std::string& address);
int port_of(const Socket& listener);
// Addresses of this host, loopback last.
std::vector<std::string> own_addresses();
// Compares in a time that does not depend on where the two differ.
bool same_secret(std::string_view a, std::string_view b);
// A connection within `seconds`, or none; `error`: why, of errno(3).
Socket connect_to(const std::string& host, int port, int seconds, int* error = nullptr);

std::string host_name();
// Returns at most so many bytes of the text, with "..." in place of what is cut.
std::string shortened(std::string_view text, size_t bytes);

}  // namespace cortado
