#include "elf/image.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include <fstream>
#include <iterator>
#include <ostream>
#include <string>

#include "elf/compression.h"
#include "elf/elf_writer.h"

namespace stackreel::elf {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

BuildId Id(std::string_view hex) { return *BuildId::FromHex(hex); }

Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Bytes Zlib(ByteView bytes) {
  libdeflate_compressor* deflate = libdeflate_alloc_compressor(6);
  Bytes out(libdeflate_zlib_compress_bound(deflate, bytes.size()));
  out.resize(libdeflate_zlib_compress(deflate, bytes.data(), bytes.size(), out.data(), out.size()));
  libdeflate_free_compressor(deflate);
  return out;
}
Bytes Gzip(ByteView bytes) {
  libdeflate_compressor* deflate = libdeflate_alloc_compressor(6);
  Bytes out(libdeflate_gzip_compress_bound(deflate, bytes.size()));
  out.resize(libdeflate_gzip_compress(deflate, bytes.data(), bytes.size(), out.data(), out.size()));
  libdeflate_free_compressor(deflate);
  return out;
}
Bytes Zstd(ByteView bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}
Bytes Xz(ByteView bytes) {
  Bytes out(lzma_stream_buffer_bound(bytes.size()));
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, bytes.data(), bytes.size(),
                                    out.data(), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

struct Form {
  Class elf_class;
  Endian endian;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << (form.elf_class == Class::k64 ? "64 bits, " : "32 bits, ")
       << (form.endian == Endian::kBig ? "big-endian" : "little-endian");
}

class ImageFormTest : public testing::TestWithParam<Form> {};

INSTANTIATE_TEST_SUITE_P(AllForms, ImageFormTest,
                         testing::Values(Form{Class::k64, Endian::kLittle},
                                         Form{Class::k64, Endian::kBig},
                                         Form{Class::k32, Endian::kLittle},
                                         Form{Class::k32, Endian::kBig}));

// A file with everything the image reads, in one form.
Bytes FullFile(Form form) {
  ElfWriter writer(form.elf_class, form.endian, EM_AARCH64, ET_DYN);
  const uint32_t text = writer.Add({.name = ".text",
                                    .flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .addr = 0x2000,
                                    .bytes = Bytes(64, 0x90),
                                    .align = 16});
  const uint32_t data = writer.Add({.name = ".data",
                                    .flags = SHF_ALLOC | SHF_WRITE,
                                    .addr = 0x4000,
                                    .bytes = {1, 2, 3, 4},
                                    .align = 4});
  writer.Add({.name = ".bss", .type = SHT_NOBITS, .addr = 0x5000, .nobits_size = 1 << 20});
  writer.AddSegment(PT_LOAD, PF_R | PF_W, data);
  writer.AddSegment(PT_LOAD, PF_R | PF_X, text);
  writer.AddBuildId(Id("00112233445566778899aabbccddeeff00112233"));
  writer.AddDebugLink("x.debug", 0x12345678);
  writer.Add({.name = ".gnu_debugaltlink",
              .bytes = ElfWriter::Copy(AsBytes(std::string_view("../alt\0\xab\xcd", 9)))});
  writer.AddSymbols(
      SHT_SYMTAB,
      {{.name = "main", .value = 0x2010, .size = 16},
       {.name = "helper", .value = 0x2020, .size = 8, .type = STT_NOTYPE, .binding = STB_LOCAL}});
  writer.AddSymbols(SHT_DYNSYM, {{.name = "puts", .section = 0}});
  return writer.Take();
}

TEST_P(ImageFormTest, ReadsHeaderSegmentsAndSections) {
  const Bytes file = FullFile(GetParam());
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image) << image.error().ToString();
  EXPECT_EQ(image->elf_class(), GetParam().elf_class);
  EXPECT_EQ(image->endian(), GetParam().endian);
  EXPECT_EQ(image->machine(), EM_AARCH64);
  EXPECT_EQ(image->type(), ET_DYN);
  EXPECT_EQ(image->entry(), Svma(0x1000));
  EXPECT_EQ(image->damage(), "");
  ASSERT_EQ(image->segments().size(), 2);
  EXPECT_EQ(image->segments()[1].vaddr, 0x2000);
  EXPECT_EQ(image->segments()[1].file_size, 64);
  EXPECT_EQ(image->segments()[1].align, 16);
  EXPECT_TRUE(image->segments()[1].executable());
  EXPECT_FALSE(image->segments()[0].executable());
  const Section* data = image->FindSection(".data");
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->addr, 0x4000);
  EXPECT_THAT(image->RawBytes(*data), testing::ElementsAre(1, 2, 3, 4));
  const Section* bss = image->FindSection(".bss");
  ASSERT_NE(bss, nullptr);
  EXPECT_TRUE(image->ReadSection(*bss)->view().empty());
  EXPECT_EQ(image->FindSection(".nothing"), nullptr);
}

