#include "anonymize/public_names.h"

#include <algorithm>

namespace stackreel::anonymize {

using std::string_view;

namespace {

// In these lists ~ stands for a version, or a CPU: digits and dots, or none. No list has a pattern
// that takes letters: "libnss_*" would take libnss_acme.so.
constexpr string_view kModules =
    "[kernel.kallsyms] [kernel.kallsyms]_text [kernel.kallsyms]_stext [kernel.vmlinux] "
    "[kernel.vmlinux]_text [kernel.vmlinux]_stext [guest.kernel.kallsyms] "
    "[guest.kernel.kallsyms]_text [guest.kernel.kallsyms]_stext [guest.kernel.kallsyms.~] "
    "[guest.kernel.kallsyms.~]_text [guest.kernel.kallsyms.~]_stext [kernel] vmlinux vmlinux-~ "
    "vmlinuz vmlinuz-~ [vdso] [vdso32] [vdsox32] linux-vdso.so~ linux-vdso32.so~ linux-vdso64.so~ "
    "[vsyscall] [hypervisor] "
    // C and C++ run time
    "libc.so~ libc-2.~.so libm.so~ libm-2.~.so libmvec.so~ libmvec-2.~.so libpthread.so~ "
    "libpthread-2.~.so libdl.so~ libdl-2.~.so librt.so~ librt-2.~.so libresolv.so~ "
    "libresolv-2.~.so libutil.so~ libutil-2.~.so libnsl.so~ libnsl-2.~.so libanl.so~ libanl-2.~.so "
    "libthread_db.so~ libthread_db-1.~.so libBrokenLocale.so~ libBrokenLocale-2.~.so "
    "libnss_files.so~ libnss_files-2.~.so libnss_dns.so~ libnss_dns-2.~.so libnss_compat.so~ "
    "libnss_compat-2.~.so libnss_nis.so~ libnss_nis-2.~.so libnss_nisplus.so~ libnss_hesiod.so~ "
    "libnss_db.so~ libnss_systemd.so~ libnss_myhostname.so~ libnss_mymachines.so~ "
    "libnss_resolve.so~ libnss_sss.so~ libnss_ldap.so~ libnss_winbind.so~ libnss_mdns.so~ "
    "libnss_mdns4.so~ libnss_mdns4_minimal.so~ ld.so ld-2.~.so ld-linux.so~ ld-linux-x86-64.so~ "
    "ld-linux-x32.so~ ld-linux-aarch64.so~ ld-linux-armhf.so~ ld-linux-riscv64-lp64d.so~ "
    "ld-linux-loongarch-lp64d.so~ ld64.so~ ld-musl-x86_64.so~ ld-musl-i386.so~ "
    "ld-musl-aarch64.so~ ld-musl-armhf.so~ ld-musl-riscv64.so~ ld-musl-powerpc64le.so~ "
    "ld-musl-s390x.so~ libc.musl-x86_64.so~ libc.musl-x86.so~ libc.musl-aarch64.so~ "
    "libc.musl-armhf.so~ libc.musl-riscv64.so~ libstdc++.so~ libgcc_s.so~ libgcc_s-~.so~ "
    "libc++.so~ libc++abi.so~ libunwind.so~ libatomic.so~ libgomp.so~ libomp.so~ libgfortran.so~ "
    "libquadmath.so~ libasan.so~ libtsan.so~ libubsan.so~ liblsan.so~ libcrypt.so~ "
    "libcrypt-2.~.so "
    // of every distribution
    "libz.so~ libzstd.so~ liblzma.so~ liblz4.so~ libbz2.so~ libcrypto.so~ libssl.so~ "
    "libgnutls.so~ libnettle.so~ libgmp.so~ libmpfr.so~ libmpc.so~ libpcre.so~ libpcre2-8.so~ "
    "libpcre2-16.so~ libpcre2-32.so~ libpcre2-posix.so~ libselinux.so~ libsystemd.so~ libudev.so~ "
    "libmount.so~ libblkid.so~ libcap.so~ libacl.so~ libattr.so~ libelf.so~ libelf-~.so~ libdw.so~ "
    "libdw-~.so~ libexpat.so~ libffi.so~ libsqlite3.so~ libxml2.so~ libcurl.so~ libtinfo.so~ "
    "libncurses.so~ libncursesw.so~ libreadline.so~ libglib-2.0.so~ libgobject-2.0.so~ "
    "libgio-2.0.so~ libdbus-1.so~ libnuma.so~ libjemalloc.so~ libtcmalloc.so~ "
    "libtcmalloc_minimal.so~ libmimalloc.so~ libtbb.so~ libtbbmalloc.so~ libtbbmalloc_proxy.so~ "
    "libtbbbind.so~ libuv.so~ libevent-~.so~ libevent_core.so~ libevent_core-~.so~ libprotobuf.so~ "
    "libicudata.so~ libicui18n.so~ libicuio.so~ libicutu.so~ libicuuc.so~ libX11.so~ libxcb.so~ "
    "libxcb-shm.so~ libxcb-render.so~ libxcb-randr.so~ libxcb-xfixes.so~ libxcb-sync.so~ "
    "libxcb-glx.so~ libxcb-dri2.so~ libxcb-dri3.so~ libxcb-present.so~ libwayland-client.so~ "
    "libwayland-server.so~ libwayland-cursor.so~ libwayland-egl.so~ libGL.so~ libEGL.so~ "
    "libdrm.so~ libdrm_intel.so~ libdrm_amdgpu.so~ libdrm_nouveau.so~ libdrm_radeon.so~ "
    "libperl.so~ libpython~.so~ libruby.so~ libruby-~.so~ libjvm.so libjava.so libjli.so "
    "libnode.so~ libLLVM.so~ libLLVM-~.so~ libcuda.so~ libcudart.so~ libopenblas.so~ "
    "libopenblasp-r~.so libblas.so~ liblapack.so~";

constexpr string_view kComms =
    "perf perf-exec stackreel swapper swapper/~ init systemd systemd-journal systemd-udevd "
    "systemd-logind systemd-network systemd-resolve systemd-timesyn (sd-pam) kthreadd kdevtmpfs "
    "kauditd khungtaskd oom_reaper khugepaged ksmd kcompactd~ kswapd~ ksoftirqd/~ migration/~ "
    "cpuhp/~ watchdogd idle_inject/~ rcu_sched rcu_preempt rcu_gp rcu_par_gp rcu_tasks_kthre "
    "rcu_tasks_rude_ rcu_tasks_trace "
    "rcuog/~ rcuop/~ rcuos/~ sh bash dash zsh fish ls cat cp mv rm ln mkdir chmod sleep true "
    "false echo env date head tail sort uniq wc cut tr tee xargs find grep sed awk gawk mawk dd "
    "du df tar gzip xz zstd git make ninja cmake gcc g++ cc cc1 cc1plus clang clang++ ld ld.lld "
    "lld as ar collect2 rustc cargo go compile link javac java python python2 python3 python3.~ "
    " perl ruby node php ssh sshd sudo su login cron top htop ps gdb strace taskset "
    "nice timeout time";

constexpr string_view kSymbols =
    "__builtin__ftrace __builtin__kprobes ftrace_trampoline kprobe_insn_page kprobe_optinsn_page "
    "bpf_trampoline_~ bpf_dispatcher_xdp bpf_dispatcher_xdp_func";

constexpr string_view kFolders =
    "usr bin sbin lib lib32 lib64 libx32 libexec local share include etc opt var tmp run proc "
    "sys dev boot home root Users mnt media srv nix store snap build src out target debug "
    "release cache .cache .debug .build-id shm self merged docker overlay2 modules kernel "
    "drivers x86_64-linux-gnu i386-linux-gnu aarch64-linux-gnu arm-linux-gnueabihf "
    "riscv64-linux-gnu powerpc64le-linux-gnu s390x-linux-gnu";

constexpr string_view kSystemRoots = "lib lib32 lib64 libx32 bin sbin boot nix gnu";
constexpr string_view kCodeExtensions = "so ko xz zst gz node exe dll jar dump map elf debug";
constexpr string_view kMemory =
    "heap stack vdso vdso32 vdsox32 vvar vvar_vclock vsyscall vectors sigpage uprobes hypervisor "
    "kernel kernel.kallsyms kernel.vmlinux bpf guest.kernel.kallsyms unknown shmem";

constexpr string_view kCgroups = "init.scope kubepods burstable besteffort docker lxc ..";
constexpr string_view kSlice = ".slice";
constexpr string_view kSlices =
    "system user machine app session background kubepods kubepods-burstable "
    "kubepods-besteffort";

constexpr string_view kEventWords =
    "cycles cpu-cycles instructions cache-references cache-misses branches branch-instructions "
    "branch-misses bus-cycles stalled-cycles-frontend idle-cycles-frontend "
    "stalled-cycles-backend idle-cycles-backend ref-cycles cpu-clock task-clock page-faults "
    "faults context-switches cs cpu-migrations migrations minor-faults major-faults "
    "alignment-faults emulation-faults dummy bpf-output cgroup-switches duration_time user_time "
    "system_time slots mem-loads mem-stores mem-loads-aux cpu cpu_core cpu_atom cpum_cf msr tsc "
    "aperf mperf power intel_pt intel_bts cs_etm ibs_op ibs_fetch software breakpoint "
    "tracepoint mem anon group event umask config config1 config2 config3 cmask edge inv any pc "
    "ldlat period freq precise name offcore_rsp frontend in_tx in_tx_cp tsc noretcomp msec ns "
    "Joules Watts MiB MB percent CPUs u k x r w rw rwx";

// "L1-dcache-load-misses": a cache, then what of it.
constexpr string_view kCaches = "L1-dcache- L1-icache- LLC- dTLB- iTLB- branch- node-";
constexpr string_view kCacheOperations =
    "loads load-misses stores store-misses prefetches prefetch-misses";

// How the makers' names of events begin, which have a dot behind: "mem_load_retired.l3_miss".
constexpr string_view kEventTopics =
    "inst_retired cpu_clk_unhalted br_inst_ br_misp_ branch_ mem_ l1d l2_ l3_ llc_ "
    "longest_lat_cache cycle_activity dtlb_ itlb_ tlb_ frontend_ idq uops_ resource_stalls "
    "topdown machine_clears offcore_ ocr exe_activity fp_arith_ int_misc lsd lock_ ld_blocks "
    "memory_ icache dsb baclears arith assists hle_ rtm_ tx_ unc_ ls_ ex_ ic_ bp_ de_";

constexpr string_view kTracepointSystems =
    "alarmtimer asoc avc binder block bpf_test_run bpf_trace bridge btrfs cgroup clk cma "
    "compaction context_tracking cpuhp csd dma_fence drm devlink error_report exceptions ext4 "
    "f2fs fib fib6 filelock filemap fs_dax ftrace gpio gpu_scheduler huge_memory hwmon hyperv "
    "i2c i915 initcall intel_iommu io_uring iocost iomap iommu ipi irq irq_matrix irq_vectors "
    "jbd2 kmem ksm kvm kvmmmu libata lock maple_tree mce mdio migrate mmap mmap_lock mmc module "
    "mptcp msr napi neigh net netlink nfs nfs4 nmi notifier nvme oom osnoise page_isolation "
    "page_pool pagemap percpu power preemptirq printk pwm qdisc random ras raw_syscalls rcu "
    "regmap regulator resctrl rpm rseq rtc sched scsi signal skb smbus sock spi sunrpc swiotlb "
    "sync_trace syscalls task task_mm tcp thermal thp timer timerlat timestamp tlb udp v4l2 "
    "vmalloc vmscan vsyscall watchdog wbt workqueue writeback x86_fpu xdp xen xfs xhci-hcd "
    "zswap";

constexpr string_view kArguments =
    "record stat top trace mem c2c sched lock kmem kvm timechart inject anonymize report script "
    "-- -a -b -c -C -d -D -e -F -g -G -i -I -j -k -m -M -n -N -o -O -p -P -q -r -R -s -S -t -T "
    "-u -v -vv -W -z --event --filter --pid --tid --realtime --no-buffering --raw-samples "
    "--all-cpus --cpu --count --output --no-inherit --freq --mmap-pages --group --call-graph "
    "--quiet --verbose --stat --data --phys-data --timestamp --period --sample-cpu --no-samples "
    "--no-buildid --no-buildid-cache --buildid-all --cgroup --delay --uid --branch-any "
    "--branch-filter --weight --transaction --per-thread --intr-regs --user-regs --running-time "
    "--clockid --snapshot --switch-events --switch-output --overwrite --tail-synthesize "
    "--namespaces --all-cgroups --all-kernel --all-user --kernel-callchains --user-callchains "
    "--timestamp-filename --timestamp-boundary --compression-level --affinity --aio --control "
    "--kcore --max-size --num-thread-synthesize --off-cpu --threads --synth --strict-freq "
    "--no-unwind --live-unwind";

constexpr string_view kCpuMakers =
    "Intel AMD Hygon Zhaoxin Ampere Apple Qualcomm Cavium HiSilicon Fujitsu NVIDIA Neoverse "
    "Cortex ARM IBM POWER RISC-V SiFive Loongson";

// Whether `test` is true of one of the words, which have a blank between them.
template <typename Test>
bool AnyWord(string_view words, Test test) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (test(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}
bool IsOneOf(string_view name, string_view words) {
  return AnyWord(words, [name](string_view word) { return word == name; });
}
// With ~ for a version.
bool MatchesListed(string_view pattern, string_view text) {
  const size_t tilde = pattern.find('~');
  if (tilde == string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, tilde))) return false;
  const string_view behind = pattern.substr(tilde + 1);
  text.remove_prefix(tilde);
  while (!MatchesListed(behind, text)) {
    if (text.empty() || !string_view("0123456789.").contains(text[0])) return false;
    text.remove_prefix(1);
  }
  return true;
}
bool IsListed(string_view name, string_view patterns) {
  return AnyWord(patterns, [name](string_view pattern) { return MatchesListed(pattern, name); });
}
bool MatchesOneOf(string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [name](const std::string& pattern) { return MatchesPattern(pattern, name); });
}
string_view FileOf(string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsModule(string_view path, string_view pattern) {
  return MatchesPattern(pattern, pattern.contains('/') ? path : FileOf(path));
}

// A module that is built with the kernel: "/lib/modules/6.1.0-13-amd64/kernel/fs/ext4.ko".
bool IsKernelsModule(string_view path) {
  for (const string_view folder : {"/lib/modules/", "/usr/lib/modules/"}) {
    if (!path.starts_with(folder)) continue;
    const string_view rest = path.substr(folder.size());
    return rest.substr(std::min(rest.find('/'), rest.size())).starts_with("/kernel/");
  }
  return false;
}

// "kworker/u8:3", "kworker/0:1H", of the kernel; what comes behind is the name of a queue.
bool IsWorker(string_view comm) {
  constexpr string_view kPrefix = "kworker/";
  return comm.starts_with(kPrefix) &&
         comm.substr(kPrefix.size()).find_first_not_of("0123456789u:HR") == string_view::npos;
}

}  // namespace

