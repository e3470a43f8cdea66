#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dwarf/cfi.h"
#include "dwarf/frame_builder.h"

namespace stackreel::dwarf {
namespace {

constexpr uint64_t kStart = 0x4000;

// One function of 64 bytes with the given instructions.
struct OneFunction {
  explicit OneFunction(const CfaCode& code, const NewCie& cie = {}, uint16_t machine = 62)
      : builder(Svma(0x1000)) {
    builder.AddFde(builder.AddCie(cie), kStart, 64, code);
    sections.eh_frame = builder.view();
    sections.eh_frame_svma = Svma(0x1000);
    sections.machine = machine;
    table.emplace(sections);
  }
  Result<std::vector<Row>> Rows() const {
    const auto fde = table->FindFde(Svma(kStart));
    if (!fde) return Fail(ErrorKind::kNotFound, "no FDE");
    return table->ReadRows(*fde);
  }
  // As text: "0 7+8 16:c-8 | 4 7+16 …", offsets from the start.
  std::string Text() const {
    const auto rows = Rows();
    if (!rows) return "error: " + rows.error().message;
    std::string text;
    for (const Row& row : *rows) {
      if (!text.empty()) text += " | ";
      text += std::to_string(row.start.value - kStart) + " ";
      text += row.cfa.is_expression
                  ? "exp" + std::to_string(row.cfa.expression.size())
                  : std::to_string(row.cfa.reg) + "+" + std::to_string(row.cfa.offset);
      for (unsigned reg = 0; reg < kMaxRegisters; ++reg) {
        const RegisterRule& rule = row.registers[reg];
        if (!rule.stated || reg == 16) continue;
        text += " " + std::to_string(reg) + ":" + RuleText(rule);
      }
    }
    return text;
  }
  static std::string RuleText(const RegisterRule& rule) {
    switch (rule.kind) {
      case RuleKind::kUndefined:
        return "u";
      case RuleKind::kSameValue:
        return "s";
      case RuleKind::kOffset:
        return "c" + std::to_string(rule.offset);
      case RuleKind::kValOffset:
        return "v" + std::to_string(rule.offset);
      case RuleKind::kRegister:
        return "r" + std::to_string(rule.other);
      case RuleKind::kExpression:
        return "exp" + std::to_string(rule.expression.size());
      case RuleKind::kValExpression:
        return "vexp" + std::to_string(rule.expression.size());
    }
    return "?";
  }

  FrameBuilder builder;
  FrameSections sections;
  std::optional<FrameTable> table;
};

TEST(RowCursor, WithoutInstructionsTheCieIsTheRow) {
  const OneFunction f{CfaCode()};
  const auto rows = f.Rows();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().start, Svma(kStart));
  EXPECT_EQ(rows->front().end, Svma(kStart + 64));
  EXPECT_EQ(rows->front().registers[16].offset, -8);
  EXPECT_EQ(f.Text(), "0 7+8");
}

TEST(RowCursor, AdvancesInAllForms) {
  EXPECT_EQ(OneFunction(CfaCode()
                            .Advance(1)
                            .DefCfaOffset(16)
                            .Op(0x02)
                            .Op(3)  // advance_loc1
                            .DefCfaOffset(24)
                            .Op(0x03)
                            .U16(5)  // advance_loc2
                            .DefCfaOffset(32)
                            .Op(0x04)
                            .U32(7)  // advance_loc4
                            .DefCfaOffset(40)
                            .Op(0x1d)
                            .U64(9)  // MIPS_advance_loc8
                            .DefCfaOffset(48))
                .Text(),
            "0 7+8 | 1 7+16 | 4 7+24 | 9 7+32 | 16 7+40 | 25 7+48");
}

TEST(RowCursor, ScalesByCodeAlignment) {
  NewCie cie;
  cie.code_align = 4;
  EXPECT_EQ(OneFunction(CfaCode().Advance(2).DefCfaOffset(16), cie).Text(), "0 7+8 | 8 7+16");
}

TEST(RowCursor, SetLocIsEncodedAsTheFdes) {
  // pcrel: the operand counts from where it lies. The FDE's instructions begin behind the CIE's 24
  // bytes, length, id, start, size (4 each) and an empty augmentation (1).
  FrameBuilder builder(Svma(0x1000));
  const uint64_t cie = builder.AddCie();
  const uint64_t operand = builder.view().size() + 17 + 1;
  CfaCode code;
  code.Op(0x01).U32(static_cast<uint32_t>(kStart + 12 - (0x1000 + operand))).DefCfaOffset(16);
  builder.AddFde(cie, kStart, 64, code);
  FrameSections sections;
  sections.eh_frame = builder.view();
  sections.eh_frame_svma = Svma(0x1000);
  const FrameTable table(sections);
  const auto rows = table.ReadRows(*table.FindFde(Svma(kStart)));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[1].start, Svma(kStart + 12));
}

