// Several bases, one of them virtual: calls through thunks that move `this`, and casts across.
#include <cstdio>
#include <string>
#include <typeinfo>

namespace {

struct Named {
  virtual ~Named() = default;
  virtual std::string Name() const { return "none"; }
  int id = 1;
};

struct Reader : virtual Named {
  virtual int Read() = 0;
  std::string Name() const override { return "reader"; }
  int read = 2;
};

struct Writer : virtual Named {
  virtual int Write(int n) = 0;
  int written = 3;
};

struct File : Reader, Writer {
  int Read() override { return read++; }
  int Write(int n) override { return written += n; }
  std::string Name() const override { return "file"; }
};

struct Locked final : File {
  int Write(int) override { return -1; }
  // Returns a more derived type than it is asked for.
  virtual Locked* Self() { return this; }
};

[[gnu::noinline]] int Use(Writer& writer, int n) { return writer.Write(n); }
[[gnu::noinline]] int UseBoth(Reader& reader) {
  auto* writer = dynamic_cast<Writer*>(&reader);
  return writer ? Use(*writer, reader.Read()) : 0;
}

}  // namespace

int main() {
  File file;
  Locked locked;
  int (Reader::*read)() = &Reader::Read;
  int sum = UseBoth(file) + UseBoth(*locked.Self()) + Use(file, 1) + (file.*read)();
  const Named* const names[] = {&file, &locked};
  for (const Named* named : names) sum += static_cast<int>(named->Name().size());
  std::printf("%d\n", sum);
  return sum == 5 - 1 + 6 + 3 + 8 && typeid(*names[1]) == typeid(Locked) ? 0 : 1;
}