TEST_P(ImageFormTest, ReadsSymbols) {
  const Bytes file = FullFile(GetParam());
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  const auto symbols = image->ReadSymtab();
  ASSERT_EQ(symbols.size(), 2);
  EXPECT_EQ(symbols[0].name, "main");
  EXPECT_EQ(symbols[0].value, 0x2010);
  EXPECT_EQ(symbols[0].size, 16);
  EXPECT_EQ(symbols[0].type, STT_FUNC);
  EXPECT_EQ(symbols[0].binding, STB_GLOBAL);
  EXPECT_EQ(symbols[0].section, 1);
  EXPECT_EQ(symbols[1].type, STT_NOTYPE);
  EXPECT_EQ(symbols[1].binding, STB_LOCAL);
  const auto dynamic = image->ReadDynsym();
  ASSERT_EQ(dynamic.size(), 1);
  EXPECT_EQ(dynamic[0].name, "puts");
  EXPECT_EQ(dynamic[0].section, SHN_UNDEF);
}

TEST_P(ImageFormTest, ReadsNotesAndLinks) {
  const Bytes file = FullFile(GetParam());
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->ReadBuildId()->ToHex(), "00112233445566778899aabbccddeeff00112233");
  EXPECT_EQ(image->ReadDebugLink()->file_name, "x.debug");
  EXPECT_EQ(image->ReadDebugLink()->crc, 0x12345678);
  EXPECT_EQ(image->ReadDebugAltLink()->file_name, "../alt");
  EXPECT_EQ(image->ReadDebugAltLink()->build_id.ToHex(), "abcd");
}

TEST_P(ImageFormTest, TranslatesThroughSegments) {
  const Bytes file = FullFile(GetParam());
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  const FileOffset text(image->FindSection(".text")->offset);
  EXPECT_EQ(image->SvmaOf(text + 5), Svma(0x2005));
  EXPECT_EQ(image->OffsetOf(Svma(0x203f)), text + 0x3f);
  EXPECT_EQ(image->OffsetOf(Svma(0x2040)), std::nullopt);
  EXPECT_EQ(image->SvmaOf(FileOffset(file.size())), std::nullopt);
  EXPECT_THAT(image->BytesAt(Svma(0x4002)), testing::ElementsAre(3, 4));
  EXPECT_TRUE(image->BytesAt(Svma(0x4004)).empty());
}

// Everything that can be asked of an image; its answers do not matter.
void UseEverything(ByteView bytes) {
  const auto image = Image::Parse(bytes);
  if (!image) return;
  for (const Section& section : image->sections()) (void)image->ReadSection(section);
  for (const Segment& segment : image->segments()) (void)image->BytesAt(Svma(segment.vaddr));
  (void)image->ReadSymtab();
  (void)image->ReadDynsym();
  (void)image->ReadBuildId();
  (void)image->ReadDebugLink();
  (void)image->ReadDebugAltLink();
  (void)image->ReadGnuDebugdata();
  (void)image->SvmaOf(FileOffset(0));
  (void)image->OffsetOf(Svma(0));
}

TEST_P(ImageFormTest, SurvivesEveryCutAndEveryByteChanged) {
  const Bytes file = FullFile(GetParam());
  for (size_t size = 0; size < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const auto image = Image::Parse(cut);
    // The section headers lie last, so a cut file has none of them.
    EXPECT_TRUE(!image || image->damage().starts_with("section header table")) << size;
    UseEverything(cut);
  }
  Bytes changed = file;
  for (size_t i = 0; i < changed.size(); ++i) {
    for (const uint8_t value : {0x00, 0x7f, 0xff}) {
      changed[i] = value;
      UseEverything(changed);
    }
    changed[i] = file[i];
  }
}

