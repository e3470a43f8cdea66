// The small language in which layout tables are written, and the walks over them.
//
//   template <> inline constexpr auto kLayout<Lost> = Layout<Lost>(
//       F("id", &Lost::id, Sensitivity::kNone), F("lost", &Lost::lost, Sensitivity::kNone));
//
// A table is a tuple of entries in wire order. Each entry can decode, encode, visit and list the
// members it names.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfdata/schema.h"
#include "perfdata/wire.h"

namespace stackreel::perfdata {

// ---- observers of a decode ----
// Called for each field with where it was; NoTrace compiles to nothing.
struct NoTrace {
  template <typename M>
  void Field(const FieldInfo&, const ByteReader&, size_t /*begin*/, const M&) {}
  void Enter(std::string_view, size_t /*index*/) {}
  void Leave() {}
};

// ---- the table of a type ----
template <typename T>
inline constexpr int kLayout = 0;  // none
template <typename T>
concept HasLayout = !std::same_as<std::remove_cvref_t<decltype(kLayout<T>)>, int>;

// ---- how many members a structure has ----
namespace internal {
struct Anything {
  template <typename U>
  operator U() const;  // NOLINT(google-explicit-constructor): converts to any member's type
};
template <typename T, size_t... I>
consteval bool TakesMembers(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}
template <typename T, size_t N = 0>
consteval size_t MemberCount() {
  if constexpr (!TakesMembers<T>(std::make_index_sequence<N + 1>{})) {
    return N;
  } else {
    return MemberCount<T, N + 1>();
  }
}
}  // namespace internal

template <typename T, typename Entries>
struct LayoutTable {
  using Type = T;
  Entries entries;
};

// Makes the table of T; does not compile unless the entries name as many members as T has.
template <typename T, typename... Entries>
consteval auto Layout(Entries... entries) {
  static_assert((size_t{0} + ... + Entries::kMembers) == internal::MemberCount<T>(),
                "every member needs an entry with its Sensitivity");
  return LayoutTable<T, std::tuple<Entries...>>{std::tuple<Entries...>(entries...)};
}
// Part of T only: for what T keeps besides what is in the file.
template <typename T, size_t kUnlisted, typename... Entries>
consteval auto LayoutWithout(Entries... entries) {
  static_assert((size_t{0} + ... + Entries::kMembers) + kUnlisted == internal::MemberCount<T>(),
                "every member needs an entry with its Sensitivity");
  return LayoutTable<T, std::tuple<Entries...>>{std::tuple<Entries...>(entries...)};
}

// ---- walks ----
template <typename T, typename Trace>
void DecodeFields(ByteReader& in, T& value, const WireScope& scope, Trace& trace) {
  std::apply([&](const auto&... entry) { (entry.Decode(in, value, scope, trace), ...); },
             kLayout<T>.entries);
}
template <typename T>
void EncodeFields(ByteWriter& out, const T& value, const WireScope& scope) {
  std::apply([&](const auto&... entry) { (entry.Encode(out, value, scope), ...); },
             kLayout<T>.entries);
}
// Calls visit(FieldInfo, member&) for each field that the record in hand has, depth first.
template <typename T, typename Visitor>
void VisitFields(T& value, const WireScope& scope, Visitor&& visit) {
  std::apply([&](const auto&... entry) { (entry.Visit(value, scope, visit), ...); },
             kLayout<std::remove_const_t<T>>.entries);
}
// Calls visit(FieldInfo) for each field a T can have.
template <typename T, typename Visitor>
constexpr void ListFields(Visitor&& visit) {
  std::apply([&](const auto&... entry) { (entry.List(visit), ...); }, kLayout<T>.entries);
}

// ---- entries ----
template <typename Wire, typename T, typename M>
struct FieldEntry {
  static constexpr size_t kMembers = 1;
  FieldInfo info;
  M T::* member;

