#include "cortado/job/hosts_file.h"

#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/job/launcher_words.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;

std::string refusal(const TemporaryFolder& folder) {
  try {
    read_hosts_file(folder.file("hosts"));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(HostsFile, NamesHostsAndRanks) {
  TemporaryFolder folder;
  folder.write("hosts", "a:2  # two\n\n# none\nb\nc slots=3\n");
  const Hosts hosts = read_hosts_file(folder.file("hosts"));
  EXPECT_EQ(hosts, (Hosts{{"a", 2}, {"b", 1}, {"c", 3}}));
  EXPECT_EQ(ranks_on(hosts), 6);
  EXPECT_EQ(hosts_text(hosts), "a:2, b, c:3");
  EXPECT_EQ(with_hosts(split_words("mpiexec -x -hosts q -y"), hosts),
            split_words("mpiexec -x -hosts a:2,b:1,c:3 -y"));
  EXPECT_EQ(with_hosts(split_words("srun -w q"), hosts), split_words("srun -w a,b,c"));
  EXPECT_FALSE(with_hosts(split_words("mpiexec"), hosts));
  for (const char* wrong :
       {"a:0\n", "a:x\n", "a:-1\n", "a,b\n", "a 2\n", "a slots=2 more\n", ":2\n", "a\na:2\n", "", "# a\n"}) {
    folder.write("hosts", wrong);
    EXPECT_NE(refusal(folder), "") << wrong;
  }
}

TEST(HostsFile, CountsOnceItIsWrittenAnewAndSound) {
  TemporaryFolder folder;
  folder.write("hosts", "a\n");
  HostsWatch watch(folder.file("hosts"));
  EXPECT_FALSE(watch.changed());
  auto write = [&, later = 1s](const char* text) mutable {
    folder.write("hosts", text);
    later += 1s;
    std::filesystem::last_write_time(folder.file("hosts"),
                                     std::filesystem::file_time_type::clock::now() + later);
  };
  write("a:\n");
  EXPECT_FALSE(watch.changed());
  EXPECT_EQ(watch.hosts(), (Hosts{{"a", 1}}));
  write("a\nb\n");
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
  EXPECT_EQ(watch.hosts(), (Hosts{{"a", 1}, {"b", 1}}));
  std::filesystem::remove(folder.file("hosts"));
  EXPECT_FALSE(watch.changed());
  EXPECT_FALSE(HostsWatch().changed());
}

}  // namespace
}  // namespace cortado
