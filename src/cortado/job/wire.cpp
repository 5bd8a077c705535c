#include "cortado/job/wire.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr size_t longest_input = 1 << 20, longest_unsent = 1 << 18;

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

// A host that answers nothing for about so many seconds is gone.
void notice_lost_peers(int fd, int seconds) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 3));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 6));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

// 0 once it is connected, else an error.
int connected_within(int fd, int seconds) {
  pollfd wait{fd, POLLOUT, 0};
  if (poll(&wait, 1, seconds * 1000) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

Socket bound_anywhere() {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  if (socket) set_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (socket && bind(socket.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) return socket;
  socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // a host without IPv6
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  if (!socket || bind(socket.fd(), reinterpret_cast<sockaddr*>(&any4), sizeof any4) != 0)
    throw UserError(fmt::format("cannot open a socket to watch the ranks: {}", std::strerror(errno)));
  return socket;
}

Socket bound_to(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0)
    throw UserError(fmt::format("--listen {}: give an address in numbers, as 10.0.0.1", address));
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool bound = socket && bind(socket.fd(), found->ai_addr, found->ai_addrlen) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (!bound)
    throw UserError(fmt::format("--listen {}: {}; this host has {}", address, std::strerror(error),
                                fmt::join(own_addresses(), ", ")));
  return socket;
}

}  // namespace

std::string to_text(const JobAddress& address) {
  return fmt::format("{} {} {} {}", address.token, address.port, address.peer_seconds,
                     fmt::join(address.hosts, " "));
}

std::optional<JobAddress> parse_job_address(std::string_view text) {
  std::istringstream words{std::string(text)};
  JobAddress address;
  if (!(words >> address.token >> address.port >> address.peer_seconds)) return std::nullopt;
  if (address.port <= 0 || address.port > 65535 || address.peer_seconds <= 0) return std::nullopt;
  for (std::string host; words >> host;) address.hosts.push_back(host);
  if (address.hosts.empty()) return std::nullopt;
  return address;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

LineSocket::LineSocket(Socket socket, int peer_seconds) : socket_(std::move(socket)) {
  fcntl(fd(), F_SETFL, fcntl(fd(), F_GETFL) | O_NONBLOCK);
  notice_lost_peers(fd(), peer_seconds);
}

void LineSocket::send(std::string_view line) {
  if (!socket_) return;
  if (unsent_.size() < longest_unsent) unsent_ += shortened(line, longest_line) + "\n";
  push();
}

void LineSocket::push() {
  while (socket_ && !unsent_.empty()) {
    const ssize_t sent = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) unsent_.clear();  // its end is read
    if (sent <= 0) return;
    unsent_.erase(0, static_cast<size_t>(sent));
  }
}

bool LineSocket::unreached() const {
  int bytes = 0;
  return !unsent_.empty() || (socket_ && ioctl(fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0);
}

void LineSocket::flush(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (socket_ && unreached() && std::chrono::steady_clock::now() < end) {
    push();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string LineSocket::address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const std::string text = numeric(reinterpret_cast<const sockaddr*>(&address), size);
  return text.starts_with("::ffff:") ? text.substr(7) : text;  // IPv4
}

bool LineSocket::receive() {
  char buffer[4096];
  while (socket_ && input_.size() < longest_input) {
    ssize_t got = recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      input_.append(buffer, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      const bool there = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (!there) error_ = got < 0 ? errno : 0;
      return there;
    }
  }
  return false;
}

std::optional<std::string> LineSocket::take_line() {
  size_t end = input_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = input_.substr(0, end);
  input_.erase(0, end + 1);
  return line;
}

Socket listen_at(const std::string& address) {
  Socket socket = address.empty() ? bound_anywhere() : bound_to(address);
  if (listen(socket.fd(), 1024) != 0)
    throw UserError(fmt::format("cannot listen for the ranks: {}", std::strerror(errno)));
  return socket;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned char different = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  return different == 0;
}

int port_of(const Socket& listener) {
  sockaddr_in6 address{};  // the port stands at the same place as in IPv4's
  socklen_t size = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> hosts;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      hosts.push_back(numeric(entry->ifa_addr, sizeof(sockaddr_in)));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (!IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr))
        hosts.push_back(numeric(entry->ifa_addr, sizeof *address));
    }
  }
  freeifaddrs(list);
  std::erase(hosts, "");
  hosts.push_back("127.0.0.1");
  return hosts;
}

Socket connect_to(const std::string& host, int port, int seconds, int* error) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  int failed = EINVAL;
  if (error == nullptr) error = &failed;
  *error = EINVAL;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return Socket();
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *error = socket && connect(socket.fd(), found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  if (*error == EINPROGRESS) *error = connected_within(socket.fd(), seconds);
  freeaddrinfo(found);
  return *error == 0 ? std::move(socket) : Socket();
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name[0] != '\0' ? name : "unknown-host";
}

std::string shortened(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t end = bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // within a character
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace cortado