TEST(RowCursor, GoingBackIsDamage) {
  NewCie cie;
  cie.fde_encoding = 0x04;  // udata8, absolute
  const OneFunction f(CfaCode().Advance(8).Op(0x01).U64(kStart + 4), cie);
  const auto rows = f.Rows();
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().kind, ErrorKind::kDamaged);
}

TEST(RowCursor, RowsEndWithTheFunction) {
  const OneFunction f(CfaCode().Advance(60).DefCfaOffset(16).Advance(10).DefCfaOffset(24));
  EXPECT_EQ(f.Text(), "0 7+8 | 60 7+16");
  EXPECT_EQ(f.Rows()->back().end, Svma(kStart + 64));
}

TEST(RowCursor, AnAdvanceByNothingMakesNoRow) {
  EXPECT_EQ(OneFunction(CfaCode().Advance(0).DefCfaOffset(16).Advance(4)).Text(),
            "0 7+16 | 4 7+16");
}

TEST(RowCursor, AllRules) {
  const OneFunction f(CfaCode()
                          .Offset(3, 2)
                          .Op(0x05)
                          .Uleb(6)
                          .Uleb(3)  // offset_extended
                          .Op(0x11)
                          .Uleb(12)
                          .Sleb(-4)  // offset_extended_sf
                          .Op(0x2f)
                          .Uleb(13)
                          .Uleb(5)  // GNU_negative_offset_extended
                          .Op(0x14)
                          .Uleb(14)
                          .Uleb(6)  // val_offset
                          .Op(0x15)
                          .Uleb(15)
                          .Sleb(-7)  // val_offset_sf
                          .Undefined(0)
                          .SameValue(1)
                          .Register(2, 9)
                          .Expression(4, {0x77, 0x08})
                          .Op(0x16)
                          .Uleb(5)
                          .Block({0x30}));  // val_expression
  EXPECT_EQ(f.Text(),
            "0 7+8 0:u 1:s 2:r9 3:c-16 4:exp2 5:vexp1 6:c-24 12:c32 13:c40 14:v-48 15:v56");
}

TEST(RowCursor, CfaInAllForms) {
  EXPECT_EQ(OneFunction(CfaCode()
                            .Advance(1)
                            .DefCfaRegister(6)
                            .Advance(1)
                            .Op(0x12)
                            .Uleb(7)
                            .Sleb(-3)  // def_cfa_sf: × data alignment
                            .Advance(1)
                            .Op(0x13)
                            .Sleb(-5)  // def_cfa_offset_sf
                            .Advance(1)
                            .DefCfaExpression({0x76, 0x78, 0x06})
                            .Advance(1)
                            .DefCfa(7, 33392))
                .Text(),
            "0 7+8 | 1 6+8 | 2 7+24 | 3 7+40 | 4 exp3 | 5 7+33392");
}

TEST(RowCursor, RestoreGoesBackToTheCie) {
  NewCie cie;
  cie.instructions.Offset(6, 2);
  EXPECT_EQ(OneFunction(CfaCode().Offset(6, 4).Offset(3, 5).Advance(4).Restore(6).Op(0x06).Uleb(
                            3),  // restore_extended
                        cie)
                .Text(),
            "0 7+8 3:c-40 6:c-32 | 4 7+8 6:c-16");
}

TEST(RowCursor, RememberAndRestoreStateCoverTheCfa) {
  EXPECT_EQ(OneFunction(CfaCode()
                            .DefCfaOffset(32)
                            .Offset(3, 2)
                            .Advance(4)
                            .RememberState()
                            .DefCfa(6, 16)
                            .Restore(3)
                            .RememberState()
                            .Offset(12, 3)
                            .Advance(4)
                            .RestoreState()
                            .Advance(4)
                            .RestoreState())
                .Text(),
            "0 7+32 3:c-16 | 4 6+16 12:c-24 | 8 6+16 | 12 7+32 3:c-16");
}

