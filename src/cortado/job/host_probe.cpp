#include "cortado/job/host_probe.h"

#include <algorithm>
#include <cerrno>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "cortado/job/wire.h"

namespace cortado {
namespace {

constexpr int probe_seconds = 2;

bool answers(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
  const Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = connect(socket.fd(), found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  freeaddrinfo(found);
  pollfd wait{socket.fd(), POLLOUT, 0};
  socklen_t size = sizeof error;
  if (error == EINPROGRESS && (poll(&wait, 1, probe_seconds * 1000) != 1 ||
                               getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0))
    return false;
  return error == 0 || error == ECONNREFUSED;
}

}  // namespace

HostProbe::HostProbe(std::vector<std::string> hosts, int port) {
  std::thread([hosts = std::move(hosts), port, result = answers_] {
    *result = std::ranges::all_of(hosts, [&](const std::string& host) { return answers(host, port); });
  }).detach();
}

}  // namespace cortado
