#include "cortado/measure/host_facts.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <hwloc.h>
#include <optional>
#include <set>
#include <sstream>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cortado/comm/processors.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

// The number that a control group's file holds; nothing for "max" and where there is no file.
std::optional<int64_t> limit_in(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  int64_t bytes = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bytes);
  if (error != std::errc() || word.empty() || end != word.data() + word.size()) return std::nullopt;
  return bytes;
}

// The least limit of this process's control groups, each of which holds for all below it. Lines are
// "0::/a/b" (version 2) or "9:memory:/a/b" (version 1).
int64_t least_group_limit() {
  int64_t least = INT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const fs::path root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* file = controllers.empty() ? "memory.max" : "memory.limit_in_bytes";
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    while (true) {
      least = std::min(least, limit_in(root / group / file).value_or(INT64_MAX));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return least;
}

Bytes usable_memory() {
  struct sysinfo system {};
  if (sysinfo(&system) != 0) return {};
  return {std::min(static_cast<int64_t>(system.totalram) * system.mem_unit, least_group_limit())};
}

// What /proc/cpuinfo says of the first processor: "model name", "flags".
std::string processor_fact(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::vector<std::string> instruction_sets() {
  const std::set<std::string> known{"sse4_1",   "sse4_2",   "avx",         "f16c",        "fma",
                                    "avx2",     "avx512f",  "avx512bw",    "avx512dq",    "avx512vl",
                                    "avx_vnni", "amx_tile", "avx512_vnni", "avx512_bf16", "amx_bf16"};
  std::vector<std::string> found;
  std::istringstream flags(processor_fact("flags"));
  for (std::string flag; flags >> flag;)
    if (known.contains(flag)) found.push_back(flag);
  return found;
}

std::vector<HostFacts::Cache> data_caches(hwloc_topology_t topology) {
  std::vector<HostFacts::Cache> caches;
  for (hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    if (count < 1) continue;
    const auto& cache = hwloc_get_obj_by_type(topology, type, 0)->attr->cache;
    caches.push_back({static_cast<int>(cache.depth), count, {static_cast<int64_t>(cache.size)}});
  }
  return caches;
}

}  // namespace

HostFacts host_facts() {
  HostFacts facts{.processor = processor_fact("model name"),
                  .instruction_sets = instruction_sets(),
                  .memory = usable_memory()};
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, HOST_NAME_MAX);
  facts.name = name;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return facts;
  if (hwloc_topology_load(topology) == 0) {
    facts.sockets = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
    facts.cores = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    facts.threads = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
    facts.caches = data_caches(topology);
  }
  hwloc_topology_destroy(topology);
  return facts;
}

std::string facts_text(const HostFacts& facts) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<26}{}\n", name, value);
  };
  line("Processor:", facts.processor.empty() ? "not known" : facts.processor);
  line("Sockets, cores, threads:", fmt::format("{}, {}, {}", facts.sockets, facts.cores, facts.threads));
  line("Used by default:", fmt::format("{} threads, one a core that this process may use",
                                       Topology::of_process().share(0, 1).threads));
  line("Instruction sets:", fmt::format("{}", fmt::join(facts.instruction_sets, " ")));
  line("Caches:", caches_text(facts.caches));
  line("Memory it may use:", fmt::format("{:.1f} GiB", static_cast<double>(facts.memory.count) / 0x1p30));
  return text;
}

std::string caches_text(const std::vector<HostFacts::Cache>& caches) {
  std::string text;
  for (const HostFacts::Cache& cache : caches)
    text += fmt::format("{}L{} {} x {} KiB", text.empty() ? "" : ", ", cache.level, cache.count,
                        cache.size.count / 1024);
  return text.empty() ? "not known" : text;
}

}  // namespace cortado
