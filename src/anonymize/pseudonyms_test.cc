#include "anonymize/pseudonyms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "anonymize/fake_recording.h"

namespace stackreel::anonymize {
namespace {

using perfdata::Sensitivity;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

Key OtherKey() { return *Key::FromSecret(AsBytes("another secret of 27 bytes.")); }

class PseudonymsTest : public testing::Test {
 protected:
  Pseudonyms Make(Level level, const Key& key = fake::SomeKey()) {
    return Pseudonyms(key, level, publics_, collected_);
  }
  std::string Path(std::string_view path, Level level = Level::kIdentity) {
    return Make(level).Path(path);
  }
  // At level kSymbols.
  std::string Hidden(std::string_view path) { return Path(path, Level::kSymbols); }
  std::string Text(Sensitivity sensitivity, const std::string& text,
                   Level level = Level::kIdentity) {
    return Make(level).Text(sensitivity, text);
  }

  PublicNames publics_;
  Collected collected_;
};

TEST_F(PseudonymsTest, PathsKeepWhatIsOfTheSystem) {
  for (const std::string path :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/ld-musl-x86_64.so.1", "/usr/bin/python3.11",
        "/usr/lib/jvm/java-17/lib/server/libjvm.so", "[vdso]", "[heap]", "[stack]", "//anon",
        "[kernel.kallsyms]_text", "/dev/zero (deleted)", "/SYSV00000000 (deleted)",
        "anon_inode:[perf_event]", "[nf_conntrack]", "", "/"}) {
    EXPECT_EQ(Path(path), path);
  }
  // Not even the modules of a level above that are public.
  for (const std::string path : {"/usr/lib/x86_64-linux-gnu/libc.so.6", "[vdso]", "//anon",
                                 "[kernel.kallsyms]_stext", "/lib64/ld-linux-x86-64.so.2"}) {
    EXPECT_EQ(Hidden(path), path);
  }
}

TEST_F(PseudonymsTest, PathsLoseFoldersThatArePrivate) {
  const std::string path = Path("/home/ann/shop/build/server");
  EXPECT_THAT(path, MatchesRegex("/home/d_[g-z]+/d_[g-z]+/build/server"));
  EXPECT_EQ(Path("/home/ann/shop/bin/x"), path.substr(0, path.rfind("/build")) + "/bin/x");
  EXPECT_NE(Path("/home/bob/shop/build/server"), path);
  EXPECT_THAT(Path("/opt/acme/lib/libshop.so.3"), MatchesRegex("/opt/d_[g-z]+/lib/libshop.so.3"));
  EXPECT_THAT(Path("/usr/local/acme/server"), MatchesRegex("/usr/local/d_[g-z]+/server"));
  EXPECT_THAT(Path("/run/user/1000/x"), MatchesRegex("/run/d_[g-z]+/d_[g-z]+/x"));
  EXPECT_THAT(Path("build/ann/server (deleted)"), MatchesRegex("build/d_[g-z]+/server .deleted."));
  EXPECT_THAT(Path("/home/build/server"), MatchesRegex("/home/d_[g-z]+/server"));
  // Of what is no code the name tells too much.
  EXPECT_THAT(Path("/home/ann/letter.pdf"), MatchesRegex("/home/d_[g-z]+/n_[g-z]+"));
  EXPECT_THAT(Path("/memfd:secret (deleted)"), MatchesRegex("/memfd:n_[g-z]+ .deleted."));
  EXPECT_THAT(Path("[anon:secret]"), MatchesRegex(".anon:n_[g-z]+]"));
  EXPECT_EQ(Path("/lib/modules/6.1.0-13-acme/kernel/fs/ext4.ko"),
            "/lib/modules/6.1/kernel/fs/ext4.ko");
}

TEST_F(PseudonymsTest, AtSymbolsModulesThatAreNotPublicLoseTheirNames) {
  EXPECT_THAT(Hidden("/home/ann/shop/bin/server"),
              MatchesRegex("/home/d_[g-z]+/d_[g-z]+/bin/m_[g-z]+"));
  EXPECT_THAT(Hidden("/usr/lib/acme/libshop.so.3"), MatchesRegex("/usr/lib/d_[g-z]+/m_[g-z]+.so"));
  EXPECT_THAT(Hidden("[acme_driver]"), MatchesRegex(".m_[g-z]+]"));
  EXPECT_EQ(Hidden("/home/ann/libc.so.6").substr(Hidden("/home/ann/libc.so.6").rfind('/')),
            "/libc.so.6");
  publics_.modules = {"libshop.so*", "/opt/open/*"};
  EXPECT_EQ(Hidden("/usr/lib/acme/libshop.so.3"), "/usr/lib/acme/libshop.so.3");
  EXPECT_THAT(Hidden("/opt/open/tool"), EndsWith("/tool"));
  EXPECT_THAT(Hidden("/opt/closed/tool"), Not(EndsWith("/tool")));
}

// A list of public names takes no others that begin like them.
TEST_F(PseudonymsTest, WhatOnlyBeginsLikeAPublicNameIsHidden) {
  for (const std::string name :
       {"libnss_acme.so.2", "libc.so_acme", "libicuacme.so", "libtbbacme.so", "ld-linux-acme.so.1",
        "libpython-acme.so", "vmlinux-6.1.0-acme", "libxcb-acme.so", "liblapack.so.acme"}) {
    EXPECT_THAT(Hidden("/usr/lib/" + name), Not(HasSubstr("acme"))) << name;
  }
  EXPECT_THAT(Hidden("/lib/modules/6.1/acme/kernel/x.ko"), Not(HasSubstr("acme")));
  EXPECT_EQ(Hidden("/lib/modules/6.1.0-acme/kernel/fs/ext4.ko"),
            "/lib/modules/6.1/kernel/fs/ext4.ko");
  EXPECT_EQ(Path("/boot/vmlinuz-6.1.0-acme"), "/boot/vmlinuz-6.1");
  for (const std::string name :
       {"libnss_files.so.2", "libnss_files-2.31.so", "libpython3.11.so.1.0", "libLLVM-15.so.1",
        "libpcre2-8.so.0.11.2", "libopenblasp-r0.3.21.so", "ld-linux-x86-64.so.2",
        "libstdc++.so.6.0.30"}) {
    EXPECT_EQ(Hidden("/usr/lib/" + name), "/usr/lib/" + name);
  }
  for (const std::string comm :
       {"migration/acme", "kswapdacme", "rcu_tasks_acme", "python3.acme"}) {
    EXPECT_THAT(Text(Sensitivity::kComm, comm), Not(HasSubstr("acme")));
  }
  for (const std::string comm : {"migration/12", "kswapd0", "rcu_tasks_trace", "python3.11"}) {
    EXPECT_EQ(Text(Sensitivity::kComm, comm), comm);
  }
  for (const std::string symbol : {"bpf_trampoline_acme", "bpf_dispatcher_acme"}) {
    EXPECT_THAT(Text(Sensitivity::kSymbol, symbol, Level::kSymbols), Not(HasSubstr("acme")));
  }
}

TEST_F(PseudonymsTest, NumbersOfProcessesInPathsAreTheirNewOnes) {
  Pseudonyms names = Make(Level::kSymbols);
  const std::string pid = std::to_string(names.Pid(1234));
  EXPECT_NE(pid, "1234");
  EXPECT_EQ(names.Path("/tmp/perf-1234.map"), "/tmp/perf-" + pid + ".map");
  EXPECT_THAT(names.Path("/home/ann/.debug/jit/x/jit-1234.dump"),
              AllOf(EndsWith("/jit-" + pid + ".dump"), Not(HasSubstr("ann"))));
  EXPECT_THAT(names.Path("/tmp/jitted-1234-17.so"), EndsWith("/jitted-" + pid + "-17.so"));
  EXPECT_THAT(names.Path("/proc/1234/root/usr/lib/libc.so.6"),
              "/proc/" + pid + "/root/usr/lib/libc.so.6");
  EXPECT_THAT(names.Path("/proc/1234/fd/5"), StartsWith("/proc/" + pid + "/"));
  EXPECT_EQ(names.Path("[guest.kernel.kallsyms.1234]"), "[guest.kernel.kallsyms." + pid + "]");
  EXPECT_EQ(names.Path("[stack:1234]"), "[stack:" + pid + "]");
  EXPECT_THAT(names.Path("/tmp/perf-ann.map"), Not(HasSubstr("ann")));
}

TEST_F(PseudonymsTest, UsersAndTheHostAreHiddenWhereverTheyStand) {
  collected_.features.hostname = "annsbox.example.org";
  collected_.names.Intern("/home/ann/server");
  collected_.features.cmdline = {"perf", "record", "/Users/carl/x"};
  EXPECT_THAT(IdentityWords(collected_),
              UnorderedElementsAre("annsbox", "annsbox.example.org", "ann", "carl"));
  const std::string path = Path("/usr/lib/annsbox/carl-tool-ann.so");
  EXPECT_THAT(path, AllOf(Not(HasSubstr("ann")), Not(HasSubstr("carl")), HasSubstr("-tool-")));
  EXPECT_EQ(Path("/usr/lib/planner.so"), "/usr/lib/planner.so");
  EXPECT_THAT(Text(Sensitivity::kSymbol, "bpf_prog_ann"), Not(HasSubstr("ann")));
}

TEST_F(PseudonymsTest, ThreadsKeepNamesThatArePublic) {
  for (const std::string comm : {"perf", "swapper/3", "kworker/u8:3", "ksoftirqd/1", "bash"}) {
    EXPECT_EQ(Text(Sensitivity::kComm, comm), comm);
  }
  for (const std::string comm : {"server", "kworker/secret", "annsdaemon"}) {
    EXPECT_THAT(Text(Sensitivity::kComm, comm), MatchesRegex("c_[g-z]+"));
    EXPECT_LE(Text(Sensitivity::kComm, comm).size(), 15);  // what a comm may have
  }
  publics_.comms = {"serv*"};
  EXPECT_EQ(Text(Sensitivity::kComm, "server"), "server");
}

TEST_F(PseudonymsTest, FunctionsOfTheKernelsAreHiddenAtSymbolsOnly) {
  EXPECT_EQ(Text(Sensitivity::kSymbol, "bpf_prog_12_watch"), "bpf_prog_12_watch");
  EXPECT_THAT(Text(Sensitivity::kSymbol, "bpf_prog_12_watch", Level::kSymbols),
              MatchesRegex("bpf_prog_f_[g-z]+"));
  EXPECT_EQ(Text(Sensitivity::kSymbol, "ftrace_trampoline", Level::kSymbols), "ftrace_trampoline");
}

// A list of functions has the module before them.
TEST_F(PseudonymsTest, FunctionsOfPublicModulesKeepTheirNames) {
  Pseudonyms names = Make(Level::kSymbols);
  names.Text(Sensitivity::kPath, "/usr/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_EQ(names.Text(Sensitivity::kFunction, "malloc"), "malloc");
  names.Text(Sensitivity::kPath, "/opt/acme/bin/server");
  EXPECT_THAT(names.Text(Sensitivity::kFunction, "malloc"), MatchesRegex("f_[g-z]+"));
}

TEST_F(PseudonymsTest, CgroupsKeepTheirTree) {
  const auto cgroup = [&](const std::string& path) { return Text(Sensitivity::kCgroupPath, path); };
  EXPECT_EQ(cgroup("/"), "/");
  EXPECT_EQ(cgroup("/system.slice"), "/system.slice");
  EXPECT_THAT(cgroup("/system.slice/acme.service"), MatchesRegex("/system.slice/g_[g-z]+.service"));
  EXPECT_THAT(cgroup("/user.slice/user-1000.slice/x"), Not(HasSubstr("1000")));
}

TEST_F(PseudonymsTest, OfTheMachineOnlyTheReleaseAndTheMakerStay) {
  EXPECT_EQ(Release("6.1.0-13-acme"), "6.1");
  EXPECT_EQ(Release("6.12"), "6.12");
  EXPECT_EQ(Release("acme"), "");
  EXPECT_EQ(Text(Sensitivity::kMachine, "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"), "Intel");
  EXPECT_EQ(Text(Sensitivity::kMachine, "AuthenticAMD,25,1,1"), "AMD");
  EXPECT_EQ(Text(Sensitivity::kMachine, "serial 4711"), "");
  EXPECT_THAT(Text(Sensitivity::kHostName, "annsbox"), MatchesRegex("h_[g-z]+"));
}

TEST_F(PseudonymsTest, EventsKeepWordsOfPerfAndTheKernel) {
  collected_.features.pmu_names = {{9, "uncore_imc_0"}};
  for (const std::string name :
       {"cycles:ppp", "cpu-clock:u", "sched:sched_switch", "{cycles,instructions}:S",
        "cpu/event=0x3c,umask=0x1/u", "L1-dcache-load-misses", "r01c2", "uncore_imc_0/event=4/",
        "mem_load_retired.l3_miss:pp", "mem:0x1234/8:rw", "msec"}) {
    EXPECT_EQ(Make(Level::kIdentity).EventName(name), name);
  }
  for (const std::string name : {"probe_shop:buy", "secret", "cycles:secret", "sched_x:secret",
                                 "cpu/event=1,name=secret/", "L1-dcache-secret", "secret\n"}) {
    EXPECT_THAT(Make(Level::kIdentity).EventName(name),
                AllOf(Not(HasSubstr("secret")), Not(HasSubstr("shop")), HasSubstr("e_")));
  }
}

TEST_F(PseudonymsTest, CommandLinesKeepOptionsThatTellNothing) {
  Pseudonyms names = Make(Level::kIdentity);
  const std::vector<std::string> words = names.Arguments(
      {"/home/ann/bin/perf", "record", "-F", "99", "-p", "1234", "-e", "cycles:u", "--call-graph",
       "dwarf,8192", "--cgroup=/ann", "-o", "/home/ann/x", "--", "./server", "--password=x", "99"});
  EXPECT_THAT(words, ElementsAre("perf", "record", "-F", "99", "-p", StartsWith("a_"), "-e",
                                 "cycles:u", "--call-graph", "dwarf,8192",
                                 MatchesRegex("--cgroup=a_[g-z]+"), "-o", StartsWith("a_"), "--",
                                 StartsWith("a_"), StartsWith("a_"), StartsWith("a_")));
  EXPECT_THAT(names.Arguments({"/home/ann/secret"}), ElementsAre(StartsWith("a_")));
  EXPECT_THAT(names.Arguments({"perf", "--call-graph", "dwarf,secret"})[2], StartsWith("a_"));
}

TEST_F(PseudonymsTest, ProcessesGetNumbersOfTheirOwn) {
  Pseudonyms names = Make(Level::kIdentity);
  std::set<uint64_t> given;
  for (uint32_t pid = 1; pid < 5000; ++pid) {
    const uint64_t number = names.Pid(pid);
    EXPECT_GT(number, 0);
    EXPECT_LT(number, 1 << 22);
    given.insert(number);
  }
  EXPECT_EQ(given.size(), 4999);
  EXPECT_EQ(names.Pid(0), 0);
  EXPECT_EQ(names.Pid(UINT32_MAX), UINT32_MAX);
  EXPECT_EQ(names.Pid(UINT64_MAX), UINT64_MAX);
  EXPECT_GE(names.Pid(1 << 22), 1 << 22);
  EXPECT_LT(names.Pid(UINT32_MAX - 1), UINT32_MAX);
}

TEST_F(PseudonymsTest, TimesKeepTheirOrderAndDifferences) {
  const Pseudonyms names = Make(Level::kIdentity);
  const uint64_t first = names.Time(Sensitivity::kTime, 1000);
  EXPECT_GT(first, uint64_t{1} << 60);
  EXPECT_EQ(names.Time(Sensitivity::kTime, 1234) - first, 234);
  EXPECT_EQ(names.Time(Sensitivity::kTime, 0), 0);
  EXPECT_EQ(names.Time(Sensitivity::kTime, UINT64_MAX), UINT64_MAX);
  // What lies between the clocks would tell when the machine was started.
  EXPECT_NE(names.Time(Sensitivity::kWallTime, 1000), first);
  perfdata::Event event;
  event.attr.flags = perfdata::kAttrUseClockid;
  event.attr.clockid = 0;
  collected_.events = {event};
  EXPECT_EQ(Make(Level::kIdentity).Time(Sensitivity::kWallTime, 1000), first);
}

TEST_F(PseudonymsTest, NoDeviceKeepsItsNumber) {
  for (int i = 0; i < 16; ++i) {
    const Key key = *Key::FromSecret(AsBytes("a secret of 20 bytes" + std::to_string(i)));
    const Pseudonyms names = Make(Level::kIdentity, key);
    std::set<uint64_t> given;
    for (uint64_t id = 1; id < 4096; ++id) {
      EXPECT_NE(names.FileId(id), id);
      EXPECT_TRUE(given.insert(names.FileId(id)).second);
    }
    EXPECT_EQ(*given.begin(), 1);
    EXPECT_EQ(*given.rbegin(), 4095);
  }
}

TEST_F(PseudonymsTest, FilesGetNumbersOfTheSameWidth) {
  const Pseudonyms names = Make(Level::kIdentity);
  std::set<uint64_t> given;
  for (uint64_t id = 0; id < 4096; ++id) given.insert(names.FileId(id));
  EXPECT_EQ(given.size(), 4096);
  EXPECT_EQ(*given.rbegin(), 4095);
  EXPECT_EQ(names.FileId(0), 0);
  EXPECT_LE(names.FileId(0xfffff), 0xfffff);
  EXPECT_NE(names.FileId(4026531840), 4026531840);
  EXPECT_LE(names.FileId(4026531840), UINT32_MAX);
  EXPECT_NE(names.FileId(uint64_t{1} << 40), uint64_t{1} << 40);
}

TEST_F(PseudonymsTest, BuildIdsOfPublicModulesStay) {
  const BuildId open = *BuildId::FromHex("00112233"), closed = *BuildId::FromHex("44556677");
  collected_.build_ids = {{open, collected_.names.Intern("/lib/libc.so.6")},
                          {closed, collected_.names.Intern("/home/ann/server")}};
  const Pseudonyms names = Make(Level::kSymbols);
  EXPECT_EQ(names.Build(open), open);
  EXPECT_NE(names.Build(closed), closed);
  EXPECT_EQ(names.Build(closed).bytes().size(), 4);
  EXPECT_EQ(names.Build(closed), Make(Level::kSymbols).Build(closed));
  EXPECT_NE(names.Build(closed), Make(Level::kSymbols, OtherKey()).Build(closed));
  EXPECT_EQ(names.Build(BuildId()), BuildId());
}

TEST_F(PseudonymsTest, AnotherKeyGivesOtherPseudonyms) {
  Pseudonyms one = Make(Level::kSymbols), same = Make(Level::kSymbols),
             other = Make(Level::kSymbols, OtherKey());
  for (const auto& [sensitivity, text] :
       std::map<Sensitivity, std::string>{{Sensitivity::kComm, "server"},
                                          {Sensitivity::kSymbol, "secret"},
                                          {Sensitivity::kPath, "/home/ann/server"},
                                          {Sensitivity::kCgroupPath, "/acme.service"},
                                          {Sensitivity::kEventName, "secret"},
                                          {Sensitivity::kHostName, "annsbox"}}) {
    EXPECT_EQ(one.Text(sensitivity, text), same.Text(sensitivity, text));
    EXPECT_NE(one.Text(sensitivity, text), other.Text(sensitivity, text));
    EXPECT_NE(one.Text(sensitivity, text), text);
  }
  EXPECT_EQ(one.Pid(1234), same.Pid(1234));
  EXPECT_NE(one.Pid(1234), other.Pid(1234));
  EXPECT_NE(one.FileId(4711), other.FileId(4711));
  EXPECT_NE(one.Time(Sensitivity::kTime, 1), other.Time(Sensitivity::kTime, 1));
}

TEST(PublicNames, PatternsAreLines) {
  EXPECT_THAT(ParsePatterns("# all\n libshop.so*  # ours\n\n/opt/x/*\r\nlast"),
              ElementsAre("libshop.so*", "/opt/x/*", "last"));
}

TEST(PublicNames, PatternsTakeStarsAndQuestionMarks) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(MatchesPattern("a?c**", "abc"));
  EXPECT_TRUE(MatchesPattern("/opt/*", "/opt/a/b"));
  EXPECT_FALSE(MatchesPattern("a*b", "a-b-c"));
  EXPECT_FALSE(MatchesPattern("a?", "a"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  // Would take for ever if each star tried all.
  EXPECT_FALSE(MatchesPattern(std::string(50, '*') + "b", std::string(10000, 'a')));
}

}  // namespace
}  // namespace stackreel::anonymize