TEST(ImageTest, SaysWhatIsWrongWithAHeader) {
  const auto text = Image::Parse(AsBytes("#!/bin/sh\necho this is no ELF file"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::kDamaged);
  EXPECT_EQ(text.error().ToString(), "offset 0x0: not an ELF file");
  Bytes file = FullFile({Class::k64, Endian::kLittle});
  StoreUnaligned<uint64_t>(&file[32], 1 << 30, Endian::kLittle);  // e_phoff
  const auto far = Image::Parse(file);
  ASSERT_FALSE(far);
  EXPECT_THAT(far.error().ToString(), HasSubstr("program header table of 2 entries of 56 bytes"));
  EXPECT_EQ(far.error().offset, 1 << 30);
}

TEST(ImageTest, CountsTooLargeForTheHeaderStandInSectionZero) {
  Bytes file = FullFile({Class::k64, Endian::kLittle});
  const auto shoff = LoadUnaligned<uint64_t>(&file[40], Endian::kLittle);
  const auto shnum = LoadUnaligned<uint16_t>(&file[60], Endian::kLittle);
  const auto shstrndx = LoadUnaligned<uint16_t>(&file[62], Endian::kLittle);
  StoreUnaligned<uint16_t>(&file[60], 0, Endian::kLittle);
  StoreUnaligned<uint16_t>(&file[62], SHN_XINDEX, Endian::kLittle);
  StoreUnaligned<uint64_t>(&file[shoff + 32], shnum, Endian::kLittle);     // sh_size
  StoreUnaligned<uint32_t>(&file[shoff + 40], shstrndx, Endian::kLittle);  // sh_link
  StoreUnaligned<uint16_t>(&file[56], PN_XNUM, Endian::kLittle);
  StoreUnaligned<uint32_t>(&file[shoff + 44], 2, Endian::kLittle);  // sh_info
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image) << image.error().ToString();
  EXPECT_EQ(image->sections().size(), shnum);
  EXPECT_EQ(image->segments().size(), 2);
  EXPECT_NE(image->FindSection(".text"), nullptr);
}

// lld lays segments out so that several share a page: a file offset belongs to the one segment
// whose exact range holds it, though the kernel maps whole pages of each.
TEST(ImageTest, FindsTheSegmentOfAnOffsetInASharedPage) {
  ElfWriter writer;
  writer.AddSegment({.type = PT_LOAD, .flags = PF_R, .offset = 0, .vaddr = 0, .file_size = 0x640});
  writer.AddSegment({.type = PT_LOAD,
                     .flags = PF_R | PF_X,
                     .offset = 0x640,
                     .vaddr = 0x1640,
                     .file_size = 0x200});
  writer.AddSegment({.type = PT_LOAD,
                     .flags = PF_R | PF_W,
                     .offset = 0x840,
                     .vaddr = 0x2840,
                     .file_size = 0x100,
                     .mem_size = 0x1000});
  const Bytes file = writer.Take();
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->SvmaOf(FileOffset(0x63f)), Svma(0x63f));
  EXPECT_EQ(image->SvmaOf(FileOffset(0x640)), Svma(0x1640));
  EXPECT_EQ(image->SvmaOf(FileOffset(0x83f)), Svma(0x183f));
  EXPECT_EQ(image->SvmaOf(FileOffset(0x840)), Svma(0x2840));
  EXPECT_EQ(image->OffsetOf(Svma(0x2940)), std::nullopt) << "in memory only";
}

TEST(ImageTest, FindsBuildIdAmongOtherNotesOfAProgramHeader) {
  ByteWriter note;
  note.U32(4);
  note.U32(16);
  note.U32(NT_GNU_PROPERTY_TYPE_0);
  note.Text(std::string_view("GNU\0", 4));
  note.Zeros(16);
  note.U32(4);
  note.U32(8);
  note.U32(NT_GNU_BUILD_ID);
  note.Text(std::string_view("GNU\0", 4));
  note.U64(0x0807060504030201);
  ElfWriter writer;
  const uint32_t section = writer.Add({.name = "x", .bytes = note.Take(), .align = 8});
  writer.AddSegment(PT_NOTE, PF_R, section);
  const Bytes file = writer.Take();
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->ReadBuildId()->ToHex(), "0102030405060708");
}