bool MatchesPattern(string_view pattern, string_view text) {
  size_t p = 0, t = 0, star = string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != string_view::npos) {
      p = star + 1;  // the last * takes one more
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == string_view::npos;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

std::string_view WithoutDeleted(std::string_view path) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

std::vector<std::string> ParsePatterns(string_view text) {
  std::vector<std::string> patterns;
  constexpr string_view kBlank = " \t\r";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(kBlank);
    if (first == string_view::npos) continue;
    patterns.emplace_back(line.substr(first, line.find_last_not_of(kBlank) + 1 - first));
  }
  return patterns;
}

bool IsPublicModule(string_view path, const PublicNames& more) {
  const auto is_module = [path](string_view pattern) { return IsModule(path, pattern); };
  return IsListed(FileOf(path), kModules) || IsKernelsModule(path) ||
         std::ranges::any_of(more.modules, is_module);
}

bool IsPublicComm(string_view comm, const PublicNames& more) {
  return IsListed(comm, kComms) || IsWorker(comm) || MatchesOneOf(comm, more.comms);
}

bool IsPublicSymbol(string_view symbol) { return IsListed(symbol, kSymbols); }
bool IsPublicFolder(string_view name) { return IsOneOf(name, kFolders); }
bool IsOfSystem(string_view first, string_view second) {
  if (first == "usr") return second != "local" && second != "home";
  return IsOneOf(first, kSystemRoots);
}
bool IsNameOfCode(string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == string_view::npos || dot == 0) return true;
  const string_view extension = name.substr(dot + 1);
  const bool is_number =
      !extension.empty() && extension.find_first_not_of("0123456789") == string_view::npos;
  return name.contains(".so.") || is_number || IsOneOf(extension, kCodeExtensions);
}
bool IsPublicMemory(string_view name) { return IsOneOf(name, kMemory); }
bool IsNameOfMemory(string_view path) {
  if (path == "//anon" || path == "//toolong" || path == "//enomem") return true;
  return path.size() > 2 && path.starts_with('[') && path.ends_with(']') &&
         IsPublicMemory(path.substr(1, path.size() - 2));
}
bool IsPublicCgroup(string_view name) {
  return name.empty() || IsOneOf(name, kCgroups) ||
         (name.ends_with(kSlice) && IsOneOf(name.substr(0, name.size() - kSlice.size()), kSlices));
}
bool IsPublicTracepointSystem(string_view system) { return IsOneOf(system, kTracepointSystems); }
bool IsPublicArgument(string_view word) { return IsOneOf(word, kArguments); }

bool IsPublicEventWord(string_view word) {
  if (IsOneOf(word, kEventWords)) return true;
  const bool is_cache = AnyWord(kCaches, [word](string_view cache) {
    return word.starts_with(cache) && IsOneOf(word.substr(cache.size()), kCacheOperations);
  });
  constexpr string_view kMakers = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  const bool is_makers =
      word.contains('.') && word.find_first_not_of(kMakers) == string_view::npos &&
      AnyWord(kEventTopics, [word](string_view topic) { return word.starts_with(topic); });
  return is_cache || is_makers;
}

std::string CpuMakerIn(string_view text) {
  std::string maker;
  AnyWord(kCpuMakers, [&](string_view word) {
    if (!text.contains(word)) return false;
    maker = word;
    return true;
  });
  return maker;
}

}  // namespace stackreel::anonymize
