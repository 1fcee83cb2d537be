// Package cli is what the commands mlxc and mlxreplay share: how they run, fail, print
// tables and show progress. The commands themselves are in cmd/internal/mlxc and
// cmd/internal/mlxreplay, with one file for each subcommand.
//
//	func Main(args []string) int { return cli.Run("mlxc", "A compiler …", &grammar{}, args) }
//
// Exit codes: 0 ok, 1 failed check, 2 bad usage, 3 bad input, 130 interrupted
// (Ctrl-C), 143 terminated (SIGTERM), 129 hung up (SIGHUP).
package cli
