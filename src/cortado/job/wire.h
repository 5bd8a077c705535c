#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cortado {

// What the process that starts a job and its ranks say to each other: lines of words over TCP.
//   rank to parent:  hello TOKEN RANK PID HOST | iteration N | snapshot PATH | goodbye CODE N MESSAGE |
//                   aborted | here
//   parent to rank:  welcome | signal N | there? | stop
// A connection that ends without goodbye means that its process is gone. Both ends ask TCP to find out within
// seconds when a host is gone.

// Where the parent listens. It reaches the ranks in the environment variable CORTADO_JOB.
struct JobAddress {
  std::string token;  // told by every rank: nobody else on the network is one
  int port = 0;
  std::vector<std::string> hosts;  // all addresses of the parent's host
};
inline constexpr const char* job_variable = "CORTADO_JOB";
std::string to_text(const JobAddress& address);
std::optional<JobAddress> parse_job_address(std::string_view text);

// A socket that is closed with it; -1: none.
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

// Lines over a connection; nothing blocks.
class LineSocket {
 public:
  LineSocket() = default;
  explicit LineSocket(Socket socket);
  int fd() const { return socket_.fd(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() { socket_.close(); }

  // Sends a line. What the connection cannot take is lost: it is broken or its reader is stuck.
  void send(std::string_view line);
  // Reads what is there; false once the connection has ended. Lines that came before are there to be taken.
  bool receive();
  std::optional<std::string> take_line();

 private:
  Socket socket_;
  std::string input_;
};

// Listens on every address at a port that the system chooses. Throws UserError.
Socket listen_anywhere();
int port_of(const Socket& listener);
// Addresses of this host, loopback last.
std::vector<std::string> own_addresses();
// A connection within `seconds`, or none.
Socket connect_to(const std::string& host, int port, int seconds);

std::string host_name();

}  // namespace cortado
