#include "cortado/base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cortado {
namespace {

static_assert(std::endian::native == std::endian::little, "XXH64 reads its input as little-endian words");

// The primes of its definition.
constexpr uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F, prime3 = 0x165667B19E3779F9,
                   prime4 = 0x85EBCA77C2B2AE63, prime5 = 0x27D4EB2F165667C5;

template <typename Word>
uint64_t word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * prime2, 31) * prime1; }

}  // namespace

void Digest::mix(const char* bytes) {
  for (size_t lane = 0; lane < lanes_.size(); ++lane)
    lanes_[lane] = round(lanes_[lane], word_at<uint64_t>(bytes + lane * sizeof(uint64_t)));
}

void Digest::add(std::string_view bytes) {
  const size_t kept = size_ % stripe;
  size_ += bytes.size();
  if (kept > 0) {
    const size_t taken = std::min(stripe - kept, bytes.size());
    std::copy_n(bytes.data(), taken, rest_.data() + kept);
    bytes.remove_prefix(taken);
    if (kept + taken < stripe) return;
    mix(rest_.data());
  }
  for (; bytes.size() >= stripe; bytes.remove_prefix(stripe)) mix(bytes.data());
  std::copy_n(bytes.data(), bytes.size(), rest_.data());
}

uint64_t Digest::value() const {
  uint64_t hash = prime5;
  if (size_ >= stripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * prime1 + prime4;
  }
  hash += size_;
  std::string_view rest(rest_.data(), size_ % stripe);
  for (; rest.size() >= 8; rest.remove_prefix(8))
    hash = std::rotl(hash ^ round(0, word_at<uint64_t>(rest.data())), 27) * prime1 + prime4;
  for (; rest.size() >= 4; rest.remove_prefix(4))
    hash = std::rotl(hash ^ word_at<uint32_t>(rest.data()) * prime1, 23) * prime2 + prime3;
  for (char c : rest) hash = std::rotl(hash ^ static_cast<unsigned char>(c) * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

uint64_t digest(std::string_view bytes) {
  Digest whole;
  whole.add(bytes);
  return whole.value();
}

}  // namespace cortado
