// What a stranger, or a rank, may say to the process that starts a job; the address that ranks find in their
// environment; a launcher's words. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <sys/socket.h>

#include "cortado/base/error.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/peer.h"
#include "cortado/job/stall.h"

namespace {

using namespace cortado;

// Through a connection, in pieces, as the parent reads.
void speak(std::string_view bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  Socket other(ends[1]);
  Peers peers;
  for (int rank = 0; rank < 3; ++rank) {
    peers.push_back(std::make_unique<Peer>());
    peers.back()->rank = rank;
    peers.back()->host = "a";
  }
  peers[0]->socket = LineSocket(Socket(ends[0]), 1);
  Moment now{};
  for (size_t at = 0; at < bytes.size(); at += 700) {
    const std::string_view piece = bytes.substr(at, 700);
    if (::send(other.fd(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
    const bool there = peers[0]->socket.receive();
    while (const auto line = peers[0]->socket.take_line()) {
      std::istringstream words(*line);
      for (const auto& peer : peers) peer->hear(words, now += std::chrono::seconds(1));
      find_stall(peers, now, std::chrono::seconds(10));
      peers[0]->socket.send(shortened(*line, 40));
    }
    if (!there) return;
  }
  drop_strangers(peers, now);
}

void read_launcher(std::string_view text) {
  const std::vector<std::string> words = split_words(std::string(text));
  for (const std::string& word : words)
    if (word == "-f" || word.starts_with("-hostfile") || word.starts_with("--hostfile"))
      return;  // names a file
  hosts_named(words);
  for (const std::string& word : words) {
    is_host_list(word);
    split_list_of_hosts(word);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 4) {
      case 0:
        speak(text);
        break;
      case 1:
        if (const auto address = parse_job_address(text)) to_text(*address);
        break;
      case 2:
        read_launcher(text);
        break;
      default: {
        LauncherWords words(size % 2 == 0);
        for (size_t at = 0; at < text.size(); at += 11) words.pass(text.substr(at, 11));
        words.end();
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
