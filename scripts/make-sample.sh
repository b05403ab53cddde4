#!/usr/bin/env bash
# Makes the bundled sample asset: rings on a pond with a running clock, 20 s, in assets/sample/.
#
#   360p.mp4   H.264 640x360, AAC in English and German, English subtitles (tx3g)
#   180p.mp4   H.264 320x180
#   deu.vtt    German subtitles
#
# H.264 has B-frames and closed GOPs of 2 s. One note a second: high and rising for English, low and falling for
# German. The same ffmpeg build gives the same bytes again.
#
# usage: scripts/make-sample.sh [FOLDER]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/assets/sample}
font=${FONT:-/usr/share/fonts/truetype/dejavu/DejaVuSansMono-Bold.ttf}
seconds=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for need in ffmpeg "$font"; do
    if ! command -v "$need" >/dev/null && [[ ! -r $need ]]; then
        echo "make-sample: $need is missing (Debian: apt-get install ffmpeg fonts-dejavu-core)" >&2
        exit 1
    fi
done

# Rings of one drop: fell at second $1 on ($2, $3), fades with its age and with the distance to the ring's front.
ring() {
    local age="mod(T-$1+$seconds,10)" distance="hypot(X-$2,(Y-$3)*1.6)"
    echo "sin($distance*0.32-$age*14)*exp(-$age*0.55)*exp(-abs($distance-$age*44)*0.045)"
}

water="$(ring 0 96 60)+$(ring 2.5 232 122)+$(ring 5 160 90)+$(ring 7.5 48 140)"
picture="geq=lum='74+Y*0.22+46*($water)':cb='146-Y*0.03':cr='108+Y*0.04'"

clock="drawtext=fontfile=$font:fontsize=64:fontcolor=white:shadowcolor=black@0.5:shadowx=2:shadowy=2"
clock+=":x=(w-text_w)/2:y=(h-text_h)/2:text='%{eif\:floor(t)\:d\:2}.%{eif\:mod(n\,25)\:d\:2}'"
name="drawtext=fontfile=$font:fontsize=26:fontcolor=white@0.8:x=24:y=22:text=millpond"

# One plucked note a second out of the four named, in Hz.
notes() {
    local pitch="st(1,mod(floor(t),4))*0+if(eq(ld(1),0),$1,if(eq(ld(1),1),$2,if(eq(ld(1),2),$3,$4)))"
    local tone="(sin(2*PI*ld(0)*t)+0.4*sin(4*PI*ld(0)*t)+0.15*sin(6*PI*ld(0)*t))"
    echo "aevalsrc=exprs='st(0,$pitch)*0+0.34*$tone*exp(-3.2*mod(t,1))*min(1,mod(t,1)*200)':s=48000:d=$seconds"
}

cat >"$work/eng.srt" <<'SRT'
1
00:00:00,500 --> 00:00:03,500
A drop falls on the pond.

2
00:00:04,000 --> 00:00:07,500
The rings run out,
and the water keeps them for a while.

3
00:00:08,000 --> 00:00:11,500
The stream brings water once.

4
00:00:12,000 --> 00:00:15,500
The mill takes it as often as it likes.

5
00:00:16,000 --> 00:00:19,500
The clock shows seconds and frames.
SRT

mkdir -p "$out"
cat >"$out/deu.vtt" <<'VTT'
WEBVTT

1
00:00:00.500 --> 00:00:03.500
Ein Tropfen fällt auf den Teich.

2
00:00:04.000 --> 00:00:07.500
Die Ringe laufen aus,
und das Wasser behält sie eine Weile.

3
00:00:08.000 --> 00:00:11.500
Der Bach bringt das Wasser <i>einmal</i>.

4
00:00:12.000 --> 00:00:15.500
Die Mühle nimmt es, so oft sie will.

5
00:00:16.000 --> 00:00:19.500
Die Uhr zeigt Sekunden und Bilder.
VTT

exact=(-fflags +bitexact -flags +bitexact -map_metadata -1 -threads 1)
avc=(-c:v libx264 -preset slower -pix_fmt yuv420p -bf 3 -g 50 -keyint_min 50 -sc_threshold 0
    -x264-params "open-gop=0:b-pyramid=normal:rc-lookahead=50")
aac=(-c:a aac -b:a 64k -ac 2)

ffmpeg -nostdin -hide_banner -loglevel error -y -filter_complex_threads 1 -filter_threads 1 \
    -f lavfi -i "color=black:s=320x180:r=25:d=$seconds" \
    -f lavfi -i "$(notes 440 554.37 659.26 880)" \
    -f lavfi -i "$(notes 293.66 220 174.61 146.83)" \
    -i "$work/eng.srt" \
    -filter_complex "[0:v]format=yuv444p,$picture,scale=640:360:flags=bicubic,$clock,$name,split[large][copy];
        [copy]scale=320:180:flags=area[small]" \
    -map "[large]" -map 1:a -map 2:a -map 3:s "${exact[@]}" \
    "${avc[@]}" -profile:v high -b:v 350k -maxrate 450k -bufsize 700k "${aac[@]}" -c:s mov_text \
    -metadata:s:a:0 language=eng -metadata:s:a:0 title=English \
    -metadata:s:a:1 language=deu -metadata:s:a:1 title=Deutsch \
    -metadata:s:s:0 language=eng -metadata:s:s:0 title=English \
    -disposition:a:0 default -disposition:a:1 0 -disposition:s:0 default \
    -movflags +faststart "$out/360p.mp4" \
    -map "[small]" "${exact[@]}" "${avc[@]}" -profile:v main -b:v 120k -maxrate 160k -bufsize 240k \
    -movflags +faststart "$out/180p.mp4"

ls -l "$out"
