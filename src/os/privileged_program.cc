#include "os/privileged_program.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os/proc.h"

namespace stackreel::os {

namespace {

// Whether exec(2) looks at set-user-ID bits and capabilities of files there at all.
bool GivesRights(const std::string& path) {
  struct statvfs mount = {};
  if (statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0) return false;
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

}  // namespace

std::string WhyNotMeasured(const std::string& path) {
  constexpr int64_t kDumpableAllTheSame = 1;
  if (ReadNumberFile("/proc/sys/fs/suid_dumpable") == kDumpableAllTheSame) return "";
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return "";
  if (GivesRights(path)) {
    if ((info.st_mode & S_ISUID) != 0 && info.st_uid != geteuid()) {
      const struct passwd* user = getpwuid(info.st_uid);
      return fmt::format("{} runs as {} (set-user-ID)", path,
                         user != nullptr ? user->pw_name : std::to_string(info.st_uid));
    }
    const bool set_group = (info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0;
    if (set_group && info.st_gid != getegid()) {
      const struct group* group = getgrgid(info.st_gid);
      return fmt::format("{} runs as group {} (set-group-ID)", path,
                         group != nullptr ? group->gr_name : std::to_string(info.st_gid));
    }
    // Root has all capabilities that a file could add.
    if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
      return fmt::format("{} has capabilities of its own", path);
    }
  }
  if (access(path.c_str(), R_OK) != 0) return fmt::format("{} may not be read by this user", path);
  return "";
}

}  // namespace stackreel::os
