// A packer that replaces what was there before by distance and length, and its reverse.
#include <stdio.h>
#include <string.h>

enum { kWindow = 255, kShortest = 4, kLongest = 255 };

static size_t same(const unsigned char* a, const unsigned char* b, size_t most) {
  size_t n = 0;
  while (n < most && a[n] == b[n]) n++;
  return n;
}

static size_t longest(const unsigned char* in, size_t at, size_t size, size_t* distance) {
  size_t best = 0, most = size - at < kLongest ? size - at : kLongest;
  for (size_t back = 1; back <= at && back <= kWindow; back++) {
    size_t n = same(in + at - back, in + at, most);
    if (n > best) {
      best = n;
      *distance = back;
    }
  }
  return best;
}

static unsigned char* put_byte(unsigned char* out, unsigned byte) {
  *out++ = byte;
  return out;
}

static unsigned char* put_copy(unsigned char* out, size_t distance, size_t length) {
  return put_byte(put_byte(put_byte(out, 1), distance), length);
}

static unsigned char* put_literal(unsigned char* out, unsigned char byte) {
  return put_byte(put_byte(out, 0), byte);
}

static size_t pack(const unsigned char* in, size_t size, unsigned char* out) {
  unsigned char* begin = out;
  for (size_t at = 0; at < size;) {
    size_t distance = 0, length = longest(in, at, size, &distance);
    if (length >= kShortest) {
      out = put_copy(out, distance, length);
      at += length;
    } else {
      out = put_literal(out, in[at++]);
    }
  }
  return out - begin;
}

static unsigned char* copy(unsigned char* out, size_t distance, size_t length) {
  for (; length > 0; length--, out++) *out = out[-(long)distance];
  return out;
}

static size_t unpack(const unsigned char* in, size_t size, unsigned char* out) {
  unsigned char* begin = out;
  for (const unsigned char* end = in + size; in < end;) {
    if (*in++ == 0) {
      *out++ = *in++;
    } else {
      out = copy(out, in[0], in[1]);
      in += 2;
    }
  }
  return out - begin;
}

int main(void) {
  const char* text =
      "she sells sea shells by the sea shore, and the shells she sells are sea shells; "
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  unsigned char packed[512], back[512];
  size_t size = strlen(text), small = pack((const unsigned char*)text, size, packed);
  size_t again = unpack(packed, small, back);
  printf("%zu bytes, packed %zu, unpacked %zu\n", size, small, again);
  return again != size || memcmp(back, text, size) != 0 || small >= size;
}