TEST(ImageTest, DecompressesSections) {
  Bytes plain(100'000);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<uint8_t>(i / 100);
  const auto header = [&](uint32_t type, uint64_t size, const Bytes& stream) {
    ByteWriter out;
    out.U32(type);
    out.U32(0);
    out.U64(size);
    out.U64(1);
    out.Bytes(stream);
    return out.Take();
  };
  ByteWriter old(Endian::kBig);
  old.Text("ZLIB");
  old.U64(plain.size());
  old.Bytes(Zlib(plain));
  ElfWriter writer;
  writer.Add(
      {.name = ".a", .flags = SHF_COMPRESSED, .bytes = header(1, plain.size(), Zlib(plain))});
  writer.Add(
      {.name = ".b", .flags = SHF_COMPRESSED, .bytes = header(2, plain.size(), Zstd(plain))});
  writer.Add({.name = ".zdebug_info", .bytes = old.Take()});
  writer.Add({.name = ".c", .flags = SHF_COMPRESSED, .bytes = header(1, 50'000, Zlib(plain))});
  writer.Add({.name = ".d", .flags = SHF_COMPRESSED, .bytes = header(1, 100'001, Zlib(plain))});
  writer.Add({.name = ".e", .flags = SHF_COMPRESSED, .bytes = header(1, ~0ULL, Zlib(plain))});
  writer.Add({.name = ".f", .flags = SHF_COMPRESSED, .bytes = header(7, 1, Zlib(plain))});
  const Bytes file = writer.Take();
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  for (const char* name : {".a", ".b", ".zdebug_info"}) {
    const auto bytes = image->ReadSection(*image->FindSection(name));
    ASSERT_TRUE(bytes) << name << ": " << bytes.error().ToString();
    EXPECT_TRUE(std::ranges::equal(bytes->view(), plain)) << name;
  }
  const auto message = [&](const char* name) {
    return image->ReadSection(*image->FindSection(name)).error().ToString();
  };
  EXPECT_THAT(message(".c"), HasSubstr("gives more than 50000 bytes"));
  EXPECT_THAT(message(".d"), HasSubstr("became 100000 bytes, not 100001"));
  EXPECT_THAT(message(".e"), HasSubstr("may become"));
  EXPECT_THAT(message(".f"), HasSubstr("method 7"));
}

TEST(ImageTest, ReadsMiniDebugInfo) {
  const Bytes inner = FullFile({Class::k64, Endian::kLittle});
  ElfWriter writer;
  writer.Add({.name = ".gnu_debugdata", .bytes = Xz(inner)});
  const Bytes file = writer.Take();
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(*image->ReadGnuDebugdata(), inner);
  const Bytes without = FullFile({Class::k64, Endian::kLittle});
  EXPECT_EQ(Image::Parse(without)->ReadGnuDebugdata().error().kind, ErrorKind::kNotFound);
}

TEST(CompressionTest, CutStreamsAndBombsAreErrors) {
  const Bytes zeros(size_t{20} << 20);
  for (const auto& [compress, decompress] :
       {std::pair{&Xz, &DecompressXz}, std::pair{&Zstd, &DecompressZstd}}) {
    const Bytes bomb = compress(zeros);
    EXPECT_LT(bomb.size(), zeros.size() / 1032) << "not a bomb";
    EXPECT_THAT(decompress(bomb).error().message, HasSubstr("gives more than"));
    Bytes stream = compress(FullFile({Class::k64, Endian::kLittle}));
    ASSERT_TRUE(decompress(stream));
    while (!stream.empty()) {
      stream.pop_back();
      EXPECT_FALSE(decompress(stream)) << stream.size();
    }
  }
}

// zlib's format gives at most 1,032 times as much as it is given, so that no stream is a bomb.
TEST(CompressionTest, GzipStreamsOfAnyRatioAreRead) {
  Bytes plain(size_t{20} << 20);
  Bytes stream = Gzip(plain);
  ASSERT_LT(stream.size(), plain.size() / 500) << "several buffers are too small";
  auto read = DecompressGzip(stream);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(*read, plain);
  stream = Gzip(FullFile({Class::k64, Endian::kLittle}));
  read = DecompressGzip(stream);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, FullFile({Class::k64, Endian::kLittle}));
  while (!stream.empty()) {
    stream.pop_back();
    EXPECT_FALSE(DecompressGzip(stream)) << stream.size();
  }
}

TEST(ImageTest, ReadsThisProgram) {
  const Bytes file = ReadFile("/proc/self/exe");
  const auto image = Image::Parse(file);
  ASSERT_TRUE(image) << image.error().ToString();
  EXPECT_EQ(image->damage(), "");
  const auto symbols = image->ReadSymtab();
  const auto main = std::ranges::find(symbols, "main", &Symbol::name);
  ASSERT_NE(main, symbols.end());
  EXPECT_EQ(main->type, STT_FUNC);
  EXPECT_FALSE(image->BytesAt(Svma(main->value)).empty());
  EXPECT_FALSE(image->ReadDynsym().empty());
}

TEST(DebugLinkCrcTest, IsTheCrc32OfTheGdbManual) {
  EXPECT_EQ(DebugLinkCrc(AsBytes("123456789")), 0xcbf43926);
  EXPECT_EQ(DebugLinkCrc({}), 0);
}

}  // namespace
}  // namespace stackreel::elf
