#!/usr/bin/env bash
# Fetches the players of the page, at the versions pinned here, into crates/millpond-server/page/vendor/,
# and writes VENDOR.md there. With --check it only compares what is there with VENDOR.md.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$root/crates/millpond-server/page/vendor

# package | version | licence | file in the package | name here | licence file in the package | its name here
players='
hls.js|1.7.4|Apache-2.0|dist/hls.min.js|hls.min.js|LICENSE|hls.LICENSE.txt
dashjs|5.2.1|BSD-3-Clause|dist/modern/umd/dash.all.min.js|dash.all.min.js|LICENSE.md|dash.LICENSE.txt
shaka-player|5.2.12|Apache-2.0|dist/shaka-player.compiled.js|shaka-player.compiled.js|LICENSE|shaka-player.LICENSE.txt
'

rows() { grep -v '^$' <<<"$players"; }
digest() { sha256sum "$1" | cut -d ' ' -f 1; }

check() {
    local wrong=0 name sum
    while IFS='|' read -r _ _ _ _ name _ _; do
        sum=$(sed -n "s/^| \`$name\` .*\`\([0-9a-f]\{64\}\)\`.*/\1/p" "$folder/VENDOR.md")
        if [[ ! -f $folder/$name || $(digest "$folder/$name") != "$sum" ]]; then
            echo "vendor-players: $name isn't the file that VENDOR.md names" >&2
            wrong=1
        fi
    done < <(rows)
    return "$wrong"
}

fetch() {
    local work package version licence file name text text_name
    work=$(mktemp -d)
    trap 'rm -rf "$work"' RETURN
    mkdir -p "$folder"
    {
        echo "# Players in this folder"
        echo
        echo "Unchanged files of published packages, built into the program so that the page works without internet."
        echo "\`scripts/vendor-players.sh\` fetches them again; \`scripts/vendor-players.sh --check\` compares."
        echo
        echo "| file | package | version | licence | sha256 |"
        echo "|---|---|---|---|---|"
    } >"$work/VENDOR.md"
    while IFS='|' read -r package version licence file name text text_name; do
        mkdir "$work/$name"
        (cd "$work" && npm pack --silent "$package@$version" >/dev/null)
        tar -xzf "$work/$package-$version.tgz" -C "$work/$name"
        # Maps aren't shipped: without the reference to them browsers don't ask for them.
        sed '/^\/\/# sourceMappingURL=/d' "$work/$name/package/$file" >"$folder/$name"
        sed 's/\r$//' "$work/$name/package/$text" >"$folder/$text_name"
        echo "| \`$name\` | $package | $version | [$licence]($text_name) | \`$(digest "$folder/$name")\` |" >>"$work/VENDOR.md"
    done < <(rows)
    mv "$work/VENDOR.md" "$folder/VENDOR.md"
}

case ${1:-} in
    --check) check ;;
    '') fetch && check ;;
    *) echo "usage: vendor-players.sh [--check]" >&2; exit 2 ;;
esac