  template <typename Trace>
  void Decode(ByteReader& in, T& value, const WireScope& scope, Trace& trace) const {
    const size_t begin = in.offset();
    Wire::Decode(in, value.*member, scope);
    trace.Field(info, in, begin, value.*member);
  }
  void Encode(ByteWriter& out, const T& value, const WireScope& scope) const {
    Wire::Encode(out, value.*member, scope);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(info, value.*member);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(info);
  }
};

template <typename Wire = Number, typename T, typename M>
consteval auto F(std::string_view name, M T::* member, Sensitivity sensitivity,
                 Display display = Display::kDecimal) {
  return FieldEntry<Wire, T, M>{FieldInfo(name, sensitivity, display), member};
}

// Zeros, ignored when read.
template <size_t kSize>
struct Pad {
  static constexpr size_t kMembers = 0;
  template <typename T, typename Trace>
  void Decode(ByteReader& in, T&, const WireScope&, Trace&) const {
    in.Skip(kSize);
  }
  template <typename T>
  void Encode(ByteWriter& out, const T&, const WireScope&) const {
    out.Zeros(kSize);
  }
  template <typename V, typename Visitor>
  void Visit(V&, const WireScope&, Visitor&) const {}
  template <typename Visitor>
  constexpr void List(Visitor&) const {}
};

// An entry for a member that another entry names too (in another place, or another form).
template <typename Entry>
struct AgainEntry : Entry {
  static constexpr size_t kMembers = 0;
};
template <typename Entry>
consteval auto Again(Entry entry) {
  return AgainEntry<Entry>{entry};
}

// Zeros up to a multiple of kAlign bytes from the record's start.
template <size_t kAlign>
struct AlignEnd {
  static constexpr size_t kMembers = 0;
  template <typename T, typename Trace>
  void Decode(ByteReader&, T&, const WireScope&, Trace&) const {}
  template <typename T>
  void Encode(ByteWriter& out, const T&, const WireScope&) const {
    out.AlignTo(kAlign);
  }
  template <typename V, typename Visitor>
  void Visit(V&, const WireScope&, Visitor&) const {}
  template <typename Visitor>
  constexpr void List(Visitor&) const {}
};

// Entries that are there if test(scope, value): a misc bit, a sample bit, a kind read before.
template <typename Test, typename... Entries>
struct WhenEntry {
  static constexpr size_t kMembers = (size_t{0} + ... + Entries::kMembers);
  Test test;
  std::tuple<Entries...> entries;

  template <typename T, typename Trace>
  void Decode(ByteReader& in, T& value, const WireScope& scope, Trace& trace) const {
    if (!test(scope, value)) return;
    std::apply([&](const auto&... entry) { (entry.Decode(in, value, scope, trace), ...); },
               entries);
  }
  template <typename T>
  void Encode(ByteWriter& out, const T& value, const WireScope& scope) const {
    if (!test(scope, value)) return;
    std::apply([&](const auto&... entry) { (entry.Encode(out, value, scope), ...); }, entries);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    if (!test(scope, value)) return;
    std::apply([&](const auto&... entry) { (entry.Visit(value, scope, visit), ...); }, entries);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    std::apply([&](const auto&... entry) { (entry.List(visit), ...); }, entries);
  }
};
template <typename Test, typename... Entries>
consteval auto When(Test test, Entries... entries) {
  return WhenEntry<Test, Entries...>{test, std::tuple<Entries...>(entries...)};
}

// Entries at a record's end that newer writers add; `flag` tells whether they are there.
template <typename T, size_t kSize, typename... Entries>
struct IfRoomEntry {
  static constexpr size_t kMembers = 1 + (size_t{0} + ... + Entries::kMembers);
  bool T::* flag;
  std::tuple<Entries...> entries;

  template <typename Trace>
  void Decode(ByteReader& in, T& value, const WireScope& scope, Trace& trace) const {
    value.*flag = in.ok() && in.remaining() >= kSize;
    if (!(value.*flag)) return;
    std::apply([&](const auto&... entry) { (entry.Decode(in, value, scope, trace), ...); },
               entries);
  }
  void Encode(ByteWriter& out, const T& value, const WireScope& scope) const {
    if (!(value.*flag)) return;
    std::apply([&](const auto&... entry) { (entry.Encode(out, value, scope), ...); }, entries);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    if (!(value.*flag)) return;
    std::apply([&](const auto&... entry) { (entry.Visit(value, scope, visit), ...); }, entries);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    std::apply([&](const auto&... entry) { (entry.List(visit), ...); }, entries);
  }
};
// `kSize`: bytes that the entries need.
template <size_t kSize, typename T, typename... Entries>
consteval auto IfRoom(bool T::* flag, Entries... entries) {
  return IfRoomEntry<T, kSize, Entries...>{flag, std::tuple<Entries...>(entries...)};
}

// Structures with tables of their own, after a Count of them.
template <typename Count, typename T, typename E>
struct EachEntry {
  static constexpr size_t kMembers = 1;
  std::string_view name;
  std::vector<E> T::* member;

  template <typename Trace>
  void Decode(ByteReader& in, T& value, const WireScope& scope, Trace& trace) const {
    Count count = 0;
    Number::Decode(in, count, scope);
    std::vector<E>& elements = value.*member;
    elements.clear();
    for (Count i = 0; i < count && in.ok(); ++i) {
      trace.Enter(name, i);
      DecodeFields(in, elements.emplace_back(), scope, trace);
      trace.Leave();
    }
  }
  void Encode(ByteWriter& out, const T& value, const WireScope& scope) const {
    Number::Encode(out, static_cast<Count>((value.*member).size()), scope);
    for (const E& element : value.*member) EncodeFields(out, element, scope);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    for (auto& element : value.*member) VisitFields(element, scope, visit);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    ListFields<E>(visit);
  }
};
template <typename Count, typename T, typename E>
  requires HasLayout<E>
consteval auto Each(std::string_view name, std::vector<E> T::* member) {
  return EachEntry<Count, T, E>{name, member};
}

}  // namespace stackreel::perfdata
