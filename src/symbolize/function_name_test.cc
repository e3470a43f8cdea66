#include "symbolize/function_name.h"

#include <gtest/gtest.h>

namespace stackreel::symbolize {
namespace {

TEST(FunctionNameTest, ParametersGo) {
  EXPECT_EQ(WithoutParameters("cmp(void const*, void const*)"), "cmp");
  EXPECT_EQ(WithoutParameters("A::f() const"), "A::f");
  EXPECT_EQ(WithoutParameters("A::f(int) const &"), "A::f");
  EXPECT_EQ(WithoutParameters("A::f(int (*)(char))"), "A::f");
  EXPECT_EQ(WithoutParameters("main"), "main");
  EXPECT_EQ(WithoutParameters(""), "");
}

TEST(FunctionNameTest, ReturnTypesOfTemplatesGo) {
  EXPECT_EQ(WithoutParameters("void std::sort<int*>(int*, int*)"), "std::sort<int*>");
  EXPECT_EQ(WithoutParameters("std::pair<int, char> f<A<int> >(A<int>)"), "f<A<int> >");
  EXPECT_EQ(WithoutParameters("std::ostream& std::operator<< <char>(std::ostream&, char)"),
            "std::operator<< <char>");
  EXPECT_EQ(WithoutParameters("bool std::operator==<char>(char, char)"), "std::operator==<char>");
  EXPECT_EQ(WithoutParameters("void (*f<int>(int))(char)"), "f<int>");
  EXPECT_EQ(WithoutParameters("A<int>::A(int)"), "A<int>::A");
}

TEST(FunctionNameTest, WhatIsInsideANameStays) {
  EXPECT_EQ(WithoutParameters("A::f(int)::{lambda(int)#1}::operator()(int) const"),
            "A::f(int)::{lambda(int)#1}::operator()");
  EXPECT_EQ(WithoutParameters("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(WithoutParameters("A::(anonymous namespace)"), "A::(anonymous namespace)");
  EXPECT_EQ(WithoutParameters("A::operator()"), "A::operator()");
  EXPECT_EQ(WithoutParameters("A::operator()()"), "A::operator()");
  EXPECT_EQ(WithoutParameters("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(WithoutParameters("A::operator->() const"), "A::operator->");
  EXPECT_EQ(WithoutParameters("A::operator>(A const&) const"), "A::operator>");
}

TEST(FunctionNameTest, CloneSuffixesGo) {
  EXPECT_EQ(WithoutParameters("f(int) [clone .constprop.0] [clone .cold]"), "f");
}

TEST(FunctionNameTest, OnlyFunctionsAreCut) {
  EXPECT_EQ(FunctionName("_ZN3foo3barEiPKc"), "foo::bar");
  EXPECT_EQ(FunctionName("_ZTV3foo"), "vtable for foo");
  EXPECT_EQ(FunctionName("_ZGVZ4mainE1x"), "guard variable for main::x");
  EXPECT_EQ(FunctionName("main"), "main");
  EXPECT_EQ(FunctionName("_ZdlPvm@plt"), "operator delete@plt");
  EXPECT_EQ(FunctionName("a(b)"), "a(b)");
}

}  // namespace
}  // namespace stackreel::symbolize
