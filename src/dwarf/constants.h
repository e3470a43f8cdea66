// The numbers of DWARF 5 (chapter 7), of earlier versions and of GNU extensions that are read here.
#pragma once

#include <cstdint>

namespace stackreel::dwarf {

enum Tag : uint16_t {
  kTagArrayType = 0x01,
  kTagClassType = 0x02,
  kTagEnumerationType = 0x04,
  kTagFormalParameter = 0x05,
  kTagMember = 0x0d,
  kTagPointerType = 0x0f,
  kTagReferenceType = 0x10,
  kTagCompileUnit = 0x11,
  kTagStructureType = 0x13,
  kTagSubroutineType = 0x15,
  kTagTypedef = 0x16,
  kTagUnionType = 0x17,
  kTagUnspecifiedParameters = 0x18,
  kTagInheritance = 0x1c,
  kTagInlinedSubroutine = 0x1d,
  kTagPtrToMemberType = 0x1f,
  kTagSubrangeType = 0x21,
  kTagBaseType = 0x24,
  kTagConstType = 0x26,
  kTagEnumerator = 0x28,
  kTagSubprogram = 0x2e,
  kTagVolatileType = 0x35,
  kTagRestrictType = 0x37,
  kTagUnspecifiedType = 0x3b,
  kTagRvalueReferenceType = 0x42,
  kTagTemplateAlias = 0x43,
  kTagAtomicType = 0x47,
  kTagImmutableType = 0x4b,
};

enum BaseEncoding : uint8_t {
  kAteAddress = 0x01,
  kAteBoolean = 0x02,
  kAteComplexFloat = 0x03,
  kAteFloat = 0x04,
  kAteSigned = 0x05,
  kAteSignedChar = 0x06,
  kAteUnsigned = 0x07,
  kAteUnsignedChar = 0x08,
  kAteDecimalFloat = 0x0f,
  kAteUtf = 0x10,
};

enum CallingConvention : uint8_t {
  kCcNormal = 0x01,
  kCcPassByReference = 0x04,
};

enum UnitType : uint8_t {
  kUnitCompile = 1,
  kUnitType = 2,
  kUnitPartial = 3,
  kUnitSkeleton = 4,
  kUnitSplitCompile = 5,
  kUnitSplitType = 6,
};

enum Attribute : uint16_t {
  kAtSibling = 0x01,
  kAtName = 0x03,
  kAtByteSize = 0x0b,
  kAtBitSize = 0x0d,
  kAtStmtList = 0x10,
  kAtLowPc = 0x11,
  kAtHighPc = 0x12,
  kAtLanguage = 0x13,
  kAtCompDir = 0x1b,
  kAtConstValue = 0x1c,
  kAtUpperBound = 0x2f,
  kAtAbstractOrigin = 0x31,
  kAtCallingConvention = 0x36,
  kAtCount = 0x37,
  kAtDataMemberLocation = 0x38,
  kAtArtificial = 0x34,
  kAtDeclaration = 0x3c,
  kAtEncoding = 0x3e,
  kAtExternal = 0x3f,
  kAtSpecification = 0x47,
  kAtType = 0x49,
  kAtVirtuality = 0x4c,
  kAtRanges = 0x55,
  kAtCallColumn = 0x57,
  kAtCallFile = 0x58,
  kAtCallLine = 0x59,
  kAtLinkageName = 0x6e,
  kAtStrOffsetsBase = 0x72,
  kAtAddrBase = 0x73,
  kAtRnglistsBase = 0x74,
  kAtDwoName = 0x76,
  kAtDataBitOffset = 0x6b,
  kAtAlignment = 0x88,
  kAtMipsLinkageName = 0x2007,
  kAtGnuVector = 0x2107,
  kAtGnuDwoName = 0x2130,
  kAtGnuDwoId = 0x2131,
  kAtGnuRangesBase = 0x2132,
  kAtGnuAddrBase = 0x2133,
};

enum Form : uint16_t {
  kFormAddr = 0x01,
  kFormBlock2 = 0x03,
  kFormBlock4 = 0x04,
  kFormData2 = 0x05,
  kFormData4 = 0x06,
  kFormData8 = 0x07,
  kFormString = 0x08,
  kFormBlock = 0x09,
  kFormBlock1 = 0x0a,
  kFormData1 = 0x0b,
  kFormFlag = 0x0c,
  kFormSdata = 0x0d,
  kFormStrp = 0x0e,
  kFormUdata = 0x0f,
  kFormRefAddr = 0x10,
  kFormRef1 = 0x11,
  kFormRef2 = 0x12,
  kFormRef4 = 0x13,
  kFormRef8 = 0x14,
  kFormRefUdata = 0x15,
  kFormIndirect = 0x16,
  kFormSecOffset = 0x17,
  kFormExprloc = 0x18,
  kFormFlagPresent = 0x19,
  kFormStrx = 0x1a,
  kFormAddrx = 0x1b,
  kFormRefSup4 = 0x1c,
  kFormStrpSup = 0x1d,
  kFormData16 = 0x1e,
  kFormLineStrp = 0x1f,
  kFormRefSig8 = 0x20,
  kFormImplicitConst = 0x21,
  kFormLoclistx = 0x22,
  kFormRnglistx = 0x23,
  kFormRefSup8 = 0x24,
  kFormStrx1 = 0x25,
  kFormStrx2 = 0x26,
  kFormStrx3 = 0x27,
  kFormStrx4 = 0x28,
  kFormAddrx1 = 0x29,
  kFormAddrx2 = 0x2a,
  kFormAddrx3 = 0x2b,
  kFormAddrx4 = 0x2c,
  kFormGnuAddrIndex = 0x1f01,
  kFormGnuStrIndex = 0x1f02,
  kFormGnuRefAlt = 0x1f20,
  kFormGnuStrpAlt = 0x1f21,
};

enum RangeListEntry : uint8_t {
  kRleEndOfList = 0,
  kRleBaseAddressx = 1,
  kRleStartxEndx = 2,
  kRleStartxLength = 3,
  kRleOffsetPair = 4,
  kRleBaseAddress = 5,
  kRleStartEnd = 6,
  kRleStartLength = 7,
};

enum LineOpcode : uint8_t {
  kLnsExtended = 0,
  kLnsCopy = 1,
  kLnsAdvancePc = 2,
  kLnsAdvanceLine = 3,
  kLnsSetFile = 4,
  kLnsSetColumn = 5,
  kLnsNegateStmt = 6,
  kLnsSetBasicBlock = 7,
  kLnsConstAddPc = 8,
  kLnsFixedAdvancePc = 9,
};

enum LineExtendedOpcode : uint8_t {
  kLneEndSequence = 1,
  kLneSetAddress = 2,
  kLneDefineFile = 3,
};

enum LineContent : uint8_t {
  kLnctPath = 1,
  kLnctDirectoryIndex = 2,
};

// Columns of a package index: the version 5 numbers; version 2 (GNU) differs from kSectLoclists on.
enum PackageSection : uint8_t {
  kSectInfo = 1,
  kSectAbbrev = 3,
  kSectLine = 4,
  kSectStrOffsets = 6,
  kSectRnglists = 8,
};

}  // namespace stackreel::dwarf
