#include "cortado/base/fields.h"

#include <gtest/gtest.h>

#include "tests/base/changed_field.h"

namespace cortado {

struct Part {
  int axis = 1;
  static constexpr auto fields = std::tuple{field("axis", &Part::axis)};
};

// A struct, and the same one a field later.
struct Before {
  int size = 3;
  static constexpr auto fields = std::tuple{field("size", &Before::size)};
};
struct After {
  int size = 3;
  std::optional<bool> fast;
  static constexpr auto fields = std::tuple{field("size", &After::size), field("fast", &After::fast)};
};

struct Everything {
  enum class Kind { one, other };
  bool flag = false;
  int whole = -1;
  int64_t large = int64_t{1} << 40;
  double real = 0.1;
  std::string text = "a \"b\"\n";
  Kind kind = Kind::other;
  std::optional<int> absent, present = 0;
  std::vector<int64_t> list{3, 4};
  std::vector<Part> parts{{}, {2}};
  Part part, filler;
  static constexpr auto fields =
      std::tuple{field("flag", &Everything::flag),     field("whole", &Everything::whole),
                 field("large", &Everything::large),   field("real", &Everything::real),
                 field("text", &Everything::text),     field("kind", &Everything::kind),
                 field("absent", &Everything::absent), field("present", &Everything::present),
                 field("list", &Everything::list),     field("parts", &Everything::parts),
                 field("part", &Everything::part),     unkeyed_field("filler", &Everything::filler)};
};

struct ForgetsOne {
  int size = 3;
  bool fast = false;
  static constexpr auto fields = std::tuple{field("size", &ForgetsOne::size)};
};
struct NamesOneTwice {
  int size = 3, other = 4;
  static constexpr auto fields =
      std::tuple{field("size", &NamesOneTwice::size), field("other", &NamesOneTwice::size)};
};
struct OneNameForTwo {
  int size = 3, other = 4;
  static constexpr auto fields =
      std::tuple{field("size", &OneNameForTwo::size), field("size", &OneNameForTwo::other)};
};

namespace {

TEST(Fields, SayValuesAsWords) {
  EXPECT_EQ(words_of(Everything{}),
            "flag=false whole=-1 large=1099511627776 real=0.1 text=\"a \\x22b\\x22\\x0a\" kind=1 absent=- "
            "present=0 list=[3,4] parts=[(axis=1),(axis=2)] part=(axis=1) filler=(axis=1)");
  EXPECT_EQ(words_of(std::variant<Before, After>(After{.fast = true})), "size=3 fast=true");
}

TEST(Fields, EachOneChangesEqualityTextAndKey) {
  const Everything options;
  EXPECT_TRUE(options == Everything{});
  int seen = 0;
  testing::with_each_field_changed(options, [&](auto name, bool in_key, const Everything& changed) {
    EXPECT_FALSE(changed == options) << name;
    EXPECT_NE(words_of(changed), words_of(options)) << name;
    EXPECT_EQ(words_of(changed, Words::key) != words_of(options, Words::key), in_key) << name;
    ++seen;
  });
  EXPECT_EQ(seen, 12);
}

TEST(Fields, AFieldThatIsAddedCounts) {
  EXPECT_NE(words_of(Before{}), words_of(After{}));
  EXPECT_FALSE(After{} == After{.fast = false});
  EXPECT_NE(words_of(After{}, Words::key), words_of(After{.fast = false}, Words::key));
}

TEST(Fields, AListHasEveryMemberOnce) {
  EXPECT_EQ(member_count<Everything>(), 12u);
  EXPECT_TRUE(lists_all_members<Everything>());
  EXPECT_TRUE(lists_all_members<After>());
  EXPECT_FALSE(lists_all_members<ForgetsOne>());
  EXPECT_FALSE(lists_all_members<NamesOneTwice>());
  EXPECT_FALSE(lists_all_members<OneNameForTwo>());
}

// Whatever is in a text, it cannot pass for other fields.
TEST(Fields, TextsKeepToThemselves) {
  Everything one, other;
  one.text = "a\" kind=1";
  other.text = "a";
  EXPECT_EQ(word_of(one.text, Words::all).find('"', 1), word_of(one.text, Words::all).size() - 1);
  EXPECT_NE(words_of(one), words_of(other));
  EXPECT_EQ(word_of(std::string("\xff\\"), Words::all), "\"\\xff\\x5c\"");
}

}  // namespace
}  // namespace cortado
