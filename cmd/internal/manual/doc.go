// Package manual makes of a command's kong model what its users' shells and man want: completions for bash, zsh and fish, and a
// manual page. They are printed by the programs themselves (mlxc completion bash, mlxc manual), so that they are never older than
// these. It knows commands of one level, as ours have.
//
// Libraries that do this for kong (miekg/king, willabides/kongplete) offer no names of files for arguments, leave the brackets
// and quotes of help texts to the shell, or are asked by the shell at each word; the pages would need tags of their own.
package manual
