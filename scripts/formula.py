#!/usr/bin/env python3
"""Prints the Homebrew formula of a release, from its archives and their digests.

    scripts/formula.py 0.2.0 dist >mlxc.rb

dist is the folder of the release's archives with checksums.txt, as goreleaser leaves it. Each archive is read, and its digest
compared with what checksums.txt says, before the formula names it.
"""

import hashlib
import pathlib
import sys

FORMULA = """\
# Made by scripts/formula.py of the release's archives.
class Mlxc < Formula
  desc "Compiler toolchain for GPU dispatch graphs: record, optimize, prove, replay"
  homepage "https://github.com/mlxc/mlxc"
  version "{version}"
  license "Apache-2.0"

  on_macos do
    depends_on arch: :arm64
    depends_on macos: :monterey
    url "{base}/{darwin_arm64}"
    sha256 "{darwin_arm64_sha}"
  end

  on_linux do
    on_arm do
      url "{base}/{linux_arm64}"
      sha256 "{linux_arm64_sha}"
    end
    on_intel do
      url "{base}/{linux_amd64}"
      sha256 "{linux_amd64_sha}"
    end
  end

  def install
    bin.install "mlxc", "mlxreplay"
    man1.install Dir["man/*.1"]
    ["mlxc", "mlxreplay"].each do |program|
      bash_completion.install "completions/#{{program}}.bash" => program
      zsh_completion.install "completions/_#{{program}}"
      fish_completion.install "completions/#{{program}}.fish"
    end
  end

  test do
    assert_match "mlxc v#{{version}}", shell_output("#{{bin}}/mlxc --version")
    assert_match "cpu", shell_output("#{{bin}}/mlxreplay devices")
  end
end
"""


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/formula.py VERSION FOLDER")
    version, dist = sys.argv[1].removeprefix("v"), pathlib.Path(sys.argv[2])
    said = {}
    for line in (dist / "checksums.txt").read_text().splitlines():
        digest, name = line.split()
        said[name.lstrip("*")] = digest
    fields = {"version": version, "base": f"https://github.com/mlxc/mlxc/releases/download/v{version}"}
    for target in ("darwin_arm64", "linux_arm64", "linux_amd64"):
        name = f"mlxc_{version}_{target}.tar.gz"
        digest = hashlib.sha256((dist / name).read_bytes()).hexdigest()
        if said.get(name) != digest:
            sys.exit(f"{name} has the digest {digest}, and checksums.txt says {said.get(name)}")
        fields[target], fields[target + "_sha"] = name, digest
    sys.stdout.write(FORMULA.format(**fields))


if __name__ == "__main__":
    main()
