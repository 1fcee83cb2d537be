package cage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Where there is no Landlock, a program gets namespaces of its own: a user namespace, so that the others need no
// privileges, process and network namespaces, and a mount namespace, in which a shell builds a tree with only what
// the job names, read-only but for the job's folder, and unmounts the old tree.

// script builds the tree in R, a folder within the job's folder W, and executes the program there. The paths in P
// stand one a line. /proc is mounted only because umount needs it.
const script = `set -e
mount -t tmpfs -o mode=755 none "$R"
IFS='
'
lay() {
  [ -e "$1" ] || return 0
  if [ -L "$1" ]; then
    [ -e "$R$1" ] || { mkdir -p "$R${1%/*}"; ln -s "$(readlink -f "$1")" "$R$1"; }
    set -- "$(readlink -f "$1")" "$2"
  fi
  [ ! -e "$R$1" ] || [ "$2" = rw ] || return 0
  if [ -d "$1" ]; then mkdir -p "$R$1"; else mkdir -p "$R${1%/*}"; : > "$R$1"; fi
  if [ "$2" = rw ]; then mount --bind "$1" "$R$1"; return 0; fi
  mount --rbind "$1" "$R$1"
  mount -o remount,bind,ro,nosuid,nodev "$R$1" 2>/dev/null || mount -o remount,bind,ro "$R$1"
}
for p in $P; do lay "$p" ro; done
lay /dev/null rw
lay "$W" rw
mkdir "$R/.old" "$R/proc"
mount --rbind /proc "$R/proc"
cd "$R"
pivot_root . .old
umount -l /.old
umount -l /proc
rmdir /.old
mount -o remount,ro /
cd "$W"
unset P R W IFS
exec "$@"
`

// tools are the programs that the script needs.
var tools = []string{"sh", "mount", "umount", "pivot_root", "readlink", "mkdir", "rmdir", "ln"}

// shells are the folders in which the tools are; confined programs may read them.
var shells = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin"}

// enclose makes a command run in namespaces.
func enclose(cmd *exec.Cmd, j Job) {
	paths := append(append([]string(nil), shells...), libraries...)
	paths = append(paths, readable...)
	paths = append(append(paths, j.Reads...), j.Executes...)
	paths = append(paths, j.Path)
	if real, err := filepath.EvalSymlinks(j.Path); err == nil {
		paths = append(paths, real)
	}
	root := filepath.Join(j.Folder, ".root")
	_ = os.Mkdir(root, 0o700) // if it fails, so does the script
	cmd.Path, cmd.Err = "/bin/sh", nil
	cmd.Args = append([]string{"sh", "-c", script, "sh", j.Path}, j.Args...)
	cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "P="+strings.Join(paths, "\n"), "R="+root, "W="+j.Folder)
	a := cmd.SysProcAttr
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWUTS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// namespacesWork tries once whether namespaces work here, and returns nil or the reason why not.
var namespacesWork = sync.OnceValue(func() error {
	for _, t := range tools {
		found := false
		for _, dir := range shells {
			i, err := os.Stat(filepath.Join(dir, t))
			found = found || err == nil && i.Mode()&0o111 != 0
		}
		if !found {
			return fmt.Errorf("namespaces are laid out with %s, which is in none of %s", t, strings.Join(shells, ", "))
		}
	}
	dir, err := os.MkdirTemp("", "mlxc-cage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	messages := &limited{most: messageBytes}
	j := Job{Path: "/bin/sh", Args: []string{"-c", ":"}, Folder: dir, Limits: Default}
	if err := start(ctx, Namespaces, j, &limited{most: messageBytes}, messages); err != nil {
		return fmt.Errorf("namespaces: %w", errors.Join(err, errors.New(messages.String())))
	}
	return nil
})
