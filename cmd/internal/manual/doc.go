// Package manual makes of a command's kong model what its users' shells and man want: completions for bash, zsh and fish, and a
// manual page. They are printed by the programs themselves (mlxc completion bash, mlxc manual), so that they are never older than
// these. It knows commands of one level, as ours have.
package manual
