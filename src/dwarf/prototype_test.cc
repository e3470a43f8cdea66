// What tests/compare_values.py holds against programs, in the cases that compilers do not make.
#include "dwarf/prototype.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"
#include "dwarf/source_index.h"

namespace stackreel::dwarf {
namespace {

using Kind = PrototypeType::Kind;
constexpr uint64_t kCpp14 = 0x21, kRust = 0x1c;

// A unit of one function at 0x1100 and the types it needs.
class PrototypeTest : public testing::Test {
 protected:
  PrototypeTest() : units_(kDwarf5) {}
  void Begin(uint64_t language = kCpp14) {
    units_.BeginUnit();
    units_.Die(kTagCompileUnit, true,
               {{kAtLanguage, kFormData1, language},
                {kAtLowPc, kFormAddr, 0x1100},
                {kAtHighPc, kFormData4, 0x100}});
  }
  uint64_t Base(uint64_t encoding, uint64_t size, const std::string& name) {
    return units_.InUnit(units_.Die(kTagBaseType, false,
                                    {{kAtEncoding, kFormData1, encoding},
                                     {kAtByteSize, kFormData1, size},
                                     {kAtName, kFormString, 0, name}}));
  }
  uint64_t To(uint16_t tag, uint64_t type) {
    return units_.InUnit(units_.Die(tag, false, {{kAtType, kFormRef4, type}}));
  }
  void Function(const std::vector<uint64_t>& parameters, uint64_t result = 0) {
    std::vector<NewAttribute> attributes = {{kAtName, kFormString, 0, "f"},
                                            {kAtLowPc, kFormAddr, 0x1100},
                                            {kAtHighPc, kFormData4, 0x40}};
    if (result != 0) attributes.push_back({kAtType, kFormRef4, result});
    units_.Die(kTagSubprogram, true, attributes);
    for (const uint64_t type : parameters) {
      units_.Die(kTagFormalParameter, false,
                 {{kAtName, kFormString, 0, "p"}, {kAtType, kFormRef4, type}});
    }
    units_.EndChildren();
    units_.EndChildren();
    units_.EndUnit();
  }
  std::expected<Prototype, std::string> Read(uint64_t svma = 0x1100) {
    auto index = SourceIndex::Open(DebugFileWriter().Add(units_).Take(), {});
    EXPECT_TRUE(index);
    return (*index)->PrototypeAt(Svma(svma));
  }
  UnitWriter units_;
};

TEST_F(PrototypeTest, AliasesAreSeenThrough) {
  Begin();
  const uint64_t character = Base(kAteSignedChar, 1, "char");
  const uint64_t name = To(kTagTypedef, To(kTagConstType, character));
  const uint64_t text = To(kTagVolatileType, To(kTagPointerType, name));
  Function({text, character, To(kTagReferenceType, character)}, Base(kAteFloat, 4, "float"));
  const auto prototype = Read();
  ASSERT_TRUE(prototype) << prototype.error();
  ASSERT_EQ(prototype->parameters.size(), 3u);
  EXPECT_EQ(prototype->parameters[0].type.text, TextLayout::kTerminated);
  EXPECT_EQ(prototype->parameters[1].type.kind, Kind::kCharacter);
  EXPECT_EQ(prototype->parameters[2].type.kind, Kind::kPointer);
  EXPECT_EQ(prototype->result.kind, Kind::kFloat);
  EXPECT_EQ(prototype->why_incomplete, "");
}

TEST_F(PrototypeTest, OnlyTheFunctionThatBeginsThereIsMeant) {
  Begin();
  Function({});
  EXPECT_TRUE(Read(0x1100));
  EXPECT_EQ(Read(0x1110).error(), "in its debug information it begins elsewhere");
  EXPECT_EQ(Read(0x1150).error(), "no debug information");
  EXPECT_EQ(Read(0x5000).error(), "no debug information");
}

TEST_F(PrototypeTest, OtherLanguagesCallOtherwise) {
  Begin(kRust);
  Function({});
  EXPECT_EQ(Read().error(), "of a language whose calls are not as C's");
}

TEST_F(PrototypeTest, BehindATypeThatIsNotThereNothingIsKnown) {
  Begin();
  const uint64_t number = Base(kAteSigned, 4, "int");
  const uint64_t declared = units_.InUnit(
      units_.Die(kTagStructureType, false,
                 {{kAtName, kFormString, 0, "later"}, {kAtDeclaration, kFormFlagPresent, 0}}));
  Function({number, declared, number});
  const auto prototype = Read();
  ASSERT_TRUE(prototype);
  EXPECT_EQ(prototype->parameters.size(), 1u);
  EXPECT_NE(prototype->why_incomplete, "");
  EXPECT_TRUE(prototype->result_is_known);
}

// Circles, and sizes beyond sense, are of types that cannot be known.
TEST_F(PrototypeTest, HostileTypesEnd) {
  Begin();
  const uint64_t number = Base(kAteSigned, 4, "int");
  const uint64_t self = units_.InUnit(units_.Die(
      kTagStructureType, true, {{kAtName, kFormString, 0, "s"}, {kAtByteSize, kFormData1, 8}}));
  units_.Die(kTagMember, false,
             {{kAtType, kFormRef4, self}, {kAtDataMemberLocation, kFormData1, 0}});
  units_.EndChildren();
  const uint64_t array =
      units_.InUnit(units_.Die(kTagArrayType, true, {{kAtType, kFormRef4, number}}));
  for (int i = 0; i < 4; ++i) {
    units_.Die(kTagSubrangeType, false, {{kAtCount, kFormData8, UINT32_MAX}});
  }
  units_.EndChildren();
  Function({number, array, number}, self);
  const auto prototype = Read();
  ASSERT_TRUE(prototype);
  EXPECT_FALSE(prototype->result_is_known);
  EXPECT_EQ(prototype->parameters.size(), 1u);
}

// GCC's constructors and destructors: the origin has __in_chrg and __vtt_parm; which of them is
// passed, only the instance knows.
TEST_F(PrototypeTest, ArtificialParametersAreThoseOfTheInstance) {
  Begin();
  const uint64_t number = Base(kAteSigned, 4, "int");
  const uint64_t pointer = To(kTagPointerType, number);
  const uint64_t origin =
      units_.InUnit(units_.Die(kTagSubprogram, true, {{kAtName, kFormString, 0, "Derived"}}));
  std::vector<uint64_t> parameters;
  for (const auto& [name, type, artificial] : {std::tuple("this", pointer, 1),
                                               {"__in_chrg", number, 1},
                                               {"__vtt_parm", pointer, 1},
                                               {"n", number, 0}}) {
    parameters.push_back(
        units_.InUnit(units_.Die(kTagFormalParameter, false,
                                 {{kAtName, kFormString, 0, name},
                                  {kAtType, kFormRef4, type},
                                  {kAtArtificial, kFormFlag, static_cast<uint64_t>(artificial)}})));
  }
  units_.EndChildren();
  // Of the complete object, and of a base object.
  const std::vector<std::vector<uint64_t>> instances = {
      {parameters[0], parameters[3]}, {parameters[0], parameters[2], parameters[3]}};
  for (size_t i = 0; i < instances.size(); ++i) {
    units_.Die(kTagSubprogram, true,
               {{kAtAbstractOrigin, kFormRef4, origin},
                {kAtLowPc, kFormAddr, 0x1100 + 0x40 * i},
                {kAtHighPc, kFormData4, 0x40}});
    for (const uint64_t parameter : instances[i]) {
      units_.Die(kTagFormalParameter, false, {{kAtAbstractOrigin, kFormRef4, parameter}});
    }
    units_.EndChildren();
  }
  units_.EndChildren();
  units_.EndUnit();
  const auto names = [this](uint64_t svma) {
    std::string text;
    const auto prototype = Read(svma);
    if (!prototype) return prototype.error();
    for (const auto& parameter : prototype->parameters) text += parameter.name + " ";
    return text;
  };
  EXPECT_EQ(names(0x1100), "this n ");
  EXPECT_EQ(names(0x1140), "this __vtt_parm n ");
}

TEST_F(PrototypeTest, EnumeratorsHaveTheirTypesSize) {
  Begin();
  const uint64_t enumeration =
      units_.InUnit(units_.Die(kTagEnumerationType, true,
                               {{kAtName, kFormString, 0, "color"}, {kAtByteSize, kFormData1, 1}}));
  units_.Die(kTagEnumerator, false,
             {{kAtName, kFormString, 0, "kHigh"}, {kAtConstValue, kFormData1, 0xff}});
  units_.EndChildren();
  Function({enumeration});
  const auto prototype = Read();
  ASSERT_TRUE(prototype);
  const PrototypeType& type = prototype->parameters.at(0).type;
  EXPECT_EQ(type.kind, Kind::kEnumeration);
  ASSERT_EQ(type.enumeration->names.size(), 1u);
  EXPECT_EQ(type.enumeration->names[0].first, -1);
}

}  // namespace
}  // namespace stackreel::dwarf
