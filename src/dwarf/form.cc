#include "dwarf/form.h"

#include "dwarf/constants.h"

namespace stackreel::dwarf {
namespace {

uint64_t ReadU24(ByteReader& reader) {
  const ByteView bytes = reader.Bytes(3);
  if (bytes.size() != 3) return 0;
  return reader.endian() == Endian::kLittle
             ? bytes[0] | uint64_t{bytes[1]} << 8 | uint64_t{bytes[2]} << 16
             : bytes[2] | uint64_t{bytes[1]} << 8 | uint64_t{bytes[0]} << 16;
}

// DW_FORM_ref_addr had the size of an address in DWARF 2, that of an offset since.
unsigned RefAddrSize(const Encoding& encoding) {
  return encoding.version <= 2 ? encoding.address_size : encoding.offset_size();
}

}  // namespace

uint64_t ReadSized(ByteReader& reader, unsigned size) {
  switch (size) {
    case 1:
      return reader.U8();
    case 2:
      return reader.U16();
    case 3:
      return ReadU24(reader);
    case 4:
      return reader.U32();
    case 8:
      return reader.U64();
    default:
      reader.Skip(UINT64_MAX);
      return 0;
  }
}

int FixedFormSize(uint16_t form, const Encoding& encoding) {
  switch (form) {
    case kFormFlagPresent:
    case kFormImplicitConst:
      return 0;
    case kFormData1:
    case kFormRef1:
    case kFormFlag:
    case kFormStrx1:
    case kFormAddrx1:
      return 1;
    case kFormData2:
    case kFormRef2:
    case kFormStrx2:
    case kFormAddrx2:
      return 2;
    case kFormStrx3:
    case kFormAddrx3:
      return 3;
    case kFormData4:
    case kFormRef4:
    case kFormRefSup4:
    case kFormStrx4:
    case kFormAddrx4:
      return 4;
    case kFormData8:
    case kFormRef8:
    case kFormRefSig8:
    case kFormRefSup8:
      return 8;
    case kFormData16:
      return 16;
    case kFormAddr:
      return encoding.address_size;
    case kFormRefAddr:
      return static_cast<int>(RefAddrSize(encoding));
    case kFormStrp:
    case kFormLineStrp:
    case kFormSecOffset:
    case kFormStrpSup:
    case kFormGnuRefAlt:
    case kFormGnuStrpAlt:
      return encoding.offset_size();
    default:
      return -1;
  }
}

bool SkipForm(ByteReader& reader, uint16_t form, const Encoding& encoding) {
  if (const int size = FixedFormSize(form, encoding); size >= 0) {
    reader.Skip(static_cast<uint64_t>(size));
    return reader.ok();
  }
  switch (form) {
    case kFormSdata:
    case kFormUdata:
    case kFormRefUdata:
    case kFormStrx:
    case kFormAddrx:
    case kFormLoclistx:
    case kFormRnglistx:
    case kFormGnuAddrIndex:
    case kFormGnuStrIndex:
      reader.Uleb128();
      break;
    case kFormString:
      reader.CString();
      break;
    case kFormBlock1:
      reader.Skip(reader.U8());
      break;
    case kFormBlock2:
      reader.Skip(reader.U16());
      break;
    case kFormBlock4:
      reader.Skip(reader.U32());
      break;
    case kFormBlock:
    case kFormExprloc:
      reader.Skip(reader.Uleb128());
      break;
    case kFormIndirect: {
      const uint64_t actual = reader.Uleb128();
      if (actual == kFormIndirect || actual == kFormImplicitConst || actual > UINT16_MAX) {
        return false;
      }
      return SkipForm(reader, static_cast<uint16_t>(actual), encoding);
    }
    default:
      return false;
  }
  return reader.ok();
}

bool ReadForm(ByteReader& reader, uint16_t form, int64_t implicit, const Encoding& encoding,
              FormValue* value) {
  *value = FormValue{};
  const auto number = [&](FormClass form_class, uint64_t n) {
    value->form_class = form_class;
    value->number = n;
    return reader.ok();
  };
  switch (form) {
    case kFormAddr:
      return number(FormClass::kAddress, ReadSized(reader, encoding.address_size));
    case kFormAddrx1:
    case kFormAddrx2:
    case kFormAddrx3:
    case kFormAddrx4:
      return number(FormClass::kAddressIndex, ReadSized(reader, form - kFormAddrx1 + 1U));
    case kFormAddrx:
    case kFormGnuAddrIndex:
      return number(FormClass::kAddressIndex, reader.Uleb128());
    case kFormData1:
      return number(FormClass::kConstant, reader.U8());
    case kFormData2:
      return number(FormClass::kConstant, reader.U16());
    case kFormData4:
      return number(FormClass::kConstant, reader.U32());
    case kFormData8:
      return number(FormClass::kConstant, reader.U64());
    case kFormUdata:
      return number(FormClass::kConstant, reader.Uleb128());
    case kFormSdata:
      return number(FormClass::kConstant, static_cast<uint64_t>(reader.Sleb128()));
    case kFormImplicitConst:
      return number(FormClass::kConstant, static_cast<uint64_t>(implicit));
    case kFormFlag:
      return number(FormClass::kConstant, reader.U8());
    case kFormFlagPresent:
      return number(FormClass::kConstant, 1);
    case kFormSecOffset:
      return number(FormClass::kSectionOffset, ReadSized(reader, encoding.offset_size()));
    case kFormRnglistx:
      return number(FormClass::kRangeListIndex, reader.Uleb128());
    case kFormString:
      value->text = reader.CString();
      return number(FormClass::kText, 0);
    case kFormStrp:
      return number(FormClass::kTextOffset, ReadSized(reader, encoding.offset_size()));
    case kFormLineStrp:
      return number(FormClass::kLineTextOffset, ReadSized(reader, encoding.offset_size()));
    case kFormStrpSup:
    case kFormGnuStrpAlt:
      return number(FormClass::kAltTextOffset, ReadSized(reader, encoding.offset_size()));
    case kFormStrx1:
    case kFormStrx2:
    case kFormStrx3:
    case kFormStrx4:
      return number(FormClass::kTextIndex, ReadSized(reader, form - kFormStrx1 + 1U));
    case kFormStrx:
    case kFormGnuStrIndex:
      return number(FormClass::kTextIndex, reader.Uleb128());
    case kFormRef1:
      return number(FormClass::kUnitRef, reader.U8());
    case kFormRef2:
      return number(FormClass::kUnitRef, reader.U16());
    case kFormRef4:
      return number(FormClass::kUnitRef, reader.U32());
    case kFormRef8:
      return number(FormClass::kUnitRef, reader.U64());
    case kFormRefUdata:
      return number(FormClass::kUnitRef, reader.Uleb128());
    case kFormRefAddr:
      return number(FormClass::kInfoRef, ReadSized(reader, RefAddrSize(encoding)));
    case kFormRefSup4:
      return number(FormClass::kAltRef, reader.U32());
    case kFormRefSup8:
      return number(FormClass::kAltRef, reader.U64());
    case kFormGnuRefAlt:
      return number(FormClass::kAltRef, ReadSized(reader, encoding.offset_size()));
    case kFormIndirect: {
      const uint64_t actual = reader.Uleb128();
      if (actual == kFormIndirect || actual == kFormImplicitConst || actual > UINT16_MAX) {
        return false;
      }
      return ReadForm(reader, static_cast<uint16_t>(actual), 0, encoding, value);
    }
    default:
      return SkipForm(reader, form, encoding);
  }
}

}  // namespace stackreel::dwarf