TEST(RowCursor, RestoreStateWithNothingRememberedIsDamage) {
  EXPECT_FALSE(OneFunction(CfaCode().RestoreState()).Rows());
}

TEST(RowCursor, RunsOfRememberStateAreBounded) {
  CfaCode code;
  for (int i = 0; i < 1000; ++i) code.RememberState();
  EXPECT_FALSE(OneFunction(code).Rows());
}

TEST(RowCursor, ArgumentsSizeIsNoPartOfTheCfa) {
  const OneFunction f(CfaCode().Op(0x2e).Uleb(48));
  ASSERT_TRUE(f.Rows());
  EXPECT_EQ(f.Rows()->front().args_size, 48u);
  EXPECT_EQ(f.Text(), "0 7+8");
}

TEST(RowCursor, VectorRegistersAreReadPast) {
  EXPECT_EQ(OneFunction(CfaCode()
                            .Op(0x05)
                            .Uleb(200)
                            .Uleb(3)
                            .Undefined(1'000'000)
                            .Register(99, 98)
                            .Expression(64, {0x30})
                            .Offset(63, 9)
                            .Offset(6, 2))
                .Text(),
            "0 7+8 6:c-16");
}

TEST(RowCursor, AnUnknownInstructionIsDamageButRowsBeforeItAreGood) {
  const OneFunction f(CfaCode().Advance(4).DefCfaOffset(16).Advance(4).Op(0x3f));
  EXPECT_FALSE(f.Rows());
  const auto row = f.table->FindRow(Svma(kStart + 5));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->cfa.offset, 16);
  EXPECT_FALSE(f.table->FindRow(Svma(kStart + 8)));
}

TEST(RowCursor, CutShortIsDamage) {
  EXPECT_FALSE(OneFunction(CfaCode().Op(0x0f).Uleb(1000)).Rows());
}

TEST(RowCursor, Aarch64SignState) {
  constexpr uint16_t kAarch64 = 183;
  const auto state_of = [](const Row& row) { return row.registers[kAarch64RaSignState].offset; };
  const OneFunction f(CfaCode()
                          .Op(0x2d)  // negate_ra_state
                          .Advance(4)
                          .RememberState()
                          .Op(0x2d)
                          .Advance(4)
                          .RestoreState()
                          .Advance(4)
                          .Op(0x2b)
                          .Uleb(2)
                          .Sleb(-1)  // set_ra_state
                          .Advance(4)
                          .Op(0x2c)  // negate_ra_state_with_pc
                          .Advance(4)
                          .Op(0x2c),
                      {}, kAarch64);
  const auto rows = f.Rows();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 6u);
  EXPECT_EQ(state_of((*rows)[0]), 1);
  EXPECT_EQ(state_of((*rows)[1]), 0);
  EXPECT_EQ(state_of((*rows)[2]), 1);
  EXPECT_EQ(state_of((*rows)[3]), 2);
  EXPECT_EQ(state_of((*rows)[4]), 0);
  EXPECT_EQ(state_of((*rows)[5]), 2);
}

TEST(RowCursor, VendorInstructionsOfOtherMachinesAreUnknown) {
  EXPECT_FALSE(OneFunction(CfaCode().Op(0x2d)).Rows());
  EXPECT_FALSE(OneFunction(CfaCode().Op(0x2b).Uleb(1).Uleb(1)).Rows());
}

TEST(RowCursor, TooManyRowsAtOnceAreRefusedButCanBeSteppedThrough) {
  FrameBuilder builder(Svma(0x1000));
  CfaCode code;
  for (int i = 0; i < 20'000; ++i) code.Advance(1);
  builder.AddFde(builder.AddCie(), 0x100000, 0x10000, code);
  FrameSections sections;
  sections.eh_frame = builder.view();
  sections.eh_frame_svma = Svma(0x1000);
  const FrameTable table(sections);
  const auto fde = table.FindFde(Svma(0x100000));
  ASSERT_TRUE(fde);
  const auto rows = table.ReadRows(*fde);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().kind, ErrorKind::kUnsupported);
  size_t count = 0;
  for (RowCursor cursor = table.Rows(*fde); *cursor.Next();) ++count;
  EXPECT_EQ(count, 20'001u);
}

}  // namespace
}  // namespace stackreel::dwarf
