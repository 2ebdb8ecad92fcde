package invoker

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// CacheDir is where what was compiled of a user's programs is kept between captures: in the
// user's own cache directory. Empty if the user has none. Root's is found by root's home, not by
// the environment, which may name another user's.
func CacheDir(uid uint32) string {
	dir, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		u, lookup := user.LookupId(strconv.FormatUint(uint64(uid), 10))
		if lookup != nil || !filepath.IsAbs(u.HomeDir) {
			return ""
		}
		dir, err = filepath.Join(u.HomeDir, ".cache"), nil
	}
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "ccagent", "index")
}

// DebugCache is where debug files are kept that servers sent, beside CacheDir; empty if the user has none.
func DebugCache(uid uint32) string {
	dir := CacheDir(uid)
	if dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(dir), "debug")
}
